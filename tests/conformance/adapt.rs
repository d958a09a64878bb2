//! A limit that is refused inside what is declared is paced more slowly, until it has been calm.

use paceline::clock::Timestamp;
use paceline::job::JobState;
use paceline::reading::{Reading, Reason};
use paceline::store::views::LimitView;
use paceline::store::{ReleaseWhy, Store};

use crate::world::{Make, World, daily, limit, refusal, said, secs};

fn pace(more: &str) -> String {
    limit("pace", "rate", &format!("rate = \"20/s\"\nburst = 2\ncounted = \"bucket\"\n{more}"))
}

fn view<S: Store>(w: &World<S>, name: &str) -> LimitView {
    w.look().limits.into_iter().find(|limit| limit.name == name).unwrap()
}

/// The share of the declared pace, in sixteenths.
fn share<S: Store>(w: &World<S>) -> f64 {
    view(w, "pace").slowed.unwrap_or(1.0) * 16.0
}

/// Too fast, with a hint so far ahead.
fn too_fast<S: Store>(w: &World<S>, hint: u64, limit: &str) -> Reading {
    refusal(Reason::RateLimited, w.store.now().wall + secs(hint), limit)
}

/// Calls that go in so many seconds, all answered well.
fn sent_in<S: Store>(w: &World<S>, span: u64) -> usize {
    let (until, mut sent) = (w.now() + secs(span), 0);
    loop {
        let claimed = w.claimed(1);
        let at = claimed.calls.first().map(|call| call.slot_at).or(claimed.next_at);
        let Some(at) = at.filter(|at| *at <= until) else {
            w.release(&claimed.calls, ReleaseWhy::Drained);
            w.pass_to(until);
            return sent;
        };
        match claimed.calls.first() {
            Some(call) => {
                w.ok(call);
                sent += 1;
            }
            None => w.pass_to(at),
        }
    }
}

pub fn the_pace_is_halved_and_comes_back<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pace(""));
    w.add(2_000, &[]);
    assert_eq!((share(&w), view(&w, "pace").effective_rate), (16.0, Some(20.0)));
    let call = w.one();
    w.say(&call, too_fast(&w, 1, "pace"));
    assert_eq!((share(&w), view(&w, "pace").effective_rate), (8.0, Some(10.0)));
    w.pass(secs(1));
    let probe = w.one();
    w.ok(&probe);
    let sent = sent_in(&w, 3);
    assert!((27..=34).contains(&sent), "three seconds at half the pace: {sent}");
    w.pass(secs(5));
    assert_eq!(share(&w), 9.0, "a step a calm");
    w.pass(secs(40));
    assert_eq!(share(&w), 16.0);
    let sent = sent_in(&w, 3);
    assert!((58..=63).contains(&sent), "never above what is declared: {sent}");
}

pub fn refusals_under_way_cut_it_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pace(""));
    w.add(50, &[]);
    let calls = w.claim(4);
    w.pass_to(calls[3].slot_at.shifted(1));
    for call in &calls {
        w.settle(w.answer(call, too_fast(&w, 1, "pace")));
    }
    assert_eq!(share(&w), 8.0);
    w.pass(secs(2));
    let probe = w.one();
    w.say(&probe, too_fast(&w, 1, "pace"));
    assert_eq!(share(&w), 4.0, "it was still too fast");
}

pub fn a_restart_and_other_processes_keep_to_it<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &pace(""));
    w.add(50, &[]);
    let call = w.one();
    w.say(&call, too_fast(&w, 1, "pace"));
    w.die();
    assert_eq!(share(&w), 8.0);
}

pub fn only_what_says_too_fast_cuts_it<S: Store>(make: Make<'_, S>) {
    let cases: [(Reason, u64); 5] = [
        (Reason::RateLimited, 300),
        (Reason::QuotaExhausted, 1),
        (Reason::ConcurrencyLimited, 1),
        (Reason::Overloaded, 1),
        (Reason::KeyPending, 1),
    ];
    for (reason, hint) in cases {
        let w = World::new(make, &pace(""));
        w.add(50, &[]);
        let call = w.one();
        let hint: Timestamp = w.store.now().wall + secs(hint);
        w.say(&call, refusal(reason, hint, "pace"));
        assert_eq!(share(&w), 16.0, "{reason}");
    }
}

pub fn without_a_name_it_is_the_partitions_own_pace<S: Store>(make: Make<'_, S>) {
    let wide = limit("wide", "rate", "rate = \"100/s\"\nkey = [\"site\"]");
    let w = World::new(make, &format!("{wide}{}", pace("key = [\"site\"]")));
    w.add(50, &[("site", "a")]);
    w.add(50, &[("site", "b")]);
    let call = w.one();
    w.say(&call, too_fast(&w, 1, ""));
    let slowed: Vec<_> = w.look().limits.into_iter().filter(|l| l.slowed.is_some()).collect();
    assert_eq!(slowed.len(), 1);
    assert_eq!((slowed[0].name.as_str(), &slowed[0].key), ("pace", &call.partition));
}

/// One partition that is always refused must not slow down those that share a rate with it.
pub fn what_others_share_is_not_cut_for_one<S: Store>(make: Make<'_, S>) {
    let by_site = daily(100_000, "key = [\"site\"]\n");
    let w = World::new(make, &format!("{}{by_site}", pace("")));
    w.add(50, &[("site", "a")]);
    w.add(50, &[("site", "b")]);
    let call = w.one();
    w.say(&call, too_fast(&w, 1, ""));
    assert_eq!(share(&w), 16.0);
    // But where all of them are, it is what they share.
    w.add(50, &[("site", "c")]);
    for _ in 0..2 {
        let call = w.one();
        w.say(&call, too_fast(&w, 1, ""));
    }
    assert_eq!(share(&w), 8.0);
}

pub fn what_costs_the_whole_burst_still_fits<S: Store>(make: Make<'_, S>) {
    let points = "rate = \"20/s\"\nburst = 3\ncounted = \"bucket\"\ncost = \"points\"";
    let w = World::new(make, &limit("pace", "rate", points));
    w.add(5, &[("points", "2")]);
    let call = w.one();
    w.say(&call, too_fast(&w, 1, "pace"));
    w.pass(secs(1));
    let sent = sent_in(&w, 30);
    assert_eq!((sent, w.count(JobState::Failed)), (5, 0));
}

pub fn a_span_is_made_longer<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("pace", "rolling", "amount = 6\nper = \"60s\""));
    w.add(60, &[]);
    let call = w.one();
    w.say(&call, too_fast(&w, 1, "pace"));
    assert_eq!(share(&w), 8.0);
    w.pass(secs(1));
    assert_eq!(sent_in(&w, 110), 5, "six in two minutes now");
}

/// Declared are twenty a second, the upstream has ten: few are refused, and when it has twenty again all of
/// them are used.
pub fn a_stricter_upstream_refuses_few<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pace(""));
    w.add(3_000, &[]);
    let (begun, mut refused, mut sent) = (w.now(), 0, 0);
    let (mut tokens, mut filled_at) = (2.0_f64, begun);
    while w.now() < begun + secs(120) {
        let claimed = w.claimed(1);
        let Some(call) = claimed.calls.first() else {
            w.pass_to(claimed.next_at.unwrap());
            continue;
        };
        w.pass_to(call.slot_at.shifted(1));
        sent += 1;
        tokens = (tokens + w.now().since(filled_at).as_secs_f64() * 10.0).min(2.0);
        filled_at = w.now();
        if tokens >= 1.0 {
            tokens -= 1.0;
            w.settle(w.answer(call, said(Reason::Ok)));
        } else {
            refused += 1;
            w.settle(w.answer(call, Reading { limit: Some("pace".to_owned()), ..too_fast(&w, 1, "") }));
        }
    }
    assert!(refused * 50 < sent, "{refused} of {sent} refused");
    assert!(sent > 120 * 5, "half of what it has is used at the least: {sent}");
    sent_in(&w, 80);
    assert_eq!(share(&w), 16.0);
}
