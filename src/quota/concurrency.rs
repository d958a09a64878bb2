//! A concurrency limit: calls in flight.

/// A declared concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls that may be in flight at once; not zero.
    pub amount: u64,
}
