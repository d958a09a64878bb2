//! Calls in flight.

use paceline::reading::Reason;
use paceline::store::{ReleaseWhy, Store};

use crate::world::{Make, World, limit, said, secs};

fn places(amount: u64, key: &str) -> String {
    limit("places", "concurrency", &format!("amount = {amount}\nkey = [{key}]"))
}

pub fn leased_calls_take_the_places<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &places(4, ""));
    w.add(20, &[]);
    let (other, runner) = w.another();
    let calls = w.claim(3);
    assert_eq!(w.claimed_by(&other, runner, 3).calls.len(), 1);
    let claimed = w.claimed(9);
    assert!(claimed.calls.is_empty() && claimed.next_at.is_none());
    assert_eq!(claimed.limit.as_deref(), Some("places"));
    assert_eq!(w.spent("places", &[]), 4);
    w.ok(&calls[0]);
    assert_eq!(w.claim(9).len(), 1);
    w.say(&calls[1], said(Reason::Transient));
    w.release(&calls[2..], ReleaseWhy::Drained);
    assert_eq!(w.claim(9).len(), 2);
}

pub fn the_places_of_dead_processes_come_free<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &places(2, ""));
    w.add(9, &[]);
    assert_eq!(w.claim(9).len(), 2);
    assert_eq!(w.die().returned, 2);
    assert_eq!(w.claim(9).len(), 2);
    w.pass(secs(61));
    assert!(w.claim(9).is_empty(), "until the lease is found to have run out");
    assert_eq!(w.sweep().returned, 2);
    assert_eq!(w.claim(9).len(), 2);
}

pub fn keyed_places_are_waited_for_apart<S: Store>(make: Make<'_, S>) {
    let sites = limit("site", "rate", "rate = \"1000/s\"\nburst = 99\nkey = [\"site\"]");
    let w = World::new(make, &format!("{}{sites}", places(1, "\"pool\"")));
    for site in ["a", "b", "c"] {
        w.add(2, &[("pool", "one"), ("site", site)]);
    }
    w.add(2, &[("pool", "two"), ("site", "d")]);
    let calls = w.claim(9);
    assert_eq!(calls.len(), 2, "one of each pool");
    assert_eq!(w.nothing(), None);
    let mut served = 2;
    let mut running = calls;
    while let Some(call) = running.pop() {
        w.ok(&call);
        let next = w.claim(9);
        assert!(next.len() <= 1, "one place came free");
        served += next.len();
        running.extend(next);
    }
    assert_eq!(served, 8);
}

pub fn a_place_that_comes_free_is_news<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &places(1, ""));
    w.add(2, &[]);
    let (other, runner) = w.another();
    let call = w.one();
    let claimed = w.claimed_by(&other, runner, 1);
    assert!(claimed.calls.is_empty());
    w.ok(&call);
    assert!(w.has_news(&other, claimed.news));
    assert_eq!(w.claimed_by(&other, runner, 1).calls.len(), 1);
}

pub fn slots_are_near_where_places_are_few<S: Store>(make: Make<'_, S>) {
    let rate = limit("rate", "rate", "rate = \"20/s\"");
    let w = World::new(make, &format!("{}{rate}", places(8, "")));
    w.add(20, &[]);
    let calls = w.claim(8);
    assert_eq!(calls.len(), 1, "the next slot is 50 ms away");
    let next = w.nothing().unwrap();
    assert!(next.since(w.now()) >= std::time::Duration::from_millis(40));
}
