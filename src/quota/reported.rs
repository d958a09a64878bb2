//! What an upstream told of one instance of a limit: how much is left, and until when.
//!
//! It stands beside our own count and is never merged into it: what may go is the lower of the two.

use std::time::Duration;

use super::LimitRule;
use crate::clock::{Now, Timestamp};

/// What is known of one instance from the upstream's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Units of all calls so far that were sent, and whose answers told nothing, or never came. It only
    /// rises: an answer cannot know of those by which it rose since its own call was claimed.
    pub silent: u64,
    /// What was told last; it may have lapsed.
    pub told: Option<Told>,
}

/// What is left until an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The figure that counts, as it was told.
    pub figure: u64,
    /// The same, less what was sent since, or may have been; below zero where more was under way than was
    /// left.
    pub left: i64,
    /// Nothing is known from then on (store time).
    pub until: Timestamp,
    /// The last call that was claimed when it was told.
    pub last_call: i64,
}

/// What one answer told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Units left.
    pub remaining: u64,
    /// Units that it may not have seen: of all calls that are out, and of those that went silent since
    /// its own was claimed.
    pub unseen: u64,
    /// The call that it answers, and that call's units; `None`: the upstream was asked, and no job sent.
    pub call: Option<(i64, u64)>,
    /// The last call that was claimed by now.
    pub last_call: i64,
    /// For how long it stands.
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

/// Of a window that ends nobody knows when, a figure stands for so long; then a call finds out.
const UNKNOWN: Duration = Duration::from_secs(3_600);

impl Span {
    /// The same of the answer to a question, which is put again in time.
    pub fn asked(rule: &LimitRule, slot: Timestamp, now: Now) -> Option<Span> {
        let span = Span::of(rule, None, slot, now)?;
        Some(match rule {
            LimitRule::Rolling(rolling) => Span { until: slot + rolling.life(), ..span },
            _ => span,
        })
    }

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
            LimitRule::Rolling(rolling) => {
                let is_known = rolling.stands_for.is_none();
                let most = if is_known { rolling.life() } else { rolling.life().min(UNKNOWN) };
                Some(told(slot + most))
            }
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
        let span = report.span;
        if span.until <= now {
            return self;
        }
        let left = signed(report.remaining).saturating_sub(signed(report.unseen));
        let (figure, last_call) = (report.remaining, report.last_call);
        let fresh = Told { figure, left, until: span.until, last_call };
        let told = match self.at(now).filter(|told| report.remaining > told.figure) {
            None => fresh,
            Some(told) => match report.call {
                // It was out already, so its units are taken off; but the lower figure had seen them.
                Some((call, units)) if call <= told.last_call => told.with(units),
                _ if span.is_window => told,
                _ => fresh,
            },
        };
        Reported { told: Some(told), ..self }
    }

    /// What is known after a call was sent whose answer, or the lack of it, told nothing.
    pub fn silence(self, units: u64) -> Reported {
        Reported { silent: self.silent.saturating_add(units), ..self }
    }

    /// Takes off what a call at `slot` takes.
    pub fn charge(&mut self, slot: Timestamp, units: u64) {
        if let Some(told) = self.told.as_mut().filter(|told| slot < told.until) {
            told.left = told.left.saturating_sub(signed(units));
        }
    }

    /// Puts back what a call took that never left.
    pub fn give_back(&mut self, units: u64) {
        self.told = self.told.map(|told| told.with(units));
    }

    /// The first instant at or after `at` at which `cost` units, and the reserve of `rule`, are not more
    /// than what was told.
    pub fn earliest(&self, rule: &LimitRule, at: Timestamp, cost: u64) -> Timestamp {
        let short = |told: &Told| cost > 0 && told.free() < cost.saturating_add(reserve(rule));
        self.at(at).filter(short).map_or(at, |told| told.until)
    }

    /// Single units that `rule` grants at `at` of what was told; no bound where nothing was.
    pub(crate) fn grantable(&self, rule: &LimitRule, at: Timestamp) -> u64 {
        self.at(at).map_or(u64::MAX, |told| told.free().saturating_sub(reserve(rule)))
    }
}

impl Told {
    /// With so many units more, but never more than was told.
    fn with(self, units: u64) -> Told {
        let left = self.left.saturating_add(signed(units)).min(signed(self.figure));
        Told { left, ..self }
    }

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
