//! As `watch`, where the system tells of no writes.

use std::path::Path;

use super::count::Count;

/// There is none.
#[derive(Debug)]
pub(super) enum Watch {}

impl Watch {
    pub fn start(_: &Path) -> Option<Watch> {
        None
    }

    pub fn looks(&self) -> &Count {
        match *self {}
    }
}
