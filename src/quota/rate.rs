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
    /// let rate = Rate { amount: 10, period: ms(1000), burst: 1, counted, slack, path_jitter };
    /// assert_eq!(rate.plan().interval, 101_000_000); // one in 101 ms
    /// ```
    pub fn plan(&self) -> Plan {
        let (amount, window, late) = self.figures();
        match self.counted {
            Counted::Rolling => {
                let burst = self.burst.clamp(1, amount.max(1));
                let paced = u128::from(amount - burst) + 1;
                Plan { interval: to_nanos((window + late).div_ceil(paced)), burst }
            }
            Counted::Bucket => {
                let (n, spare) = (u128::from(amount), u128::from(self.burst.max(1) - 1));
                let late_units = u64::try_from((late * n).div_ceil(window)).unwrap_or(u64::MAX);
                let uncovered = (late * n).saturating_sub(spare * window).div_ceil(n);
                let interval = to_nanos(window.div_ceil(n).saturating_add(uncovered));
                Plan { interval, burst: (self.burst.max(1) - 1).saturating_sub(late_units).max(1) }
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
        let first = (self.burst + 1)..=units.checked_add(1)?;
        let burst = first.clone().take(3).chain(first.last());
        burst.into_iter().find(|&burst| self.share_with(burst) >= WORTH_A_WARNING)
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
    pub fn grantable(&self, tat: Option<Timestamp>, at: Timestamp, end: Timestamp) -> u64 {
        let tat = tat.map_or(at, |tat| tat.max(at));
        let room = end.shifted(self.span(self.burst)).as_nanos().saturating_sub(tat.as_nanos());
        u64::try_from(room.div_euclid(self.interval.max(1))).unwrap_or(0)
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

/// Reads a rate as quota files write it, `10/s`, `380/min`, `1/5s`: units, and the time they may go
/// in.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(paceline::quota::rate::parse("100/10s").unwrap(), (100, Duration::from_secs(10)));
/// ```
///
/// # Errors
///
/// Where there is no slash, the units are no whole number, the time has no unit that is known, or
/// either is zero.
pub fn parse(text: &str) -> Result<(u64, Duration), RateError> {
    let whole = || text.to_owned();
    let (amount, period) =
        text.split_once('/').ok_or_else(|| RateError::NoPeriod { text: whole() })?;
    let amount = amount.trim();
    let units = amount
        .parse::<u64>()
        .map_err(|_| RateError::Amount { text: whole(), amount: amount.to_owned() })?;
    let period = period.trim();
    let digits = period.len() - period.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = period.split_at(digits);
    let unknown = || RateError::Period { text: whole(), period: period.to_owned() };
    let number = if number.is_empty() { 1 } else { number.parse().map_err(|_| unknown())? };
    let millis = unit_millis(unit.trim()).ok_or_else(unknown)?;
    let millis: u64 = millis.checked_mul(number).ok_or_else(unknown)?;
    if units == 0 || millis == 0 {
        return Err(RateError::Zero { text: whole() });
    }
    Ok((units, Duration::from_millis(millis)))
}

fn unit_millis(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" => 1,
        "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "w" | "week" | "weeks" => 604_800_000,
        _ => return None,
    })
}

/// Why a text is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// There is no slash.
    #[error("`{text}` is no rate: write units, a slash and a time, as in `10/s` or `1/5s`")]
    NoPeriod {
        /// The text.
        text: String,
    },
    /// What stands before the slash is no whole number.
    #[error("`{amount}` in the rate `{text}` is no whole number of units")]
    Amount {
        /// The text.
        text: String,
        /// Its part before the slash.
        amount: String,
    },
    /// What stands after the slash is no time.
    #[error(
        "`{period}` in the rate `{text}` is no time: use ms, s, min, h, day or week, as in `10s`"
    )]
    Period {
        /// The text.
        text: String,
        /// Its part after the slash.
        period: String,
    },
    /// A zero.
    #[error("the rate `{text}` has a zero, so nothing could ever go")]
    Zero {
        /// The text.
        text: String,
    },
}
