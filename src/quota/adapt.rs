//! The adaptive rate: refused inside what is declared, a limit is paced more slowly for a while.
//!
//! Dormant until then. Each such refusal halves the pace, to a sixteenth at the least; each calm that
//! follows gives a sixteenth of the declared pace back, and never more than was declared. How far it has
//! come is told by the time alone: nothing is written while it is calm.

use std::time::Duration;

use super::{LimitRule, rate, rolling};
use crate::clock::{Timestamp, nanos};

/// The declared pace, in steps.
pub(crate) const WHOLE: u32 = 16;

/// A calm lasts as long as so many units take at the declared pace ...
const CALM_UNITS: u32 = 64;
/// ... but no shorter than this, so that a fast limit is not refused again at once,
const SHORTEST_CALM: Duration = Duration::from_secs(5);
/// and no longer than this.
const LONGEST_CALM: Duration = Duration::from_secs(600);

/// A refusal whose hint is further off tells of a quota, not of a pace.
pub(crate) const LONGEST_HINT: Duration = Duration::from_secs(60);

/// A pace that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowed {
    /// What was left of the pace then, in sixteenths; from 1 to 15.
    pub share: u32,
    /// When it was cut last (store time).
    pub at: Timestamp,
}

impl Slowed {
    /// The share at `now`, in sixteenths; `None`: all of the declared pace is back.
    pub(crate) fn share_at(&self, calm: Duration, now: Timestamp) -> Option<u32> {
        let calms = now.since(self.at).as_nanos() / calm.as_nanos().max(1);
        let share = u32::try_from(calms).ok().and_then(|calms| self.share.checked_add(calms))?;
        (share < WHOLE).then_some(share)
    }

    /// When all of the declared pace is back.
    pub fn whole_at(&self, calm: Duration) -> Timestamp {
        self.at + calm * WHOLE.saturating_sub(self.share)
    }

    /// The pace after a refusal of a call sent at `sent_at`; `None`: it changes nothing, for the call was
    /// out already when the pace was cut.
    pub fn after(
        before: Option<Slowed>,
        calm: Duration,
        sent_at: Timestamp,
        now: Timestamp,
    ) -> Option<Slowed> {
        if before.is_some_and(|slowed| sent_at <= slowed.at) {
            return None;
        }
        let share = before.and_then(|slowed| slowed.share_at(calm, now)).unwrap_or(WHOLE);
        Some(Slowed { share: (share / 2).max(1), at: now })
    }
}

/// How long a calm of this limit is; `None`: its pace is never cut, for it has none.
pub fn calm(rule: &LimitRule) -> Option<Duration> {
    let (span, amount) = match rule {
        LimitRule::Rate(rate) => (rate.period, rate.amount),
        LimitRule::Rolling(rolling) if rolling.stands_for.is_none() => {
            (rolling.span, rolling.amount)
        }
        LimitRule::Rolling(_) | LimitRule::Budget(_) | LimitRule::Concurrency(_) => return None,
    };
    let units = span.as_nanos().saturating_mul(u128::from(CALM_UNITS)) / u128::from(amount.max(1));
    let units = Duration::from_nanos(u64::try_from(units).unwrap_or(u64::MAX));
    Some(units.clamp(SHORTEST_CALM, LONGEST_CALM))
}

/// The rule at that share of its pace: the same units in a longer time, so that whatever fits the
/// declared rule fits this one.
pub fn slowed(rule: &LimitRule, share: u32) -> LimitRule {
    let longer = |span: Duration| {
        let long = i128::from(nanos(span)) * i128::from(WHOLE) / i128::from(share.clamp(1, WHOLE));
        Duration::from_nanos(u64::try_from(long).unwrap_or(u64::MAX))
    };
    match rule {
        // With its margins, so that the plan as a whole is slower by just that.
        LimitRule::Rate(rate) => LimitRule::Rate(rate::Rate {
            period: longer(rate.period),
            slack: longer(rate.slack),
            path_jitter: longer(rate.path_jitter),
            ..rate.clone()
        }),
        LimitRule::Rolling(rolling) => {
            LimitRule::Rolling(rolling::Rolling { span: longer(rolling.span), ..rolling.clone() })
        }
        LimitRule::Budget(_) | LimitRule::Concurrency(_) => rule.clone(),
    }
}

#[cfg(test)]
mod tests;
