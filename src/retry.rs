//! PURE: when next? Backoff and jitter.
//!
//! Randomness comes in as a number from 0 to 1, time as an argument. Jitter only ever adds.

use std::time::Duration;

// The crate is no longer maintained, so nothing outside this file sees it.
use backoff::ExponentialBackoff;
use backoff::backoff::Backoff;

use crate::clock::Timestamp;
use crate::quota::RetryPolicy;

/// A hint is kept to with at least this much room for jitter, so that not all come back at once.
const LEAST_JITTER: Duration = Duration::from_millis(100);
/// And at most this much.
const MOST_JITTER: Duration = Duration::from_secs(30);
/// Our own delays are stretched by up to this share.
const BACKOFF_JITTER: f64 = 0.5;

/// The delay before try `n + 1` after `n` failures or refusals in a row (`n` from 1), with jitter:
/// from the policy's exponential step up to half as much again by `random` (0 to 1).
///
/// ```
/// use paceline::{quota::RetryPolicy, retry::backoff};
/// use std::time::Duration;
///
/// let policy = RetryPolicy::default();
/// assert_eq!(backoff(&policy, 3, 0.0), Duration::from_secs(4)); // 1 s, 2 s, 4 s
/// assert_eq!(backoff(&policy, 3, 1.0), Duration::from_secs(6));
/// ```
pub fn backoff(policy: &RetryPolicy, n: u32, random: f64) -> Duration {
    let step = step(policy, n);
    step.saturating_add(step.mul_f64(BACKOFF_JITTER * unit(random)))
}

/// When to come back after a hint: never before it, and later by up to a tenth of the wait, at least
/// 100 ms and at most 30 s, by `random` (0 to 1).
pub fn after_hint(now: Timestamp, hint: Timestamp, random: f64) -> Timestamp {
    let room = (hint.since(now) / 10).clamp(LEAST_JITTER, MOST_JITTER);
    hint.max(now) + room.mul_f64(unit(random))
}

/// The `n`th delay without jitter. The crate's own randomness, clock and end are left unused: only
/// its interval is read.
fn step(policy: &RetryPolicy, n: u32) -> Duration {
    let mut steps = ExponentialBackoff {
        current_interval: policy.initial.min(policy.max_interval),
        randomization_factor: 0.0,
        multiplier: policy.multiplier.max(1.0),
        max_interval: policy.max_interval,
        max_elapsed_time: None,
        ..ExponentialBackoff::default()
    };
    for _ in 1..n {
        let before = steps.current_interval;
        let _ = steps.next_backoff();
        if steps.current_interval == before {
            break;
        }
    }
    steps.current_interval
}

/// A random number from outside, kept from 0 to 1 whatever it is.
fn unit(random: f64) -> f64 {
    if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let policy =
            RetryPolicy { max_interval: Duration::from_secs(20), ..RetryPolicy::default() };
        let secs: Vec<u64> = (0..8).map(|n| backoff(&policy, n, 0.0).as_secs()).collect();
        assert_eq!(secs, [1, 1, 2, 4, 8, 16, 20, 20]);
        assert_eq!(backoff(&policy, u32::MAX, 1.0), Duration::from_secs(30));
    }

    #[test]
    fn odd_policies_still_give_a_delay() {
        let odd = |multiplier, max_interval| {
            let policy = RetryPolicy { multiplier, max_interval, ..RetryPolicy::default() };
            backoff(&policy, 9, f64::NAN)
        };
        assert_eq!(odd(1.0, Duration::from_secs(9)), Duration::from_secs(1));
        assert_eq!(odd(f64::NAN, Duration::from_secs(9)), Duration::from_secs(1));
        assert_eq!(odd(f64::INFINITY, Duration::MAX), Duration::MAX);
        assert_eq!(odd(2.0, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_hint_gets_a_tenth_of_the_wait_within_bounds() {
        let now = Timestamp::from_secs(1_000);
        let latest =
            |secs: i64| after_hint(now, Timestamp::from_secs(1_000 + secs), 1.0).since(now);
        assert_eq!(latest(0), Duration::from_millis(100));
        assert_eq!(latest(60), Duration::from_secs(66));
        assert_eq!(latest(86_400), Duration::from_secs(86_430));
        assert_eq!(after_hint(now, Timestamp::EPOCH, 0.0), now, "a hint long past is now");
        assert_eq!(after_hint(now, Timestamp::MAX, 1.0), Timestamp::MAX);
    }

    proptest! {
        #[test]
        fn jitter_only_adds(n in 1_u32..40, random in 0.0_f64..1.0, now in 0_i64..1_000, wait in 0_i64..10_000_000) {
            let policy = RetryPolicy::default();
            prop_assert!(backoff(&policy, n, random) >= backoff(&policy, n, 0.0));
            prop_assert!(backoff(&policy, n, random) <= backoff(&policy, n, 0.0).mul_f64(1.5));
            let (now, hint) = (Timestamp::from_secs(now), Timestamp::from_secs(now + wait));
            prop_assert!(after_hint(now, hint, random) >= hint);
            prop_assert_eq!(after_hint(now, hint, 0.0), hint);
        }
    }
}
