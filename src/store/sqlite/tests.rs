//! What can only be seen from inside.

use std::sync::Arc;

use rusqlite::Connection;

use super::writer::{Durability, Writer};
use super::{Options, SqliteStore, Sync, anchor, durability, schema};
use crate::clock::{ManualClock, Timeline, Timestamp};
use crate::quota::declare;
use crate::store::{Serves, Store, StoreError};

/// The files of statements, whatever they are called.
fn queries() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sqlite/queries");
    let parts = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    parts
        .chain([format!("{folder}.rs").into()])
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

/// Statements that go over a whole table, and why they may.
const SCANS: &[(&str, &str)] = &[
    ("BACKLOG", "forecast: counts all that waits, by the index of what is next"),
    ("BACKLOG_LOAD", "forecast: the jobs of one load"),
    ("BACKLOG_COSTS", "forecast: sums a column of all that waits"),
    ("UPSTREAM_IDS", "all upstreams, in a sweep"),
    ("UPSTREAM_NAMES", "all upstreams, for people"),
    ("PARTITIONS", "all partitions of an upstream, for a person's hold"),
    ("RECONSIDER", "all instances of an upstream, after its limits changed"),
    ("RECONSIDER_ALL", "all instances, after the clock was set"),
    ("RUNNERS", "all processes"),
    ("RETIRE", "all calls in flight, when a process leaves"),
    ("CALLS_OF_RUNNER", "all calls in flight, after a process died"),
    ("CALLS_EXPIRED", "all calls in flight, in a sweep"),
    ("RUNNERS_SERVING", "all processes"),
    ("OWNED_OPEN", "all processes, and the jobs that they wait for"),
    ("QUEUE_TAKERS", "all processes"),
    ("TALLY", "one row a load and state"),
    ("TALLY_RUNNING", "all calls in flight"),
    ("LOADS", "one row a load and state"),
    ("JOBS_PRUNED", "one row a load and state"),
    ("INSTANCE_KEYS", "all instances of a limit, for people"),
    ("PARTITIONS_BUSY", "all partitions of an upstream, for people"),
    ("ANSWERS", "the latest attempts, as many as are asked for, for people"),
    ("HELD_JOBS", "all held partitions"),
    ("DEDUPE_FORGET", "all marks, when tidying"),
    ("WINDOWS_FORGET", "all windows, when tidying"),
    ("INSTANCES_FORGET", "all instances, when tidying"),
    ("TABLE_COUNT", "SQLite's own table"),
    ("COPY_CAN_BE_MARKED", "SQLite's own table"),
    ("PARTITIONS_NOT_REPEATABLE", "all jobs, once after a restore"),
    ("JOBS_UNSURE_SINCE_COPY", "all jobs, once after a restore"),
    ("HOLDS_UNTOLD", "all upstreams, and held partitions"),
    ("PRUNE", "a part of a statement"),
    ("DEDUPE_GATHERED", "counts the gathered keys, after an addition of thousands"),
    ("DEDUPE_MOVE", "all gathered keys, once there are many"),
    ("DEDUPE_MOVED", "all gathered keys, once there are many"),
];

/// The constants of the file that are statements, with their names.
fn statements() -> Vec<(String, String)> {
    let files = queries();
    let constants = files.iter().flat_map(|file| file.split(") const ").skip(1));
    let pair = |text: &str| {
        let (name, rest) = text.split_once(": &str =")?;
        let (_, rest) = rest.split_once('"')?;
        let (sql, _) = rest.split_once('"')?;
        let verb = sql.split_whitespace().next()?;
        let is_statement = ["SELECT", "INSERT", "UPDATE", "DELETE"].contains(&verb);
        is_statement.then(|| (name.to_owned(), sql.to_owned()))
    };
    constants.filter_map(pair).collect()
}

fn open(folder: &tempfile::TempDir) -> SqliteStore {
    let clock = ManualClock::new(Timestamp::from_secs(1_780_317_000));
    let options = Options::new(folder.path().join("queue.db"), Arc::new(clock));
    SqliteStore::open(Options { threaded: false, ..options }).unwrap()
}

#[test]
fn every_statement_of_a_transition_is_an_index_search() {
    let folder = tempfile::tempdir().unwrap();
    let conn = schema::open(&folder.path().join("queue.db")).unwrap();
    let all = statements();
    assert!(all.len() > 80, "{} statements were found", all.len());
    for (name, why) in SCANS {
        assert!(all.iter().any(|(known, _)| known == name), "{name} ({why}) is gone");
    }
    for (name, sql) in all {
        if SCANS.iter().any(|(scan, _)| *scan == name) {
            continue;
        }
        // An addition looks for rows that refer to it only while some refer to none: never here.
        conn.pragma_update(None, "foreign_keys", !sql.starts_with("INSERT")).unwrap();
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = plan.raw_query();
        let steps: Vec<String> =
            steps.mapped(|row| row.get::<_, String>(3)).collect::<Result<_, _>>().unwrap();
        for step in &steps {
            let scans = step.starts_with("SCAN")
                && !step.ends_with("store")
                && !step.contains("CONSTANT ROW")
                && !step.contains("(subquery");
            assert!(!scans && !step.contains("TEMP B-TREE"), "{name}: {steps:#?}");
        }
    }
}

/// By the trigger; but for jobs that are done, which the settle counts.
#[test]
fn every_move_of_a_job_is_counted() {
    let moves = |sql: &str| sql.contains("UPDATE job") && sql.contains("SET state");
    let counted = |sql: &str| sql.contains("could_go_at =");
    let all = statements();
    let moving: Vec<_> = all.iter().filter(|(_, sql)| moves(sql)).collect();
    assert!(moving.len() > 10, "{} statements were found", moving.len());
    for (name, sql) in moving {
        assert!(counted(sql) != (name == "JOB_DONE"), "{name}: {sql}");
    }
    assert!(counted(&super::queries::act_end("cancelled", "cancelled")));
}

#[test]
fn charges_are_synced_and_nothing_else() {
    let upstream = |limits: &str| {
        let text = format!("name = \"up\"\n[request]\nurl = \"https://api.example/\"\n{limits}");
        durability(&declare::parse("up", "up.toml", &text).unwrap())
    };
    let budget = "[[limit]]\nname = \"a\"\nkind = \"budget\"\namount = 1\nper = \"day\"\ntime_zone = \"UTC\"";
    let rolling = "[[limit]]\nname = \"a\"\nkind = \"rolling\"\namount = 1\nper = \"1h\"";
    let rate = "[[limit]]\nname = \"a\"\nkind = \"rate\"\nrate = \"1/s\"";
    assert_eq!(upstream(""), Durability::Normal);
    assert_eq!(upstream(rate), Durability::Normal);
    assert_eq!(upstream(budget), Durability::Synced);
    assert_eq!(upstream(rolling), Durability::Synced);
}

#[tokio::test]
async fn the_pragma_is_set_before_the_group_begins() {
    const NORMAL: i64 = 1;
    const FULL: i64 = 2;
    for (sync, expected) in [(Sync::Charges, [NORMAL, FULL, NORMAL]), (Sync::All, [FULL; 3])] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queue.db");
        let conn = schema::open(&path).unwrap();
        let clock = ManualClock::new(Timestamp::from_secs(1_780_317_000));
        let (anchor, seen_at) = anchor(&conn, &clock).unwrap();
        let timeline = Timeline::new(Arc::new(clock), anchor, seen_at);
        let writer = Writer::start(conn, &path, &timeline, sync, false).unwrap();
        let mut found = Vec::new();
        for durability in [Durability::Normal, Durability::Synced, Durability::Normal] {
            let look = |txn: &super::writer::Txn<'_>| {
                txn.conn.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0))
            };
            found.push(writer.write(durability, look).await.unwrap());
        }
        assert_eq!(found, expected);
    }
}

/// What undoes a statement stays in memory where it is small, and only there.
#[tokio::test]
async fn only_work_on_calls_keeps_its_scratch_in_memory() {
    const FILE: i64 = 1;
    const MEMORY: i64 = 2;
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let writer = &store.inner.writer;
    let look = |txn: &super::writer::Txn<'_>| {
        txn.conn.pragma_query_value(None, "temp_store", |row| row.get::<_, i64>(0))
    };
    assert_eq!(writer.write_calls(Durability::Normal, look).await.unwrap(), MEMORY);
    assert_eq!(writer.write(Durability::Normal, look).await.unwrap(), FILE);
    assert_eq!(writer.write_calls(Durability::Normal, look).await.unwrap(), MEMORY);
}

#[tokio::test]
async fn a_wish_that_fails_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let fail = |txn: &super::writer::Txn<'_>| {
        txn.conn.execute("UPDATE store SET block_seq = 99", [])?;
        txn.conn.execute("INSERT INTO nothing VALUES (1)", []).map(drop)
    };
    assert!(store.inner.writer.write(Durability::Normal, fail).await.is_err());
    assert_eq!(store.block_seq().unwrap(), 0);
    store.register(Serves::Queue(Vec::new())).await.unwrap();
}

/// Those that wait together share a transaction, unless one of them fails.
#[tokio::test]
async fn a_wish_that_fails_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1_780_317_000)));
    let store = SqliteStore::open(Options::new(folder.path().join("queue.db"), clock)).unwrap();
    let writer = &store.inner.writer;
    let (all_there, told) = std::sync::mpsc::channel();
    let wait = move |_: &super::writer::Txn<'_>| {
        // Asked again, there is nobody to wait for.
        let _ = told.recv();
        Ok(())
    };
    let add = |name: &'static str, times: u32| {
        move |txn: &super::writer::Txn<'_>| {
            (0..times).try_for_each(|_| {
                let add = "INSERT INTO load (name, added_at) VALUES (?1, 0)";
                txn.conn.execute(add, [name]).map(drop)
            })
        }
    };
    let write = |work| writer.write(Durability::Normal, work);
    let (waited, before, failed, after, ()) = tokio::join!(
        writer.write(Durability::Normal, wait),
        write(add("before", 1)),
        write(add("twice", 2)),
        write(add("after", 1)),
        async move { all_there.send(()).unwrap() },
    );
    assert!(waited.is_ok() && before.is_ok() && after.is_ok());
    assert!(failed.is_err(), "a name is there once");
    let conn = schema::connect(store.path(), 1).unwrap();
    let mut names = conn.prepare("SELECT name FROM load ORDER BY id").unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(names.map(Result::unwrap).collect::<Vec<_>>(), ["before", "after"]);
}

/// A schema two steps on, as a later version would have it.
fn later_steps() -> Vec<&'static str> {
    let mut steps = schema::MIGRATIONS.to_vec();
    steps.push("ALTER TABLE load ADD COLUMN colour TEXT");
    steps
}

fn version(conn: &Connection) -> i64 {
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_migration_keeps_a_copy_and_waits_for_older_runners() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.db");
    let store = open(&folder);
    let (runner, _) = store.register(Serves::Queue(Vec::new())).await.unwrap();
    let conn = schema::connect(&path, 1).unwrap();
    let steps = later_steps();
    let known = i64::try_from(steps.len()).unwrap();
    let refused = schema::migrate(&conn, &path, &steps).unwrap_err();
    assert!(matches!(refused, StoreError::BesideOlder { .. }), "{refused}");
    assert_eq!(version(&conn), known - 1);
    store.retire(runner).await.unwrap();
    drop(store);
    schema::migrate(&conn, &path, &steps).unwrap();
    assert_eq!(version(&conn), known);
    let copy =
        Connection::open(folder.path().join(format!("queue.db.before-schema-{known}"))).unwrap();
    assert_eq!(version(&copy), known - 1);
    let one: i64 = copy.query_row("SELECT count(*) FROM store", [], |row| row.get(0)).unwrap();
    assert_eq!(one, 1, "the copy is whole");
    let refused =
        SqliteStore::open(Options::new(&path, Arc::new(ManualClock::new(Timestamp::EPOCH))));
    assert!(matches!(refused, Err(StoreError::Newer { .. })), "this version knows less");
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.db");
    drop(open(&folder));
    let conn = schema::connect(&path, 1).unwrap();
    let mut steps = later_steps();
    steps.push("CREATE TABLE broken (");
    assert!(schema::migrate(&conn, &path, &steps).is_err());
    assert_eq!(version(&conn), 1);
    assert!(conn.prepare("SELECT colour FROM load").is_err(), "not even the first step");
}
