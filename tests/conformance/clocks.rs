//! Clocks that somebody sets, and quota files that change while jobs wait.

use std::time::Duration;

use paceline::clock::{Clock, NANOS_PER_SEC};
use paceline::reading::Reason;
use paceline::store::Store;

use crate::rates::assert_rolling;
use crate::world::{Make, World, daily, limit, millis, refusal, secs, upstream};

const HOUR: i64 = 3600 * NANOS_PER_SEC;

pub fn a_step_of_the_wall_clock_gives_no_second_allowance<S: Store>(make: Make<'_, S>) {
    for step in [-48 * HOUR, -3 * HOUR, -2 * NANOS_PER_SEC, 2 * NANOS_PER_SEC, 3 * HOUR, 48 * HOUR] {
        let w = World::new(make, &daily(5, ""));
        w.add(50, &[]);
        assert_eq!(w.claim(64).len(), 5);
        w.fixture.clock.step_wall(step);
        let claimed = w.claimed(64);
        assert!(claimed.calls.is_empty(), "a step by {step}");
        w.fixture.clock.step_wall(-step);
        assert!(w.claim(64).is_empty(), "and back");
    }
}

pub fn a_step_moves_no_slot_and_no_lease<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"5/s\"\nburst = 5"));
    w.add(60, &[]);
    let mut slots = Vec::new();
    for step in [0, 3 * HOUR, -50 * HOUR, HOUR, 0, 0, 48 * HOUR, -HOUR] {
        w.fixture.clock.step_wall(step);
        slots.extend(w.claim(64).iter().map(|call| call.slot_at));
        assert_eq!(w.sweep().returned, 0);
        w.pass(millis(250));
    }
    assert_rolling(&slots, 5, secs(1));
    assert_eq!(slots.len(), 7);
}

pub fn a_step_is_told_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(5, ""));
    w.add(1, &[]);
    assert_eq!(w.claimed(1).stepped, None);
    w.fixture.clock.step_wall(HOUR);
    assert_eq!(w.claimed(1).stepped, Some(HOUR));
    assert_eq!(w.claimed(1).stepped, None);
}

pub fn a_step_wakes_who_waits_for_a_calendar<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(1, "key = [\"site\"]"));
    w.add(5, &[("site", "a")]);
    w.one();
    let reset = w.nothing().unwrap();
    // The clock was wrong by half a day: once set right, the reset is that much nearer.
    w.fixture.clock.step_wall(HOUR);
    let next = w.nothing().unwrap();
    assert_eq!(next, reset, "both calendars must grant");
    w.fixture.clock.step_wall(-4 * HOUR);
    let next = w.nothing().unwrap();
    assert_eq!(next, reset.shifted(3 * HOUR), "the wall clock's day ends later");
    w.pass_to(next);
    assert_eq!(w.claim(9).len(), 1);
}

pub fn a_hint_by_the_wall_clock_is_kept_to_after_a_step<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(99, "key = [\"site\"]"));
    w.add(3, &[("site", "a")]);
    w.fixture.clock.step_wall(5 * HOUR);
    let call = w.one();
    let wall = w.fixture.clock.wall();
    w.say(&call, refusal(Reason::RateLimited, wall + secs(60), ""));
    let due = w.now() + secs(59);
    w.fixture.clock.step_wall(-5 * HOUR);
    assert!(w.nothing().unwrap() >= due);
    w.pass(secs(59));
    assert!(w.claim(9).is_empty());
    w.pass(secs(2));
    assert_eq!(w.claim(9).len(), 1);
}

pub fn store_time_outlives_the_process<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &limit("rate", "rate", "rate = \"1/60s\""));
    w.add(2, &[]);
    let call = w.one();
    w.ok(&call);
    w.fixture.clock.step_wall(-HOUR);
    w.die();
    let next = w.nothing().unwrap();
    assert!(next.since(call.slot_at) >= Duration::from_millis(59_800), "{next}");
    w.pass_to(next);
    assert_eq!(w.one().slot_at, call.slot_at + secs(60));
}

fn change<S: Store>(w: &mut World<S>, tables: &str) {
    w.upstream = upstream(tables);
}

pub fn a_larger_amount_counts_at_once<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &daily(2, "key = [\"site\"]"));
    w.add(9, &[("site", "a")]);
    assert_eq!(w.claim(64).len(), 2);
    w.nothing();
    change(&mut w, &daily(5, "key = [\"site\"]"));
    assert_eq!(w.claim(64).len(), 3, "what was spent is carried over");
    change(&mut w, &daily(1, "key = [\"site\"]"));
    assert!(w.claim(64).is_empty());
    assert_eq!(w.spent("daily", &[("site", "a")]), 5);
}

pub fn more_places_count_at_once<S: Store>(make: Make<'_, S>) {
    let places = |amount| limit("places", "concurrency", &format!("amount = {amount}\nkey = [\"site\"]"));
    let mut w = World::new(make, &places(1));
    w.add(9, &[("site", "a")]);
    assert_eq!(w.claim(64).len(), 1);
    assert_eq!(w.nothing(), None);
    change(&mut w, &places(4));
    assert_eq!(w.claim(64).len(), 3);
}

pub fn a_limit_that_is_gone_lets_go<S: Store>(make: Make<'_, S>) {
    let sites = limit("site", "rate", "rate = \"1000/s\"\nburst = 99\nkey = [\"site\"]");
    let mut w = World::new(make, &format!("{}{sites}", daily(1, "key = [\"site\"]")));
    w.add(9, &[("site", "a")]);
    assert_eq!(w.claim(64).len(), 1);
    w.nothing();
    change(&mut w, &sites);
    assert_eq!(w.claim(64).len(), 8);
}

pub fn another_kind_of_rule_begins_anew<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &daily(2, "key = [\"site\"]"));
    w.add(9, &[("site", "a")]);
    assert_eq!(w.claim(64).len(), 2);
    change(&mut w, &limit("daily", "rolling", "amount = 3\nper = \"24h\"\nkey = [\"site\"]"));
    assert_eq!(w.claim(64).len(), 3);
    change(&mut w, &limit("daily", "rate", "rate = \"1/s\"\nkey = [\"site\"]"));
    assert_eq!(w.claim(64).len(), 1);
}

pub fn another_zone_carries_over_what_it_can<S: Store>(make: Make<'_, S>) {
    let zone = |zone: &str| {
        limit("daily", "budget", &format!("amount = 3\nper = \"day\"\ntime_zone = \"{zone}\""))
    };
    let mut w = World::new(make, &zone("UTC"));
    w.add(9, &[]);
    assert_eq!(w.claim(64).len(), 3);
    change(&mut w, &zone("America/Los_Angeles"));
    assert!(w.claim(64).is_empty(), "a changed zone is no second allowance");
}

pub fn a_reboot_gives_nothing_a_second_time<S: Store>(make: Make<'_, S>) {
    // The wall clock after the boot: as it should be, and wrong by much, either way.
    for wrong in [0, -7_200, -172_800, 7_200] {
        let slow = limit("slow", "rate", "rate = \"1/m\"");
        let mut w = World::new(make, &format!("{slow}{}", daily(3, "")));
        w.add(9, &[]);
        w.ok(&w.one());
        let before = w.now();
        w.fixture.clock.reboot();
        w.fixture.clock.step_wall(wrong * NANOS_PER_SEC);
        w.die();
        assert!(w.now() >= before, "store time never runs back");
        // Two hours may have passed, for all we know.
        let at_once = w.claim(9).len();
        assert_eq!(at_once, usize::from(wrong > 0), "{wrong} s: no second slot");
        let later = (0..4).map(|_| {
            w.pass(secs(60));
            w.claim(9).len()
        });
        assert_eq!(at_once + later.sum::<usize>(), 2, "{wrong} s: three a day are three");
        assert!(w.nothing().is_some());
    }
}
