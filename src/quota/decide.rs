//! Several limits asked as one: one pure question, four answers.
//!
//! The answer is used by the claim, by `why` and by forecasts alike. It is never a boolean and never
//! an error: waiting is a value that names the limit that binds and the instant it ends.

use std::time::Duration;

use super::{LimitRule, budget, rolling};
use crate::clock::{Now, Timestamp};

/// No slot lies further ahead than this.
pub const HORIZON: Duration = Duration::from_millis(250);

/// How far ahead a slot may lie where waiting for it would waste what others could use: with a
/// concurrency limit, or on a limit narrower than another one.
pub const NEAR: Duration = Duration::from_millis(10);

/// Times round all limits before the search for an instant that suits them all gives up. Each limit
/// only ever asks for later; two calendars may push each other a few windows on.
const ROUNDS: usize = 16;

/// What is stored about one limit instance, as far as its rule needs it.
#[derive(Clone, Debug, PartialEq)]
pub enum Usage {
    /// Of a rate: its theoretical arrival time (store time), once anything was sent.
    Rate(Option<Timestamp>),
    /// Of a budget: what was spent, by window.
    Budget(budget::Windows),
    /// Of a rolling limit: what was sent, by instant.
    Rolling(rolling::Entries),
    /// Of a concurrency limit: calls in flight.
    Concurrency(u64),
}

impl Usage {
    /// The usage of an instance of `rule` that nothing was sent on.
    pub fn none(rule: &LimitRule) -> Usage {
        match rule {
            LimitRule::Rate(_) => Usage::Rate(None),
            LimitRule::Budget(_) => Usage::Budget(budget::Windows::default()),
            LimitRule::Rolling(_) => Usage::Rolling(rolling::Entries::default()),
            LimitRule::Concurrency(_) => Usage::Concurrency(0),
        }
    }
}

/// What refusals did to a limit instance or a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Nothing goes before this (store time).
    pub blocked_until: Option<Timestamp>,
    /// The one call that was let through after a block is still in flight.
    pub probing: bool,
}

/// One limit instance (or, without a rule, the partition's own gate) asked for `cost` units.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The limit's name; `None` for the partition's own gate.
    pub limit: Option<&'a str>,
    /// What refusals did to it.
    pub gate: Gate,
    /// The rule and what was used of it; `None` for the partition's own gate.
    pub rule: Option<(&'a LimitRule, &'a Usage)>,
    /// Units asked for.
    pub cost: u64,
    /// How far ahead of `now` a slot that this limit binds may lie.
    pub lookahead: Duration,
}

/// The four answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may go, at `slot` (store time).
    Admit {
        /// The instant reserved for the send.
        slot: Timestamp,
    },
    /// Not before `until` (store time): the latest instant that any limit asks for.
    Wait {
        /// The instant.
        until: Timestamp,
        /// The limit that binds; `None`: the partition's own block.
        limit: Option<String>,
        /// Whether a refusal is what closes it, rather than our own count.
        blocked: bool,
    },
    /// Until something in flight ends: no instant can be named.
    Busy {
        /// The limit that binds; `None`: the partition's own probe is out.
        limit: Option<String>,
    },
    /// The cost is larger than the limit can ever grant.
    Never {
        /// The limit.
        limit: String,
    },
}

/// May a call that takes these units go, at the earliest at `earliest` (store time)?
///
/// The slot of an [`Decision::Admit`] is the first instant at or after `earliest`, and not before
/// now, at which all limits grant at once; where it lies beyond the binding limit's lookahead from
/// `now`, the answer is [`Decision::Wait`]. With a concurrency limit no lookahead is longer than
/// [`NEAR`]. Where no limit binds, `earliest` itself is the slot, however far off.
pub fn decide(asks: &[Ask<'_>], now: Now, earliest: Timestamp) -> Decision {
    let found = match search(asks, now, earliest.max(now.store)) {
        Ok(found) => found,
        Err(never) => return Decision::Never { limit: never.limit.unwrap_or_default().to_owned() },
    };
    if let Some((ask, blocked)) = found.binder
        && (!found.settled || found.at > now.store + lookahead(ask, asks))
    {
        return Decision::Wait { until: found.at, limit: ask.limit.map(str::to_owned), blocked };
    }
    match asks.iter().find(|ask| ask.is_busy()) {
        Some(ask) => Decision::Busy { limit: ask.limit.map(str::to_owned) },
        None => Decision::Admit { slot: found.at },
    }
}

/// Where a search ended.
struct Found<'a> {
    at: Timestamp,
    /// Who raised `at` last, and whether by a block; `None` where nobody did.
    binder: Option<(&'a Ask<'a>, bool)>,
    /// Whether all grant at `at`; else it is only a lower bound.
    settled: bool,
}

/// Goes round the limits, each raising the instant to its own next one, until all agree in a row.
/// `Err` is the limit that can never grant.
fn search<'a>(asks: &'a [Ask<'a>], now: Now, at: Timestamp) -> Result<Found<'a>, &'a Ask<'a>> {
    let mut found = Found { at, binder: None, settled: asks.is_empty() };
    let mut agreed = 0;
    for ask in asks.iter().cycle().take(asks.len() * ROUNDS) {
        let opens_at = ask.gate.blocked_until.map_or(found.at, |until| until.max(found.at));
        let grants_at = ask.earliest(now, opens_at).ok_or(ask)?;
        agreed += 1;
        if grants_at > found.at {
            found.binder = Some((ask, grants_at == opens_at));
            found.at = grants_at;
            // Its own next instant is one at which it grants, so only the others are asked again.
            agreed = 1;
        }
        if agreed >= asks.len() {
            found.settled = true;
            break;
        }
    }
    Ok(found)
}

fn lookahead(binder: &Ask<'_>, asks: &[Ask<'_>]) -> Duration {
    let near = asks.iter().any(|ask| matches!(ask.rule, Some((LimitRule::Concurrency(_), _))));
    if near { binder.lookahead.min(NEAR) } else { binder.lookahead }
}

impl Ask<'_> {
    /// The first instant at or after `at` at which the rule grants; `None` where it never does. A
    /// usage of another kind than the rule is what was counted before the rule was changed: none.
    fn earliest(&self, now: Now, at: Timestamp) -> Option<Timestamp> {
        match self.rule {
            Some((LimitRule::Rate(rate), Usage::Rate(tat))) => {
                rate.plan().earliest(*tat, at, self.cost)
            }
            Some((LimitRule::Budget(budget), Usage::Budget(windows))) => {
                budget.earliest(windows, now, at, self.cost)
            }
            Some((LimitRule::Rolling(rolling), Usage::Rolling(entries))) => {
                rolling.earliest(entries, at, self.cost)
            }
            None | Some((LimitRule::Concurrency(_), _)) => Some(at),
            Some((rule, _)) => {
                Ask { rule: Some((rule, &Usage::none(rule))), ..*self }.earliest(now, at)
            }
        }
    }

    /// Whether something in flight must end first.
    fn is_busy(&self) -> bool {
        let full = match self.rule {
            Some((LimitRule::Concurrency(limit), Usage::Concurrency(out))) => limit.free(*out) == 0,
            _ => false,
        };
        full || self.gate.probing
    }
}

/// What a call took from one limit instance: enough to give it back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// A slot of a rate: its tat before (nanoseconds; none at the first) and after.
    Rate {
        /// Before.
        before: Option<i64>,
        /// After.
        after: i64,
    },
    /// Units of a budget, in each of these windows (start, wall time, nanoseconds).
    Budget {
        /// Window starts.
        windows: Vec<i64>,
        /// Units.
        units: u64,
    },
    /// Units of a rolling limit, entered at this instant (store time, nanoseconds).
    Rolling {
        /// The instant.
        at: i64,
        /// Units.
        units: u64,
    },
    /// A place among the calls in flight.
    Concurrency,
}

/// Takes `cost` units for a call at `slot`. To be called only for a slot that [`decide`] admitted.
pub fn charge(rule: &LimitRule, usage: &mut Usage, cost: u64, slot: Timestamp, now: Now) -> Taken {
    match (rule, &mut *usage) {
        (LimitRule::Rate(rate), Usage::Rate(tat)) => {
            let before = tat.map(Timestamp::as_nanos);
            let after = rate.plan().charge(*tat, slot, cost);
            *tat = Some(after);
            Taken::Rate { before, after: after.as_nanos() }
        }
        (LimitRule::Budget(budget), Usage::Budget(windows)) => {
            let starts = budget.charge(windows, now, slot, cost);
            let windows = starts.into_iter().map(Timestamp::as_nanos).collect();
            Taken::Budget { windows, units: cost }
        }
        (LimitRule::Rolling(rolling), Usage::Rolling(entries)) => {
            rolling.charge(entries, now.store, slot, cost);
            Taken::Rolling { at: slot.as_nanos(), units: cost }
        }
        (LimitRule::Concurrency(_), Usage::Concurrency(in_flight)) => {
            *in_flight = in_flight.saturating_add(1);
            Taken::Concurrency
        }
        _ => {
            *usage = Usage::none(rule);
            charge(rule, usage, cost, slot, now)
        }
    }
}

/// Gives back what a call took that was never sent, or (for budgets that count only accepted calls)
/// was refused. A rate's slot goes back only while nothing was taken after it.
pub fn give_back(usage: &mut Usage, taken: &Taken) {
    match (usage, taken) {
        (Usage::Rate(tat), Taken::Rate { before, after })
            if tat.map(Timestamp::as_nanos) == Some(*after) =>
        {
            *tat = before.map(Timestamp::from_nanos);
        }
        (Usage::Budget(counted), Taken::Budget { windows, units }) => {
            for start in windows {
                counted.give_back(Timestamp::from_nanos(*start), *units);
            }
        }
        (Usage::Rolling(entries), Taken::Rolling { at, units }) => {
            entries.give_back(Timestamp::from_nanos(*at), *units);
        }
        (Usage::Concurrency(in_flight), Taken::Concurrency) => {
            *in_flight = in_flight.saturating_sub(1);
        }
        // Something was taken after it, or the rule became another kind that never counted it.
        _ => {}
    }
}

/// How many jobs of cost 1 an instance could grant by `now` plus `lookahead`; at most `most`. For a
/// budget only the window of the first of them is looked at, and with `spread` only that one.
pub fn grantable(rule: &LimitRule, usage: &Usage, now: Now, lookahead: Duration, most: u64) -> u64 {
    let end = now.store + lookahead;
    let count = match (rule, usage) {
        (LimitRule::Rate(rate), Usage::Rate(tat)) => rate.plan().grantable(*tat, now.store, end),
        (LimitRule::Budget(budget), Usage::Budget(windows)) => {
            let first_at = budget.earliest(windows, now, now.store, 1).filter(|at| *at <= end);
            let left = first_at.map_or(0, |at| budget.left(windows, now, at));
            if budget.spread { left.min(1) } else { left }
        }
        (LimitRule::Rolling(rolling), Usage::Rolling(entries)) => rolling.left(entries, end),
        (LimitRule::Concurrency(limit), Usage::Concurrency(in_flight)) => limit.free(*in_flight),
        _ => return grantable(rule, &Usage::none(rule), now, lookahead, most),
    };
    count.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::budget::{Budget, Counts};
    use crate::quota::calendar::{Calendar, Per};
    use crate::quota::concurrency::Concurrency;
    use crate::quota::rate::{Counted, Rate};
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
        let gate = Gate::default();
        Ask { limit: Some(limit), gate, rule: Some((rule, usage)), cost: 1, lookahead: HORIZON }
    }

    fn own_gate(gate: Gate) -> Ask<'static> {
        Ask { limit: None, gate, rule: None, cost: 1, lookahead: HORIZON }
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
            assert_eq!(
                decide_at(&[ask("r", &rule, &usage)], 0),
                Decision::Admit { slot: at(millis) }
            );
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
    fn every_kind_is_charged_and_given_back() {
        for rule in [budget(5), rolling(5), places(5), rate(5)] {
            let (mut usage, now) = (Usage::none(&rule), Now::same(at(0)));
            let most = if rule.kind() == "rate" { 1 } else { 5 };
            let free = |usage: &Usage| grantable(&rule, usage, now, Duration::ZERO, 100);
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
        assert_eq!(grantable(&rule, &other, Now::same(at(0)), Duration::ZERO, 9), 1);
        let mut usage = other;
        let taken = charge(&rule, &mut usage, 1, at(0), Now::same(at(0)));
        assert_eq!(usage, Usage::Rate(Some(at(1_000))));
        let mut places = Usage::Concurrency(1);
        give_back(&mut places, &taken);
        assert_eq!(places, Usage::Concurrency(1));
    }
}
