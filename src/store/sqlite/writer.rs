//! The one thread that writes. Wishes that wait together share a transaction; where one of them fails, each
//! gets one of its own: none takes another one with it. Answers leave only after the commit.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::checkpoints::Checkpoints;
use super::count::{Count, Rise, count};
use super::{Sync, queries, trouble};
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

/// What somebody wants done in a transaction.
struct Wish {
    durability: Durability,
    scratch: Scratch,
    task: Box<dyn Task>,
}

/// Work, and who waits for what comes of it.
trait Task: Send {
    /// Works; once more from the beginning, where the transaction was undone. `last`: never again.
    fn work(&mut self, txn: &Txn<'_>, last: bool) -> rusqlite::Result<()>;

    /// Tells how the transaction ended, which nobody may hear before.
    fn tell(self: Box<Self>, ended: Result<(), StoreError>);
}

struct Work<T, F> {
    /// With what it is made of, which may be large; gone when it was done for the last time.
    work: Option<F>,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&Txn<'_>) -> rusqlite::Result<T> + Send> Task for Work<T, F> {
    fn work(&mut self, txn: &Txn<'_>, last: bool) -> rusqlite::Result<()> {
        self.done = self.work.as_mut().map(|work| work(txn)).transpose()?;
        if last {
            self.work = None;
        }
        Ok(())
    }

    fn tell(self: Box<Self>, ended: Result<(), StoreError>) {
        let Work { done, answer, .. } = *self;
        if let Some(told) = ended.map_or_else(|error| Some(Err(error)), |()| done.map(Ok)) {
            // The caller may have gone away; its work is committed all the same.
            let _ = answer.send(told);
        }
    }
}

/// The way to the writing thread.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    way: Way,
    commits: Count,
}

enum Way {
    Thread { wishes: Option<Sender<Wish>>, thread: Option<JoinHandle<()>> },
    Here(Box<Mutex<Scribe>>),
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
        let (told, commits) = count();
        let mut scribe = Scribe {
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
            let checkpoints = Checkpoints::start(path, &scribe.conn)?;
            let (wishes, inbox) = channel();
            let work = move || scribe.serve(&inbox, &checkpoints);
            let thread = std::thread::Builder::new().name("store".to_owned()).spawn(work);
            let thread = thread.map_err(|error| StoreError::Open {
                path: path.to_owned(),
                source: error.into(),
            })?;
            Way::Thread { wishes: Some(wishes), thread: Some(thread) }
        } else {
            Way::Here(Box::new(Mutex::new(scribe)))
        };
        Ok(Writer { path: path.to_owned(), way, commits })
    }

    /// Has `work` done in a transaction, perhaps with others' work beside it, and answers once that is
    /// committed. Where others' work failed it may be done again, from the beginning.
    pub async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnMut(&Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.grant(durability, Scratch::Disk, work).await
    }

    /// As [`Writer::write`], of work on as many rows as calls are in flight.
    pub async fn write_calls<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnMut(&Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.grant(durability, Scratch::Memory, work).await
    }

    async fn grant<T: Send + 'static>(
        &self,
        durability: Durability,
        scratch: Scratch,
        work: impl FnMut(&Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let task = Box::new(Work { work: Some(work), done: None, answer });
        let wish = Wish { durability, scratch, task };
        let closed = || StoreError::Closed { path: self.path.clone() };
        match &self.way {
            Way::Thread { wishes, .. } => {
                let sent = wishes.as_ref().map(|wishes| wishes.send(wish));
                if !matches!(sent, Some(Ok(()))) {
                    return Err(closed());
                }
            }
            Way::Here(scribe) => {
                scribe.lock().unwrap_or_else(PoisonError::into_inner).grant(vec![wish]);
            }
        }
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    /// The groups that this process has committed.
    pub fn commits(&self) -> &Count {
        &self.commits
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

/// Why a transaction came to nothing.
enum Failed {
    /// One of its wishes cannot be granted.
    Work(rusqlite::Error),
    /// The store cannot be written.
    Commit(rusqlite::Error),
}

/// Who writes.
struct Scribe {
    conn: Connection,
    path: PathBuf,
    timeline: Timeline,
    sync: Sync,
    synced: Option<Durability>,
    scratch: Option<Scratch>,
    told: Rise,
    /// Which file it was when it was opened.
    identity: Option<(u64, u64)>,
}

impl Scribe {
    fn serve(&mut self, inbox: &Receiver<Wish>, checkpoints: &Checkpoints) {
        while let Ok(first) = inbox.recv() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(next) = inbox.try_recv()
            {
                group.push(next);
            }
            self.grant(group);
            checkpoints.committed(&self.conn);
        }
    }

    /// Grants the wishes together; or, where one of them fails, each by itself: so none takes another one's
    /// work with it, and no savepoint is needed, for which SQLite would keep a copy of each changed page.
    fn grant(&mut self, mut group: Vec<Wish>) {
        match self.commit(&mut group) {
            Err(Failed::Work(_)) if group.len() > 1 => {
                group.into_iter().for_each(|wish| self.grant(vec![wish]));
            }
            ended => {
                let ended = ended.map_err(|(Failed::Work(error) | Failed::Commit(error))| error);
                for wish in group {
                    wish.task
                        .tell(ended.as_ref().map(drop).map_err(|error| again(&self.path, error)));
                }
            }
        }
    }

    /// All of it is committed, or nothing.
    fn commit(&mut self, group: &mut [Wish]) -> Result<(), Failed> {
        let durability = group.iter().map(|wish| wish.durability).max();
        let scratch = group.iter().map(|wish| wish.scratch).max();
        let (durability, scratch) =
            (durability.unwrap_or(Durability::Normal), scratch.unwrap_or(Scratch::Disk));
        self.begin(durability, scratch).map_err(Failed::Commit)?;
        let before = self.conn.total_changes();
        let txn = Txn { conn: &self.conn, now: self.timeline.now() };
        let is_lone = group.len() == 1;
        let worked = group.iter_mut().try_for_each(|wish| wish.task.work(&txn, is_lone));
        let changed = self.conn.total_changes() != before;
        let ended = match worked {
            Ok(()) => self.end(changed).map_err(Failed::Commit),
            Err(error) => Err(Failed::Work(error)),
        };
        if ended.is_err() {
            // Grave trouble (a full disk, say) may have undone it already; then this is refused.
            let _ = self.conn.execute_batch(queries::ROLLBACK);
        } else if changed {
            self.told.by_one();
        }
        ended
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
        if changed {
            let mut seen = self.conn.prepare_cached(queries::STORE_SEEN)?;
            seen.execute([now.store.as_nanos()])?;
        }
        self.conn.prepare_cached(queries::COMMIT)?.execute([]).map(drop)
    }
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
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
