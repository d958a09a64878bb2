//! Forecasts: what the store says waits, run through the limits on a clock that jumps, against the same
//! queue sent on a virtual clock.

use std::sync::Arc;

use paceline::clock::Timestamp;
use paceline::quota::forecast::{Forecast, forecast};
use paceline::store::Store;

use crate::world::{Make, World, daily, limit, refusal, said, secs};

fn told<S: Store>(w: &World<S>, load: Option<&str>) -> Forecast {
    let load = load.map(str::to_owned);
    let backlog = w.wait(w.store.backlog(Arc::clone(&w.upstream), load)).unwrap();
    forecast(&w.upstream, backlog, w.store.now())
}

/// Sends everything, and compares the last slot with what was foretold: within a hundredth.
fn compare<S: Store>(w: &World<S>) -> Forecast {
    let began = w.store.now().wall;
    let told = told(w, None);
    let finish_at = told.finish_at.unwrap();
    let sent = w.run(Timestamp::MAX);
    assert_eq!(told.jobs, sent.len() as u64);
    let last = sent.iter().map(|(slot, _)| *slot).max().unwrap();
    let (real, foretold) = (last.since(began).as_secs_f64(), finish_at.since(began).as_secs_f64());
    assert!((real - foretold).abs() <= real * 0.01 + 5.0, "{real} {foretold} {told:?}");
    told
}

pub fn it_comes_as_foretold<S: Store>(make: Make<'_, S>) {
    let rate = limit("plan", "rate", "rate = \"2/s\"\nburst = 5\ncounted = \"bucket\"");
    let keyed = limit("own", "budget", "amount = 40\nper = \"day\"\ntime_zone = \"Asia/Tokyo\"\nkey = [\"site\"]");
    let rolling = limit("span", "rolling", "amount = 30\nper = \"1h\"");
    let spread = daily(50, "spread = true");
    for limits in [
        daily(25, ""),
        rate.clone(),
        format!("{rate}{keyed}"),
        format!("{rate}{rolling}"),
        format!("{keyed}{rolling}{rate}"),
        spread,
    ] {
        let w = World::new(make, &limits);
        w.add(130, &[("site", "a")]);
        w.add(70, &[("site", "b")]);
        compare(&w);
    }
}

pub fn what_was_spent_and_blocked_counts<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(20, ""));
    w.add(50, &[]);
    for call in w.claim(10) {
        w.ok(&call);
    }
    let call = w.one();
    let hint = w.store.now().wall + secs(3 * 86_400);
    w.say(&call, refusal(paceline::reading::Reason::QuotaExhausted, hint, "daily"));
    let told = compare(&w);
    assert_eq!(told.jobs, 40);
    assert!(told.windows[0].start >= hint + secs(0) - secs(86_400), "nothing before the hint: {told:?}");
}

pub fn what_is_held_is_left_out_and_told<S: Store>(make: Make<'_, S>) {
    let keyed = limit("own", "budget", "amount = 4\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]");
    let w = World::new(make, &keyed);
    w.add(9, &[("site", "a")]);
    w.add(5, &[("site", "b")]);
    w.hold(&[("site", "a")]);
    let backlog = w.wait(w.store.backlog(Arc::clone(&w.upstream), None)).unwrap();
    assert_eq!((backlog.held, backlog.groups.len()), (9, 1));
    assert_eq!(told(&w, None).jobs, 5);
}

pub fn a_load_ends_with_its_last_job<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(10, ""));
    let jobs = |count: usize| (0..count).map(|_| w.job(&[])).collect::<Vec<_>>();
    w.add_to("first", jobs(15));
    w.add_to("second", jobs(10));
    w.add_to("third", jobs(100));
    let days = |load: &str| {
        let at = told(&w, Some(load)).finish_at.unwrap();
        at.since(w.store.now().wall).as_secs() / 86_400
    };
    assert_eq!((days("first"), days("second"), days("third")), (0, 1, 11));
    assert_eq!(told(&w, Some("second")).jobs, 25, "those before it go first");
    w.say(&w.one(), said(paceline::reading::Reason::Ok));
    assert_eq!(told(&w, None).jobs, 124);
}

pub fn costs_are_taken_from_the_column<S: Store>(make: Make<'_, S>) {
    let points = limit("points", "budget", "amount = 100\nper = \"day\"\ntime_zone = \"UTC\"\ncost = \"n\"");
    let w = World::new(make, &points);
    w.add(20, &[("n", "10")]);
    w.add(10, &[("n", "30")]);
    let told = told(&w, None);
    assert_eq!(told.windows.len(), 5, "500 points: {told:?}");
}
