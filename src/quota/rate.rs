//! A rate: GCRA over a stored theoretical arrival time (tat).

use std::time::Duration;

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
