//! When: a delay, or an instant of the upstream's clock.

use std::time::Duration;

use super::view::View;
use crate::clock::{Timestamp, nanos};

const MILLI: i64 = 1_000_000;

/// How far off a hint may be; what is further is clamped there.
pub(crate) const FURTHEST: Duration = Duration::from_secs(31 * 86_400);

/// What an upstream said about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// This long after the answer came in.
    After(Duration),
    /// When the upstream's clock shows this.
    At(Timestamp),
}

impl Moment {
    /// The instant on our clock, rounded up to a millisecond's distance from the receipt. `None`
    /// where it is not in the future: zero and elapsed never mean "now".
    ///
    /// An instant is measured against the upstream's own time where the answer tells it, so that
    /// neither clock needs to be right.
    pub(crate) fn resolve(self, view: &View<'_>) -> Option<Timestamp> {
        let delay = match self {
            Moment::After(delay) => nanos(delay),
            Moment::At(at) => {
                let base = view.server_time().unwrap_or(view.received_at());
                at.as_nanos().saturating_sub(base.as_nanos())
            }
        };
        (delay > 0).then(|| view.received_at().shifted(round_up(delay)))
    }

    /// Whether it is a delay.
    pub(crate) const fn is_relative(self) -> bool {
        matches!(self, Moment::After(_))
    }
}

/// Whole milliseconds, rounded up.
const fn round_up(nanos: i64) -> i64 {
    match nanos.checked_add(MILLI - 1) {
        Some(raised) => raised / MILLI * MILLI,
        None => i64::MAX,
    }
}

/// The hint itself, or the furthest instant allowed; and whether it was clamped.
pub(crate) fn clamp(received_at: Timestamp, at: Timestamp) -> (Timestamp, bool) {
    let furthest = received_at + FURTHEST;
    (at.min(furthest), at > furthest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_up_and_never_overflow() {
        assert_eq!(round_up(1), MILLI);
        assert_eq!(round_up(MILLI), MILLI);
        assert_eq!(round_up(i64::MAX), i64::MAX);
    }
}
