//! PURE: what next? Backoff, jitter and deadlines.
//!
//! Randomness comes in as a number from 0 to 1, time as an argument. Jitter only ever adds.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::quota::RetryPolicy;

/// The delay before try `n + 1` after `n` failures or refusals in a row (`n` from 1), with jitter:
/// from the policy's exponential step up to half as much again by `random` (0 to 1).
pub fn backoff(policy: &RetryPolicy, n: u32, random: f64) -> Duration {
    let _ = (policy, n, random);
    todo!()
}

/// When to come back after a hint: never before it, and later by up to a tenth of the wait, at least
/// 100 ms and at most 30 s, by `random` (0 to 1).
pub fn after_hint(now: Timestamp, hint: Timestamp, random: f64) -> Timestamp {
    let _ = (now, hint, random);
    todo!()
}
