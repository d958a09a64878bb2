//! The next reset of an upstream's budget.

use std::time::Duration;

use super::Reason;
use super::hint::Asked;
use super::window::Window;
use crate::clock::Timestamp;
use crate::quota::calendar::{Calendar, Per, Resets};
use crate::quota::{Limit, LimitRule, Upstream};

/// The name and the next reset of the budget that a refusal at `at` concerns: the one that the rule
/// names, else of those with a known zone (and of the length that the refusal names, where any is)
/// the one that resets first.
pub(crate) fn next_reset(
    upstream: &Upstream,
    limit: Option<&str>,
    window: Option<Window>,
    at: Timestamp,
) -> Option<(String, Timestamp)> {
    let reset = |limit: &Limit| {
        let calendar = limit.rule.calendar()?;
        Some((limit.name.clone(), calendar.window(at).next_reset))
    };
    if let Some(name) = limit {
        return reset(upstream.limit(name)?);
    }
    let named = |limit: &&Limit| limit.rule.calendar().map(self::window) == window;
    let fitting = upstream.limits.iter().filter(named).filter_map(reset);
    fitting
        .min_by_key(|(_, at)| *at)
        .or_else(|| upstream.limits.iter().filter_map(reset).min_by_key(|(_, at)| *at))
}

/// How long to wait where the budget that is used up begins anew nobody knows when: in that span it does
/// so in every zone. `None` where it is another's, or no budget's.
pub(crate) fn unknown(asked: &Asked<'_, '_>) -> Option<Duration> {
    if asked.verdict.reason != Reason::QuotaExhausted {
        return None;
    }
    let span = |limit: &Limit| match &limit.rule {
        LimitRule::Rolling(rolling) => rolling.stands_for.map(|_| rolling.span),
        _ => None,
    };
    let upstream = asked.upstream?;
    match asked.rule.and_then(|rule| rule.limit.as_deref()) {
        Some(name) => span(upstream.limit(name)?),
        None => only(asked).map_or_else(|| upstream.limits.iter().filter_map(span).min(), span),
    }
}

/// The budget that a refusal concerns which names its window: the only one of that length.
pub(crate) fn only<'u>(asked: &Asked<'u, '_>) -> Option<&'u Limit> {
    let named = asked.verdict.window.filter(|window| window.is_quota())?;
    let mut fitting = asked.upstream?.limits.iter().filter(|limit| length(limit) == Some(named));
    fitting.next().filter(|_| fitting.next().is_none())
}

/// The length of a budget's windows, also of one whose zone nobody knows.
fn length(limit: &Limit) -> Option<Window> {
    match &limit.rule {
        LimitRule::Rolling(rolling) => rolling.stands_for.map(|per| match per {
            Per::Hour => Window::Hour,
            Per::Day => Window::Day,
            Per::Week => Window::Week,
            Per::Month => Window::Month,
        }),
        rule => rule.calendar().map(window),
    }
}

/// The length of a calendar's windows.
pub(crate) const fn window(calendar: &Calendar) -> Window {
    match calendar.resets {
        Resets::Hourly { .. } => Window::Hour,
        Resets::Daily { .. } => Window::Day,
        Resets::Weekly { .. } => Window::Week,
        Resets::Monthly { .. } => Window::Month,
    }
}
