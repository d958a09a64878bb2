//! Holds: what stops until a person acts.

use std::time::Duration;

use paceline::job::JobState;
use paceline::next::Token;
use paceline::reading::{Reading, Reason};
use paceline::store::{SettleEnd, Store};

use crate::world::{Make, World, limit, millis, said, secs};

fn by_site() -> String {
    limit("site", "budget", "amount = 100000\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]")
}

fn world<S: Store>(make: Make<'_, S>) -> World<S> {
    let w = World::new(make, &by_site());
    w.add(4, &[("site", "a")]);
    w.add(4, &[("site", "b")]);
    w
}

/// Claims all and answers `a` with these, the rest with `ok`; what was held.
fn answer_a<S: Store>(w: &World<S>, reason: Reason) -> bool {
    let calls = w.claim(64);
    let call = calls.iter().find(|call| call.partition["site"] == "a").unwrap();
    let held = w.say(call, said(reason)).hold.is_some();
    let rest: Vec<_> = calls.iter().filter(|other| other.id != call.id).cloned().collect();
    w.release(&rest, paceline::store::ReleaseWhy::Drained);
    held
}

pub fn a_person_holds_a_partition_and_lets_it_go<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let calls = w.claim(2);
    let seen = w.store.block_seq().unwrap();
    assert_eq!(w.hold(&[("site", "a")]), 1);
    w.pass(millis(10));
    assert!(w.store.block_seq().unwrap() > seen);
    let of = |site: &str| calls.iter().find(|call| call.partition["site"] == site).unwrap();
    assert!(w.is_blocked(of("a")) && !w.is_blocked(of("b")));
    w.release(&[of("a").clone()], paceline::store::ReleaseWhy::Blocked);
    assert_eq!(w.claim(64).len(), 3);
    let remaining = w.wait(w.store.remaining("up".to_owned())).unwrap();
    assert_eq!((remaining.waiting, remaining.held), (0, 4));
    w.add(1, &[("site", "a")]);
    assert_eq!(w.nothing(), None);
    assert_eq!(w.resume(&[("site", "a")]), 1);
    assert_eq!(w.resume(&[("site", "a")]), 0);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1, "one probe before the rest");
    w.ok(&probe[0]);
    assert_eq!(w.claim(64).len(), 4);
}

pub fn a_person_holds_an_upstream_and_lets_it_go<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let call = w.one();
    assert_eq!(w.hold(&[]), 2);
    assert!(w.is_blocked(&call));
    assert_eq!(w.nothing(), None);
    assert!(w.look().held.is_some());
    w.add(1, &[("site", "new")]);
    assert_eq!(w.nothing(), None);
    assert_eq!(w.resume(&[]), 1);
    assert_eq!(w.claim(64).len(), 8);
}

pub fn a_resume_is_news<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    w.hold(&[]);
    let claimed = w.claimed(1);
    w.resume(&[]);
    assert!(w.has_news(&w.store, claimed.news));
}

pub fn the_first_block_holds_the_partition<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    assert!(answer_a(&w, Reason::Blocked));
    assert!(w.claim(64).iter().all(|call| call.partition["site"] == "b"));
    assert_eq!(w.count(JobState::Failed), 0);
    let view = w.look();
    assert_eq!(view.partitions.len(), 1);
    assert_eq!(view.partitions[0].wait.reason, "blocked");
}

pub fn the_second_misconfigured_in_a_row_holds<S: Store>(make: Make<'_, S>) {
    for reason in [Reason::Misconfigured, Reason::Forbidden, Reason::AuthExpired] {
        let w = world(make);
        assert!(!answer_a(&w, reason), "one is not enough");
        assert!(answer_a(&w, reason));
        assert!(w.claim(64).iter().all(|call| call.partition["site"] == "b"));
        assert_eq!(w.count(JobState::Failed), 0, "no job is lost by it");
    }
}

pub fn an_answer_between_two_refusals_counts_anew<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    assert!(!answer_a(&w, Reason::Misconfigured));
    assert!(!answer_a(&w, Reason::Ok));
    assert!(!answer_a(&w, Reason::Misconfigured));
}

pub fn a_poison_job_fails_alone<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let jobs = w.add(20, &[("site", "a")]);
    let mut held = false;
    for _ in 0..200 {
        let claimed = w.claimed(1);
        match claimed.calls.first() {
            Some(call) if call.job.id == jobs[0] => {
                held |= w.say(call, said(Reason::Forbidden)).hold.is_some();
            }
            Some(call) => assert_eq!(w.ok(call), SettleEnd::Ended(JobState::Done)),
            None => match claimed.next_at {
                Some(next) => w.pass_to(next),
                None => break,
            },
        }
        w.pass(millis(100));
    }
    assert!(!held);
    assert_eq!((w.count(JobState::Failed), w.count(JobState::Done)), (1, 19));
    assert_eq!(w.state(jobs[0]), JobState::Failed);
}

pub fn many_under_way_hold_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(10, &[("site", "a")]);
    let calls = w.claim(10);
    let held = calls.iter().filter(|call| w.say(call, said(Reason::Forbidden)).hold.is_some());
    assert_eq!(held.count(), 1);
    assert_eq!(w.count(JobState::Queued), 10);
    w.resume(&[("site", "a")]);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1);
    assert!(w.say(&probe[0], said(Reason::Forbidden)).hold.is_some(), "at once, the second time");
}

pub fn a_key_that_stays_pending_is_misconfigured<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(3, &[("site", "a")]);
    let pending = || Reading {
        wait: Some(secs(60)),
        becomes: Some((secs(900), Reason::Misconfigured)),
        ..said(Reason::KeyPending)
    };
    let begin = w.now();
    let mut calls = 0;
    let held = loop {
        let claimed = w.claimed(1);
        let Some(call) = claimed.calls.first() else {
            w.pass_to(claimed.next_at.unwrap());
            continue;
        };
        calls += 1;
        if let Some(held) = w.say(call, pending()).hold {
            break held;
        }
    };
    let stood = w.now().since(begin);
    assert!(stood >= secs(900) && stood < secs(1000), "{stood:?} and {calls} calls");
    assert_eq!(held.reason, "misconfigured");
    assert_eq!(w.count(JobState::Queued), 3);
}

pub fn a_rate_that_does_not_pass_is_a_quota<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(3, &[("site", "a")]);
    let limited = || {
        let reading = said(Reason::RateLimited);
        let becomes = Some((secs(900), Reason::QuotaExhausted));
        Reading { wait: Some(secs(400)), becomes, ..reading }
    };
    let mut reasons = Vec::new();
    while reasons.len() < 6 {
        let claimed = w.claimed(1);
        let Some(call) = claimed.calls.first() else {
            w.pass_to(claimed.next_at.unwrap());
            continue;
        };
        let settled = w.say(call, limited());
        assert!(settled.hold.is_none(), "waiting helps");
        reasons.push(settled.block.unwrap().reason.name());
    }
    let quota = reasons.iter().position(|reason| *reason == "quota_exhausted").unwrap();
    assert!((2..=3).contains(&quota), "{reasons:?}");
    assert!(reasons[..quota].iter().all(|reason| *reason == "rate_limited"), "{reasons:?}");
    assert!(reasons[quota..].iter().all(|reason| *reason == "quota_exhausted"), "{reasons:?}");
}

pub fn what_is_held_delays_no_other<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    w.hold(&[("site", "a")]);
    let sent = w.run(w.now() + Duration::from_secs(5));
    assert_eq!(sent.len(), 4);
    assert_eq!(w.count(JobState::Queued), 4);
}

pub fn a_resume_does_not_cut_a_hint_short<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let call = w.one();
    let site = call.partition["site"].clone();
    let hint = w.store.now().wall + secs(60);
    w.say(&call, crate::world::refusal(Reason::RateLimited, hint, ""));
    w.hold(&[("site", &site)]);
    w.resume(&[("site", &site)]);
    assert!(w.claim(64).iter().all(|call| call.partition["site"] != site));
    assert_eq!(w.nothing(), Some(hint));
}

pub fn a_resume_sends_no_second_probe<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(5, &[("site", "a")]);
    let call = w.one();
    w.say(&call, said(Reason::RateLimited));
    w.pass(secs(1));
    let probe = w.one();
    w.hold(&[("site", "a")]);
    w.resume(&[("site", "a")]);
    assert_eq!(w.nothing(), None, "the probe is out");
    w.ok(&probe);
    assert_eq!(w.claim(64).len(), 4);
}

pub fn what_is_closed_until_an_instant_opens_by_itself<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let calls = w.claim(2);
    let of = |site: &str| calls.iter().find(|call| call.partition["site"] == site).unwrap();
    let until = w.now() + secs(8);
    assert_eq!(w.pause(&[("site", "a")], until), 1);
    w.pass(millis(10));
    assert!(w.is_blocked(of("a")) && !w.is_blocked(of("b")));
    w.release(&[of("a").clone()], paceline::store::ReleaseWhy::Blocked);
    let others = w.claim(64);
    assert_eq!(others.len(), 3);
    assert_eq!(w.nothing(), Some(until), "all know when it ends");
    let remaining = w.wait(w.store.remaining("up".to_owned())).unwrap();
    assert_eq!((remaining.waiting, remaining.held), (4, 0), "nobody is needed");
    let view = w.look();
    let wait = &view.partitions.iter().find(|one| one.key["site"] == "a").unwrap().wait;
    assert_eq!((wait.reason.as_str(), wait.until), ("no_token", Some(w.store.now().to_wall(until))));
    assert_eq!(wait.detail, "the token server answered 503");
    w.pass_to(until);
    assert_eq!(w.claim(64).len(), 4, "no refusal was counted, so that no probe goes first");
}

pub fn what_is_closed_until_an_instant_is_let_go_before<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    assert_eq!(w.pause(&[], w.now() + secs(300)), 2);
    assert!(w.nothing().is_some());
    let let_go = |reason: &str| {
        w.wait(w.store.let_go("up".to_owned(), reason.to_owned())).unwrap()
    };
    assert_eq!((let_go("another"), let_go("no_token"), let_go("no_token")), (0, 2, 0));
    w.pass(millis(10));
    assert_eq!(w.claim(64).len(), 8);
}

pub fn what_the_upstream_closed_for_longer_stays_closed<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let hint = w.now() + secs(600);
    let call = w.claim(64).into_iter().find(|call| call.partition["site"] == "a").unwrap();
    let reading = Reading { retry_at: Some(w.store.now().to_wall(hint)), ..said(Reason::RateLimited) };
    w.say(&call, reading);
    w.pause(&[("site", "a")], w.now() + secs(5));
    w.wait(w.store.let_go("up".to_owned(), "no_token".to_owned())).unwrap();
    w.pass(secs(500));
    assert!(w.claim(64).iter().all(|call| call.partition["site"] == "b"));
}

pub fn a_refused_token_is_no_refusal_of_its_partition<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let expired = |call: &paceline::store::Call, token| {
        let answer = w.answer(call, said(Reason::AuthExpired));
        w.settle(paceline::store::Settlement { token, ..answer })
    };
    let calls: Vec<_> =
        w.claim(64).into_iter().filter(|call| call.partition["site"] == "a").collect();
    assert_eq!(calls.len(), 4);
    w.pass(millis(10));
    for call in &calls[..3] {
        let settled = expired(call, Some(Token::Replaced));
        assert_eq!((settled.end, settled.hold), (SettleEnd::Again(w.now()), None));
    }
    // It would be held at the second refusal that only a person can lift: this is the first.
    assert_eq!(w.settle(w.answer(&calls[3], said(Reason::Forbidden))).hold, None);
    // Refused with another token, which others got through with: its own fault.
    let again: Vec<_> =
        w.claim(64).into_iter().filter(|call| call.partition["site"] == "a").collect();
    assert_eq!(again.len(), 3);
    w.pass(millis(10));
    let settled = expired(&again[0], Some(Token::Replaced));
    assert_eq!(settled.end, SettleEnd::Ended(JobState::Failed));
    // Refused with a new token that nobody got through with: all are.
    let settled = expired(&again[1], Some(Token::Fresh));
    assert!(matches!(settled.end, SettleEnd::Again(_)));
    let hold = settled.hold.unwrap();
    assert_eq!(hold.reason, "auth_expired");
    assert!(hold.detail.contains("a new token was refused too"), "{}", hold.detail);
    // Nor does a failure count: the job may be tried as often as any.
    assert_eq!(w.view(again[2].job.id).failures, 0);
}

pub fn only_what_is_held_for_a_reason_is_let_go<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let call = w.claim(8).into_iter().find(|call| call.partition["site"] == "a").unwrap();
    w.say(&call, said(Reason::Blocked));
    w.hold(&[("site", "b")]);
    let let_go = |reason: &str| {
        w.wait(w.store.let_go("up".to_owned(), reason.to_owned())).unwrap()
    };
    assert_eq!((let_go("another"), let_go("by_hand"), let_go("by_hand")), (0, 1, 0));
    let remaining = w.wait(w.store.remaining("up".to_owned())).unwrap();
    assert_eq!(remaining.held, 1, "the other jobs of that site run");
    w.hold(&[]);
    assert_eq!(let_go("by_hand"), 1);
    assert!(w.look().held.is_none());
}

pub fn a_retry_opens_no_hold<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let jobs = w.add(5, &[("site", "a")]);
    assert!(answer_a(&w, Reason::Blocked));
    assert_eq!(w.act_on(jobs[3], paceline::store::Act::Cancel), 1);
    assert_eq!(w.act_on(jobs[3], paceline::store::Act::Retry), 1);
    assert_eq!(w.nothing(), None);
    let waiting = w.view(jobs[3]).waiting.unwrap();
    assert_eq!((waiting.turn.name(), waiting.reason.as_str()), ("held", "blocked"));
    w.resume(&[("site", "a")]);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1);
    w.ok(&probe[0]);
    assert_eq!(w.claim(64).len(), 4, "the one that was retried too");
}

pub fn a_poison_job_is_tried_anew_by_a_person<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let jobs = w.add(2, &[("site", "a")]);
    let poison = |calls: &[paceline::store::Call]| {
        calls.iter().find(|call| call.job.id == jobs[0]).cloned().unwrap()
    };
    let first = w.claim(1);
    w.say(&poison(&first), said(Reason::Forbidden));
    w.ok(&w.one());
    w.pass(secs(10));
    assert_eq!(w.say(&w.one(), said(Reason::Forbidden)).hold, None);
    assert_eq!(w.state(jobs[0]), JobState::Failed);
    assert_eq!(w.act_on(jobs[0], paceline::store::Act::Retry), 1);
    assert_eq!(w.say(&w.one(), said(Reason::Forbidden)).hold, None, "it begins anew");
    w.pass(secs(10));
    assert!(w.say(&w.one(), said(Reason::Forbidden)).hold.is_some(), "alone, it is not passed by");
    w.resume(&[("site", "a")]);
    w.ok(&w.one());
    assert_eq!(w.count(JobState::Done), 2);
}

pub fn who_was_not_refused_goes_first_after_a_resume<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let job = |priority| {
        let mut job = w.job(&[("site", "a")]);
        job.priority = priority;
        w.add_one(job)
    };
    let (bad, worse, good) = (job(3), job(0), job(0));
    assert_eq!(w.say(&w.one(), said(Reason::Forbidden)).hold, None);
    // Before it is held too: the first one is due again, and has the better priority.
    w.pass(secs(10));
    let second = w.one();
    assert_eq!(second.job.id, worse);
    assert!(w.say(&second, said(Reason::Forbidden)).hold.is_some());
    w.resume(&[("site", "a")]);
    w.pass(secs(10));
    let probe = w.claim(64);
    assert_eq!((probe.len(), probe[0].job.id), (1, good), "neither of the two again");
    w.ok(&probe[0]);
    for call in w.claim(64) {
        assert_eq!(w.say(&call, said(Reason::Forbidden)).hold, None, "its own fault");
    }
    assert_eq!((w.state(bad), w.state(worse)), (JobState::Failed, JobState::Failed));
}
