//! Promises 1 to 4 over a reboot, with the wall clock behind or ahead of the last run: the boot-time clock
//! begins anew, the store's time does not.

use std::time::Duration;

use paceline::clock::{NANOS_PER_SEC, Timestamp};
use paceline::practice::{Answer, Config, Limit, Manner, Rule, Script};

use crate::support::process::until;
use crate::support::shim::Shim;
use crate::support::world::World;

const HOUR: i64 = 3600 * NANOS_PER_SEC;

/// Noon in Los Angeles.
const NOON: &str = "2026-06-10T19:00:00Z";

/// Three upstreams with eight jobs each: a day of five, three a minute, one that refuses the second call
/// for ten minutes; all were run to where they wait.
fn waiting(shim: &Shim) -> World {
    let zone = chrono_tz::America::Los_Angeles;
    let minute = Limit::Bucket { units: 1, per: Duration::from_secs(60), burst: 3 };
    let refusal = Answer::refusal(Duration::from_secs(600)).header("Retry-After", "600");
    let config = Config::new()
        .rule(Rule::new("daily", Limit::day(5, zone)).on("/daily/*"))
        .rule(Rule::new("minute", minute).on("/slow/*"))
        .script(Script::new("/shut/*", refusal).from(2).times(1).closing("/shut/*"));
    let world = World::on(shim, config, "");
    let daily = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 5\nper = \"day\"\n\
                 time_zone = \"America/Los_Angeles\"\n";
    let slow = "[[limit]]\nname = \"minute\"\nkind = \"rate\"\nrate = \"1/min\"\nburst = 3\n\
                counted = \"bucket\"\nslack = \"500ms\"\npath_jitter = \"1ms\"\n";
    let shut = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\n";
    for (name, text) in [("daily", daily), ("slow", slow), ("shut", shut)] {
        world.quota(name, &format!("/{name}/{{id}}"), text);
        world.add_to(name, 0, 8, &[]);
        assert_eq!(world.run(&["run", name, "--max-wait", "0"]).code, 75);
    }
    assert_eq!(sent(&world, "daily"), 5);
    world
}

/// How many calls came for an upstream.
fn sent(world: &World, name: &str) -> u64 {
    let prefix = format!("/{name}/");
    world.by_path().iter().filter(|(path, _)| path.starts_with(&prefix)).map(|(_, n)| n).sum()
}

/// Runs an upstream to where it waits: calls sent, and how long its wait is on the machine's clock.
fn run(shim: &Shim, world: &World, name: &str) -> (u64, Duration) {
    let wall = shim.wall();
    let told = world.json(&["run", name, "--max-wait", "0"]);
    let next_at = told["next_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>();
    (told["sent"].as_u64().unwrap(), Timestamp::from(next_at.unwrap()).since(wall))
}

#[test]
fn a_clock_that_is_behind_after_a_reboot_repeats_nothing_and_stops_nothing() {
    for behind in [-2 * NANOS_PER_SEC, -3 * HOUR, -48 * HOUR] {
        let shim = Shim::at(NOON);
        let world = waiting(&shim);
        let before = world.count();
        shim.reboot(behind);
        let (daily, slow, shut) =
            (run(&shim, &world, "daily"), run(&shim, &world, "slow"), run(&shim, &world, "shut"));
        assert_eq!((daily.0, slow.0, shut.0), (0, 0, 0), "{behind}");
        assert_eq!((world.count(), world.stats().early), (before, 0));
        // Each waits as long as its own limit and not as long as the clock is behind.
        let hours = |n: u64| Duration::from_secs(3600 * n);
        assert!(daily.1 <= hours(12 + 3) + Duration::from_secs(10), "{behind}: {:?}", daily.1);
        assert!(slow.1 <= Duration::from_secs(62), "{behind}: {:?}", slow.1);
        assert!(shut.1 <= Duration::from_secs(632), "{behind}: {:?}", shut.1);
        assert!(shut.1 >= Duration::from_secs(500), "{behind}: {:?}", shut.1);
        // Somebody sets it right, and in time the rest goes.
        shim.set_wrong_by(0);
        assert_eq!(run(&shim, &world, "daily").0, 0);
        shim.pass_to("2026-06-11T07:00:03Z");
        assert_eq!(world.run(&["run", "daily", "--max-wait", "0"]).code, 0);
        assert_eq!((sent(&world, "daily"), world.stats().refused), (8, 0), "{behind}");
    }
}

#[test]
fn a_clock_that_is_ahead_after_a_reboot_gives_no_second_day() {
    let shim = Shim::at(NOON);
    let world = waiting(&shim);
    shim.reboot(3 * HOUR);
    assert_eq!(run(&shim, &world, "daily").0, 0);
    shim.set_wrong_by(0);
    assert_eq!(run(&shim, &world, "daily").0, 0);
    assert_eq!(sent(&world, "daily"), 5);
    // The store's time is three hours ahead for good, and the day's end is waited for on both.
    shim.pass_to("2026-06-11T04:00:03Z");
    assert_eq!(run(&shim, &world, "daily").0, 0);
    shim.pass_to("2026-06-11T07:00:03Z");
    assert_eq!(world.run(&["run", "daily", "--max-wait", "0"]).code, 0);
    assert_eq!((sent(&world, "daily"), world.stats().refused), (8, 0));
}

#[test]
fn a_machine_that_was_off_for_hours_sends_one_burst_and_no_second_day() {
    let shim = Shim::at(NOON);
    let world = waiting(&shim);
    let before = sent(&world, "slow");
    shim.pass(3 * HOUR);
    shim.reboot(0);
    assert_eq!(run(&shim, &world, "daily").0, 0);
    let (burst, wait) = run(&shim, &world, "slow");
    assert!((1..=3).contains(&burst), "{burst}");
    assert!(wait <= Duration::from_secs(62), "{wait:?}");
    assert_eq!(sent(&world, "slow"), before + burst);
    // The block is over, so all of it goes.
    assert_eq!(world.run(&["run", "shut", "--max-wait", "2s"]).code, 0);
    let stats = world.stats();
    assert_eq!((stats.refused, stats.early), (0, 0), "{stats:?}");
}

#[test]
fn what_was_in_flight_when_the_power_went_is_unsure_or_sent_again() {
    let silent = |path: &str| Script::new(path, Answer::new(200).manner(Manner::Hang)).times(1);
    let config = Config::new().script(silent("/get/0")).script(silent("/post/0"));
    for wrong_by in [-3 * HOUR, 3 * HOUR] {
        let shim = Shim::at(NOON);
        let world = World::on(&shim, config.clone(), "");
        world.quota("get", "/get/{id}", "");
        world.quota("post", "/post/{id}", "method = \"POST\"\nbody = 'x'\n");
        world.add_to("get", 0, 1, &[]);
        world.add_to("post", 0, 1, &[]);
        let mut doomed = world.start(&["run"]);
        until("both in flight", || world.count() == 2);
        doomed.kill();
        shim.reboot(wrong_by);
        let ran = world.run(&["run"]);
        assert_eq!(ran.code, 3, "{ran}");
        let of = |path| world.by_path()[path];
        assert_eq!((of("/get/0"), of("/post/0")), (2, 1), "{ran}");
        assert_eq!(world.jobs(), [("done".to_owned(), 1), ("unsure".to_owned(), 1)].into());
        world.nothing_is_left_over();
    }
}
