//! How far ahead of a claim its first slot lies: what it takes to commit the claim and to hand its calls over.

use std::time::Duration;

use crate::quota::{LimitRule, Upstream};

/// The least for a lane.
const LANE_LEAST: Duration = Duration::from_millis(10);

/// The first that a call handed over late leads to.
const FIRST: Duration = Duration::from_millis(4);

/// It grows up to this. It stays under the half horizon by which a rate's next slots are claimed ahead: else each
/// claim would leave a gap.
const MOST: Duration = Duration::from_millis(100);

/// It grows where calls are handed over late, and shrinks with each claim that brought some.
#[derive(Debug)]
pub(super) struct Lead {
    span: Duration,
    least: Duration,
    /// A claim takes one part in so many off it.
    eases_by: u32,
}

impl Lead {
    /// That of a lane, which claims long before somebody waits.
    pub fn of_lane() -> Lead {
        Lead { span: LANE_LEAST, least: LANE_LEAST, eases_by: 16 }
    }

    /// That of a desk: whoever waits there goes at once, where that can be.
    pub fn of_desk() -> Lead {
        Lead { span: Duration::ZERO, least: Duration::ZERO, eases_by: 4 }
    }

    /// Calls were handed over when their slots had passed. Once for all that were late together: they were so for
    /// the same reason.
    pub fn was_short(&mut self) {
        self.span = (self.span * 2).clamp(FIRST, MOST);
    }

    /// A claim brought calls.
    pub fn ease(&mut self) {
        self.span = (self.span - self.span / self.eases_by).max(self.least);
    }

    /// The lead of the next claim: where no slot can be missed, none lies ahead.
    pub fn of_claim(&self, upstream: &Upstream) -> Duration {
        let is_strict =
            |rule: &LimitRule| matches!(rule, LimitRule::Rate(_) | LimitRule::Rolling(_));
        match upstream.limits.iter().any(|limit| is_strict(&limit.rule)) {
            true => self.span,
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_doubles_to_its_most_and_eases_to_its_least() {
        let mut lane = Lead::of_lane();
        lane.was_short();
        assert_eq!(lane.span, Duration::from_millis(20));
        (0..9).for_each(|_| lane.was_short());
        assert_eq!(lane.span, MOST);
        (0..99).for_each(|_| lane.ease());
        assert_eq!(lane.span, LANE_LEAST);
        let mut desk = Lead::of_desk();
        desk.ease();
        assert_eq!(desk.span, Duration::ZERO);
        desk.was_short();
        desk.ease();
        assert_eq!(desk.span, Duration::from_millis(3));
    }
}
