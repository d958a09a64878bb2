//! PURE: a token's life, and when it is time for the next one. All instants are store time.

use std::time::Duration;

use crate::clock::Timestamp;

/// A token is replaced at most so long before it expires.
const EARLIEST: Duration = Duration::from_secs(300);

/// And at least so long.
const LATEST: Duration = Duration::from_secs(1);

/// From when to when a token may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// It is counted from the moment it was asked for: the server's clock began later.
    asked_at: Timestamp,
    /// `None`: until it is refused.
    lasts: Option<Duration>,
}

impl Life {
    pub fn new(asked_at: Timestamp, lasts: Option<Duration>) -> Life {
        Life { asked_at, lasts }
    }

    /// Whether a call that leaves at `at` may carry it.
    pub fn holds_at(&self, at: Timestamp) -> bool {
        self.lasts.is_none_or(|lasts| at < self.asked_at + lasts)
    }

    /// Whether the next one is to be fetched: a tenth of its life before its end, from one second to
    /// five minutes, but not before half its life.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.lasts.is_some_and(|lasts| {
            let early = (lasts / 10).clamp(LATEST, EARLIEST);
            now >= self.asked_at + lasts.saturating_sub(early).max(lasts / 2)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_is_fetched_a_little_before_the_end() {
        let asked = Timestamp::from_secs(1_000);
        let due = |lasts: u64| {
            let life = Life::new(asked, Some(Duration::from_millis(lasts)));
            let at = |ms: u64| asked + Duration::from_millis(ms);
            assert!(life.holds_at(at(lasts - 1)) && !life.holds_at(at(lasts)));
            (0..=lasts).find(|ms| life.is_due(at(*ms))).unwrap()
        };
        assert_eq!(due(3_600_000), 3_300_000, "five minutes");
        assert_eq!(due(600_000), 540_000, "a tenth");
        assert_eq!(due(5_000), 4_000, "a second");
        assert_eq!(due(1_000), 500, "half a short life");
    }

    #[test]
    fn without_an_end_it_is_kept() {
        let life = Life::new(Timestamp::EPOCH, None);
        assert!(life.holds_at(Timestamp::MAX) && !life.is_due(Timestamp::MAX));
    }
}
