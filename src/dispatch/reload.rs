//! A quota file that changed is taken up while jobs wait, and told of.

use std::sync::Arc;

use super::auth::Tokens;
use super::{Event, Tell};
use crate::quota::Upstream;
use crate::quota::library::Library;

/// What a changed quota file declares now.
pub(super) struct Reloaded {
    pub upstream: Arc<Upstream>,
    /// Tokens are got in another way than those that were got, or could not be.
    pub is_other_way: bool,
}

/// Reads the upstream's files again where one of them changed. An invalid one is told of, and the last good one
/// stays in force.
pub(super) fn reload(
    library: &Library,
    name: &str,
    tokens: &Tokens,
    tell: &Tell,
) -> Option<Reloaded> {
    let (reloaded, problem) = match library.reload(name) {
        Ok(None) => return None,
        Ok(Some(upstream)) => {
            let is_other_way = tokens.change(&upstream);
            (Some(Reloaded { upstream, is_other_way }), None)
        }
        Err(error) => (None, Some(error.to_string())),
    };
    tell(&Event::QuotaChanged { upstream: name.to_owned(), problem });
    reloaded
}
