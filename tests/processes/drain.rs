//! Leaving: Ctrl-C and SIGTERM let what is in flight come back, and leave nothing behind.

use std::time::{Duration, Instant};

use paceline::practice::{Answer, Config, Manner, Script};

use crate::support::process::until;
use crate::support::world::World;

const PACE: &str =
    "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"50ms\"\n";

fn drains(signals: &[&str]) {
    let world = World::with(Config::new().latency(Duration::from_millis(500)), PACE);
    world.add(0, 60);
    let run = world.start(&["run"]);
    until("15 arrivals", || world.count() >= 15);
    signals.iter().for_each(|signal| run.signal(signal));
    let begun = Instant::now();
    let ran = run.finish();
    assert_eq!(ran.code, 130, "{ran}");
    assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
    let arrived = world.count() as u64;
    assert!(arrived < 60, "it did not leave");
    assert_eq!(
        world.jobs(),
        [("done".to_owned(), arrived), ("queued".to_owned(), 60 - arrived)].into()
    );
    world.nothing_is_left_over();
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE reason IS NULL"), 0);
    assert_eq!(world.number("SELECT count(*) FROM attempt") as u64, arrived);
}

#[test]
fn sigterm_drains_however_often_it_comes() {
    drains(&["TERM", "TERM"]);
}

#[test]
fn ctrl_c_drains() {
    drains(&["INT"]);
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_the_next_run_finds_what_was_in_flight() {
    let silent = Script::new("*", Answer::new(200).manner(Manner::Hang)).times(3);
    let world = World::with(Config::new().script(silent), PACE);
    world.add(0, 3);
    let run = world.start(&["run"]);
    until("3 arrivals", || world.count() >= 3);
    run.signal("INT");
    run.hears("leaving: 3 calls in flight");
    let begun = Instant::now();
    run.signal("INT");
    let ran = run.finish();
    assert_eq!(ran.code, 130, "{ran}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 3)].into());
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE reason IS NULL"), 3);
    // What was lost was never read: no reason, wherever it is told.
    let log = world.run(&["log", "--csv"]).stdout;
    assert_eq!(log.lines().filter(|line| line.ends_with("Z,,,,")).count(), 3, "{log}");
    let log = world.run(&["log"]).stdout;
    assert_eq!(log.matches(" --- lost ").count(), 3, "{log}");
    let lost = &world.json(&["log"])[0];
    assert!(lost["reason"].is_null() && lost["status"].is_null(), "{lost}");
    assert!(world.json(&["show", "1"])["attempts"][0]["reason"].is_null());
    world.nothing_is_left_over();
}

#[test]
fn a_process_that_waits_for_a_far_reset_leaves_when_told() {
    let hour = "[[limit]]\nname = \"hour\"\nkind = \"rate\"\nrate = \"1/h\"\n";
    let world = World::with(Config::new(), hour);
    world.add(0, 2);
    let run = world.start(&["run"]);
    run.hears("waits for the limit `hour`");
    let begun = Instant::now();
    run.signal("TERM");
    let ran = run.finish();
    println!("left {:?} after the signal", begun.elapsed());
    assert_eq!(ran.code, 130, "{ran}");
    assert!(!ran.stderr.contains("leaving"), "there is nothing to wait for: {ran}");
    assert!(begun.elapsed() < Duration::from_secs(3));
    world.nothing_is_left_over();
}
