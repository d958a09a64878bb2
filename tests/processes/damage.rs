//! A store that was damaged, or left as a kill leaves it: what is there is used or clearly refused.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use paceline::practice::Config;

use crate::support::process::until;
use crate::support::world::{STORE, World};

const PACE: &str =
    "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"40/s\"\nslack = \"150ms\"\n";

/// Overwrites a page of a table's tree, while nobody runs.
fn damage(world: &World, page: &str) {
    let number = world.number(page);
    let size = world.number("PRAGMA page_size");
    let file = File::options().write(true).open(world.home.path(STORE)).unwrap();
    let garbage = vec![0xA5; usize::try_from(size).unwrap()];
    let at = (number - 1) * size;
    file.write_all_at(&garbage, at.try_into().unwrap()).unwrap();
}

const ROOT_OF_JOBS: &str = "SELECT rootpage FROM sqlite_schema WHERE name = 'job'";
/// Of the rows that a run comes to after a while.
const LEAF_OF_JOBS: &str = "SELECT pageno FROM dbstat WHERE name = 'job' AND pagetype = 'leaf'
    ORDER BY path LIMIT 1 OFFSET (SELECT count(*) / 3 FROM dbstat WHERE name = 'job')";
const ROOT_OF_CALLS: &str = "SELECT rootpage FROM sqlite_schema WHERE name = 'call'";
const ROOT_OF_ATTEMPTS: &str = "SELECT rootpage FROM sqlite_schema WHERE name = 'attempt'";

#[test]
fn a_damaged_queue_is_refused_with_what_to_do() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 2000);
    damage(&world, ROOT_OF_JOBS);
    for command in [&["run"][..], &["status"], &["add", "shop", "--set", "id=x"], &["jobs"]] {
        let ran = world.run(command);
        assert_eq!(ran.code, 1, "{command:?}: {ran}");
        assert_eq!(ran.stderr.matches("is damaged").count(), 1, "{command:?}: {ran}");
        assert!(ran.stderr.contains(".recover"), "{command:?}: {ran}");
    }
    assert_eq!(world.count(), 0);
}

#[test]
fn where_calls_cannot_be_written_down_nothing_is_sent() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 20);
    damage(&world, ROOT_OF_CALLS);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.count()), (1, 0), "{ran}");
    assert_eq!(ran.stderr.matches("is damaged").count(), 1, "{ran}");
}

#[test]
fn damage_that_an_answer_meets_ends_the_run_with_its_calls_written_down() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 40);
    damage(&world, ROOT_OF_ATTEMPTS);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(ran.stderr.matches("is damaged").count(), 1, "{ran}");
    let arrived = i64::try_from(world.count()).unwrap();
    let running = world.number("SELECT count(*) FROM running");
    assert!((1..=running).contains(&arrived), "{arrived} arrived, {running} written down");
}

#[test]
fn damage_in_the_middle_ends_a_run_where_it_meets_it_with_all_it_sent_recorded() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 400);
    let run = world.start(&["run"]);
    until("10 arrivals", || world.count() >= 10);
    damage(&world, LEAF_OF_JOBS);
    let ran = run.finish();
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(ran.stderr.matches("is damaged").count(), 1, "{ran}");
    let arrived = i64::try_from(world.count()).unwrap();
    let attempts = world.number("SELECT count(*) FROM attempt WHERE status = 200");
    let running = world.number("SELECT count(*) FROM running");
    assert!((10..400).contains(&arrived), "{arrived} arrived");
    assert!(attempts + running >= arrived, "{arrived} arrived, {attempts}+{running} recorded");
}

/// Sixty jobs of which a process sent twenty or more before it was killed.
fn killed() -> World {
    let world = World::with(Config::new(), PACE);
    world.add(0, 60);
    let mut run = world.start(&["run"]);
    until("20 arrivals", || world.count() >= 20);
    run.kill();
    world
}

#[test]
fn the_log_that_a_kill_left_is_read() {
    let world = killed();
    let log = world.home.path(&format!("{STORE}-wal"));
    assert!(std::fs::metadata(&log).unwrap().len() > 0, "the kill left no log");
    let ran = world.run(&["status"]);
    assert_eq!(ran.code, 0, "{ran}");
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.jobs()), (0, [("done".to_owned(), 60)].into()), "{ran}");
    assert_eq!(world.by_path().len(), 60);
    world.nothing_is_left_over();
}

#[test]
fn a_log_whose_end_a_power_cut_tore_off_is_read_up_to_there() {
    let world = killed();
    let log = File::options().write(true).open(world.home.path(&format!("{STORE}-wal"))).unwrap();
    let length = log.metadata().unwrap().len();
    log.set_len(length - 1000).unwrap();
    std::fs::remove_file(world.home.path(&format!("{STORE}-shm"))).unwrap();
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.jobs()), (0, [("done".to_owned(), 60)].into()), "{ran}");
    // What the last commit had claimed goes again: those jobs are repeatable.
    assert_eq!(world.by_path().len(), 60);
    world.nothing_is_left_over();
}
