//! What answers show of a day's reset that nobody states.
//!
//! A call that was refused because the day is used up came before a reset, the next one that was granted
//! came after it: the reset lies between the two. Refusals without a grant between them have no reset
//! between them, as long as nobody else spends from the same budget; that counts for less. The latest
//! answers count first, and the first that contradicts them ends the search: clocks are changed for
//! summer, and an upstream may change its day.

use std::time::Duration;

use chrono::{NaiveTime, Timelike};
use chrono_tz::Tz;

use crate::clock::{NANOS_PER_SEC, Timestamp};

/// Seconds of a day that is not about any calendar: the same every day, in UTC.
const DAY: i64 = 86_400;
const A_DAY: Duration = Duration::from_secs(86_400);

/// One answer to a call that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When the call left (wall time).
    pub sent_at: Timestamp,
    /// When its answer was there (wall time).
    pub ended_at: Timestamp,
    /// Whether it was refused because the day is used up; else it was granted, or some was left for
    /// whoever asks for less.
    pub refused: bool,
}

/// When the day may begin: spans of the UTC day, each later than its start and up to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Seconds of the UTC day, in order; one that reaches over midnight ends after `86_400`.
    spans: Vec<(i64, i64)>,
}

/// Zones whose midnight may be meant: those of the upstreams that are called most.
const LIKELY: [Tz; 6] = [
    chrono_tz::UTC,
    chrono_tz::America::Los_Angeles,
    chrono_tz::America::New_York,
    chrono_tz::Europe::Berlin,
    chrono_tz::Europe::Moscow,
    chrono_tz::Asia::Shanghai,
];

impl Allowed {
    /// What the answers of one budget leave, in the order in which their calls were sent; `None` where
    /// they tell nothing.
    ///
    /// ```
    /// use paceline::clock::Timestamp;
    /// use paceline::quota::evidence::{Allowed, Answered};
    ///
    /// let at = |time: &str, refused| {
    ///     let at = chrono::DateTime::parse_from_rfc3339(time).unwrap().to_utc().into();
    ///     Answered { sent_at: at, ended_at: at, refused }
    /// };
    /// let answers = [at("2026-11-30T07:30:00Z", true), at("2026-11-30T08:30:00Z", false)];
    /// let allowed = Allowed::by(&answers).unwrap();
    /// let told: Vec<_> = allowed.spans().iter().map(|(from, to)| format!("{from} {to}")).collect();
    /// assert_eq!(told, ["07:30:00 08:30:00"]);
    /// ```
    pub fn by(answers: &[Answered]) -> Option<Allowed> {
        let turns = answers.windows(2).filter_map(|pair| match pair {
            [before, after] if before.refused && !after.refused => Arc::within(before, after),
            _ => None,
        });
        let runs = answers.split(|answer| !answer.refused);
        let within: Vec<_> = turns.collect();
        let outside: Vec<_> = runs.filter_map(Arc::outside).collect();
        let mut allowed = Allowed { spans: vec![(0, DAY)] };
        for arcs in [within, outside] {
            for arc in arcs.into_iter().rev() {
                let narrowed = allowed.narrowed(arc);
                if narrowed.spans.is_empty() {
                    break;
                }
                allowed = narrowed;
            }
        }
        (allowed.spans != [(0, DAY)]).then(|| allowed.joined())
    }

    fn narrowed(&self, arc: Arc) -> Allowed {
        let turns = [-DAY, 0, DAY].map(|turn| (arc.from + turn, arc.to + turn));
        let parts = self.spans.iter().flat_map(|(from, to)| {
            turns.map(|(after, until)| ((*from).max(after), (*to).min(until)))
        });
        let mut spans: Vec<_> = parts.filter(|(from, to)| from < to).collect();
        spans.sort_unstable();
        Allowed { spans }
    }

    /// A span up to midnight and one from midnight are one.
    fn joined(mut self) -> Allowed {
        if let (Some((0, to)), Some((_, DAY))) = (self.spans.first(), self.spans.last())
            && self.spans.len() > 1
        {
            let over = DAY + to;
            self.spans.remove(0);
            if let Some(last) = self.spans.last_mut() {
                last.1 = over;
            }
        }
        self
    }

    /// The spans as times of the UTC day, rounded outwards to the minute.
    pub fn spans(&self) -> Vec<(NaiveTime, NaiveTime)> {
        let time = |minutes: i64| {
            let seconds = u32::try_from((minutes * 60).rem_euclid(DAY)).unwrap_or(0);
            NaiveTime::from_num_seconds_from_midnight_opt(seconds, 0).unwrap_or_default()
        };
        let outwards =
            |(from, to): &(i64, i64)| (time(from.div_euclid(60)), time((to + 59).div_euclid(60)));
        self.spans.iter().map(outwards).collect()
    }

    /// Of the zones that are likely those whose midnight, on the day of `at`, it may be.
    pub fn midnights(&self, at: Timestamp) -> Vec<Tz> {
        let fits = |zone: &Tz| {
            let local = at.to_utc().with_timezone(zone).time();
            let passed = i64::from(local.num_seconds_from_midnight());
            let midnight = (second_of_day(at) - passed).rem_euclid(DAY);
            // A reset at the very start of a span would have come before the refusal.
            self.spans.iter().any(|(from, to)| {
                [midnight, midnight + DAY].iter().any(|reset| from < reset && reset <= to)
            })
        };
        LIKELY.into_iter().filter(fits).collect()
    }
}

/// Part of the day: later than `from`, up to `to`, in seconds; it may reach over midnight.
#[derive(Clone, Copy, Debug)]
struct Arc {
    from: i64,
    to: i64,
}

impl Arc {
    /// The reset lies between these two; `None` where a whole day does, or where both were under way at
    /// once: nobody knows which came first.
    fn within(refused: &Answered, granted: &Answered) -> Option<Arc> {
        if granted.sent_at < refused.ended_at {
            return None;
        }
        Arc::of(seconds(refused.sent_at), seconds_up(granted.ended_at))
    }

    /// No reset lies between the first and the last of these refusals in a row, as far as a day goes.
    fn outside(refusals: &[Answered]) -> Option<Arc> {
        let last = refusals.last()?;
        let first = refusals.iter().find(|first| last.sent_at.since(first.ended_at) < A_DAY)?;
        // The reset before the first of them comes again a day later.
        Arc::of(seconds(last.sent_at), seconds_up(first.ended_at) + DAY)
    }

    /// From one second to another, rounded outwards; `None`: a day and more.
    fn of(from: i64, to: i64) -> Option<Arc> {
        let length = (1..DAY).contains(&(to - from)).then_some(to - from)?;
        let from = from.rem_euclid(DAY);
        Some(Arc { from, to: from + length })
    }
}

fn second_of_day(at: Timestamp) -> i64 {
    seconds(at).rem_euclid(DAY)
}

/// Whole seconds that have begun.
fn seconds(at: Timestamp) -> i64 {
    at.as_nanos().div_euclid(NANOS_PER_SEC)
}

/// The same, rounded up.
fn seconds_up(at: Timestamp) -> i64 {
    seconds(at.shifted(NANOS_PER_SEC - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answered(at: i64, refused: bool) -> Answered {
        let at = Timestamp::from_secs(at);
        Answered { sent_at: at, ended_at: at, refused }
    }

    /// Answers at hours of one long time.
    fn by(answers: &[(f64, bool)]) -> Option<Vec<String>> {
        #[expect(clippy::cast_possible_truncation, reason = "hours of a test")]
        let answers: Vec<_> = answers
            .iter()
            .map(|(hour, refused)| answered((hour * 3600.0) as i64, *refused))
            .collect();
        let told = |(from, to): (NaiveTime, NaiveTime)| {
            format!("{}-{}", from.format("%H:%M"), to.format("%H:%M"))
        };
        Some(Allowed::by(&answers)?.spans().into_iter().map(told).collect())
    }

    #[test]
    fn the_reset_lies_between_a_refusal_and_the_next_grant() {
        assert_eq!(by(&[(7.0, true), (9.0, false)]).unwrap(), ["07:00-09:00"]);
        assert_eq!(by(&[(23.0, true), (25.5, false)]).unwrap(), ["23:00-01:30"]);
        let two_days = [(7.0, true), (9.0, false), (24.0 + 8.0, true), (24.0 + 10.0, false)];
        assert_eq!(by(&two_days).unwrap(), ["08:00-09:00"]);
    }

    #[test]
    fn what_tells_nothing_is_nothing() {
        assert_eq!(by(&[]), None);
        assert_eq!(by(&[(1.0, false), (2.0, true)]), None);
        assert_eq!(by(&[(1.0, true), (26.0, false)]), None, "a whole day lies between them");
    }

    #[test]
    fn what_was_under_way_at_once_tells_nothing() {
        let call = |sent: i64, ended: i64, refused| {
            let [sent_at, ended_at] = [sent, ended].map(Timestamp::from_secs);
            Answered { sent_at, ended_at, refused }
        };
        assert_eq!(Allowed::by(&[call(100, 103, true), call(101, 102, false)]), None);
        assert!(Allowed::by(&[call(100, 101, true), call(101, 102, false)]).is_some());
    }

    #[test]
    fn refusals_alone_leave_the_rest_of_the_day() {
        assert_eq!(by(&[(10.0, true), (11.0, true), (20.0, true)]).unwrap(), ["20:00-10:00"]);
    }

    #[test]
    fn what_contradicts_later_answers_is_let_be() {
        let moved = [(7.0, true), (8.0, false), (24.0 + 8.0, true), (24.0 + 9.0, false)];
        assert_eq!(by(&moved).unwrap(), ["08:00-09:00"]);
        // Somebody else spent the new day's units at once: refused at 12 and 13, though it began at 12:30.
        let shared = [(12.2, true), (12.8, false), (36.0, true), (37.0, true)];
        assert_eq!(by(&shared).unwrap(), ["12:12-12:48"]);
    }

    #[test]
    fn likely_midnights_are_named() {
        let winter = Timestamp::from_secs(1_796_000_000);
        let allowed = Allowed { spans: vec![(7 * 3600, 9 * 3600)] };
        assert_eq!(allowed.midnights(winter), [chrono_tz::America::Los_Angeles]);
        let narrow = |from, to| Allowed { spans: vec![(from, to)] }.midnights(winter);
        let eight = 8 * 3600;
        assert_eq!(narrow(eight - 1, eight), [chrono_tz::America::Los_Angeles]);
        assert_eq!(narrow(eight, eight + 1), [], "it would have come before the refusal");
        let over = Allowed { spans: vec![(22 * 3600, DAY + 1)] };
        assert_eq!(over.midnights(winter), [chrono_tz::UTC, chrono_tz::Europe::Berlin]);
    }

    proptest! {
        /// An upstream whose day begins at `reset` and grants `amount` calls is asked at any times: its
        /// reset is always among those that are left.
        #[test]
        fn the_true_reset_is_never_excluded(
            reset in 0..DAY,
            amount in 1_u32..5,
            calls in prop::collection::vec((1_i64..40_000_000, 0_i64..3_000, 0_i64..3_000), 2..60),
        ) {
            let (mut at, mut day, mut spent) = (1_000 * DAY * 1_000, i64::MIN, 0);
            let mut answers = Vec::new();
            for (gap, way, way_back) in calls {
                let sent_at = at + gap;
                // The upstream decides when the call is there.
                let now = (sent_at + way - reset * 1_000).div_euclid(DAY * 1_000);
                if now != day {
                    (day, spent) = (now, 0);
                }
                let refused = spent >= amount;
                spent += u32::from(!refused);
                at = sent_at + way + way_back;
                let [sent_at, ended_at] = [sent_at, at].map(|ms| Timestamp::from_nanos(ms * 1_000_000));
                answers.push(Answered { sent_at, ended_at, refused });
            }
            if let Some(allowed) = Allowed::by(&answers) {
                let holds = |(from, to): &(i64, i64)| {
                    [reset, reset + DAY].iter().any(|reset| from < reset && reset <= to)
                };
                prop_assert!(allowed.spans.iter().any(holds), "{reset}: {allowed:?}");
            }
        }
    }
}
