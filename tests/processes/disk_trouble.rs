//! A disk that is full or broken under a store: one clear message, no call that is not recorded, nothing
//! lost; and when the trouble ends the work goes on by itself.

use std::time::Duration;

use paceline::practice::Config;

use crate::support::Ran;
use crate::support::process::until;
use crate::support::shim::{Disk, Shim};
use crate::support::world::World;

const PACE: &str =
    "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"150ms\"\n";

/// A run of sixty jobs whose disk is in trouble in the middle. Only what was
/// recorded before may still go.
fn survives(disk: Disk, text: &str) -> (World, Ran) {
    let shim = Shim::new();
    let config = Config::new().latency(Duration::from_millis(100));
    let world = World::on(&shim, config, text);
    world.add(0, 60);
    let mut run = world.start(&["run"]);
    until("10 arrivals", || world.count() >= 10);
    shim.set_disk(disk);
    run.hears("nothing new is sent until it does");
    let recorded = world.recorded();
    let looked = world.run(&["status"]);
    assert_eq!(looked.code, 0, "what is there can be read: {looked}");
    // The slots of 40 more.
    std::thread::sleep(Duration::from_secs(2));
    assert!(recorded < 50 && world.count() <= recorded, "sent while nothing could be recorded");
    assert!(run.is_running(), "{}", run.stderr());
    shim.set_disk(Disk::Healthy);
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    // What was in flight when the trouble came was kept, and recorded after it.
    assert_eq!((world.count(), world.jobs()), (60, [("done".to_owned(), 60)].into()), "{ran}");
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE status = 200"), 60);
    assert_eq!(ran.stderr.matches("nothing new is sent until it does").count(), 1, "{ran}");
    assert_eq!(ran.stderr.matches("the store answers again").count(), 1, "{ran}");
    world.nothing_is_left_over();
    (world, ran)
}

#[test]
fn a_full_disk_stops_the_run_until_there_is_room() {
    let (_, ran) = survives(Disk::Full, PACE);
    assert!(ran.stderr.contains("the disk that holds the store"), "{ran}");
}

#[test]
fn a_full_disk_lets_no_unrepeatable_call_leave_without_its_mark() {
    let text = format!("method = \"POST\"\nbody = 'x'\n{}", PACE.replace("150ms", "50ms"));
    // The marks of the next few calls are written already; the others of the claim must stay.
    let (world, _) = survives(Disk::Full, &text);
    assert!(world.by_path().values().all(|n| *n == 1), "{:?}", world.by_path());
}

#[test]
fn a_disk_that_cannot_be_written_for_a_while_stops_the_run_for_as_long() {
    let (_, ran) = survives(Disk::Unwritable, PACE);
    assert!(ran.stderr.contains("could not be read or written"), "{ran}");
}

#[test]
fn a_run_that_follows_outlives_a_disk_that_cannot_be_written_for_a_while() {
    let shim = Shim::new();
    let world = World::on(&shim, Config::new(), PACE);
    world.add(0, 5);
    let mut run = world.start(&["run", "--follow"]);
    until("5 arrivals", || world.count() == 5);
    shim.set_disk(Disk::Unwritable);
    // It looks for what others left once a second, and for its quota file every two.
    std::thread::sleep(Duration::from_millis(2500));
    shim.set_disk(Disk::Healthy);
    assert!(run.is_running(), "{}", run.stderr());
    world.add(5, 5);
    until("5 more", || world.count() == 10);
    run.signal("INT");
    let ran = run.finish();
    assert_eq!(ran.code, 130, "{ran}");
    assert!(ran.stderr.matches("nothing new is sent until it does").count() <= 1, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 10)].into());
}

#[test]
fn a_disk_that_cannot_be_read_ends_the_run_and_nothing_is_lost() {
    let shim = Shim::new();
    let world = World::on(&shim, Config::new(), PACE);
    world.add(0, 60);
    let run = world.start(&["run"]);
    until("10 arrivals", || world.count() >= 10);
    shim.set_disk(Disk::Broken);
    let ran = run.finish();
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("or its disk is"), "{ran}");
    shim.set_disk(Disk::Healthy);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.jobs()), (0, [("done".to_owned(), 60)].into()), "{ran}");
    world.nothing_is_left_over();
}

#[test]
fn a_run_that_must_not_wait_leaves_a_full_disk_with_a_message() {
    let shim = Shim::new();
    let world = World::on(&shim, Config::new(), PACE);
    world.add(0, 60);
    let run = world.start(&["run", "--max-wait", "500ms"]);
    until("10 arrivals", || world.count() >= 10);
    shim.set_disk(Disk::Full);
    let begun = std::time::Instant::now();
    let ran = run.finish();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("error: the disk that holds the store"), "{ran}");
    shim.set_disk(Disk::Healthy);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.jobs()), (0, [("done".to_owned(), 60)].into()), "{ran}");
}

#[test]
fn nothing_is_half_done_on_a_full_disk() {
    let shim = Shim::new();
    let world = World::on(&shim, Config::new(), PACE);
    world.add(0, 5);
    world
        .home
        .write("more.csv", &(0..3000).fold("id\n".to_owned(), |rows, id| format!("{rows}m{id}\n")));
    shim.set_disk(Disk::Full);
    for command in
        [&["add", "shop", "--csv", "more.csv"][..], &["run"], &["hold", "shop", "--why", "x"]]
    {
        let ran = world.run(command);
        assert_eq!(ran.code, 1, "{command:?}: {ran}");
        assert!(ran.stderr.contains("is full"), "{command:?}: {ran}");
    }
    assert_eq!(world.count(), 0);
    shim.set_disk(Disk::Healthy);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.count()), (0, 5), "{ran}");
}
