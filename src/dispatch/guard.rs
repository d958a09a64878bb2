//! The last count before a send: `governor` on the monotonic clock of this process. Slots already keep
//! the limits; this counts what is really sent, whatever the store said.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::nanos::Nanos;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::clock::Timeline;
use crate::job::Columns;
use crate::quota::rate::{Plan, Rate};
use crate::quota::{LimitRule, Upstream};

/// Store time, as governor reads a clock.
#[derive(Clone, Debug)]
struct GuardClock(Timeline);

impl GovernorClock for GuardClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.now().store.as_nanos().unsigned_abs())
    }
}

type Limiter = RateLimiter<
    String,
    DefaultKeyedStateStore<String>,
    GuardClock,
    governor::middleware::NoOpMiddleware<Nanos>,
>;

/// Instances that nothing was sent on for long are forgotten after this many sends.
const SENDS_BETWEEN_CLEANINGS: u32 = 10_000;

/// One keyed limiter for each distinct figure.
#[derive(Debug)]
pub(crate) struct Guard {
    clock: GuardClock,
    limiters: HashMap<(String, i64, u64), Limiter>,
    sends: u32,
}

impl Guard {
    pub fn new(timeline: &Timeline) -> Self {
        Guard { clock: GuardClock(timeline.clone()), limiters: HashMap::new(), sends: 0 }
    }

    /// Counts a send of `partition`, or tells for how long none may leave yet.
    pub fn pass(&mut self, upstream: &Upstream, partition: &Columns) -> Result<(), Duration> {
        self.sends += 1;
        if self.sends >= SENDS_BETWEEN_CLEANINGS {
            self.sends = 0;
            self.limiters.values().for_each(Limiter::retain_recent);
        }
        for limit in &upstream.limits {
            let LimitRule::Rate(rate) = limit.rule_for(partition) else { continue };
            let Some(limiter) = self.limiter(&limit.name, rate) else { continue };
            let key: String = limit.key.iter().filter_map(|name| partition.get(name)).fold(
                String::new(),
                |mut key, value| {
                    key.push_str(value);
                    key.push('\u{1f}');
                    key
                },
            );
            if let Err(not_until) = limiter.check_key(&key) {
                return Err(not_until.wait_time_from(self.clock.now()));
            }
        }
        Ok(())
    }

    fn limiter(&mut self, name: &str, rate: &Rate) -> Option<&Limiter> {
        let Plan { interval, burst } = rate.guard();
        let figure = (name.to_owned(), interval, burst);
        if !self.limiters.contains_key(&figure) {
            let burst = NonZeroU32::new(u32::try_from(burst).unwrap_or(u32::MAX))?;
            let interval = Duration::from_nanos(interval.unsigned_abs());
            let quota = Quota::with_period(interval)?.allow_burst(burst);
            let limiter =
                RateLimiter::new(quota, DefaultKeyedStateStore::default(), self.clock.clone());
            self.limiters.insert(figure.clone(), limiter);
        }
        self.limiters.get(&figure)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::{ManualClock, Timestamp};
    use crate::quota::declare;

    const PLAN: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\nburst = 3\n\
        counted = \"bucket\"\nkey = [\"site\"]\n";

    fn site(name: &str) -> Columns {
        Columns::from([("site".to_owned(), name.to_owned())])
    }

    #[test]
    fn no_more_pass_than_the_limit_declares() {
        let clock = ManualClock::new(Timestamp::from_secs(1_780_315_200));
        let timeline = Timeline::new(Arc::new(clock.clone()), None, Timestamp::EPOCH);
        let upstream = declare::parse("up", "up.toml", PLAN).unwrap();
        let mut guard = Guard::new(&timeline);
        for _ in 0..3 {
            assert_eq!(guard.pass(&upstream, &site("a")), Ok(()));
        }
        let wait = guard.pass(&upstream, &site("a")).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100), "until the next unit");
        assert_eq!(guard.pass(&upstream, &site("b")), Ok(()), "another instance");
        clock.advance(Duration::from_millis(99));
        assert!(guard.pass(&upstream, &site("a")).is_err());
        clock.advance(Duration::from_millis(1));
        assert_eq!(guard.pass(&upstream, &site("a")), Ok(()));
        assert!(guard.pass(&upstream, &site("a")).is_err(), "a pause is no second burst");
    }
}
