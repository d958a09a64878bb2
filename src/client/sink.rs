//! Where a call's answer is collected.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dispatch::transport::Spool;

/// Bytes of an answer's body that are handed over, unless others are asked for.
const MOST: usize = 64 * 1024 * 1024;

/// The answer of the latest try.
#[derive(Debug)]
pub(super) struct Sink {
    most: usize,
    into: Option<Arc<dyn Spool>>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cut: bool,
}

impl Sink {
    pub fn new(most: Option<usize>, into: Option<Arc<dyn Spool>>) -> Sink {
        Sink { most: most.unwrap_or(MOST), into, kept: Mutex::default() }
    }

    /// Header fields, body, and whether there was more.
    pub fn take(&self) -> (Vec<(String, String)>, Vec<u8>, bool) {
        let Kept { headers, body, cut } = std::mem::take(&mut *self.kept());
        (headers, body, cut)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What was kept before a panic is as good as ever.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spool for Sink {
    fn begin(&self, status: u16, headers: &[(String, String)]) -> io::Result<()> {
        *self.kept() = Kept { headers: headers.to_vec(), ..Kept::default() };
        self.into.as_ref().map_or(Ok(()), |into| into.begin(status, headers))
    }

    fn write(&self, part: &[u8]) -> io::Result<bool> {
        if let Some(into) = &self.into {
            return into.write(part);
        }
        let mut kept = self.kept();
        let room = self.most.saturating_sub(kept.body.len());
        kept.cut |= part.len() > room;
        kept.body.extend_from_slice(part.get(..room).unwrap_or(part));
        Ok(kept.cut)
    }
}
