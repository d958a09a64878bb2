//! Whether what was sent kept to a limit as it is declared, counted afterwards and without any margin.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::LimitRule;
use super::rate::{Counted, Plan, Rate};
use crate::clock::{Timestamp, nanos};

/// One limit instance, looked at call by call in the order in which they were sent.
#[derive(Clone, Debug)]
pub struct Strict<'r> {
    rule: &'r LimitRule,
    /// Of a token bucket: its theoretical arrival time.
    tat: Option<Timestamp>,
    /// Of a span: what was sent within the last one.
    lately: VecDeque<(Timestamp, u64)>,
    units: u64,
    /// Of a budget: units by window.
    windows: BTreeMap<Timestamp, u64>,
}

impl<'r> Strict<'r> {
    /// Nothing sent yet.
    pub fn new(rule: &'r LimitRule) -> Strict<'r> {
        let (lately, windows) = (VecDeque::new(), BTreeMap::new());
        Strict { rule, tat: None, lately, units: 0, windows }
    }

    /// Counts a call that was sent at `at` (wall time) and takes so many units. Tells whether all that
    /// was sent up to then kept to the limit. Calls in flight are not judged: when each ended says
    /// nothing of when the upstream was done with it.
    ///
    /// ```
    /// use paceline::clock::Timestamp;
    /// use paceline::quota::{declare, strict::Strict};
    ///
    /// let text = "name = \"u\"\n[[limit]]\nname = \"l\"\nkind = \"rate\"\nrate = \"2/s\"\n";
    /// let upstream = declare::parse("u", "u.toml", text).unwrap();
    /// let mut strict = Strict::new(&upstream.limits[0].rule);
    /// let told: Vec<bool> =
    ///     [0, 400, 800, 1_500].map(|ms| strict.sent(Timestamp::from_nanos(ms * 1_000_000), 1)).into();
    /// assert_eq!(told, [true, true, false, true]);
    /// ```
    pub fn sent(&mut self, at: Timestamp, units: u64) -> bool {
        match self.rule {
            LimitRule::Rate(rate) => match rate.counted {
                Counted::Bucket => self.in_bucket(rate, at, units),
                Counted::Rolling => self.in_span(rate.period, rate.amount, at, units),
            },
            LimitRule::Rolling(rolling) => self.in_span(rolling.span, rolling.amount, at, units),
            LimitRule::Budget(budget) => {
                let window = self.windows.entry(budget.calendar.window(at).start).or_default();
                *window = window.saturating_add(units);
                *window <= budget.amount
            }
            LimitRule::Concurrency(_) => true,
        }
    }

    fn in_bucket(&mut self, rate: &Rate, at: Timestamp, units: u64) -> bool {
        let interval = nanos(rate.period) / i64::try_from(rate.amount.max(1)).unwrap_or(i64::MAX);
        let plan = Plan { interval: interval.max(1), burst: rate.burst.max(1) };
        let within = plan.earliest(self.tat, at, units).is_some_and(|first| first <= at);
        self.tat = Some(plan.charge(self.tat, at, units));
        within
    }

    fn in_span(&mut self, span: Duration, amount: u64, at: Timestamp, units: u64) -> bool {
        while let Some((first, gone)) = self.lately.front().copied()
            && at.since(first) >= span
        {
            self.lately.pop_front();
            self.units -= gone;
        }
        self.lately.push_back((at, units));
        self.units = self.units.saturating_add(units);
        self.units <= amount
    }
}

/// The most calls in any half-open span of that length; `sent` in order.
pub fn busiest(sent: &[Timestamp], span: Duration) -> u64 {
    let mut first = 0;
    let mut most = 0;
    for (last, at) in sent.iter().enumerate() {
        while sent.get(first).is_some_and(|early| at.since(*early) >= span) {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::declare;

    fn within(limit: &str, sent: &[(i64, u64)]) -> Vec<bool> {
        let text = format!("name = \"u\"\n[[limit]]\nname = \"l\"\n{limit}");
        let upstream = declare::parse("u", "u.toml", &text).unwrap();
        let mut strict = Strict::new(&upstream.limits[0].rule);
        sent.iter().map(|(ms, units)| strict.sent(at(*ms), *units)).collect()
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_nanos(1_772_366_400_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn a_bucket_refills() {
        let bucket = "kind = \"rate\"\nrate = \"10/s\"\nburst = 2\ncounted = \"bucket\"\n";
        let sent = [(0, 1), (0, 1), (0, 1), (100, 1), (300, 1)];
        assert_eq!(within(bucket, &sent), [true, true, false, false, true]);
    }

    #[test]
    fn a_span_holds_its_amount_wherever_it_begins() {
        let rate = "kind = \"rate\"\nrate = \"3/s\"\nburst = 3\n";
        let sent = [(0, 2), (500, 1), (999, 1), (1_999, 2), (2_000, 2)];
        assert_eq!(within(rate, &sent), [true, true, false, true, false]);
    }

    #[test]
    fn a_day_begins_anew() {
        let budget = "kind = \"budget\"\namount = 2\nper = \"day\"\ntime_zone = \"UTC\"\n";
        let day = 86_400_000;
        assert_eq!(within(budget, &[(0, 2), (1, 1), (day, 2)]), [true, false, true]);
    }

    #[test]
    fn the_busiest_span_is_half_open() {
        let sent: Vec<_> = [0, 0, 999, 1_000, 1_500].map(at).into();
        assert_eq!(busiest(&sent, Duration::from_secs(1)), 3);
        assert_eq!(busiest(&sent, Duration::from_secs(10)), 5);
        assert_eq!(busiest(&[], Duration::from_secs(1)), 0);
    }
}
