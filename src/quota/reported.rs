//! What an upstream told of one instance of a limit: how much is left, and until when.
//!
//! It stands beside our own count and is never merged into it: what may go is the lower of the two.

use super::LimitRule;
use crate::clock::{Now, Timestamp};

/// What is known of one instance from the upstream's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The slot of the latest call whose answer told, or could have told, what is left (store time). An
    /// answer to an earlier one cannot know what was sent since.
    pub slot: Option<Timestamp>,
    /// What was told last; it may have lapsed.
    pub told: Option<Told>,
}

/// What is left until an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The figure that counts, as it was told.
    pub figure: u64,
    /// The same, less what was sent since; below zero where more was under way than was left.
    pub left: i64,
    /// Nothing is known from then on (store time).
    pub until: Timestamp,
}

/// What one answer told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Units left.
    pub remaining: u64,
    /// Units that it may not have seen: of calls that were out, with no earlier slot.
    pub unseen: u64,
    /// The call's slot (store time).
    pub slot: Timestamp,
    /// What it is told of.
    pub span: Span,
}

/// For how long a report stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Until then (store time).
    pub until: Timestamp,
    /// Whether that is a window's end, within which nothing comes back; else units come back as they grow
    /// old, and only the latest report is of use.
    pub is_window: bool,
}

impl Span {
    /// For how long a report stands that came to a call at `slot`: to the calendar's reset, to the reset
    /// that was told, else for the limit's own time. `None`: the rule counts nothing that could be left.
    pub fn of(
        rule: &LimitRule,
        reset: Option<Timestamp>,
        slot: Timestamp,
        now: Now,
    ) -> Option<Span> {
        let told = |most: Timestamp| match reset {
            Some(reset) => Span { until: reset, is_window: true },
            None => Span { until: most, is_window: false },
        };
        match rule {
            LimitRule::Budget(budget) => {
                let next_reset = budget.calendar.window(now.to_wall(slot)).next_reset;
                Some(Span { until: now.to_store(next_reset), is_window: true })
            }
            LimitRule::Rolling(rolling) => Some(told(slot + rolling.life())),
            LimitRule::Rate(rate) => Some(told(slot + rate.period)),
            LimitRule::Concurrency(_) => None,
        }
    }
}

impl Reported {
    /// What is told at `at` (store time), where that has not lapsed.
    pub fn at(&self, at: Timestamp) -> Option<Told> {
        self.told.filter(|told| told.until > at)
    }

    /// What is known after one more report. Within a window the lowest figure counts: one that rises is
    /// no news. A report of a window that is over says nothing.
    pub fn hear(self, report: &Report, now: Timestamp) -> Reported {
        if report.span.until <= now {
            return self;
        }
        let left = signed(report.remaining).saturating_sub(signed(report.unseen));
        let fresh = Told { figure: report.remaining, left, until: report.span.until };
        let is_latest = self.slot.is_none_or(|slot| report.slot >= slot);
        let told = match self.at(now) {
            Some(told) if report.span.is_window && report.remaining > told.figure => Some(told),
            Some(told) if !is_latest => Some(Told { left: told.left.min(left), ..told }),
            None if !is_latest => None,
            Some(_) | None => Some(fresh),
        };
        Reported { slot: self.slot.max(Some(report.slot)), told }
    }

    /// What is known after a call at `slot` whose answer, or the lack of it, told nothing.
    pub fn silent(self, slot: Timestamp) -> Reported {
        Reported { slot: self.slot.max(Some(slot)), ..self }
    }

    /// Takes off what a call at `slot` takes.
    pub fn charge(&mut self, slot: Timestamp, units: u64) {
        if let Some(told) = self.told.as_mut().filter(|told| slot < told.until) {
            told.left = told.left.saturating_sub(signed(units));
        }
    }

    /// Puts back what a call took that never left. One with an earlier slot than the last report's was
    /// counted as seen.
    pub fn give_back(&mut self, slot: Timestamp, units: u64) {
        let is_counted = self.slot.is_none_or(|last| slot >= last);
        if let Some(told) = self.told.as_mut().filter(|told| is_counted && slot < told.until) {
            told.left = told.left.saturating_add(signed(units)).min(signed(told.figure));
        }
    }

    /// The first instant at or after `at` at which `cost` units, and the reserve of `rule`, are not more
    /// than what was told.
    pub fn earliest(&self, rule: &LimitRule, at: Timestamp, cost: u64) -> Timestamp {
        let short = |told: &Told| cost > 0 && told.free() < cost.saturating_add(reserve(rule));
        self.at(at).filter(short).map_or(at, |told| told.until)
    }

    /// Single units that `rule` grants at `at` of what was told; no bound where nothing was.
    pub fn grantable(&self, rule: &LimitRule, at: Timestamp) -> u64 {
        self.at(at).map_or(u64::MAX, |told| told.free().saturating_sub(reserve(rule)))
    }
}

impl Told {
    /// Units that are left; none where more was under way than that.
    pub fn free(&self) -> u64 {
        u64::try_from(self.left).unwrap_or(0)
    }
}

fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Units that are left for people.
const fn reserve(rule: &LimitRule) -> u64 {
    match rule {
        LimitRule::Budget(budget) => budget.reserve,
        LimitRule::Rolling(rolling) => rolling.reserve,
        LimitRule::Rate(_) | LimitRule::Concurrency(_) => 0,
    }
}

#[cfg(test)]
mod tests;
