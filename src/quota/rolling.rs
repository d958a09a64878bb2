//! A rolling limit: units in any span of a fixed length.

use std::time::Duration;

use crate::clock::Timestamp;

/// A declared rolling limit, or a budget whose zone is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolling {
    /// Units in any span of `span`; not zero.
    pub amount: u64,
    /// The length of the span; not zero. 25 h for a day in an unknown zone.
    pub span: Duration,
    /// What the file says where this is a budget in an unknown zone: `day` and so on.
    pub stands_for: Option<super::calendar::Per>,
    /// How late a slot may be used.
    pub slack: Duration,
    /// Margin for the way to the upstream.
    pub path_jitter: Duration,
    /// Which calls count.
    pub counts: super::budget::Counts,
    /// Units left for people; less than `amount`.
    pub reserve: u64,
}

/// Entries kept for one instance.
pub const MAX_ENTRIES: usize = 256;

/// What was sent: (instant of the slot in store time, units), in the order of time.
///
/// A first entry of no units says that what was sent up to its instant has expired and is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries(pub Vec<(Timestamp, u64)>);

impl Entries {
    /// Units of entries that have not expired at `at`, where an entry lives for `life`. Entries
    /// later than `at` count too: the span that begins at `at` holds them.
    fn alive(&self, at: Timestamp, life: Duration) -> u64 {
        let living = self.0.iter().rev().take_while(|(sent_at, _)| *sent_at + life > at);
        living.fold(0, |sum, (_, units)| sum.saturating_add(*units))
    }

    fn add(&mut self, at: Timestamp, units: u64) {
        let place = self.0.partition_point(|(sent_at, _)| *sent_at < at);
        match self.0.get_mut(place) {
            Some((sent_at, there)) if *sent_at == at => *there = there.saturating_add(units),
            _ => self.0.insert(place, (at, units)),
        }
    }

    /// Drops what expired by `now` and leaves the mark that says so: without it, units given back
    /// late would be taken for merged ones and come off somebody else's entry.
    fn expire(&mut self, now: Timestamp, life: Duration) {
        let gone = self.0.partition_point(|(sent_at, _)| *sent_at + life <= now);
        if let Some((_, units)) = gone.checked_sub(1).and_then(|last| self.0.get_mut(last)) {
            *units = 0;
            self.0.drain(..gone - 1);
        }
    }

    /// Brings the number of entries down to [`MAX_ENTRIES`]. The earlier of two neighbours moves to
    /// the later's instant, so that its units only ever expire later; the pair is the one where the
    /// fewest unit-nanoseconds are lost by it.
    fn merge(&mut self) {
        while self.0.len() > MAX_ENTRIES {
            let marked = usize::from(self.0.first().is_some_and(|(_, units)| *units == 0));
            let lost = |pair: &[(Timestamp, u64)]| match pair {
                [(early, units), (late, _)] => late.since(*early).as_nanos() * u128::from(*units),
                _ => u128::MAX,
            };
            let pairs = self.0.windows(2).enumerate().skip(marked);
            let Some((place, _)) = pairs.min_by_key(|(_, pair)| lost(pair)) else { return };
            let (_, units) = self.0.remove(place);
            if let Some((_, there)) = self.0.get_mut(place) {
                *there = there.saturating_add(units);
            }
        }
    }

    /// Takes `units` that were charged at `at` out again: from the entry at that instant or, where
    /// it was merged, from the next. What has expired meanwhile is not given back.
    pub fn give_back(&mut self, at: Timestamp, mut units: u64) {
        if self.0.first().is_some_and(|(gone_at, left)| *left == 0 && at <= *gone_at) {
            return;
        }
        let place = self.0.partition_point(|(sent_at, _)| *sent_at < at);
        while let Some((_, there)) = self.0.get_mut(place)
            && units > 0
        {
            let taken = units.min(*there);
            units -= taken;
            *there -= taken;
            if *there == 0 {
                self.0.remove(place);
            }
        }
    }
}

impl Rolling {
    /// How long an entry counts: the span, and as long as its call may have arrived after its slot.
    pub fn life(&self) -> Duration {
        self.span.saturating_add(self.slack).saturating_add(self.path_jitter)
    }

    /// Units that may be granted in one span.
    pub const fn grants(&self) -> u64 {
        self.amount.saturating_sub(self.reserve)
    }

    /// Units still granted at `at`.
    pub fn left(&self, entries: &Entries, at: Timestamp) -> u64 {
        self.grants().saturating_sub(entries.alive(at, self.life()))
    }

    /// The first instant at or after `at` (store time) at which `cost` units may go; `None` where
    /// they never can.
    pub fn earliest(&self, entries: &Entries, at: Timestamp, cost: u64) -> Option<Timestamp> {
        let room = self.grants().checked_sub(cost)?;
        if cost == 0 {
            return Some(at);
        }
        let life = self.life();
        let mut alive = 0_u64;
        // From the newest back: the first entry that no longer finds room must have expired.
        for (sent_at, units) in entries.0.iter().rev() {
            alive = alive.saturating_add(*units);
            if alive > room {
                return Some(at.max(*sent_at + life));
            }
        }
        Some(at)
    }

    /// Enters `cost` units at `slot`; `now` is store time.
    pub fn charge(&self, entries: &mut Entries, now: Timestamp, slot: Timestamp, cost: u64) {
        if cost == 0 {
            return;
        }
        entries.expire(now, self.life());
        entries.add(slot, cost);
        entries.merge();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quota::budget::Counts;

    fn rolling(amount: u64, span: u64) -> Rolling {
        Rolling {
            amount,
            span: Duration::from_nanos(span),
            stands_for: None,
            slack: Duration::from_nanos(3),
            path_jitter: Duration::from_nanos(2),
            counts: Counts::Sent,
            reserve: 0,
        }
    }

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn an_entry_counts_for_the_span_and_its_lateness() {
        let (limit, mut entries) = (rolling(2, 100), Entries::default());
        limit.charge(&mut entries, at(0), at(0), 1);
        limit.charge(&mut entries, at(0), at(10), 1);
        assert_eq!(limit.earliest(&entries, at(20), 1), Some(at(105)));
        assert_eq!(limit.earliest(&entries, at(20), 2), Some(at(115)));
        assert_eq!(limit.earliest(&entries, at(20), 3), None);
        assert_eq!(limit.earliest(&entries, at(200), 2), Some(at(200)));
        assert_eq!(limit.left(&entries, at(104)), 0);
        assert_eq!(limit.left(&entries, at(105)), 1, "half-open: at its end it counts no more");
    }

    #[test]
    fn a_slot_before_another_counts_with_it() {
        let (limit, mut entries) = (rolling(1, 100), Entries::default());
        limit.charge(&mut entries, at(0), at(50), 1);
        assert_eq!(limit.earliest(&entries, at(0), 1), Some(at(155)));
        let limit = rolling(2, 100);
        limit.charge(&mut entries, at(0), at(20), 1);
        assert_eq!(limit.earliest(&entries, at(20), 1), Some(at(125)), "each ends at its own time");
    }

    #[test]
    fn a_reserve_is_kept_back() {
        let limit = Rolling { reserve: 1, ..rolling(2, 100) };
        let mut entries = Entries::default();
        assert_eq!(limit.earliest(&entries, at(0), 2), None);
        limit.charge(&mut entries, at(0), at(0), 1);
        assert_eq!(limit.left(&entries, at(1)), 0);
    }

    #[test]
    fn units_are_given_back_where_they_went() {
        let (limit, mut entries) = (rolling(9, 100), Entries::default());
        for slot in [0, 10, 20] {
            limit.charge(&mut entries, at(0), at(slot), 2);
        }
        entries.give_back(at(10), 2);
        assert_eq!(entries.0, [(at(0), 2), (at(20), 2)]);
        entries.give_back(at(10), 1);
        assert_eq!(entries.0, [(at(0), 2), (at(20), 1)], "merged units are in the next entry");
    }

    #[test]
    fn what_has_expired_is_not_given_back_from_others() {
        let (limit, mut entries) = (rolling(9, 100), Entries::default());
        limit.charge(&mut entries, at(0), at(0), 2);
        limit.charge(&mut entries, at(105), at(105), 3);
        entries.give_back(at(0), 2);
        assert_eq!(limit.left(&entries, at(105)), 6);
    }

    #[test]
    fn the_pair_that_loses_least_is_merged() {
        let units = |slot| match slot {
            500 => 6, // wait 5 longer
            700 => 1, // waits 20 longer: this is less
            _ => 9,   // 10 longer
        };
        let slots = (0..).map(|n| n * 10).filter(|slot| *slot != 710).take(MAX_ENTRIES - 1);
        let (limit, mut entries) = (rolling(u64::MAX, 10_000), Entries::default());
        for slot in slots.chain([505]) {
            limit.charge(&mut entries, at(0), at(slot), units(slot));
        }
        assert_eq!(entries.0.len(), MAX_ENTRIES, "so many are kept as they are");
        limit.charge(&mut entries, at(0), at(9_000), 9);
        let near = |slot| entries.0.iter().find(|(sent_at, _)| *sent_at == at(slot));
        assert_eq!((near(500), near(505)), (Some(&(at(500), 6)), Some(&(at(505), 9))));
        assert_eq!((near(700), near(720)), (None, Some(&(at(720), 10))));
    }

    #[test]
    fn merging_leaves_the_mark_of_what_has_expired() {
        let (limit, mut entries) = (rolling(u64::MAX, 100), Entries::default());
        limit.charge(&mut entries, at(0), at(0), 7);
        for slot in (1_000..).take(MAX_ENTRIES + 9) {
            limit.charge(&mut entries, at(1_000), at(slot), 2);
        }
        let before = limit.left(&entries, at(1_000));
        entries.give_back(at(0), 7);
        assert_eq!(limit.left(&entries, at(1_000)), before, "they had come back by themselves");
    }

    proptest! {
        #[test]
        fn merging_keeps_few_entries_and_only_delays_their_end(
            slots in prop::collection::vec((0_i64..5_000, 1_u64..5), 0..600),
        ) {
            let (limit, mut entries) = (rolling(u64::MAX, 10_000), Entries::default());
            for (slot, units) in &slots {
                limit.charge(&mut entries, at(0), at(*slot), *units);
            }
            prop_assert!(entries.0.len() <= MAX_ENTRIES);
            prop_assert!(entries.0.is_sorted_by(|one, other| one.0 < other.0));
            for instant in (10_000..15_100).step_by(50) {
                let plain = slots.iter().filter(|(slot, _)| slot + 10_005 > instant);
                let plain: u64 = plain.map(|(_, units)| units).sum();
                prop_assert!(entries.alive(at(instant), limit.life()) >= plain);
            }
            let all: u64 = slots.iter().map(|(_, units)| units).sum();
            prop_assert_eq!(entries.alive(at(0), limit.life()), all);
        }
    }
}
