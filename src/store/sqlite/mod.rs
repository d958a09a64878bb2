//! The embedded store: SQLite in WAL mode, many processes on one machine.
//!
//! | file | noun |
//! | --- | --- |
//! | `contract` | the store's contract, handed on |
//! | `checkpoints` | the write-ahead log is copied back |
//! | `schema` | opening a file: what it is, its migrations, its pragmas |
//! | `writer` | the one thread that writes, in groups |
//! | `count` | a count that can be waited for |
//! | `watch`, `unwatched` | whether somebody writes; where no system tells |
//! | `trouble` | what SQLite's errors mean |
//! | `queries` | every statement |
//! | `add`, `claim`, `release`, `settle`, `sweep`, `acts`, `runners` | the transitions |
//! | `instances`, `usage`, `heard` | limit instances within one transaction, what is used and heard of them |
//! | `places` | where a partition waits |
//! | `inspect`, `results` | consistent reads for people |
//! | `fields` | a row's columns, by name |
//! | `body` | a kept answer, as it lies on disk |
//! | `copies`, `restored` | copies made while others write, and copies that become the store |
//! | `told` | holds that a person is told of, once |
//! | `health` | whether file, disk and clocks are as they should be |
//! | `tidy` | what nobody needs any more, and the room it took |

mod acts;
mod add;
mod body;
mod checkpoints;
mod claim;
mod contract;
mod copies;
mod count;
mod dedupe;
mod fields;
mod health;
mod heard;
mod inspect;
mod instances;
mod places;
mod queries;
mod release;
mod restored;
mod results;
mod runners;
mod schema;
mod settle;
mod sweep;
#[cfg(test)]
mod tests;
mod tidy;
mod told;
mod trouble;
mod usage;
#[cfg_attr(not(target_os = "linux"), path = "unwatched.rs")]
mod watch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::views::Tally;
use super::{RunnerId, StoreError};
use crate::clock::{Anchor, Clock, Now, Timeline, Timestamp};
use crate::quota::{LimitRule, Upstream};
pub use copies::{Aside, CopyError, backup, restore};
pub use health::Health;
pub use restored::Origin;
pub(crate) use runners::HeldLock;
use runners::RunnerLocks;
pub use schema::is_store;
use watch::Watch;
use writer::{Durability, Writer};

/// Which commits are synced to disk before they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Those that a power cut must not undo: units of budgets, marks of unrepeatable calls.
    #[default]
    Charges,
    /// All.
    All,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file; made where it is missing.
    pub path: PathBuf,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is synced.
    pub sync: Sync,
    /// Whether a thread of its own writes, so that many wishes share a transaction. Without it each
    /// call does its work at once on the caller's thread, and other processes are not watched: for
    /// tests on a virtual clock.
    pub threaded: bool,
}

impl Options {
    /// A store at `path` on this machine's clock.
    pub fn new(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Options { path: path.into(), clock, sync: Sync::Charges, threaded: true }
    }
}

/// A store in one SQLite file. Clones share it.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    timeline: Timeline,
    writer: Writer,
    reader: Mutex<Connection>,
    peek: Mutex<Peek>,
    locks: RunnerLocks,
    /// Whether other processes may write too.
    is_shared: bool,
    /// Begun by the first who waits.
    watch: OnceLock<Option<Watch>>,
}

/// What the cheap look for blocks and news remembers.
#[derive(Debug)]
struct Peek {
    conn: Connection,
    data_version: i64,
    /// Block and news sequence.
    seqs: (i64, i64),
    looked_at: Option<Timestamp>,
}

/// A look for blocks is not repeated sooner than this.
const PEEK_INTERVAL: Duration = Duration::from_millis(10);

/// How often a waiting process looks whether another one committed, where it is not told of writes.
const UNWATCHED_INTERVAL: Duration = Duration::from_millis(50);

/// The same where it is.
const WATCHED_INTERVAL: Duration = Duration::from_secs(1);

impl SqliteStore {
    /// Opens the file, or makes it, and brings its schema up to date.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or made, is no store, or is one of a newer program; it lies on a network file
    /// system; or its schema is old, and an older program is at work on it.
    pub fn open(options: Options) -> Result<SqliteStore, StoreError> {
        let path = options.path.clone();
        let conn = schema::open(&path)?;
        let at = |error| trouble::of(&path, error);
        let (anchor, seen_at) = anchor(&conn, options.clock.as_ref()).map_err(at)?;
        let timeline = Timeline::new(Arc::clone(&options.clock), anchor, seen_at);
        let reader = schema::connect(&path, 4)?;
        let peek = Peek {
            conn: schema::connect(&path, 1)?,
            data_version: -1,
            seqs: (0, 0),
            looked_at: None,
        };
        let writer = Writer::start(conn, &path, &timeline, options.sync, options.threaded)?;
        let locks = RunnerLocks::beside(&path);
        let inner = Inner {
            path,
            timeline,
            writer,
            reader: Mutex::new(reader),
            peek: Mutex::new(peek),
            locks,
            is_shared: options.threaded,
            watch: OnceLock::new(),
        };
        Ok(SqliteStore { inner: Arc::new(inner) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Looks whether the file is whole and its surroundings are well; reads all of the file.
    ///
    /// # Errors
    ///
    /// The store cannot answer.
    pub fn examine(&self) -> Result<Health, StoreError> {
        self.read(|conn, now| health::examine(conn, now, &self.inner.path, &self.inner.locks))
    }

    /// How many jobs are gone, with all that was known of them.
    ///
    /// # Errors
    ///
    /// The store cannot answer.
    pub fn pruned(&self) -> Result<u64, StoreError> {
        self.read(|conn, _| {
            let pruned: i64 = conn.query_row(queries::JOBS_PRUNED, [], |row| row.get(0))?;
            Ok(pruned.unsigned_abs())
        })
    }

    /// The jobs of an upstream by state; its quota file is not needed.
    ///
    /// # Errors
    ///
    /// The store cannot answer.
    pub fn tally_of(&self, upstream: &str) -> Result<Tally, StoreError> {
        self.read(|conn, _| inspect::tally(conn, Some(upstream)))
    }

    /// Makes a copy the store that is sent from, as the first runner on it would. `None`: it is no copy.
    ///
    /// # Errors
    ///
    /// The store cannot do its work.
    pub async fn adopt(&self) -> Result<Option<super::Restored>, StoreError> {
        self.inner.writer.write(Durability::Synced, restored::adopt).await
    }

    /// Nothing was sent since the copy was made that this store was restored from: its counts hold, and
    /// no window counts as spent for it.
    ///
    /// # Errors
    ///
    /// The store cannot do its work.
    pub async fn trust_counts(&self) -> Result<(), StoreError> {
        self.inner.writer.write(Durability::Synced, restored::trust).await
    }

    /// What there is to say of the store as a copy.
    ///
    /// # Errors
    ///
    /// The store cannot do its work.
    pub fn origin(&self) -> Result<Origin, StoreError> {
        self.read(restored::origin)
    }

    /// A handle on a runner's lock that child processes inherit: while one of them lives, the runner counts as
    /// alive.
    ///
    /// # Errors
    ///
    /// The runner has left, or the system has no more handles.
    pub(crate) fn share_lock(&self, runner: RunnerId) -> std::io::Result<HeldLock> {
        self.inner.locks.share(runner)
    }

    /// One consistent read. The closure sees the store at one moment.
    fn read<T>(
        &self,
        look: impl FnOnce(&Connection, Now) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let now = self.inner.timeline.now();
        let mut conn = self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let found = conn.transaction().and_then(|txn| look(&txn, now));
        found.map_err(|error| trouble::of(&self.inner.path, error))
    }
}

/// The saved anchor of this boot, or a new one, saved.
fn anchor(conn: &Connection, clock: &dyn Clock) -> rusqlite::Result<(Option<Anchor>, Timestamp)> {
    // Of processes that open it at once after a boot, one chooses for all.
    let txn = rusqlite::Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    let (boot_id, offset, seen_at) = txn.query_row(queries::STORE_ANCHOR, [], |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<i64>>(1)?, row.get(2)?))
    })?;
    let seen_at = Timestamp::from_nanos(seen_at);
    let Some(boot) = clock.boot() else { return Ok((None, seen_at)) };
    let saved = boot_id.zip(offset).map(|(boot_id, offset)| Anchor { boot_id, offset });
    let chosen = Anchor::choose(saved.as_ref(), &boot, clock.wall(), seen_at);
    if saved.as_ref() != Some(&chosen) {
        txn.execute(queries::STORE_SET_ANCHOR, (&chosen.boot_id, chosen.offset))?;
    }
    txn.commit()?;
    Ok((Some(chosen), seen_at))
}

/// Whether a claim of this upstream writes what a power cut must not undo.
fn durability(upstream: &Upstream) -> Durability {
    let charges = |rule: &LimitRule| matches!(rule, LimitRule::Budget(_) | LimitRule::Rolling(_));
    match upstream.limits.iter().any(|limit| charges(&limit.rule)) {
        true => Durability::Synced,
        false => Durability::Normal,
    }
}

impl Inner {
    fn watch(&self) -> Option<&Watch> {
        let start = || self.is_shared.then(|| Watch::start(&self.path)).flatten();
        self.watch.get_or_init(start).as_ref()
    }

    /// The groups that this process has committed, and the looks for others' commits that were due.
    fn stirs(&self) -> (u64, u64) {
        (self.writer.commits().now(), self.watch().map_or(0, |watch| watch.looks().now()))
    }

    /// Resolves when there may be something to see that was not at these [`Inner::stirs`].
    async fn stirred(&self, (commits, looks): (u64, u64)) {
        let looked = self.watch().map(Watch::looks).filter(|looks| looks.is_on());
        let interval = if looked.is_some() { WATCHED_INTERVAL } else { UNWATCHED_INTERVAL };
        let look_due = async {
            match looked {
                Some(looked) => looked.beyond(looks).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.writer.commits().beyond(commits) => {}
            () = look_due => {}
            () = self.timeline.sleep(interval), if self.is_shared => {}
        }
    }
}

impl SqliteStore {
    /// The block and news sequences, at most `age` old. Costs next to nothing while nobody commits:
    /// SQLite's counter of commits by other connections is one read of shared memory.
    fn peek(&self, age: Duration) -> Result<(i64, i64), StoreError> {
        let now = self.inner.timeline.now().store;
        let mut peek = self.inner.peek.lock().unwrap_or_else(PoisonError::into_inner);
        if peek.looked_at.is_some_and(|at| now.since(at) < age) {
            return Ok(peek.seqs);
        }
        peek.look().map_err(|error| trouble::of(&self.inner.path, error))?;
        peek.looked_at = Some(now);
        Ok(peek.seqs)
    }
}

impl Peek {
    fn look(&mut self) -> rusqlite::Result<()> {
        let mut version = self.conn.prepare_cached(queries::DATA_VERSION)?;
        let version: i64 = version.query_row([], |row| row.get(0))?;
        if version != self.data_version {
            let mut seqs = self.conn.prepare_cached(queries::STORE_PEEK)?;
            self.seqs = seqs.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            self.data_version = version;
        }
        Ok(())
    }
}
