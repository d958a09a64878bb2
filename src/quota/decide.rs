//! Several limits asked as one: one pure question, four answers.
//!
//! The answer is used by the claim, by `why` and by forecasts alike. It is never a boolean and never
//! an error: waiting is a value that names the limit that binds and the instant it ends.

use std::time::Duration;

use super::reported::Reported;
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
    /// What the upstream told of it.
    pub reported: Reported,
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
    /// The first instant at or after `at` at which both the rule and what the upstream told grant;
    /// `None` where the rule never does.
    fn earliest(&self, now: Now, at: Timestamp) -> Option<Timestamp> {
        let ours = self.by_rule(now, at)?;
        let Some((rule, _)) = self.rule else { return Some(ours) };
        let theirs = self.reported.earliest(rule, ours, self.cost);
        if theirs > ours { self.by_rule(now, theirs) } else { Some(ours) }
    }

    /// The same by the rule alone. A usage of another kind than the rule is what was counted before the
    /// rule was changed: none.
    fn by_rule(&self, now: Now, at: Timestamp) -> Option<Timestamp> {
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
                Ask { rule: Some((rule, &Usage::none(rule))), ..*self }.by_rule(now, at)
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

/// How many jobs of cost 1 the asked instance could grant by `now` plus `lookahead`; at most `most`. For
/// a budget only the window of the first of them is looked at, and with `spread` only that one.
pub(crate) fn grantable(ask: &Ask<'_>, now: Now, lookahead: Duration, most: u64) -> u64 {
    let Some((rule, usage)) = ask.rule else { return most };
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
        _ => {
            let unused = Usage::none(rule);
            return grantable(&Ask { rule: Some((rule, &unused)), ..*ask }, now, lookahead, most);
        }
    };
    count.min(ask.reported.grantable(rule, end)).min(most)
}

#[cfg(test)]
mod tests;
