//! Strict counting, by the plainest means: it knows nothing of how Paceline paces.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{Days, NaiveDate, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::Tz;

use super::config::Limit;
use crate::clock::{Now, Timestamp};

/// What one instance of a rule has granted.
#[derive(Debug)]
pub(super) enum Counter {
    /// The level is in tokens times `per` in nanoseconds, so that no flow is ever rounded.
    Bucket { level: u128, at: Timestamp },
    /// The calls of the last span.
    Rolling(VecDeque<Timestamp>),
    /// The window's number, and its calls.
    Fixed { window: i64, calls: u64 },
    /// The local date, and its calls.
    Day { date: NaiveDate, calls: u64 },
    /// Calls in flight.
    InFlight(u64),
}

impl Counter {
    /// Nothing granted yet.
    pub(super) fn new(limit: &Limit, now: Now) -> Counter {
        match limit {
            Limit::Bucket { per, burst, .. } => {
                Counter::Bucket { level: u128::from(*burst) * per.as_nanos(), at: now.store }
            }
            Limit::Rolling { .. } => Counter::Rolling(VecDeque::new()),
            Limit::Fixed { per, .. } => {
                Counter::Fixed { window: window(now.store, *per), calls: 0 }
            }
            Limit::Day { zone, used, .. } => {
                Counter::Day { date: date(now.wall, *zone), calls: *used }
            }
            Limit::InFlight { .. } => Counter::InFlight(0),
        }
    }

    /// How long a call must wait; `None`: it may be granted now.
    pub(super) fn wait(&mut self, limit: &Limit, now: Now) -> Option<Duration> {
        match (self, limit) {
            (Counter::Bucket { level, at }, Limit::Bucket { units, per, burst }) => {
                let flown = now.store.since(*at).as_nanos() * u128::from(*units);
                *level = (*level + flown).min(u128::from(*burst) * per.as_nanos());
                *at = (*at).max(now.store);
                let lacks = per.as_nanos().saturating_sub(*level);
                (lacks > 0).then(|| span(lacks.div_ceil(u128::from(*units).max(1))))
            }
            (Counter::Rolling(calls), Limit::Rolling { amount, per }) => {
                while calls.front().is_some_and(|first| now.store.since(*first) >= *per) {
                    calls.pop_front();
                }
                if u64::try_from(calls.len()).is_ok_and(|held| held < *amount) {
                    return None;
                }
                let first = calls.front().copied().unwrap_or(now.store);
                Some((first + *per).since(now.store))
            }
            (Counter::Fixed { window: last, calls }, Limit::Fixed { amount, per }) => {
                let current = window(now.store, *per);
                if current != *last {
                    (*last, *calls) = (current, 0);
                }
                let end =
                    Timestamp::EPOCH.shifted(current.saturating_add(1).saturating_mul(width(*per)));
                (*calls >= *amount).then(|| end.since(now.store))
            }
            (Counter::Day { date: last, calls }, Limit::Day { amount, zone, .. }) => {
                let current = date(now.wall, *zone);
                if current != *last {
                    (*last, *calls) = (current, 0);
                }
                (*calls >= *amount).then(|| day_end(current, *zone).since(now.wall))
            }
            (Counter::InFlight(calls), Limit::InFlight { amount }) => {
                (*calls >= *amount).then_some(Duration::from_secs(1))
            }
            // A counter is made from its own limit.
            _ => None,
        }
    }

    /// Grants a call that need not wait.
    pub(super) fn grant(&mut self, limit: &Limit, now: Now) {
        match (self, limit) {
            (Counter::Bucket { level, .. }, Limit::Bucket { per, .. }) => {
                *level = level.saturating_sub(per.as_nanos());
            }
            (Counter::Rolling(calls), _) => calls.push_back(now.store),
            (Counter::Fixed { calls, .. } | Counter::Day { calls, .. }, _) => *calls += 1,
            (Counter::InFlight(calls), _) => *calls += 1,
            _ => {}
        }
    }

    /// A granted call was answered.
    pub(super) fn end(&mut self) {
        if let Counter::InFlight(calls) = self {
            *calls = calls.saturating_sub(1);
        }
    }
}

/// The number of the fixed window that `at` lies in.
pub(super) fn window(at: Timestamp, per: Duration) -> i64 {
    at.as_nanos().div_euclid(width(per))
}

fn width(per: Duration) -> i64 {
    crate::clock::nanos(per).max(1)
}

/// The local date of `at`.
pub(super) fn date(at: Timestamp, zone: Tz) -> NaiveDate {
    at.to_utc().with_timezone(&zone).date_naive()
}

/// The first instant of the local day after `day`.
fn day_end(day: NaiveDate, zone: Tz) -> Timestamp {
    let Some(next) = day.checked_add_days(Days::new(1)) else { return Timestamp::MAX };
    let midnight = next.and_time(NaiveTime::MIN);
    // Where the clock skips midnight the day begins at the first label there is.
    let labels = (0..96).map(|quarter| midnight + TimeDelta::minutes(15 * quarter));
    let first = labels.filter_map(|label| zone.from_local_datetime(&label).earliest()).next();
    first.map_or(Timestamp::MAX, |first| first.to_utc().into())
}

fn span(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
