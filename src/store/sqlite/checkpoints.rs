//! The write-ahead log is copied back into the store beside the commits, and then begun anew.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::{queries, schema, trouble};
use crate::store::StoreError;

/// The log is copied back once so many pages of it are not.
const CHECKPOINT_PAGES: i64 = 1000;

/// How often the log is looked at, while there are commits.
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(500);

/// A log of so many pages begins anew as soon as it can: one that grows on takes the disk's room, and costs each
/// synced commit a second write.
const LONG: i64 = 16_000;

/// It can where all of it is copied back and nobody adds to it. That never comes beside commits without a
/// pause, so the writer itself copies the last, where that is no more than so many pages.
const LAST_PAGES: i64 = 2000;

/// A thread with a connection of its own that copies the log back, so that no commit waits for more than the last of it.
#[derive(Debug)]
pub(super) struct Checkpoints {
    state: Arc<(Mutex<State>, Condvar)>,
    /// Only the last pages are left.
    nearly: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Committed,
    Leaving,
}

impl Checkpoints {
    /// Of commits by `writer`, which itself copies nothing back any more but at [`Checkpoints::committed`].
    pub fn start(path: &Path, writer: &Connection) -> Result<Checkpoints, StoreError> {
        let apart = writer.pragma_update(None, "wal_autocheckpoint", 0);
        apart.map_err(|error| trouble::of(path, error))?;
        let conn = schema::connect(path, 1)?;
        let state = Arc::new((Mutex::new(State::Idle), Condvar::new()));
        let nearly = Arc::new(AtomicBool::new(false));
        let copier = Copier { conn, state: Arc::clone(&state), nearly: Arc::clone(&nearly) };
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || copier.serve())
            .map_err(|error| StoreError::Open { path: path.to_owned(), source: error.into() })?;
        Ok(Checkpoints { state, nearly, thread: Some(thread) })
    }

    /// There was a commit, of the connection that commits.
    pub fn committed(&self, conn: &Connection) {
        if self.nearly.swap(false, Ordering::Relaxed) && Log::of(conn).is_to_end() {
            copy_back(conn);
        }
        self.tell(State::Committed);
    }

    fn tell(&self, told: State) {
        let (state, changed) = &*self.state;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state != told {
            *state = told;
            changed.notify_one();
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.tell(State::Leaving);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's part.
struct Copier {
    conn: Connection,
    state: Arc<(Mutex<State>, Condvar)>,
    nearly: Arc<AtomicBool>,
}

impl Copier {
    fn serve(&self) {
        let (state, changed) = &*self.state;
        let mut seen = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *seen {
                State::Leaving => return,
                State::Idle => {
                    seen = changed.wait(seen).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                State::Committed => *seen = State::Idle,
            }
            drop(seen);
            self.look();
            seen = state.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen != State::Leaving {
                let waited =
                    changed.wait_timeout_while(seen, CHECKPOINT_INTERVAL, |s| *s != State::Leaving);
                seen = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn look(&self) {
        if Log::of(&self.conn).left() < CHECKPOINT_PAGES {
            return;
        }
        copy_back(&self.conn);
        self.nearly.store(Log::of(&self.conn).is_to_end(), Ordering::Relaxed);
    }
}

/// How far the log has come.
#[derive(Default)]
struct Log {
    pages: i64,
    copied: i64,
}

impl Log {
    /// Where nobody can tell just now, nothing is to be done.
    fn of(conn: &Connection) -> Log {
        let log = conn.query_row(queries::CHECKPOINT_NONE, [], |row| {
            Ok(Log { pages: row.get("log")?, copied: row.get("checkpointed")? })
        });
        log.unwrap_or_default()
    }

    fn left(&self) -> i64 {
        self.pages - self.copied
    }

    /// Whether the writer is to copy the last of it.
    fn is_to_end(&self) -> bool {
        self.pages >= LONG && (1..=LAST_PAGES).contains(&self.left())
    }
}

/// What no reader needs in the log any more is copied back; what cannot be copied now is copied the next time.
fn copy_back(conn: &Connection) {
    let _ = conn.query_row(queries::CHECKPOINT, [], |_| Ok(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_grew_long_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queue.db");
        let conn = schema::open(&path).unwrap();
        let checkpoints = Checkpoints::start(&path, &conn).unwrap();
        let write = |pages: i64| {
            let sql = "INSERT INTO body VALUES (NULL, zeroblob(4096 * ?1), 0, 0, 1)";
            conn.execute(sql, [pages]).unwrap();
            checkpoints.committed(&conn);
        };
        write(LONG);
        let long = Log::of(&conn).pages;
        assert!(long >= LONG);
        // Commits go on and on: without the writer's part none of them would find all copied back.
        let anew = (0..6000).any(|_| {
            write(1);
            std::thread::sleep(Duration::from_millis(5));
            Log::of(&conn).pages < long
        });
        assert!(anew);
    }
}
