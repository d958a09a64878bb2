//! A budget: units per calendar window.

use std::collections::BTreeMap;
use std::time::Duration;

use super::calendar::{self, Calendar};
use crate::clock::{Now, Timestamp, nanos};

/// Nothing is granted this close to a reset, on either side: clocks differ a little, and calls
/// take their time on the way.
pub const RESET_GUARD: Duration = Duration::from_secs(2);

/// Windows looked through for one that grants; beyond them the answer is a lower bound.
const WINDOWS_TRIED: usize = 64;

/// A declared budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Units a window; not zero.
    pub amount: u64,
    /// When windows begin.
    pub calendar: Calendar,
    /// Which calls count.
    pub counts: Counts,
    /// Units left for people; less than `amount`.
    pub reserve: u64,
    /// Whether what is left is paced evenly to the reset.
    pub spread: bool,
    /// Wait at least this long past a reset.
    pub settle_after_reset: Duration,
}

/// Which calls a budget counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Every call sent.
    #[default]
    Sent,
    /// A refused call is given back.
    Accepted,
}

/// What was spent, by window start (wall time). Windows nothing was spent in are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows(pub BTreeMap<Timestamp, Window>);

/// One window's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Units we spent.
    pub spent: u64,
    /// The slot of the latest charge (store time): for `spread`.
    pub last_at: Option<Timestamp>,
    /// What the upstream reported as left, less what was sent since.
    pub remaining: Option<u64>,
}

impl Windows {
    /// What was counted in the window that starts then.
    pub fn get(&self, start: Timestamp) -> Window {
        self.0.get(&start).copied().unwrap_or_default()
    }

    /// Takes note that the upstream reported `remaining` units left in the window that starts then;
    /// the lowest report of a window counts.
    pub fn report(&mut self, start: Timestamp, remaining: u64) {
        let window = self.0.entry(start).or_default();
        window.remaining = Some(window.remaining.map_or(remaining, |old| old.min(remaining)));
    }

    /// Drops windows in which nothing was sent since `before` (store time). A window that is still
    /// open, or that the wall clock may yet be set back to, must keep its count: `before` should lie
    /// several windows in the past.
    pub fn forget(&mut self, before: Timestamp) {
        self.0.retain(|start, window| window.last_at.unwrap_or(*start) >= before);
    }

    /// Gives `units` back to the window that starts then. What the upstream reported as left stays:
    /// its own count may have seen the call.
    pub fn give_back(&mut self, start: Timestamp, units: u64) {
        if let Some(window) = self.0.get_mut(&start) {
            window.spent = window.spent.saturating_sub(units);
        }
    }
}

impl Budget {
    /// The starts of the windows that a send at the store instant `at` counts in: the wall clock's,
    /// and store time's too while somebody has set the clock.
    pub fn windows_at(&self, now: Now, at: Timestamp) -> Vec<Timestamp> {
        let (wall, store) = self.spans_at(now, at);
        let store = store.map(|span| span.start).filter(|start| *start != wall.start);
        std::iter::once(wall.start).chain(store).collect()
    }

    /// Units that one window grants: its amount less the reserve.
    pub const fn grants(&self) -> u64 {
        self.amount.saturating_sub(self.reserve)
    }

    /// Units that a send at the store instant `at` finds left, by our count and the upstream's.
    pub fn left(&self, windows: &Windows, now: Now, at: Timestamp) -> u64 {
        let (wall, store) = self.spans_at(now, at);
        let left = |span: calendar::Window| self.left_in(windows.get(span.start));
        left(wall).min(store.map_or(u64::MAX, left))
    }

    /// The first instant at or after `at` (store time) at which `cost` units may go; `None` where
    /// they never can. After very many windows without room it is a lower bound, which asking again
    /// from there raises.
    pub fn earliest(
        &self,
        windows: &Windows,
        now: Now,
        at: Timestamp,
        cost: u64,
    ) -> Option<Timestamp> {
        if cost > self.grants() {
            return None;
        }
        if cost == 0 {
            return Some(at);
        }
        let mut at = at;
        for _ in 0..WINDOWS_TRIED {
            let wall = self.next_on(windows, now.skew(), at, cost);
            let both = if now.is_stepped() { self.next_on(windows, 0, wall, cost) } else { wall };
            if both == at {
                break;
            }
            at = both;
        }
        Some(at)
    }

    /// Takes `cost` units for a call at `slot` (store time); the starts of the windows charged.
    pub fn charge(
        &self,
        windows: &mut Windows,
        now: Now,
        slot: Timestamp,
        cost: u64,
    ) -> Vec<Timestamp> {
        let starts = self.windows_at(now, slot);
        for start in starts.iter().filter(|_| cost > 0) {
            let window = windows.0.entry(*start).or_default();
            window.spent = window.spent.saturating_add(cost);
            window.last_at = window.last_at.max(Some(slot));
            window.remaining = window.remaining.map(|left| left.saturating_sub(cost));
        }
        starts
    }

    /// The windows of `at` on the wall clock and, while it is stepped, in store time.
    fn spans_at(&self, now: Now, at: Timestamp) -> (calendar::Window, Option<calendar::Window>) {
        let store = now.is_stepped().then(|| self.calendar.window(at));
        (self.calendar.window(now.to_wall(at)), store)
    }

    fn left_in(&self, window: Window) -> u64 {
        let ours = self.grants().saturating_sub(window.spent);
        let theirs = window.remaining.map_or(u64::MAX, |left| left.saturating_sub(self.reserve));
        ours.min(theirs)
    }

    /// The next instant at or after `at` that may grant by one clock, `skew` nanoseconds ahead of
    /// store time; `at` itself only where that clock's window does grant. One step: a window that
    /// is used up leads to its reset.
    fn next_on(&self, windows: &Windows, skew: i64, at: Timestamp, cost: u64) -> Timestamp {
        let span = self.calendar.window(at.shifted(skew));
        let to_store = |wall: Timestamp| wall.shifted(skew.saturating_neg());
        let closes_at = to_store(span.next_reset - RESET_GUARD);
        let opens_at = to_store(span.start + RESET_GUARD.max(self.settle_after_reset));
        let window = windows.get(span.start);
        let left = self.left_in(window);
        let paced_at = self.paced_at(window, left, closes_at, cost);
        let next = at.max(opens_at).max(paced_at);
        if left < cost || next >= closes_at { to_store(span.next_reset).max(at) } else { next }
    }

    /// With `spread`, the instant from which `cost` units are due, so that what is left lasts to
    /// the window's end; else long ago.
    fn paced_at(&self, window: Window, left: u64, ends_at: Timestamp, cost: u64) -> Timestamp {
        let Some(last_at) = window.last_at.filter(|_| self.spread) else {
            return Timestamp::from_nanos(i64::MIN);
        };
        let span = u128::from(nanos(ends_at.since(last_at)).unsigned_abs());
        let shares = u128::from(left) + u128::from(cost);
        let gap = (span * u128::from(cost)).div_ceil(shares.max(1));
        last_at.shifted(i64::try_from(gap).unwrap_or(i64::MAX))
    }
}
