//! Promise 2: no calendar window holds more than its amount.

use paceline::practice::{Config, Limit, Rule};

use crate::support::process::until;
use crate::support::world::World;

fn daily(amount: u64) -> String {
    format!(
        "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = {amount}\nper = \"day\"\n\
         time_zone = \"America/Los_Angeles\"\n"
    )
}

fn strict(amount: u64) -> Config {
    let zone = chrono_tz::America::Los_Angeles;
    Config::new().rule(Rule::new("daily", Limit::day(amount, zone)))
}

/// At midnight there a test would see two windows; nothing is sent within 2 s of it either.
fn not_at_midnight() {
    use chrono::{Timelike as _, Utc};
    loop {
        let there = Utc::now().with_timezone(&chrono_tz::America::Los_Angeles);
        let left = 86_400 - there.num_seconds_from_midnight();
        if (60..86_390).contains(&left) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

#[test]
fn the_twelfth_of_eleven_a_day_is_not_sent_and_the_reset_is_told_in_both_zones() {
    not_at_midnight();
    let world = World::with(strict(11), &daily(11));
    world.add(0, 12);
    let ran = world.run(&["run", "--max-wait", "0"]);
    assert_eq!(ran.code, 75, "{ran}");
    let stats = world.stats();
    assert_eq!((stats.count, stats.refused), (11, 0), "{ran}");
    assert!(ran.stderr.contains("the limit `daily` of shop binds"), "{ran}");
    assert!(ran.stderr.contains("(America/Los_Angeles)"), "{ran}");
    assert!(ran.stderr.contains("UTC"), "{ran}");
    let told = world.json(&["run", "--max-wait", "0"]);
    assert_eq!((told["sent"].as_u64(), told["exit"].as_u64()), (Some(0), Some(75)), "{told}");
    assert_eq!((told["waiting"].as_u64(), told["limit"].as_str()), (Some(1), Some("daily")));
    assert_eq!(world.count(), 11);
    let why = world.json(&["why", "shop"]);
    assert_eq!(why[0]["limit"], "daily", "{why}");
}

#[test]
fn two_processes_spend_one_budget_though_one_is_killed() {
    not_at_midnight();
    let text = format!(
        "{}[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"30/s\"\nslack = \"50ms\"\n",
        daily(60)
    );
    let world = World::with(strict(60), &text);
    world.add(0, 100);
    let mut doomed = world.start(&["run", "--max-wait", "1s"]);
    let other = world.start(&["run", "--max-wait", "1s"]);
    let looked = || {
        // Arrivals first: what arrived by now was spent before.
        let arrived = i64::try_from(world.count()).unwrap();
        let spent = world.spent();
        assert!(spent >= arrived && arrived <= 60 && spent <= 60, "{arrived} came, {spent} spent");
        arrived
    };
    until("half of it", || looked() >= 30);
    doomed.kill();
    let ran = other.finish();
    assert_eq!(ran.code, 75, "{ran}");
    let arrived = looked();
    // What the killed one had in flight stays spent, whether it came through or not.
    assert_eq!(world.spent(), 60);
    let lost = world.number("SELECT count(*) FROM attempt WHERE reason IS NULL");
    assert!(arrived + lost >= 60, "{arrived} came, {lost} were lost, of 60");
    assert_eq!(world.stats().refused, 0);
    let jobs = world.jobs();
    assert_eq!(jobs.values().sum::<u64>(), 100, "{jobs:?}");
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["done", "queued"], "{jobs:?}");
    world.nothing_is_left_over();
}
