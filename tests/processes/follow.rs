//! Runs that stay, and runs with a bound: news is noticed, a bound is kept.

use std::time::{Duration, Instant};

use paceline::practice::Config;

use crate::support::process::until;
use crate::support::world::World;

/// From the end of the command that added it to its arrival.
fn woken(world: &World, upstream: &str) -> Duration {
    let before = world.count();
    world.add_to(
        upstream,
        usize::try_from(world.number("SELECT count(*) FROM job")).unwrap(),
        1,
        &[],
    );
    let added = Instant::now();
    until("the new job's arrival", || world.count() > before);
    added.elapsed()
}

#[test]
fn a_job_that_another_process_adds_is_sent_at_once() {
    let world = World::with(Config::new(), "");
    world.quota("new", "/new/{id}", "");
    world.add(0, 1);
    let run = world.start(&["run", "--follow"]);
    until("the first", || world.count() == 1);
    let mut took: Vec<Duration> = (0..5).map(|_| woken(&world, "shop")).collect();
    took.sort();
    println!("from the addition's end to the arrival: {took:?}");
    assert!(took[2] < Duration::from_secs(1), "{took:?}");
    let fresh = woken(&world, "new");
    println!("the same, of an upstream that had no job before: {fresh:?}");
    assert!(fresh < Duration::from_secs(1), "{fresh:?}");
    run.signal("TERM");
    let ran = run.finish();
    assert_eq!(ran.code, 130, "{ran}");
    world.nothing_is_left_over();
}

#[test]
fn a_second_single_run_leaves_at_once() {
    let world = World::with(Config::new(), "");
    world.add(0, 1);
    let run = world.start(&["run", "--follow", "shop"]);
    until("the first", || world.count() == 1);
    let begun = Instant::now();
    let ran = world.run(&["run", "--single"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains(&run.pid().to_string()), "{ran}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    // A dead one does not count.
    let mut run = run;
    run.kill();
    world.add(1, 1);
    let ran = world.run(&["run", "--single"]);
    assert_eq!((ran.code, world.count()), (0, 2), "{ran}");
}

#[test]
fn of_single_runs_that_start_together_one_stays() {
    let world = World::with(Config::new(), "");
    world.add(0, 1);
    let mut runs: Vec<_> = (0..5).map(|_| world.start(&["run", "--single", "--follow"])).collect();
    until("one is left", || {
        runs.iter_mut().filter_map(|run| run.is_running().then_some(())).count() == 1
    });
    until("it sends", || world.count() == 1);
    world.add(1, 1);
    until("it stays", || world.count() == 2);
    for mut run in runs {
        if run.is_running() {
            run.signal("TERM");
        }
        let ran = run.finish();
        assert!(matches!(ran.code, 0 | 130), "{ran}");
    }
    world.nothing_is_left_over();
}

#[test]
fn a_count_is_kept_exactly() {
    let world = World::with(Config::new().latency(Duration::from_millis(10)), "");
    world.add(0, 50);
    let ran = world.run(&["run", "--count", "17"]);
    assert_eq!((ran.code, world.count()), (75, 17), "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 17), ("queued".to_owned(), 33)].into());
    let ran = world.run(&["run", "--count", "100"]);
    assert_eq!((ran.code, world.count()), (0, 50), "{ran}");
}

#[test]
fn a_run_with_a_bound_in_time_leaves_then() {
    let pace = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"5/s\"\nslack = \"50ms\"\n";
    let world = World::with(Config::new(), pace);
    world.add(0, 200);
    let begun = Instant::now();
    let ran = world.run(&["run", "--for", "1s"]);
    let took = begun.elapsed();
    assert_eq!(ran.code, 75, "{ran}");
    assert!((1..8).contains(&took.as_secs()), "{took:?}");
    assert!((1..=7).contains(&world.count()), "{}", world.count());
    world.nothing_is_left_over();
    let soon = chrono::Utc::now() + Duration::from_millis(1500);
    let ran = world.run(&["run", "--until", &soon.to_rfc3339()]);
    assert_eq!(ran.code, 75, "{ran}");
    assert!(chrono::Utc::now() >= soon);
}

#[test]
fn a_quota_file_that_changes_is_taken_up_and_a_wrong_one_is_not() {
    let hour = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"1/h\"\n";
    let world = World::with(Config::new(), hour);
    world.add(0, 4);
    let run = world.start(&["run"]);
    until("the first", || world.count() == 1);
    run.hears("waits for the limit `pace`");
    world.quota("shop", "/{id}", "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"0/h\"\n");
    run.hears("its changed quota file is wrong, the last good one stays in force");
    assert_eq!(world.count(), 1);
    world.quota("shop", "/{id}", "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\n");
    let changed = Instant::now();
    until("all others", || world.count() == 4);
    println!("taken up after {:?}", changed.elapsed());
    assert!(changed.elapsed() < Duration::from_secs(10));
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("its changed quota file is in force"), "{ran}");
}

#[test]
fn an_upstream_whose_quota_file_is_wrong_is_left_out_until_it_is_mended() {
    let world = World::with(Config::new(), "");
    world.quota("other", "/other/{id}", "");
    world.add(0, 3);
    world.add_to("other", 0, 3, &[]);
    let wrong = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"0/s\"\n";
    world.quota("other", "/other/{id}", wrong);
    let ran = world.run(&["run", "--quiet"]);
    assert_eq!((ran.code, world.count()), (2, 3), "{ran}");
    assert!(ran.stderr.contains("other was left out") && ran.stderr.contains("0/s"), "{ran}");
    let ran = world.run(&["run", "--max-wait", "0", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["exit"], &told["waiting"]), (&2.into(), &3.into()), "{ran}");
    let run = world.start(&["run", "--follow"]);
    run.hears("other is left out until its quota file is mended");
    world.quota("other", "/other/{id}", "");
    until("all are sent", || world.count() == 6);
    run.signal("TERM");
    // Where nothing of an upstream waits, its file is nobody's trouble.
    std::fs::remove_file(world.home.path("quotas/other.toml")).unwrap();
    drop(run.finish());
    assert_eq!(world.run(&["run"]).code, 0);
}

#[test]
fn a_run_waits_for_what_another_process_has_in_flight() {
    use paceline::practice::{Answer, Script};
    let slow = Script::new("/0", Answer::new(200).delay(Duration::from_millis(1500)));
    let world = World::with(Config::new().script(slow), "");
    world.add(0, 1);
    let other = world.start(&["run"]);
    until("it is in flight", || world.count() == 1);
    let told = world.json(&["run", "--max-wait", "0"]);
    assert_eq!((&told["exit"], &told["waiting"]), (&75.into(), &1.into()), "{told}");
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 1)].into());
    assert_eq!(other.finish().code, 0);
}
