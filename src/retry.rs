//! PURE: what next? Backoff, jitter and deadlines.
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

/// Whether a job is worthless by the next instant at which it could go (both store time): then it
/// expires now. The deadline itself is still in time.
pub fn expires(deadline: Option<Timestamp>, next_possible: Timestamp) -> bool {
    deadline.is_some_and(|deadline| next_possible > deadline)
}

/// Whether `failures` use up the attempts of the policy.
pub const fn is_used_up(policy: &RetryPolicy, failures: u32) -> bool {
    failures >= policy.max_attempts
}

/// Whether a hint lies further from `now` than the policy lets a queue wait without a person.
pub fn is_beyond_max_hint(policy: &RetryPolicy, now: Timestamp, hint: Timestamp) -> bool {
    hint.since(now) > policy.max_hint
}

/// The `n`th delay without jitter. The crate's own randomness, clock and end are left unused: only
/// its interval is read.
fn step(policy: &RetryPolicy, n: u32) -> Duration {
    let first = policy.initial.min(policy.max_interval);
    let mut steps = ExponentialBackoff {
        initial_interval: first,
        current_interval: first,
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
