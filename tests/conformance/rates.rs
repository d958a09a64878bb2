//! Rates: no span holds more than it may, however many share the limit.

use std::time::Duration;

use paceline::clock::Timestamp;
use paceline::job::JobState;
use paceline::quota::LimitRule;
use paceline::store::{ReleaseWhy, Store};

use crate::world::{Make, World, limit, millis, secs};

/// That no half-open span of the rate's period holds more units than its amount.
pub fn assert_rolling(slots: &[Timestamp], amount: usize, period: Duration) {
    let mut slots = slots.to_vec();
    slots.sort_unstable();
    for (first, last) in slots.iter().zip(slots.iter().skip(amount)) {
        assert!(*last >= *first + period, "{} within the span from {first}", amount + 1);
    }
}

pub fn no_span_holds_more_than_the_rate<S: Store>(make: Make<'_, S>) {
    for (burst, amount) in [(1, 10), (4, 10), (10, 10)] {
        let w = World::new(make, &limit("rate", "rate", &format!("rate = \"{amount}/s\"\nburst = {burst}")));
        w.add(60, &[]);
        let until = w.now() + secs(60);
        let slots: Vec<_> = w.run(until).into_iter().map(|(at, _)| at).collect();
        assert_eq!(slots.len(), 60);
        assert_rolling(&slots, amount, secs(1));
    }
}

pub fn the_planned_rate_is_used<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"20/s\"\nburst = 3\ncounted = \"bucket\""));
    w.add(403, &[]);
    let begin = w.now();
    let slots: Vec<_> = w.run(begin + secs(60)).into_iter().map(|(at, _)| at).collect();
    let LimitRule::Rate(rate) = &w.upstream.limits[0].rule else { panic!("a rate") };
    let plan = rate.plan();
    let ideal = Duration::from_nanos((403 - plan.burst) * plan.interval.unsigned_abs());
    assert_eq!(slots[402].since(begin), ideal, "not a moment is lost");
}

pub fn processes_share_one_timeline<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"50/s\"\nburst = 1"));
    w.add(200, &[]);
    let (other, runner) = w.another();
    let mut slots = Vec::new();
    while w.count(JobState::Queued) > 0 {
        slots.extend(w.claim(3).iter().map(|call| call.slot_at));
        slots.extend(w.claimed_by(&other, runner, 5).calls.iter().map(|call| call.slot_at));
        w.pass(millis(100));
    }
    assert_eq!(slots.len(), 200);
    assert_rolling(&slots, 50, secs(1));
}

pub fn time_without_work_is_no_credit<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"10/s\"\nburst = 2"));
    w.add(2, &[]);
    w.run(w.now() + secs(5));
    w.pass(secs(3600));
    w.add(30, &[]);
    let slots: Vec<_> = w.run(w.now() + secs(60)).into_iter().map(|(at, _)| at).collect();
    assert_rolling(&slots, 10, secs(1));
}

pub fn crashes_give_no_second_burst<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &limit("rate", "rate", "rate = \"5/s\"\nburst = 5"));
    w.add(40, &[]);
    let mut slots = Vec::new();
    for _ in 0..30 {
        slots.extend(w.claim(2).iter().map(|call| call.slot_at));
        w.die();
        w.pass(millis(150));
    }
    assert_rolling(&slots, 5, secs(1));
    assert!(slots.len() >= 5, "{}", slots.len());
}

pub fn slots_given_back_are_handed_out_again<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"1/60s\""));
    w.add(3, &[]);
    let call = w.one();
    w.release(std::slice::from_ref(&call), ReleaseWhy::Forfeited);
    let again = w.one();
    assert_eq!(again.slot_at, call.slot_at, "a slot missed does not cost a minute");
    assert!(again.id > call.id);
    assert_eq!(again.job.id, call.job.id);
    assert_eq!(again.job.attempt, 1, "nothing was sent");
}

pub fn slots_go_back_newest_first<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"20/s\""));
    w.add(9, &[]);
    let calls = w.claim(9);
    assert_eq!(calls.len(), 6, "within the horizon");
    // In any order within one release.
    w.release(&[calls[4].clone(), calls[3].clone(), calls[5].clone()], ReleaseWhy::Blocked);
    let again = w.claim(9);
    assert_eq!(again.len(), 3);
    assert_eq!(again[0].slot_at, calls[3].slot_at);
    // One that others were taken after is lost, and no other is handed out twice.
    w.release(&calls[..1], ReleaseWhy::Forfeited);
    let slots: Vec<_> = calls[1..3].iter().chain(&again).map(|call| call.slot_at).collect();
    assert_rolling(&slots, 1, millis(50));
    assert!(w.claim(9).is_empty());
}

pub fn a_missed_slot_is_taken_anew<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"10/s\""));
    w.add(9, &[]);
    let calls = w.claim(3);
    w.pass(secs(3));
    w.release(&calls, ReleaseWhy::Forfeited);
    let again = w.claim(9);
    assert!(again.iter().all(|call| call.slot_at >= w.now()));
    let slots: Vec<_> = again.iter().map(|call| call.slot_at).collect();
    assert_rolling(&slots, 10, secs(1));
    assert_eq!(slots.len(), 3, "what can go within the horizon");
}

pub fn a_keyed_rate_beside_a_shared_one<S: Store>(make: Make<'_, S>) {
    let shared = limit("all", "rate", "rate = \"10/s\"\nburst = 1");
    let sites = limit("site", "rate", "rate = \"1/s\"\nburst = 1\nkey = [\"site\"]");
    let w = World::new(make, &format!("{shared}{sites}"));
    for site in 0..20 {
        w.add(20, &[("site", &site.to_string())]);
    }
    let begin = w.now();
    let sent = w.run(begin + secs(20));
    let slots: Vec<_> = sent.iter().map(|(at, _)| *at).collect();
    assert_rolling(&slots, 10, secs(1));
    for site in 0..20 {
        let of = |(at, key): &(Timestamp, paceline::job::Columns)| {
            (key["site"] == site.to_string()).then_some(*at)
        };
        let own: Vec<_> = sent.iter().filter_map(of).collect();
        assert_rolling(&own, 1, secs(1));
        assert!(own.len() >= 8, "site {site} got {}", own.len());
    }
    assert!(slots.len() >= 197, "the shared rate is used: {}", slots.len());
}

pub fn rates_of_their_own_run_side_by_side<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("site", "rate", "rate = \"2/s\"\nburst = 1\nkey = [\"site\"]"));
    for site in 0..10 {
        w.add(10, &[("site", &site.to_string())]);
    }
    let begin = w.now();
    let sent = w.run(begin + secs(60));
    assert_eq!(sent.len(), 100);
    let last = sent.iter().map(|(at, _)| *at).max().unwrap();
    assert_eq!(last.since(begin), millis(4500));
}

pub fn many_who_share_an_instance_are_let_go_as_it_grants<S: Store>(make: Make<'_, S>) {
    let pool = limit("pool", "rate", "rate = \"10/s\"\nburst = 2\nkey = [\"pool\"]");
    let sites = limit("site", "rate", "rate = \"10/s\"\nkey = [\"site\"]");
    let w = World::new(make, &format!("{pool}{sites}"));
    for site in 0..300 {
        w.add(1, &[("pool", "p"), ("site", &site.to_string())]);
    }
    let begin = w.now();
    let sent = w.run(begin + secs(60));
    assert_eq!(sent.len(), 300);
    let slots: Vec<_> = sent.iter().map(|(at, _)| *at).collect();
    assert_rolling(&slots, 10, secs(1));
    let last = slots.iter().max().unwrap().since(begin);
    assert!(last <= secs(34), "paced at nine a second: {last:?}");
}
