//! When so much work would be done, by the arithmetic of its limits: a lower bound, "about".
//!
//! Each limit is asked alone, with nothing lost to answers that take their time, to refusals or to
//! retries. The one that takes longest decides.

use std::time::Duration;

use super::words::span;
use crate::clock::Timestamp;
use crate::quota::LimitRule;

/// What is asked of one limit instance.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// Its rule.
    pub rule: &'a LimitRule,
    /// Units that are to go.
    pub units: u64,
    /// Units that the current window still grants; `None`: all.
    pub left: Option<u64>,
    /// Nothing goes before this (wall time): a block, or the next slot.
    pub next_at: Option<Timestamp>,
}

/// When it would be done, and which limit decides that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finish<'a> {
    /// The instant (wall time).
    pub at: Timestamp,
    /// The limit; `None`: none holds it back.
    pub limit: Option<&'a str>,
}

impl Finish<'_> {
    /// Whether it lies further off than instants go: in some two hundred years.
    pub fn is_beyond(&self) -> bool {
        self.at == Timestamp::MAX
    }

    /// How long that is from `now` (wall time), in words.
    pub fn span(&self, now: Timestamp) -> String {
        match self.is_beyond() {
            true => "more than 200 years".to_owned(),
            false => format!("about {}", span(self.at.since(now))),
        }
    }
}

/// When all of it would be done, begun at `now` (wall time).
///
/// ```
/// use paceline::clock::Timestamp;
/// use paceline::quota::declare;
/// use paceline::report::finish::{Demand, finish};
///
/// let text = "name = \"shop\"\n[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"1/s\"\nslack = \"0s\"\npath_jitter = \"0s\"\n";
/// let upstream = declare::parse("shop", "shop.toml", text).unwrap();
/// let rule = &upstream.limits[0].rule;
/// let demand = Demand { limit: "plan", rule, units: 101, left: None, next_at: None };
/// let done = finish(&[demand], Timestamp::from_secs(1000));
/// assert_eq!((done.at, done.limit), (Timestamp::from_secs(1100), Some("plan")));
/// ```
pub fn finish<'a>(demands: &[Demand<'a>], now: Timestamp) -> Finish<'a> {
    let mut last = Finish { at: now, limit: None };
    for demand in demands.iter().filter(|demand| demand.units > 0) {
        let from = demand.next_at.map_or(now, |next| next.max(now));
        let at = alone(demand, from);
        if at > last.at {
            last = Finish { at, limit: Some(demand.limit) };
        }
    }
    last
}

fn alone(demand: &Demand<'_>, from: Timestamp) -> Timestamp {
    match demand.rule {
        LimitRule::Rate(rate) => {
            let plan = rate.plan();
            from + times(plan.interval.unsigned_abs(), demand.units.saturating_sub(plan.burst))
        }
        LimitRule::Budget(budget) => {
            let grants = budget.grants().max(1);
            let beyond = demand.units.saturating_sub(demand.left.unwrap_or(grants));
            if beyond == 0 {
                return from;
            }
            let window = budget.calendar.window(from);
            let length = window.next_reset.since(window.start);
            window.next_reset + times(whole_nanos(length), (beyond - 1) / grants)
        }
        LimitRule::Rolling(rolling) => {
            let grants = rolling.amount.saturating_sub(rolling.reserve).max(1);
            let beyond = demand.units.saturating_sub(demand.left.unwrap_or(grants));
            from + times(whole_nanos(rolling.life()), beyond.div_ceil(grants))
        }
        LimitRule::Concurrency(_) => from,
    }
}

fn whole_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn times(nanos: u64, count: u64) -> Duration {
    Duration::from_nanos(nanos.saturating_mul(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::declare;

    const LIMITS: &str = r#"
name = "u"
[[limit]]
name = "daily"
kind = "budget"
amount = 200
per = "day"
time_zone = "UTC"
[[limit]]
name = "any"
kind = "rolling"
amount = 100
per = "24h"
slack = "0s"
path_jitter = "0s"
"#;

    fn told(limit: usize, units: u64, left: Option<u64>) -> String {
        let upstream = declare::parse("u", "u.toml", LIMITS).unwrap();
        let rule = &upstream.limits[limit].rule;
        let now = Timestamp::from_secs(86_400 * 20_000);
        let demand = Demand { limit: "l", rule, units, left, next_at: None };
        finish(&[demand], now).span(now).replace("about ", "")
    }

    #[test]
    fn a_budget_is_used_window_by_window() {
        assert_eq!(told(0, 200, None), "0 s");
        assert_eq!(told(0, 201, None), "1 d");
        assert_eq!(told(0, 400, None), "1 d");
        assert_eq!(told(0, 401, None), "2 d");
        assert_eq!(told(0, 5, Some(4)), "1 d");
        assert_eq!(told(0, 1_200_000, None), "16 years");
        // Instants go to the year 2262.
        assert_eq!(told(0, 200 * 365 * 299, None), "more than 200 years");
        assert_eq!(told(0, u64::MAX, None), "more than 200 years");
    }

    #[test]
    fn a_rolling_limit_is_used_span_by_span() {
        assert_eq!(told(1, 100, None), "0 s");
        assert_eq!(told(1, 101, None), "1 d");
        assert_eq!(told(1, 301, None), "3 d");
    }
}
