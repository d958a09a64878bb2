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
        let mut place = self.0.partition_point(|(sent_at, _)| *sent_at < at);
        while let Some((_, there)) = self.0.get_mut(place)
            && units > 0
        {
            let taken = units.min(*there);
            units -= taken;
            *there -= taken;
            if *there == 0 {
                self.0.remove(place);
            } else {
                place += 1;
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

    /// The instant from which nothing sent counts any more; `None` where nothing was sent.
    pub fn idle_at(&self, entries: &Entries) -> Option<Timestamp> {
        entries.0.last().map(|(sent_at, _)| *sent_at + self.life())
    }
}
