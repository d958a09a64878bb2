//! A rate: GCRA over a stored theoretical arrival time (tat).
//!
//! What an upstream declares is not what can be sent: slots are used a little late, and calls take
//! a little longer or shorter on their way. A [`Plan`] is the pace that never exceeds what was
//! declared, however late within `slack + path_jitter` each call arrives.

use std::fmt;
use std::time::Duration;

use crate::clock::{NANOS_PER_SEC, Timestamp, nanos};

/// Under this share of the declared rate a plan is worth a warning.
pub const WORTH_A_WARNING: f64 = 0.985;

/// A declared rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Units per `period`; not zero.
    pub amount: u64,
    /// The time in which `amount` units may go; not zero.
    pub period: Duration,
    /// Units that may go back to back; at least 1 and, for a rolling count, at most `amount`.
    pub burst: u64,
    /// How the upstream counts.
    pub counted: Counted,
    /// How late a slot may be used.
    pub slack: Duration,
    /// Margin for the way to the upstream.
    pub path_jitter: Duration,
    /// One unit at a time, whatever the burst: calls go over several connections, each of them as seldom
    /// as the others.
    pub evenly: bool,
}

/// How an upstream counts a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// In any span of the period, or in fixed windows of it.
    #[default]
    Rolling,
    /// As a token bucket of the declared rate and burst.
    Bucket,
}

/// The pace at which slots are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Nanoseconds from one unit to the next, in the long run; at least 1.
    pub interval: i64,
    /// Units that may go back to back; at least 1.
    pub burst: u64,
}

impl Rate {
    /// How late a call may arrive after its slot: `slack + path_jitter`.
    pub fn margin(&self) -> Duration {
        self.slack.saturating_add(self.path_jitter)
    }

    /// The pace that keeps within the declared rate with arrivals up to [`Rate::margin`] late.
    ///
    /// *rolling*: no half-open span of `period` holds more than `amount`. *bucket*: no token bucket
    /// of the declared rate and burst runs dry. Every division rounds towards the slower pace.
    ///
    /// ```
    /// use paceline::quota::rate::{Counted, Rate};
    /// use std::time::Duration;
    ///
    /// let ms = Duration::from_millis;
    /// let (slack, path_jitter) = (ms(5), ms(5));
    /// let counted = Counted::Rolling;
    /// let evenly = false;
    /// let rate = Rate { amount: 10, period: ms(1000), burst: 1, counted, slack, path_jitter, evenly };
    /// assert_eq!(rate.plan().interval, 101_000_000); // one in 101 ms
    /// ```
    pub fn plan(&self) -> Plan {
        let (amount, window, late) = self.figures();
        match self.counted {
            Counted::Rolling => {
                let burst = if self.evenly { 1 } else { self.burst.clamp(1, amount.max(1)) };
                let paced = u128::from(amount - burst) + 1;
                Plan { interval: to_nanos((window + late).div_ceil(paced)), burst }
            }
            Counted::Bucket => {
                let (n, spare) = (u128::from(amount), u128::from(self.burst.max(1) - 1));
                let late_units = u64::try_from((late * n).div_ceil(window)).unwrap_or(u64::MAX);
                let uncovered = (late * n).saturating_sub(spare * window).div_ceil(n);
                let interval = to_nanos(window.div_ceil(n).saturating_add(uncovered));
                let burst = (self.burst.max(1) - 1).saturating_sub(late_units).max(1);
                Plan { interval, burst: if self.evenly { 1 } else { burst } }
            }
        }
    }

    /// What the guard at the instant of sending lets through: the declared figures of a bucket; for
    /// a rolling count the plan, with room for calls that leave late and so close together.
    pub fn guard(&self) -> Plan {
        let (amount, window, late) = self.figures();
        match self.counted {
            Counted::Bucket => {
                let interval = to_nanos(window.div_ceil(u128::from(amount)));
                Plan { interval, burst: self.burst.max(1) }
            }
            Counted::Rolling => {
                let plan = self.plan();
                let late_units = late.div_ceil(u128::from(plan.interval.unsigned_abs()));
                let late_units = u64::try_from(late_units).unwrap_or(u64::MAX);
                Plan { burst: plan.burst.saturating_add(late_units), ..plan }
            }
        }
    }

    /// The declared rate, in units a second.
    pub fn declared_per_second(&self) -> f64 {
        count(self.amount) / self.period.as_secs_f64()
    }

    /// The share of the declared rate that the plan uses: at most 1.
    pub fn share(&self) -> f64 {
        self.plan().per_second() / self.declared_per_second()
    }

    /// What would bring the plan to 98.5 % of the declared rate; `None` where it is there already.
    pub fn advice(&self) -> Option<Advice> {
        if self.share() >= WORTH_A_WARNING {
            return None;
        }
        let margin = Some(self.widest_margin()).filter(|&widest| widest < self.margin());
        Some(match self.counted {
            Counted::Rolling => {
                let bucket = Rate { counted: Counted::Bucket, ..self.clone() };
                let burst = self.largest_burst();
                let margin = margin.filter(|_| burst.is_none());
                Advice { burst, bucket: bucket.share() >= WORTH_A_WARNING, margin }
            }
            Counted::Bucket => Advice { burst: self.smallest_burst(), bucket: false, margin },
        })
    }

    /// Amount, period and margin as the arithmetic wants them: not zero, in nanoseconds.
    fn figures(&self) -> (u64, u128, u128) {
        let window = u128::from(nanos(self.period).max(1).unsigned_abs());
        (self.amount.max(1), window, u128::from(nanos(self.margin()).unsigned_abs()))
    }

    fn share_with(&self, burst: u64) -> f64 {
        Rate { burst, ..self.clone() }.share()
    }

    /// The largest burst whose plan reaches the share that needs no warning. A larger burst only
    /// ever slows a rolling plan, so this halves its way there.
    fn largest_burst(&self) -> Option<u64> {
        let (mut good, mut bad) = (0, self.burst);
        while good + 1 < bad {
            let middle = good + (bad - good) / 2;
            let enough = self.share_with(middle) >= WORTH_A_WARNING;
            *(if enough { &mut good } else { &mut bad }) = middle;
        }
        (good > 0).then_some(good)
    }

    /// The smallest bucket that swallows the margin.
    fn smallest_burst(&self) -> Option<u64> {
        let (amount, window, late) = self.figures();
        let units = u64::try_from((late * u128::from(amount)).div_ceil(window)).ok()?;
        let enough = |burst: &u64| self.share_with(*burst) >= WORTH_A_WARNING;
        [units, units.checked_add(1)?].into_iter().find(enough)
    }

    /// The widest margin that leaves the plan, with the best burst, at the share wanted.
    fn widest_margin(&self) -> Duration {
        let over = 1.0 / WORTH_A_WARNING - 1.0;
        match self.counted {
            Counted::Rolling => self.period.mul_f64(over),
            Counted::Bucket => {
                let one = self.period.as_secs_f64() / count(self.amount.max(1));
                let spare = count(self.burst.max(1) - 1);
                Duration::try_from_secs_f64(one * (spare + over)).unwrap_or(Duration::MAX)
            }
        }
    }
}

impl Plan {
    /// The first instant at or after `at` at which `cost` units may go, where `tat` is what is
    /// stored; `None` where they never can: more than the burst.
    pub fn earliest(&self, tat: Option<Timestamp>, at: Timestamp, cost: u64) -> Option<Timestamp> {
        let spare = self.burst.checked_sub(cost)?;
        match tat {
            Some(tat) if cost > 0 => Some(at.max(tat.shifted(-self.span(spare)))),
            _ => Some(at),
        }
    }

    /// The tat after `cost` units at `slot`.
    pub fn charge(&self, tat: Option<Timestamp>, slot: Timestamp, cost: u64) -> Timestamp {
        tat.map_or(slot, |tat| tat.max(slot)).shifted(self.span(cost))
    }

    /// How many single units may go from `at` to `end`.
    pub(crate) fn grantable(&self, tat: Option<Timestamp>, at: Timestamp, end: Timestamp) -> u64 {
        let tat = tat.map_or(at, |tat| tat.max(at));
        let room = end.shifted(self.span(self.burst)).as_nanos().saturating_sub(tat.as_nanos());
        u64::try_from(room.div_euclid(self.interval.max(1))).unwrap_or(0)
    }

    /// When the last of `units` goes that follow each other as fast as they may, the first of them at
    /// `slot`.
    pub(crate) fn last_slot(
        &self,
        tat: Option<Timestamp>,
        slot: Timestamp,
        units: u64,
    ) -> Timestamp {
        let after = self.charge(tat, slot, units);
        slot.max(after.shifted(self.span(self.burst).saturating_neg()))
    }

    /// The planned rate, in units a second.
    pub fn per_second(&self) -> f64 {
        count(NANOS_PER_SEC.unsigned_abs()) / count(self.interval.unsigned_abs())
    }

    /// Nanoseconds that `units` take in the long run.
    fn span(&self, units: u64) -> i64 {
        i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(self.interval)
    }
}

fn to_nanos(span: u128) -> i64 {
    i64::try_from(span).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "for people, not for deciding")]
fn count(units: u64) -> f64 {
    units as f64
}

/// How a rate could be declared so that its plan uses it fully. Any one of these is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// This burst; for a bucket only where the upstream really has one so large.
    pub burst: Option<u64>,
    /// `counted = "bucket"`, where the upstream really is one.
    pub bucket: bool,
    /// At most this much `slack + path_jitter`.
    pub margin: Option<Duration>,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ways = Vec::new();
        ways.extend(self.burst.map(|burst| format!("`burst = {burst}`")));
        if self.bucket {
            ways.push("`counted = \"bucket\"` if the upstream is a token bucket".to_owned());
        }
        ways.extend(self.margin.map(|margin| {
            format!("`slack` and `path_jitter` of together at most {} us", margin.as_micros())
        }));
        f.write_str(&ways.join(", or "))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use governor::clock::FakeRelativeClock;
    use governor::{Quota, RateLimiter};
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    fn rate(amount: u64, burst: u64, counted: Counted, margin_ms: u64) -> Rate {
        Rate {
            amount,
            period: Duration::from_secs(1),
            burst,
            counted,
            slack: Duration::from_millis(margin_ms),
            path_jitter: Duration::ZERO,
            evenly: false,
        }
    }

    #[test]
    fn over_several_connections_units_go_one_by_one_and_no_slower() {
        for counted in [Counted::Rolling, Counted::Bucket] {
            let even = Rate { evenly: true, ..rate(10, 10, counted, 10) };
            let plan = even.plan();
            assert_eq!(plan.burst, 1, "{counted:?}");
            assert!(even.share() >= 0.985, "{counted:?}: {plan:?}");
        }
    }

    #[test]
    fn a_rolling_plan_paces_what_its_burst_leaves() {
        let plan = |burst, margin| rate(10, burst, Counted::Rolling, margin).plan();
        assert_eq!(plan(1, 0), Plan { interval: 100 * MS, burst: 1 });
        assert_eq!(plan(1, 10), Plan { interval: 101 * MS, burst: 1 });
        assert_eq!(plan(10, 10), Plan { interval: 1010 * MS, burst: 10 });
        assert_eq!(plan(8, 0), Plan { interval: 333_333_334, burst: 8 });
        assert_eq!(plan(11, 0), plan(10, 0), "no burst is larger than the amount");
    }

    #[test]
    fn a_bucket_plan_leaves_a_unit_for_lateness() {
        let plan = |burst, margin| rate(10, burst, Counted::Bucket, margin).plan();
        assert_eq!(plan(10, 10), Plan { interval: 100 * MS, burst: 8 });
        assert_eq!(plan(10, 0), Plan { interval: 100 * MS, burst: 9 });
        assert_eq!(plan(1, 10), Plan { interval: 110 * MS, burst: 1 });
        assert_eq!(plan(2, 250), Plan { interval: 250 * MS, burst: 1 });
        assert_eq!(plan(10, 250), Plan { interval: 100 * MS, burst: 6 }, "three may come at once");
        assert_eq!(rate(3, 1, Counted::Bucket, 0).plan().interval, 333_333_334);
    }

    #[test]
    fn the_guard_of_a_bucket_is_what_was_declared() {
        let guard = |counted| rate(10, 4, counted, 10).guard();
        assert_eq!(guard(Counted::Bucket), Plan { interval: 100 * MS, burst: 4 });
        assert_eq!(guard(Counted::Rolling), Plan { interval: 144_285_715, burst: 5 });
    }

    #[test]
    fn more_units_than_the_burst_never_go() {
        let plan = Plan { interval: MS, burst: 3 };
        assert_eq!(plan.earliest(None, Timestamp::EPOCH, 4), None);
        assert_eq!(plan.earliest(None, Timestamp::EPOCH, 3), Some(Timestamp::EPOCH));
    }

    #[test]
    fn what_takes_no_units_never_waits() {
        let plan = Plan { interval: MS, burst: 3 };
        let far = Some(Timestamp::from_secs(60));
        assert_eq!(plan.earliest(far, Timestamp::EPOCH, 0), Some(Timestamp::EPOCH));
    }

    #[test]
    fn the_share_is_of_what_was_declared_for_its_period() {
        let minute = Rate { period: Duration::from_secs(60), ..rate(30, 1, Counted::Rolling, 0) };
        assert!((minute.declared_per_second() - 0.5).abs() < 1e-9);
        assert!((minute.share() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn figures_beyond_all_clocks_saturate() {
        let huge = Rate {
            amount: 1,
            period: Duration::MAX,
            burst: u64::MAX,
            ..Rate::clone(&rate(1, 1, Counted::Bucket, 9))
        };
        for counted in [Counted::Bucket, Counted::Rolling] {
            let rate = Rate { counted, ..huge.clone() };
            assert_eq!(rate.plan().interval, i64::MAX);
            let tat = rate.plan().charge(None, Timestamp::MAX, u64::MAX);
            let _ =
                (rate.plan().earliest(Some(tat), Timestamp::EPOCH, 1), rate.guard(), rate.advice());
        }
    }

    #[test]
    fn advice_names_what_brings_the_plan_to_the_declared_rate() {
        let advice = |amount, burst, counted, margin| rate(amount, burst, counted, margin).advice();
        assert_eq!(advice(10, 1, Counted::Rolling, 10), None);
        let burst = advice(10, 10, Counted::Rolling, 10).unwrap();
        assert_eq!((burst.burst, burst.bucket, burst.margin), (Some(1), true, None));
        assert_eq!(advice(380, 10, Counted::Rolling, 0).unwrap().burst, Some(6));
        let margin = advice(10, 1, Counted::Rolling, 50).unwrap();
        assert_eq!((margin.burst, margin.bucket), (None, false));
        assert_eq!(margin.margin.unwrap().as_millis(), 15);
        assert_eq!(advice(10, 1, Counted::Bucket, 10).unwrap().burst, Some(2));
        assert_eq!(advice(10, 2, Counted::Bucket, 10), None);
        // A quarter of a second is 2.5 units: three to spare. With two, 1.015 units may be late.
        let late = advice(10, 2, Counted::Bucket, 250).unwrap();
        assert_eq!((late.burst, late.margin.unwrap().as_micros()), (Some(4), 101_522));
        let text = advice(10, 10, Counted::Rolling, 10).unwrap().to_string();
        assert_eq!(
            text,
            "`burst = 1`, or `counted = \"bucket\"` if the upstream is a token bucket"
        );
    }

    proptest! {
        /// governor, on a clock of our own, is the oracle for the ten lines.
        #[test]
        fn admits_what_governor_admits(
            interval in 1_u32..5_000_000,
            burst in 1_u32..20,
            arrivals in prop::collection::vec((0_u64..20_000_000, 1_u32..22), 1..200),
        ) {
            let clock = FakeRelativeClock::default();
            let period = Duration::from_nanos(interval.into());
            let burst = NonZeroU32::new(burst).unwrap();
            let quota = Quota::with_period(period).unwrap().allow_burst(burst);
            let oracle = RateLimiter::direct_with_clock(quota, clock.clone());
            let plan = Plan { interval: interval.into(), burst: u32::from(burst).into() };
            let (mut at, mut tat) = (Timestamp::EPOCH, None);
            for (pause, cost) in arrivals {
                clock.advance(Duration::from_nanos(pause));
                at = at + Duration::from_nanos(pause);
                let ours = plan.earliest(tat, at, cost.into());
                match oracle.check_n(NonZeroU32::new(cost).unwrap()) {
                    Err(_) => prop_assert_eq!(ours, None),
                    Ok(Err(_)) => prop_assert!(ours.is_some_and(|slot| slot > at)),
                    Ok(Ok(())) => {
                        prop_assert_eq!(ours, Some(at));
                        tat = Some(plan.charge(tat, at, cost.into()));
                    }
                }
            }
        }

        #[test]
        fn grantable_counts_what_can_be_taken_one_by_one(
            interval in 1_i64..1_000,
            burst in 1_u64..20,
            tat in prop::option::of(-10_000_i64..10_000),
            ahead in 0_i64..10_000,
        ) {
            let plan = Plan { interval, burst };
            let (at, end) = (Timestamp::EPOCH, Timestamp::from_nanos(ahead));
            let mut tat = tat.map(Timestamp::from_nanos);
            let counted = plan.grantable(tat, at, end);
            let mut taken = 0;
            while let Some(slot) = plan.earliest(tat, at, 1).filter(|slot| *slot <= end) {
                tat = Some(plan.charge(tat, slot, 1));
                taken += 1;
            }
            prop_assert_eq!(counted, taken);
        }
    }
}
