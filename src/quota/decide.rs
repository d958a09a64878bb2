//! Several limits asked as one: one pure question, four answers.
//!
//! The answer is used by the claim, by `why` and by forecasts alike. It is never a boolean and never
//! an error: waiting is a value that names the limit that binds and the instant it ends.

use std::time::Duration;

use super::{LimitRule, budget, rate, rolling};
use crate::clock::{Now, Timestamp};

/// No slot lies further ahead than this.
pub const HORIZON: Duration = Duration::from_millis(250);

/// How far ahead a slot may lie where waiting for it would waste what others could use: with a
/// concurrency limit, or on a limit narrower than another one.
pub const NEAR: Duration = Duration::from_millis(10);

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
/// The slot of an [`Decision::Admit`] is the first instant at or after `earliest` at which all limits
/// grant at once; where it lies beyond the binding limit's lookahead from `now`, the answer is
/// [`Decision::Wait`].
pub fn decide(asks: &[Ask<'_>], now: Now, earliest: Timestamp) -> Decision {
    let _ = (asks, now, earliest);
    todo!()
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
    let _ = (rule, usage, cost, slot, now);
    todo!()
}

/// Gives back what a call took that was never sent, or (for budgets that count only accepted calls)
/// was refused. A rate's slot goes back only while nothing was taken after it.
pub fn give_back(usage: &mut Usage, taken: &Taken) {
    let _ = (usage, taken);
    todo!()
}

/// How many jobs of cost 1 an instance could grant by `now` plus `lookahead`; at most `most`.
pub fn grantable(rule: &LimitRule, usage: &Usage, now: Now, lookahead: Duration, most: u64) -> u64 {
    let _ = (rule, usage, now, lookahead, most, rate::Counted::Rolling);
    todo!()
}
