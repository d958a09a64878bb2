//! A store in trouble: nothing goes unrecorded, work goes on when the trouble ends, and what cannot be
//! helped is said clearly.

use std::time::Duration;

use paceline::practice::Config;

use crate::support::process::until;
use crate::support::world::{STORE, World};

const PACE: &str =
    "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"50ms\"\n";

#[test]
fn a_store_that_somebody_locks_is_waited_for() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 60);
    let run = world.start(&["run"]);
    until("10 arrivals", || world.count() >= 10);
    let lock = world.sql();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    // What was claimed before may still go; nothing else can be recorded, so nothing else goes.
    let recorded = world.recorded();
    // The slots of 40 more.
    std::thread::sleep(Duration::from_secs(2));
    assert!(recorded < 40 && world.count() <= recorded, "sent while nothing could be recorded");
    lock.execute_batch("ROLLBACK").unwrap();
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!((world.count(), world.jobs()), (60, [("done".to_owned(), 60)].into()));
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE status = 200"), 60);
    world.nothing_is_left_over();
}

/// SQLite counts what it asked to sleep, so that its ten seconds are one here.
#[cfg(target_os = "linux")]
#[test]
fn a_store_that_is_locked_for_longer_than_its_deadline_is_waited_for() {
    let shim = crate::support::shim::Shim::new();
    let world = World::on(&shim, Config::new(), PACE);
    world.add(0, 60);
    let run = world.start(&["run"]);
    until("10 arrivals", || world.count() >= 10);
    shim.hasten(10);
    let lock = world.sql();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    run.hears("nothing new is sent until it does");
    let recorded = world.recorded();
    // Three deadlines more.
    std::thread::sleep(Duration::from_millis(3500));
    assert!(recorded < 40 && world.count() <= recorded, "sent while nothing could be recorded");
    let ran = world.run(&["add", "shop", "--set", "id=x"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("is locked by another program; nothing was changed"), "{ran}");
    lock.execute_batch("ROLLBACK").unwrap();
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stderr.matches("is locked by another program").count(), 1, "{ran}");
    assert_eq!(ran.stderr.matches("the store answers again").count(), 1, "{ran}");
    assert_eq!((world.count(), world.jobs()), (60, [("done".to_owned(), 60)].into()));
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE status = 200"), 60);
    world.nothing_is_left_over();
}

#[test]
fn an_unrepeatable_call_does_not_leave_without_its_mark() {
    let text = format!("method = \"POST\"\nbody = 'x'\n{PACE}");
    let world = World::with(Config::new(), &text);
    world.add(0, 30);
    let run = world.start(&["run"]);
    until("5 arrivals", || world.count() >= 5);
    let lock = world.sql();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    // A slot later than the lock needs a mark that cannot be written.
    let recorded = world.recorded();
    // The slots of 20 more.
    std::thread::sleep(Duration::from_secs(1));
    assert!(recorded < 20 && world.count() <= recorded, "sent without a mark");
    lock.execute_batch("ROLLBACK").unwrap();
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.by_path().values().all(|n| *n == 1));
    assert_eq!((world.count(), world.jobs()), (30, [("done".to_owned(), 30)].into()));
}

#[test]
fn a_store_that_a_newer_program_made_is_left_alone() {
    let world = World::with(Config::new(), "");
    world.add(0, 1);
    world.sql().pragma_update(None, "user_version", 99).unwrap();
    for command in [&["run"][..], &["status"], &["jobs"]] {
        let ran = world.run(command);
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.stderr.contains("schema 99"), "{ran}");
    }
    assert_eq!(world.count(), 0);
}

#[test]
fn a_file_that_is_no_store_is_left_as_it_is() {
    let world = World::with(Config::new(), "");
    let text = "dear diary, this is not a database at all, whatever its name may say. ".repeat(40);
    world.home.write(STORE, &text);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("is not a Paceline store"), "{ran}");
    assert_eq!(std::fs::read_to_string(world.home.path(STORE)).unwrap(), text);
}

#[test]
fn a_read_only_store_is_refused_with_a_clear_message() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::with(Config::new(), "");
    world.home.write("locked/x", "");
    let folder = world.home.path("locked");
    let mode =
        |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let may_all = std::fs::write(folder.join("y"), "").is_ok();
    let ran = world.run(&["run", "--store", "locked/store.db"]);
    mode(0o755);
    // To root nothing is read-only.
    if !may_all {
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.stderr.contains("locked/store.db"), "{ran}");
    }
    let ran = world.run(&["run", "--store", "/proc/store.db"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("cannot open the store /proc/store.db"), "{ran}");
    assert!(ran.stderr.contains("--store"), "{ran}");
}

#[test]
fn a_store_that_is_deleted_under_a_run_ends_it_with_a_message() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 200);
    let run = world.start(&["run"]);
    until("10 arrivals", || world.count() >= 10);
    for file in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.home.path(&format!("{STORE}{file}")));
    }
    let count = world.count();
    let ran = run.finish();
    println!("{} sent after it was gone\n{ran}", world.count() - count);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains(STORE), "{ran}");
    assert!(world.count() - count <= 60, "{} sent", world.count() - count);
}
