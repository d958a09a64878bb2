//! Refusals: what they close, until when, and how it opens again.

use std::time::Duration;

use paceline::clock::Timestamp;
use paceline::job::JobState;
use paceline::reading::{Reading, Reason};
use paceline::store::{Call, ReleaseWhy, SettleEnd, Store};

use crate::world::{Make, World, columns, daily, limit, millis, refusal, said, secs};

const MANY: &str = "amount = 100000\nper = \"day\"\ntime_zone = \"UTC\"\n";

fn by_site() -> String {
    limit("site", "budget", &format!("{MANY}key = [\"site\"]"))
}

fn pooled() -> String {
    format!("{}{}", limit("pool", "budget", &format!("{MANY}key = [\"pool\"]")), by_site())
}

fn in_wall<S: Store>(w: &World<S>, span: Duration) -> Timestamp {
    w.store.now().wall + span
}

fn sites(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.partition["site"].as_str()).collect()
}

pub fn nothing_goes_before_the_hint_and_others_do<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(5, &[("site", "a")]);
    w.add(5, &[("site", "b")]);
    let calls = w.claim(2);
    let hint = in_wall(&w, secs(30));
    let settled = w.say(&calls[0], refusal(Reason::RateLimited, hint, ""));
    assert!(matches!(settled.end, SettleEnd::Again(_)));
    let blocked = settled.block.unwrap();
    assert_eq!((blocked.limit, blocked.key), (None, calls[0].partition.clone()));
    assert!(blocked.until >= hint);
    assert_eq!(w.view(calls[0].job.id).failures, 0, "being told to wait is no failure");
    let rest = w.claim(64);
    assert_eq!(sites(&rest), ["b", "b", "b", "b"]);
    assert_eq!(w.nothing(), Some(hint));
    w.pass_to(hint.shifted(-1));
    assert!(w.claim(64).is_empty());
    w.pass_to(hint);
    assert_eq!(w.claim(64).len(), 1, "one probe first");
}

pub fn jitter_only_adds<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(5, &[("site", "a")]);
    let call = w.one();
    let hint = in_wall(&w, secs(30));
    let mut answer = w.answer(&call, refusal(Reason::RateLimited, hint, ""));
    answer.random = 1.0;
    w.settle(answer);
    let next = w.nothing().unwrap();
    assert!(next > hint && next <= hint + secs(3), "{next}");
}

pub fn one_probe_goes_first_and_then_the_rest<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(9, &[("site", "a")]);
    let call = w.one();
    w.say(&call, refusal(Reason::RateLimited, in_wall(&w, secs(30)), ""));
    w.pass(secs(31));
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1);
    assert_eq!(w.nothing(), None, "until the probe is back");
    w.ok(&probe[0]);
    assert_eq!(w.claim(64).len(), 8);
}

pub fn a_probe_refused_closes_for_longer<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(9, &[("site", "a")]);
    let mut gaps = Vec::new();
    for _ in 0..6 {
        let call = w.one();
        w.say(&call, said(Reason::RateLimited));
        let next = w.nothing().unwrap();
        gaps.push(next.since(w.now()));
        w.pass_to(next);
    }
    assert_eq!(gaps, [1, 2, 4, 8, 16, 32].map(secs), "without a hint it backs off");
}

pub fn a_probe_that_was_not_sent_or_lost_goes_again<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &by_site());
    w.add(9, &[("site", "a")]);
    let call = w.one();
    w.say(&call, refusal(Reason::RateLimited, in_wall(&w, secs(30)), ""));
    w.pass(secs(31));
    let probe = w.one();
    w.release(&[probe], ReleaseWhy::Drained);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1, "still one");
    assert_eq!(w.die().returned, 1);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1, "still one");
    let mut lost = w.answer(&probe[0], said(Reason::Transient));
    lost.status = None;
    w.settle(lost);
    let next = w.claim(64);
    assert_eq!(next.len(), 1, "no answer opens nothing");
    w.ok(&next[0]);
    w.pass(secs(10));
    assert_eq!(w.claim(64).len(), 8);
}

pub fn a_named_limit_closes_for_all_who_share_it<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pooled());
    for (pool, site) in [("p", "a"), ("p", "b"), ("q", "c")] {
        w.add(3, &[("pool", pool), ("site", site)]);
    }
    let calls = w.claim(3);
    let hint = in_wall(&w, secs(30));
    let call = calls.iter().find(|call| call.partition["site"] == "a").unwrap();
    let blocked = w.say(call, refusal(Reason::QuotaExhausted, hint, "pool")).block.unwrap();
    assert_eq!(blocked.limit.as_deref(), Some("pool"));
    assert_eq!(blocked.key, columns(&[("pool", "p")]));
    assert_eq!(sites(&w.claim(64)), ["c", "c"]);
    w.pass_to(hint);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1);
    w.ok(&probe[0]);
    assert_eq!(w.claim(64).len(), 4);
}

pub fn a_block_on_a_limit_without_a_key_closes_the_upstream<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &format!("{}{}", daily(1000, ""), by_site()));
    for site in 0..5 {
        w.add(2, &[("site", &site.to_string())]);
    }
    let call = w.one();
    let hint = in_wall(&w, secs(30));
    w.say(&call, refusal(Reason::QuotaExhausted, hint, "daily"));
    let claimed = w.claimed(64);
    assert_eq!((claimed.calls.len(), claimed.next_at), (0, Some(hint)));
    assert_eq!(claimed.limit.as_deref(), Some("daily"));
    w.add(1, &[("site", "new")]);
    assert_eq!(w.nothing(), Some(hint));
    w.pass_to(hint);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1);
    w.ok(&probe[0]);
    assert_eq!(w.claim(64).len(), 10);
}

pub fn a_thousand_who_wait_send_one_probe_and_then_go<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pooled());
    let jobs: Vec<_> = (0..1000).map(|n| w.job(&[("pool", "p"), ("site", &n.to_string())])).collect();
    w.add_jobs(jobs);
    let call = w.one();
    let hint = in_wall(&w, secs(30));
    w.say(&call, refusal(Reason::RateLimited, hint, "pool"));
    assert_eq!(w.nothing(), Some(hint), "each has been asked once");
    w.pass_to(hint);
    let probe = w.claim(64);
    assert_eq!(probe.len(), 1);
    for _ in 0..3 {
        assert_eq!(w.nothing(), None);
    }
    w.ok(&probe[0]);
    let mut went = 1;
    loop {
        let calls = w.claim(64);
        if calls.is_empty() {
            break;
        }
        went += calls.len();
    }
    assert_eq!(went, 1000);
}

pub fn three_partitions_refused_close_what_they_share<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &format!("{}{}", daily(1000, ""), pooled()));
    for (pool, site) in [("p", "a"), ("p", "b"), ("p", "c"), ("p", "d"), ("q", "e")] {
        w.add(3, &[("pool", pool), ("site", site)]);
    }
    let calls = w.claim(5);
    let refused = |site: &str, span: Duration| {
        let call = calls.iter().find(|call| call.partition["site"] == site).unwrap();
        w.say(call, refusal(Reason::RateLimited, in_wall(&w, span), "")).block.unwrap()
    };
    assert_eq!(refused("a", secs(60)).limit, None);
    assert_eq!(refused("b", secs(60)).limit, None);
    let third = refused("c", secs(60));
    assert_eq!(third.limit.as_deref(), Some("pool"), "the narrowest that they share");
    assert_eq!(third.key, columns(&[("pool", "p")]));
    assert_eq!(sites(&w.claim(64)), ["e", "e"], "d was not refused, but shares the limit");
    // One more that was under way asks for less: the block is not shortened.
    refused("d", secs(5));
    w.pass(secs(10));
    assert!(w.claim(64).is_empty());
    w.pass(secs(51));
    assert_eq!(w.claim(64).len(), 1, "one probe for all");
}

pub fn two_partitions_refused_close_only_themselves<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pooled());
    for site in ["a", "b", "c"] {
        w.add(3, &[("pool", "p"), ("site", site)]);
    }
    for call in w.claim(3).iter().take(2) {
        w.say(call, refusal(Reason::RateLimited, in_wall(&w, secs(60)), ""));
    }
    assert_eq!(w.claim(64).len(), 2);
    // A hint that has passed is not "at once".
    w.pass(secs(61));
    let (mut probes, third) = (w.claim(2), w.add(1, &[("pool", "p"), ("site", "c")]));
    assert_eq!((probes.len(), third.len()), (2, 1));
    w.ok(&probes.remove(0));
}

pub fn refusals_under_way_count_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(9, &[("site", "a")]);
    let calls = w.claim(5);
    w.pass(millis(10));
    for call in &calls {
        let answer = w.answer(call, said(Reason::RateLimited));
        w.settle(answer);
    }
    // One refusal's back-off, not five's.
    assert_eq!(w.nothing().unwrap().since(w.now()), secs(1));
}

pub fn a_longer_hint_of_one_under_way_counts<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(9, &[("site", "a")]);
    let calls = w.claim(3);
    w.pass(millis(10));
    let (soon, late) = (in_wall(&w, secs(10)), in_wall(&w, secs(60)));
    for hint in [soon, late, soon] {
        let call = &calls[if hint == late { 1 } else if w.attempts(calls[0].job.id).is_empty() { 0 } else { 2 }];
        let answer = w.answer(call, refusal(Reason::RateLimited, hint, ""));
        w.settle(answer);
    }
    assert_eq!(w.nothing(), Some(late));
}

/// Two calls are under way; the first is refused and the block has passed: the probe is out.
fn probe_beside_an_earlier_call<S: Store>(w: &World<S>) -> (Call, Call) {
    w.add(9, &[("site", "a")]);
    let earlier = w.claim(2);
    w.say(&earlier[0], said(Reason::RateLimited));
    w.pass(secs(2));
    let probe = w.one();
    assert_eq!(w.nothing(), None, "until the probe is back");
    (probe, earlier[1].clone())
}

pub fn an_earlier_call_that_is_refused_sends_no_second_probe<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let (probe, earlier) = probe_beside_an_earlier_call(&w);
    w.say(&earlier, said(Reason::Overloaded));
    w.pass(secs(60));
    assert_eq!(w.nothing(), None, "the probe is out still");
    w.ok(&probe);
    assert_eq!(w.claim(64).len(), 8);
}

pub fn an_earlier_call_that_is_refused_after_the_probe_got_through<S: Store>(make: Make<'_, S>) {
    for hint in [false, true] {
        let w = World::new(make, &by_site());
        let (probe, earlier) = probe_beside_an_earlier_call(&w);
        w.ok(&probe);
        let until = in_wall(&w, secs(30));
        match hint {
            // It says what the block before said.
            false => assert_eq!(w.say(&earlier, said(Reason::RateLimited)).block, None),
            true => {
                w.say(&earlier, refusal(Reason::RateLimited, until, ""));
                assert_eq!(w.nothing(), Some(until));
                w.pass_to(until);
                let probe = w.claim(64);
                assert_eq!(probe.len(), 1, "one probe first");
                w.ok(&probe[0]);
            }
        }
        assert_eq!(w.claim(64).len(), if hint { 7 } else { 8 });
    }
}

pub fn a_hint_that_comes_beside_a_probe_is_kept_to<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let (probe, earlier) = probe_beside_an_earlier_call(&w);
    let hint = in_wall(&w, secs(30));
    w.say(&earlier, refusal(Reason::RateLimited, hint, ""));
    w.ok(&probe);
    assert_eq!(w.nothing(), Some(hint), "the probe left before this was said");
    w.pass_to(hint);
    assert_eq!(w.claim(64).len(), 1, "one probe goes first");
}

pub fn calls_claimed_before_a_block_are_told<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &pooled());
    for (pool, site) in [("p", "a"), ("p", "b"), ("q", "c")] {
        w.add(2, &[("pool", pool), ("site", site)]);
    }
    let calls = w.claim(6);
    let of = |site: &str| calls.iter().find(|call| call.partition["site"] == site).unwrap();
    let seen = w.store.block_seq().unwrap();
    assert_eq!(calls[0].block_seq, seen);
    assert!(!w.is_blocked(of("b")));
    w.say(of("a"), refusal(Reason::RateLimited, in_wall(&w, secs(60)), "pool"));
    w.pass(millis(10));
    assert!(w.store.block_seq().unwrap() > seen, "within 10 ms");
    assert!(w.is_blocked(of("b")));
    assert!(!w.is_blocked(of("c")));
    assert!(w.is_blocked(of("a")), "it is settled");
    w.say(of("c"), refusal(Reason::RateLimited, in_wall(&w, secs(60)), ""));
    let other = calls.iter().rfind(|call| call.partition["site"] == "c").unwrap();
    assert!(w.is_blocked(other), "a partition's own block alike");
    // Once it has opened the next call is the probe, and those of before are not.
    w.pass(secs(61));
    assert!(w.is_blocked(of("b")));
    let probe = w.one();
    assert!(!w.is_blocked(&probe));
}

pub fn overload_without_a_hint_backs_off_both<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    let jobs = w.add(2, &[("site", "a")]);
    let call = w.one();
    let settled = w.say(&call, said(Reason::Overloaded));
    assert!(settled.block.is_some());
    assert_eq!(w.view(jobs[0]).failures, 1);
    assert_eq!(w.nothing().unwrap().since(w.now()), secs(1));
}

pub fn a_hint_too_far_away_is_a_hold<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &format!("{}[retry]\nmax_hint = \"1h\"", by_site()));
    let jobs = w.add(2, &[("site", "a")]);
    let call = w.one();
    let hint = in_wall(&w, secs(3700));
    let settled = w.say(&call, refusal(Reason::QuotaExhausted, hint, ""));
    assert!(settled.block.is_none());
    assert_eq!(settled.hold.unwrap().until, Some(w.store.now().to_store(hint)));
    assert_eq!(w.nothing(), None, "it does not go on by itself");
    let view = w.look();
    assert_eq!((view.partitions[0].wait.until, view.next_at), (Some(hint), None));
    assert_eq!(w.view(jobs[0]).waiting.unwrap().until, Some(hint));
    let call = w.answer(&call, Reading { clamped: true, ..said(Reason::Ok) });
    w.settle(call);
    assert_eq!(w.count(JobState::Queued), 2);
    w.resume(&[("site", "a")]);
    assert!(w.look().partitions.is_empty(), "it goes at once, as a person wants it");
    w.hold(&[("site", "a")]);
    assert_eq!(w.look().partitions[0].wait.until, None, "another hold, another reason");
}

pub fn a_hint_that_was_clamped_is_a_hold_too<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(1, &[("site", "a")]);
    let hint = in_wall(&w, secs(31 * 86_400));
    let clamped = Reading { clamped: true, ..refusal(Reason::RateLimited, hint, "") };
    assert!(w.say(&w.one(), clamped).hold.is_some());
    assert_eq!(w.look().partitions[0].wait.until, Some(hint));
}

/// What is sent in ten minutes to an upstream that refuses everything, without saying until when.
fn refused_for_ten_minutes<S: Store>(w: &World<S>) -> Vec<Timestamp> {
    let until = w.now() + secs(600);
    let mut sent = Vec::new();
    loop {
        let claimed = w.claimed(64);
        for call in &claimed.calls {
            sent.push(call.slot_at);
        }
        for call in &claimed.calls {
            w.say(call, refusal(Reason::RateLimited, w.store.now().wall, ""));
        }
        if claimed.calls.is_empty() {
            let Some(next) = claimed.next_at.filter(|at| *at < until) else { return sent };
            w.pass_to(next);
        }
    }
}

pub fn an_endless_retry_after_zero_is_bounded<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &by_site());
    w.unanswered = 4;
    w.add(50, &[("site", "a")]);
    let sent = refused_for_ten_minutes(&w);
    assert!(sent.len() <= 15, "{} calls in ten minutes", sent.len());
    let gaps: Vec<_> = sent[3..].windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.len() >= 8 && gaps.is_sorted(), "{gaps:?}");
    assert_eq!(w.count(JobState::Queued), 50, "and nobody loses a try");
}

pub fn of_one_never_answered_few_are_out_at_a_time<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &by_site());
    w.unanswered = 4;
    w.add(30, &[("site", "a")]);
    w.add(2, &[("site", "b")]);
    let first = w.claim(64);
    assert_eq!(first.iter().filter(|call| call.partition["site"] == "a").count(), 4);
    assert_eq!(first.len(), 6, "it keeps nobody else from going");
    assert_eq!(w.nothing(), None, "until one is answered");
    let mut of_a: Vec<_> = first.into_iter().filter(|call| call.partition["site"] == "a").collect();
    // What never left, was lost or not answered is no answer; but its place is free.
    w.release(&[of_a.remove(0)], ReleaseWhy::Drained);
    of_a.extend(w.claim(64));
    assert_eq!(of_a.len(), 4);
    let mut lost = w.answer(&of_a.remove(0), said(Reason::Transient));
    lost.status = None;
    w.settle(lost);
    of_a.extend(w.claim(64));
    assert_eq!(of_a.len(), 4);
    w.die();
    assert_eq!(w.claim(64).iter().filter(|call| call.partition["site"] == "a").count(), 4);
    w.die();
    let one = w.claim(64).into_iter().find(|call| call.partition["site"] == "a").unwrap();
    w.ok(&one);
    assert!(w.claim(64).len() > 20, "once it answers all go");
}

pub fn of_one_that_fell_silent_few_are_out_at_a_time<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &by_site());
    w.unanswered = 4;
    w.add(30, &[("site", "a")]);
    let mut out = w.claim(64);
    w.ok(&out.remove(0));
    out.extend(w.claim(10));
    assert_eq!(out.len(), 13);
    let mut silence = |w: &World<S>| {
        let mut lost = w.answer(&out.remove(0), said(Reason::Transient));
        lost.status = None;
        w.settle(lost);
    };
    (0..9).for_each(|_| silence(&w));
    assert!(w.claim(64).is_empty(), "four are out still");
    silence(&w);
    let next = w.claim(64);
    assert_eq!(next.len(), 1, "one takes its place");
    w.ok(&next[0]);
    assert!(w.claim(64).len() > 10, "it answers again");
}

pub fn a_first_answer_is_news<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &by_site());
    w.unanswered = 4;
    w.add(9, &[("site", "a")]);
    let calls = w.claim(64);
    let (other, runner) = w.another();
    let news = w.claimed_by(&other, runner, 64).news;
    assert!(!w.has_news(&other, news));
    w.ok(&calls[0]);
    w.pass(millis(100));
    assert!(w.has_news(&other, news));
    assert_eq!(w.claimed_by(&other, runner, 64).calls.len(), 5);
}

pub fn hints_under_way_are_one_refusal<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &by_site());
    w.add(9, &[("site", "a")]);
    let calls = w.claim(5);
    w.pass(millis(10));
    let hint = in_wall(&w, secs(10));
    for call in &calls {
        let answer = w.answer(call, refusal(Reason::RateLimited, hint, ""));
        w.settle(answer);
    }
    w.pass_to(hint);
    let probe = w.one();
    w.say(&probe, said(Reason::RateLimited));
    assert_eq!(w.nothing().unwrap().since(w.now()), secs(2), "the second in a row, not the sixth");
}
