//! The one thread that writes. Wishes that wait together share a transaction, each in a savepoint of
//! its own: one that fails takes nothing with it; one that is alone needs none. Answers leave only after the commit.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::{Sync, queries, schema, trouble};
use crate::clock::{Now, Timeline};
use crate::store::StoreError;

/// Whether a commit must reach the disk before it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// A kill loses nothing; a power cut may lose the latest commits.
    Normal,
    /// A power cut loses nothing either.
    Synced,
}

/// Where SQLite keeps the pages that it needs to undo one statement of many: in a transaction of settles
/// and claims these are several times what is written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scratch {
    Memory,
    /// For work that may touch any number of rows.
    Disk,
}

/// The transaction that a transition works in.
pub(super) struct Txn<'c> {
    pub conn: &'c Connection,
    /// Read once the write lock was held.
    pub now: Now,
}

/// Tells the caller, once the commit's end is known.
type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What came of a wish before the commit: whether its changes stay, and who is to be told.
struct Outcome {
    keep: bool,
    reply: Reply,
}

/// Does the work in a transaction; or, where there is none, is told why.
type Run = Box<dyn FnOnce(Result<&Txn<'_>, StoreError>) -> Outcome + Send>;

struct Wish {
    durability: Durability,
    scratch: Scratch,
    run: Run,
}

/// The way to the writing thread.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    way: Way,
    commits: watch::Receiver<u64>,
}

enum Way {
    Thread { wishes: Option<Sender<Wish>>, thread: Option<JoinHandle<()>> },
    Here(Box<Mutex<Desk>>),
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Way::Thread { .. } => "Thread",
            Way::Here(_) => "Here",
        })
    }
}

/// A transaction takes in at most this many wishes.
const GROUP: usize = 64;

impl Writer {
    pub fn start(
        conn: Connection,
        path: &Path,
        timeline: &Timeline,
        sync: Sync,
        threaded: bool,
    ) -> Result<Writer, StoreError> {
        let (told, commits) = watch::channel(0);
        let mut desk = Desk {
            conn,
            path: path.to_owned(),
            timeline: timeline.clone(),
            sync,
            synced: None,
            scratch: None,
            told,
            identity: identity(path),
        };
        let way = if threaded {
            let checkpoints = schema::Checkpoints::start(path)?;
            let (wishes, inbox) = channel();
            let work = move || desk.serve(&inbox, &checkpoints);
            let thread = std::thread::Builder::new().name("store".to_owned()).spawn(work);
            let thread = thread.map_err(|error| StoreError::Open {
                path: path.to_owned(),
                source: error.into(),
            })?;
            Way::Thread { wishes: Some(wishes), thread: Some(thread) }
        } else {
            Way::Here(Box::new(Mutex::new(desk)))
        };
        Ok(Writer { path: path.to_owned(), way, commits })
    }

    /// Has `work` done in a transaction, perhaps with others' work beside it, and answers once that is
    /// committed.
    pub async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.grant(durability, Scratch::Disk, work).await
    }

    /// As [`Writer::write`], of work on as many rows as calls are in flight.
    pub async fn write_calls<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.grant(durability, Scratch::Memory, work).await
    }

    async fn grant<T: Send + 'static>(
        &self,
        durability: Durability,
        scratch: Scratch,
        work: impl FnOnce(&Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let path = self.path.clone();
        let run = move |txn: Result<&Txn<'_>, StoreError>| {
            let done = txn.and_then(|txn| work(txn).map_err(|error| trouble::of(&path, error)));
            Outcome {
                keep: done.is_ok(),
                // The caller may have gone away; its work is committed all the same.
                reply: Box::new(move |committed| drop(answer.send(committed.and(done)))),
            }
        };
        let wish = Wish { durability, scratch, run: Box::new(run) };
        match &self.way {
            Way::Thread { wishes, .. } => {
                let sent = wishes.as_ref().map(|wishes| wishes.send(wish));
                if !matches!(sent, Some(Ok(()))) {
                    return Err(StoreError::Closed { path: self.path.clone() });
                }
            }
            Way::Here(desk) => {
                desk.lock().unwrap_or_else(PoisonError::into_inner).commit(vec![wish]);
            }
        }
        let closed = || StoreError::Closed { path: self.path.clone() };
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    /// How many groups this process has committed.
    pub fn commits(&self) -> u64 {
        *self.commits.borrow()
    }

    /// Resolves once this process has committed more than `seen` groups.
    pub async fn committed_since(&self, seen: u64) {
        let mut commits = self.commits.clone();
        if commits.wait_for(|count| *count > seen).await.is_err() {
            // The thread is gone and nothing will be committed any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Writer {
    /// Lets the thread finish what was asked of it.
    fn drop(&mut self) {
        if let Way::Thread { wishes, thread } = &mut self.way {
            drop(wishes.take());
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// Who writes.
struct Desk {
    conn: Connection,
    path: PathBuf,
    timeline: Timeline,
    sync: Sync,
    synced: Option<Durability>,
    scratch: Option<Scratch>,
    told: watch::Sender<u64>,
    /// Which file it was when it was opened.
    identity: Option<(u64, u64)>,
}

impl Desk {
    fn serve(&mut self, inbox: &Receiver<Wish>, checkpoints: &schema::Checkpoints) {
        while let Ok(first) = inbox.recv() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(next) = inbox.try_recv()
            {
                group.push(next);
            }
            self.commit(group);
            checkpoints.wake();
        }
    }

    fn commit(&mut self, group: Vec<Wish>) {
        let durability = group.iter().map(|wish| wish.durability).max();
        let scratch = group.iter().map(|wish| wish.scratch).max();
        let began =
            self.begin(durability.unwrap_or(Durability::Normal), scratch.unwrap_or(Scratch::Disk));
        let before = self.conn.total_changes();
        let txn = Txn { conn: &self.conn, now: self.timeline.now() };
        let mut replies = Vec::with_capacity(group.len());
        let is_lone = group.len() == 1;
        let mut undone = false;
        for wish in group {
            replies.push(match &began {
                Ok(()) if is_lone => alone(&txn, wish, &mut undone),
                Ok(()) => in_savepoint(&txn, wish, &self.path),
                Err(error) => (wish.run)(Err(again(&self.path, error))).reply,
            });
        }
        let changed = self.conn.total_changes() != before && !undone;
        let ended = began.and_then(|()| if undone { Ok(()) } else { self.end(changed) });
        if changed && ended.is_ok() {
            self.told.send_modify(|count| *count += 1);
        }
        for reply in replies {
            reply(ended.as_ref().map(drop).map_err(|error| again(&self.path, error)));
        }
    }

    fn begin(&mut self, durability: Durability, scratch: Scratch) -> rusqlite::Result<()> {
        // SQLite would go on writing to a file that has no name any more.
        if identity(&self.path) != self.identity {
            let moved = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
            return Err(rusqlite::Error::SqliteFailure(moved, None));
        }
        let durability = match self.sync {
            Sync::All => Durability::Synced,
            Sync::Charges => durability,
        };
        if self.synced != Some(durability) {
            let full = durability == Durability::Synced;
            let pragma = if full { queries::SYNC_FULL } else { queries::SYNC_NORMAL };
            self.conn.execute_batch(pragma)?;
            self.synced = Some(durability);
        }
        if self.scratch != Some(scratch) {
            let memory = scratch == Scratch::Memory;
            let pragma = if memory { queries::SCRATCH_MEMORY } else { queries::SCRATCH_DISK };
            self.conn.execute_batch(pragma)?;
            self.scratch = Some(scratch);
        }
        self.conn.prepare_cached(queries::BEGIN)?.execute([]).map(drop)
    }

    fn end(&self, changed: bool) -> rusqlite::Result<()> {
        let now = self.timeline.now();
        let finish = || {
            if changed {
                let mut seen = self.conn.prepare_cached(queries::STORE_SEEN)?;
                seen.execute([now.store.as_nanos()])?;
            }
            self.conn.prepare_cached(queries::COMMIT)?.execute([]).map(drop)
        };
        finish().inspect_err(|_| {
            // Where the commit failed the transaction may be open still; where not, this is refused.
            let _ = self.conn.execute_batch(queries::ROLLBACK);
        })
    }
}

/// Nobody else's work could be lost with it: the transaction itself is what is undone. A savepoint would
/// have SQLite keep a copy of each page that it changes.
fn alone(txn: &Txn<'_>, wish: Wish, undone: &mut bool) -> Reply {
    let outcome = (wish.run)(Ok(txn));
    if !outcome.keep {
        // Grave trouble may have undone it already.
        let _ = txn.conn.execute_batch(queries::ROLLBACK);
        *undone = true;
    }
    outcome.reply
}

fn in_savepoint(txn: &Txn<'_>, wish: Wish, path: &Path) -> Reply {
    let step = |sql: &str| txn.conn.prepare_cached(sql).and_then(|mut s| s.execute([]));
    // Grave trouble (a full disk, say) makes SQLite take the whole transaction back; what comes after
    // must not run outside of one, and the commit will fail for those before.
    if let Err(error) = step(queries::SAVEPOINT) {
        return (wish.run)(Err(trouble::of(path, error))).reply;
    }
    if txn.conn.is_autocommit() {
        let _ = txn.conn.execute_batch(queries::SAVEPOINT_UNDO);
        return (wish.run)(Err(StoreError::Full { path: path.to_owned() })).reply;
    }
    let outcome = (wish.run)(Ok(txn));
    let end = if outcome.keep { queries::SAVEPOINT_KEEP } else { queries::SAVEPOINT_UNDO };
    if txn.conn.execute_batch(end).is_err() {
        let _ = txn.conn.execute_batch(queries::ROLLBACK);
    }
    outcome.reply
}

/// The same error once more: rusqlite's cannot be cloned.
fn again(path: &Path, error: &rusqlite::Error) -> StoreError {
    let copy = match error {
        rusqlite::Error::SqliteFailure(code, text) => {
            rusqlite::Error::SqliteFailure(*code, text.clone())
        }
        other => rusqlite::Error::ToSqlConversionFailure(other.to_string().into()),
    };
    trouble::of(path, copy)
}

/// Tells a file from any other, whatever its name.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Elsewhere an open file cannot be deleted.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}
