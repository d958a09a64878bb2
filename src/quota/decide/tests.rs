//! Decisions over several limits.

use super::*;
use crate::quota::budget::{Budget, Counts};
use crate::quota::calendar::{Calendar, Per};
use crate::quota::concurrency::Concurrency;
use crate::quota::rate::{Counted, Rate};
use crate::quota::reported::Told;
use crate::quota::rolling::Rolling;

/// 2026-06-01T12:00:00Z, in seconds.
const NOON: i64 = 1_780_315_200;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_secs(NOON).shifted(millis * 1_000_000)
}

fn rate(amount: u64) -> LimitRule {
    LimitRule::Rate(Rate {
        amount,
        period: Duration::from_secs(1),
        burst: 1,
        counted: Counted::Rolling,
        slack: Duration::ZERO,
        path_jitter: Duration::ZERO,
        evenly: false,
    })
}

fn budget(amount: u64) -> LimitRule {
    LimitRule::Budget(Budget {
        amount,
        calendar: Calendar::parse("UTC", Per::Day, "00:00").unwrap(),
        counts: Counts::Sent,
        reserve: 0,
        spread: false,
        settle_after_reset: Duration::ZERO,
    })
}

fn rolling(amount: u64) -> LimitRule {
    LimitRule::Rolling(Rolling {
        amount,
        span: Duration::from_secs(60),
        stands_for: None,
        slack: Duration::ZERO,
        path_jitter: Duration::ZERO,
        counts: Counts::Sent,
        reserve: 0,
    })
}

fn places(amount: u64) -> LimitRule {
    LimitRule::Concurrency(Concurrency { amount })
}

fn ask<'a>(limit: &'a str, rule: &'a LimitRule, usage: &'a Usage) -> Ask<'a> {
    let (gate, reported) = Default::default();
    let rule = Some((rule, usage));
    Ask { limit: Some(limit), gate, rule, reported, cost: 1, lookahead: HORIZON }
}

fn own_gate(gate: Gate) -> Ask<'static> {
    let reported = Reported::default();
    Ask { limit: None, gate, rule: None, reported, cost: 1, lookahead: HORIZON }
}

fn decide_at(asks: &[Ask<'_>], millis: i64) -> Decision {
    decide(asks, Now::same(at(millis)), at(millis))
}

fn waits(until: Timestamp, limit: &str) -> Decision {
    Decision::Wait { until, limit: Some(limit.to_owned()), blocked: false }
}

#[test]
fn without_limits_a_call_goes_when_it_is_due() {
    assert_eq!(decide_at(&[], 0), Decision::Admit { slot: at(0) });
    let due_later = decide(&[], Now::same(at(0)), at(90_000));
    assert_eq!(due_later, Decision::Admit { slot: at(90_000) });
    let due_long_ago = decide(&[], Now::same(at(0)), at(-90_000));
    assert_eq!(due_long_ago, Decision::Admit { slot: at(0) }, "no slot lies in the past");
}

#[test]
fn slots_are_handed_out_up_to_the_horizon() {
    let (rule, mut usage) = (rate(10), Usage::Rate(None));
    for millis in [0, 100, 200] {
        assert_eq!(decide_at(&[ask("r", &rule, &usage)], 0), Decision::Admit { slot: at(millis) });
        charge(&rule, &mut usage, 1, at(millis), Now::same(at(0)));
    }
    assert_eq!(decide_at(&[ask("r", &rule, &usage)], 0), waits(at(300), "r"));
}

#[test]
fn the_limit_that_asks_for_the_latest_instant_binds() {
    let (fast, slow, day) = (rate(100), rate(1), budget(1));
    let now = Now::same(at(0));
    let (mut a, mut b, mut c) = (Usage::none(&fast), Usage::none(&slow), Usage::none(&day));
    charge(&fast, &mut a, 1, at(0), now);
    charge(&slow, &mut b, 1, at(0), now);
    assert_eq!(
        decide_at(&[ask("slow", &slow, &b), ask("fast", &fast, &a)], 0),
        waits(at(1_000), "slow")
    );
    charge(&day, &mut c, 1, at(0), now);
    let midnight = at(12 * 3_600_000 + 2_000);
    let asks = [ask("day", &day, &c), ask("slow", &slow, &b), ask("fast", &fast, &a)];
    assert_eq!(decide_at(&asks, 0), waits(midnight, "day"));
}

#[test]
fn however_many_limits_are_all_asked() {
    let now = Now::same(at(0));
    let rule = rate(1_000);
    let used = (0..40).map(|n| Usage::Rate(Some(at(n)))).collect::<Vec<_>>();
    let asks: Vec<Ask<'_>> = used.iter().map(|usage| ask("r", &rule, usage)).collect();
    assert_eq!(decide(&asks, now, at(0)), Decision::Admit { slot: at(39) });
}

#[test]
fn what_the_upstream_told_holds_back_and_then_the_rule_is_asked_again() {
    let (day, mut used) = (budget(2), Usage::none(&budget(2)));
    charge(&day, &mut used, 1, at(0), Now::same(at(0)));
    let told = |until| Reported {
        told: Some(Told { figure: 0, left: 0, until, last_call: 0 }),
        ..Reported::default()
    };
    let decided = |until| decide_at(&[Ask { reported: told(until), ..ask("day", &day, &used) }], 0);
    assert_eq!(decided(at(5_000)), waits(at(5_000), "day"));
    assert_eq!(decided(at(-1)), Decision::Admit { slot: at(0) }, "it has lapsed");
    // A figure that ends at the reset ends within its guard.
    let midnight = 12 * 3_600_000;
    assert_eq!(decided(at(midnight)), waits(at(midnight + 2_000), "day"));
}

#[test]
fn limits_are_asked_again_until_all_grant_at_one_instant() {
    let (slow, day) = (rate(1), budget(9));
    let late = at(12 * 3_600_000 - 2_500);
    let (mut a, b) = (Usage::none(&slow), Usage::none(&day));
    charge(&slow, &mut a, 1, late, Now::same(late));
    // The rate leads into the guard before midnight, which leads past it.
    let asks = [ask("day", &day, &b), ask("slow", &slow, &a)];
    let decision = decide(&asks, Now::same(late), late);
    assert_eq!(decision, waits(at(12 * 3_600_000 + 2_000), "day"));
}

#[test]
fn a_block_binds_and_says_so() {
    let blocked = Gate { blocked_until: Some(at(5_000)), probing: false };
    let until = at(5_000);
    let wait = Decision::Wait { until, limit: None, blocked: true };
    assert_eq!(decide_at(&[own_gate(blocked)], 0), wait);
    assert_eq!(decide_at(&[own_gate(blocked)], 5_000), Decision::Admit { slot: until });

    let (rule, usage) = (rate(1), Usage::Rate(Some(at(9_000))));
    let asks = [Ask { gate: blocked, ..ask("r", &rule, &usage) }];
    assert_eq!(decide_at(&asks, 0), waits(at(9_000), "r"), "here our own count is later");
}

#[test]
fn never_wins_over_waiting() {
    let (slow, day) = (rate(1), budget(1));
    let (a, b) = (Usage::Rate(Some(at(9_000))), Usage::none(&day));
    let asks = [ask("slow", &slow, &a), Ask { cost: 2, ..ask("day", &day, &b) }];
    assert_eq!(decide_at(&asks, 0), Decision::Never { limit: "day".to_owned() });
    let spans = rolling(3);
    let none = Usage::none(&spans);
    let never = decide_at(&[Ask { cost: 4, ..ask("span", &spans, &none) }], 0);
    assert_eq!(never, Decision::Never { limit: "span".to_owned() });
}

#[test]
fn busy_only_where_no_instant_is_asked_for() {
    let (limit, slow) = (places(2), rate(1));
    let (full, soon) = (Usage::Concurrency(2), Usage::Rate(Some(at(1_005))));
    let asks = [ask("places", &limit, &full), ask("slow", &slow, &soon)];
    assert_eq!(decide_at(&asks, 0), waits(at(1_005), "slow"));
    let busy = Decision::Busy { limit: Some("places".to_owned()) };
    assert_eq!(decide_at(&asks, 1_000), busy);

    let probing = Gate { blocked_until: Some(at(0)), probing: true };
    assert_eq!(decide_at(&[own_gate(probing)], 0), Decision::Busy { limit: None });
}

#[test]
fn with_a_concurrency_limit_slots_are_near() {
    let (limit, fast) = (places(2), rate(10));
    let (free, usage) = (Usage::Concurrency(1), Usage::Rate(Some(at(100))));
    let asks = [ask("fast", &fast, &usage), ask("places", &limit, &free)];
    assert_eq!(decide_at(&asks, 0), waits(at(100), "fast"));
    assert_eq!(decide_at(&asks, 90), Decision::Admit { slot: at(100) });
}

#[test]
fn what_was_taken_goes_back_newest_first() {
    let rule = rate(10);
    let (mut usage, now) = (Usage::none(&rule), Now::same(at(0)));
    let first = charge(&rule, &mut usage, 1, at(0), now);
    let second = charge(&rule, &mut usage, 1, at(100), now);
    give_back(&mut usage, &first);
    assert_eq!(usage, Usage::Rate(Some(at(200))), "something was taken after it");
    give_back(&mut usage, &second);
    assert_eq!(usage, Usage::Rate(Some(at(100))));
    give_back(&mut usage, &first);
    assert_eq!(usage, Usage::Rate(None));
}

#[test]
fn what_can_be_granted_counts_up_to_the_lookahead() {
    let (rule, used) = (rate(10), Usage::Rate(Some(at(100))));
    let grants = |ahead| grantable(&ask("r", &rule, &used), Now::same(at(0)), ahead, 9);
    assert_eq!((grants(Duration::ZERO), grants(NEAR * 10), grants(HORIZON)), (0, 1, 2));
}

#[test]
fn every_kind_is_charged_and_given_back() {
    for rule in [budget(5), rolling(5), places(5), rate(5)] {
        let (mut usage, now) = (Usage::none(&rule), Now::same(at(0)));
        let most = if rule.kind() == "rate" { 1 } else { 5 };
        let free = |usage: &Usage| grantable(&ask("free", &rule, usage), now, Duration::ZERO, 100);
        assert_eq!(free(&usage), most, "{}", rule.kind());
        let taken = charge(&rule, &mut usage, 1, at(0), now);
        assert_eq!(free(&usage), most - 1, "{}", rule.kind());
        give_back(&mut usage, &taken);
        give_back(&mut usage, &taken);
        assert_eq!(free(&usage), most, "{}: never more than it has", rule.kind());
    }
}

#[test]
fn what_was_counted_under_another_kind_of_rule_is_no_count() {
    let (rule, other) = (rate(1), Usage::Concurrency(3));
    assert_eq!(decide_at(&[ask("r", &rule, &other)], 0), Decision::Admit { slot: at(0) });
    assert_eq!(grantable(&ask("other", &rule, &other), Now::same(at(0)), Duration::ZERO, 9), 1);
    let mut usage = other;
    let taken = charge(&rule, &mut usage, 1, at(0), Now::same(at(0)));
    assert_eq!(usage, Usage::Rate(Some(at(1_000))));
    let mut places = Usage::Concurrency(1);
    give_back(&mut places, &taken);
    assert_eq!(places, Usage::Concurrency(1));
}
