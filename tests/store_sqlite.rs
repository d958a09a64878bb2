//! What only the SQLite store promises: which files it opens, what it leaves on disk, and that
//! several processes on one file are as exact as one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "conformance/world.rs"]
#[allow(dead_code)]
mod world;

#[path = "store_sqlite/copies.rs"]
mod copies;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline::clock::{ManualClock, Timestamp};
use paceline::job::JobState;
use paceline::reading::Reason;
use paceline::store::sqlite::{Options, SqliteStore};
use paceline::store::{Claim, Store, StoreError};
use rusqlite::Connection;
use world::{FREE, Fixture, START, World, daily, limit, said};

struct Folder {
    folder: tempfile::TempDir,
    clock: ManualClock,
}

impl Folder {
    fn new() -> Folder {
        let clock = ManualClock::new(Timestamp::from_secs(START));
        Folder { folder: tempfile::tempdir().unwrap(), clock }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("queue.db")
    }

    fn open_at(&self, path: &Path, threaded: bool) -> Result<SqliteStore, StoreError> {
        let options = Options::new(path, Arc::new(self.clock.clone()));
        SqliteStore::open(Options { threaded, ..options })
    }

    fn open(&self) -> Result<SqliteStore, StoreError> {
        self.open_at(&self.file(), false)
    }

    /// The suite's helpers over this folder's file.
    fn world(&self, tables: &str, threaded: bool) -> World<SqliteStore> {
        let path = self.file();
        let make = || {
            let (path, clock) = (path.clone(), self.clock.clone());
            let open = move || {
                let options = Options::new(&path, Arc::new(clock.clone()));
                SqliteStore::open(Options { threaded, ..options }).unwrap()
            };
            Fixture { clock: self.clock.clone(), open: Box::new(open) }
        };
        World::new(&make, tables)
    }

    /// A connection of its own, as any other program would open it.
    fn connect(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }
}

/// A job that must not be sent twice.
fn world_once(w: &World<SqliteStore>) -> paceline::job::NewJob {
    paceline::job::NewJob { repeatable: false, ..w.job(&[]) }
}

fn queued(store: &SqliteStore) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.tally()).unwrap()[&JobState::Queued]
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let folder = Folder::new();
    drop(folder.open().unwrap());
    folder.connect().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(folder.file()).unwrap();
    let error = folder.open().unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("newer paceline"));
    assert_eq!(std::fs::read(folder.file()).unwrap(), before);
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    folder
        .connect()
        .execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('x')")
        .unwrap();
    let before = std::fs::read(folder.file()).unwrap();
    let error = folder.open().unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(std::fs::read(folder.file()).unwrap(), before);

    std::fs::write(folder.file(), "title,price\n".repeat(500)).unwrap();
    let error = folder.open().unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(std::fs::read(folder.file()).unwrap().len(), 6000);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "").unwrap();
    assert_eq!(queued(&folder.open().unwrap()), 0);
}

#[test]
fn missing_folders_are_made_and_what_cannot_be_is_told() {
    let folder = Folder::new();
    let deep = folder.folder.path().join("a/b/queue.db");
    drop(folder.open_at(&deep, false).unwrap());
    assert!(deep.exists());
    let below_a_file = deep.join("queue.db");
    for path in [folder.folder.path(), &below_a_file, Path::new("/proc/paceline/queue.db")] {
        let error = folder.open_at(path, false).unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }), "{error}");
        assert!(error.to_string().contains("--store"), "{error}");
    }
}

#[test]
fn a_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    drop(folder.open().unwrap());
    let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_that_may_not_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    drop(folder.open().unwrap());
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&folder.file(), 0o400);
    // Whoever may write all the same (root) cannot be kept from it this way.
    if std::fs::OpenOptions::new().write(true).open(folder.file()).is_err() {
        let error = folder.open().unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
}

#[test]
fn a_damaged_file_is_told() {
    let folder = Folder::new();
    let w = folder.world(FREE, false);
    w.add(2000, &[]);
    drop(w);
    folder.connect().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let mut bytes = std::fs::read(folder.file()).unwrap();
    let middle = bytes.len() / 2;
    bytes[4096..middle].fill(0xA5);
    std::fs::write(folder.file(), bytes).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = match folder.open() {
        Err(error) => error,
        Ok(store) => runtime.block_on(store.tally()).unwrap_err(),
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(!error.may_pass());
}

#[test]
fn what_a_killed_process_wrote_is_there() {
    let folder = Folder::new();
    let w = folder.world(&daily(50, ""), false);
    w.add(300, &[]);
    assert_eq!(w.claim(7).len(), 7);
    // What a kill leaves: the file and its log as they are now.
    let copy = Folder::new();
    for suffix in ["", "-wal"] {
        let name = |path: PathBuf| PathBuf::from(format!("{}{suffix}", path.display()));
        std::fs::copy(name(folder.file()), name(copy.file())).unwrap();
    }
    let again = copy.world(&daily(50, ""), false);
    assert_eq!(again.count(JobState::Queued), 300, "its calls are found when another enters");
    assert_eq!(again.spent("daily", &[]), 7);
    assert_eq!(again.claim(64).len(), 43);
}

#[test]
fn many_open_a_new_file_at_once() {
    for _ in 0..5 {
        let folder = Folder::new();
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| folder.open().map(drop))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for result in opened {
            result.unwrap();
        }
    }
}

#[test]
fn many_who_claim_at_once_share_a_limit_exactly() {
    let folder = Folder::new();
    let rate = limit("rate", "rate", "rate = \"100/s\"\nburst = 20");
    let w = folder.world(&format!("{}{rate}", daily(15, "")), true);
    w.add(100, &[]);
    let claims = |_| {
        let (store, runner) = w.another();
        let upstream = Arc::clone(&w.upstream);
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut calls = Vec::new();
            for _ in 0..10 {
                let wish = Claim::new(Arc::clone(&upstream), runner, 2);
                calls.extend(runtime.block_on(store.claim(wish)).unwrap().calls);
            }
            calls
        }
    };
    let threads: Vec<_> = (0..4).map(claims).map(std::thread::spawn).collect();
    let calls: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(calls.len(), 15);
    let mut jobs: Vec<_> = calls.iter().map(|call| call.job.id).collect();
    let mut ids: Vec<_> = calls.iter().map(|call| call.id).collect();
    jobs.sort_unstable();
    ids.sort_unstable();
    jobs.dedup();
    ids.dedup();
    assert_eq!((jobs.len(), ids.len()), (15, 15));
}

#[test]
fn a_claim_that_finds_nothing_writes_nothing() {
    let waits = [
        daily(1, ""),
        daily(1, "key = [\"site\"]"),
        limit("places", "concurrency", "amount = 1\nkey = [\"site\"]"),
        limit("places", "concurrency", "amount = 1"),
        limit("rate", "rate", "rate = \"1/60s\"\nkey = [\"site\"]"),
    ];
    for tables in waits {
        let folder = Folder::new();
        let w = folder.world(&tables, false);
        let other = folder.connect();
        let version =
            || other.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
        w.add(5, &[("site", "a")]);
        assert_eq!(w.claim(1).len(), 1);
        w.nothing();
        let before = version();
        w.nothing();
        assert_eq!(version(), before, "{tables}");
    }
}

#[test]
fn a_process_leaves_no_file_behind() {
    let folder = Folder::new();
    let mut w = folder.world(FREE, false);
    let names = || std::fs::read_dir(folder.folder.path()).unwrap().flatten().count();
    let first = names();
    let (other, runner) = w.another();
    assert_eq!(names(), first + 1);
    w.wait(other.retire(runner)).unwrap();
    assert_eq!(names(), first);
    w.die();
    w.sweep();
    assert_eq!(names(), first, "what a dead one left is removed");
}

#[test]
fn no_row_is_left_of_calls_that_ended() {
    let folder = Folder::new();
    let places = limit("places", "concurrency", "amount = 9");
    let w = folder.world(&format!("{}{places}", daily(50, "")), false);
    w.add(9, &[]);
    let calls = w.claim(9);
    w.ok(&calls[0]);
    w.say(&calls[1], said(Reason::Transient));
    w.release(&calls[2..5], paceline::store::ReleaseWhy::Drained);
    w.pass(std::time::Duration::from_secs(100));
    w.sweep();
    let conn = folder.connect();
    for table in ["call", "running", "in_flight"] {
        let rows: i64 =
            conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

/// So many that their keys are gathered first.
#[test]
fn the_keys_of_a_large_addition_are_known_until_its_jobs_are_gone() {
    const MANY: usize = 10_000;
    let folder = Folder::new();
    let w = folder.world(FREE, false);
    let jobs: Vec<_> = (0..MANY).map(|_| w.job(&[])).collect();
    assert_eq!(w.add_jobs(jobs.clone()).duplicates, 0);
    assert_eq!(w.add_jobs(jobs.clone()).duplicates, MANY as u64);
    assert_eq!(w.add_jobs(jobs[..5].to_vec()).duplicates, 5);
    let act = |act| w.act(paceline::store::Filter::default(), act);
    assert_eq!(act(paceline::store::Act::Cancel), MANY as u64);
    assert_eq!(act(paceline::store::Act::Retry), MANY as u64, "step by step");
    assert_eq!(w.add_jobs(jobs.clone()).duplicates, MANY as u64);
    act(paceline::store::Act::Cancel);
    act(paceline::store::Act::Prune);
    let keys =
        "SELECT (SELECT count(*) FROM dedupe_gathered) + (SELECT count(*) FROM dedupe_holder)";
    let left: i64 = folder.connect().query_row(keys, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
    assert_eq!(w.add_jobs(jobs).duplicates, 0);
}

#[test]
fn bodies_without_an_attempt_are_not_kept() {
    let folder = Folder::new();
    let w = folder.world(FREE, false);
    w.add(1, &[]);
    let call = w.one();
    let mut answer = w.answer(&call, said(Reason::Ok));
    answer.body = Some(paceline::store::KeptBody { bytes: vec![1], cut: false });
    w.settle(answer.clone());
    w.act(paceline::store::Filter::default(), paceline::store::Act::Prune);
    w.settle(answer);
    let rows: i64 =
        folder.connect().query_row("SELECT count(*) FROM body", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

/// A reviewer sees what changes. `UPDATE_SCHEMA=1` writes the file anew.
#[test]
fn the_schema_is_the_one_that_was_reviewed() {
    let folder = Folder::new();
    drop(folder.open().unwrap());
    let conn = folder.connect();
    let mut query = conn
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name")
        .unwrap();
    let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let found: Vec<String> = rows.map(|sql| sql.unwrap() + ";\n").collect();
    let found = found.join("\n");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/schema.sql");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&kept, &found).unwrap();
    }
    let reviewed = std::fs::read_to_string(&kept).unwrap_or_default();
    assert!(found == reviewed, "the schema changed: review it, then run with UPDATE_SCHEMA=1");
}
