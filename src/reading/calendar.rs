//! The next reset of an upstream's budget.

use super::window::Window;
use crate::clock::Timestamp;
use crate::quota::calendar::{Calendar, Resets};
use crate::quota::{Limit, Upstream};

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
        Some((limit.name.clone(), reset_after(calendar, at)?))
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

/// The length of a calendar's windows.
pub(crate) const fn window(calendar: &Calendar) -> Window {
    match calendar.resets {
        Resets::Hourly { .. } => Window::Hour,
        Resets::Daily { .. } => Window::Day,
        Resets::Weekly { .. } => Window::Week,
        Resets::Monthly { .. } => Window::Month,
    }
}

// STAND-IN until `Calendar::window` is there: then `Some(calendar.window(at).next_reset)`. Knows no
// label inside a gap.
fn reset_after(calendar: &Calendar, at: Timestamp) -> Option<Timestamp> {
    use chrono::{Datelike, Days, TimeZone, Timelike};
    let start = at.to_utc().with_timezone(&calendar.zone).date_naive();
    let last_day = |date: chrono::NaiveDate| u32::from(date.num_days_in_month());
    (0..64_u64).filter_map(|ahead| start.checked_add_days(Days::new(ahead))).find_map(|date| {
        let labels: Vec<chrono::NaiveTime> = match calendar.resets {
            Resets::Hourly { minute } => {
                (0..24).filter_map(|h| chrono::NaiveTime::from_hms_opt(h, minute, 0)).collect()
            }
            Resets::Daily { time } => vec![time],
            Resets::Weekly { weekday, time } if date.weekday() == weekday => vec![time],
            Resets::Monthly { day, time } if date.day() == day.min(last_day(date)) => vec![time],
            _ => Vec::new(),
        };
        let instants = labels.into_iter().filter_map(|label| {
            let label = date.and_hms_opt(label.hour(), label.minute(), label.second())?;
            let at = calendar.zone.from_local_datetime(&label).earliest()?;
            Some(Timestamp::from(at.with_timezone(&chrono::Utc)))
        });
        instants.filter(|reset| *reset > at).min()
    })
}
