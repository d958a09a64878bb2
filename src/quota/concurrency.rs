//! A concurrency limit: calls in flight.

/// A declared concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls that may be in flight at once; not zero.
    pub amount: u64,
}

impl Concurrency {
    /// How many more calls may start while `in_flight` are out. A call takes one place, whatever it
    /// costs other limits.
    pub const fn free(&self, in_flight: u64) -> u64 {
        self.amount.saturating_sub(in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_calls_than_allowed_leave_no_place() {
        let limit = Concurrency { amount: 4 };
        assert_eq!([0, 3, 4, 9].map(|in_flight| limit.free(in_flight)), [4, 1, 0, 0]);
    }
}
