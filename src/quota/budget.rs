//! A budget: units per calendar window.

use std::collections::BTreeMap;
use std::time::Duration;

use super::calendar::{self, Calendar};
use crate::clock::{Now, Timestamp, nanos};

/// Nothing is granted this close to a reset, on either side: clocks differ a little, and calls
/// take their time on the way.
pub(crate) const RESET_GUARD: Duration = Duration::from_secs(2);

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
}

impl Windows {
    /// What was counted in the window that starts then.
    pub fn get(&self, start: Timestamp) -> Window {
        self.0.get(&start).copied().unwrap_or_default()
    }

    /// Gives `units` back to the window that starts then.
    pub fn give_back(&mut self, start: Timestamp, units: u64) {
        if let Some(window) = self.0.get_mut(&start) {
            window.spent = window.spent.saturating_sub(units);
        }
    }
}

impl Budget {
    /// The starts of the windows that a send at the store instant `at` counts in: the wall clock's,
    /// and store time's too while somebody has set the clock.
    pub(crate) fn windows_at(&self, now: Now, at: Timestamp) -> Vec<Timestamp> {
        let (wall, store) = self.spans_at(now, at);
        let store = store.map(|span| span.start).filter(|start| *start != wall.start);
        std::iter::once(wall.start).chain(store).collect()
    }

    /// Units that one window grants: its amount less the reserve.
    pub const fn grants(&self) -> u64 {
        self.amount.saturating_sub(self.reserve)
    }

    /// Units that a send at the store instant `at` finds left.
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
        }
        starts
    }

    /// When the last of calls goes that follow each other as soon as they may, the first of them at `slot`:
    /// with `spread` evenly to the reset, else all at once. Together they take `units`, each of them `one`,
    /// and not more than is left.
    pub fn last_slot(
        &self,
        windows: &Windows,
        now: Now,
        slot: Timestamp,
        units: u64,
        one: u64,
    ) -> Timestamp {
        if !self.spread {
            return slot;
        }
        let next_reset = self.calendar.window(now.to_wall(slot)).next_reset;
        let span = now.to_store(next_reset - RESET_GUARD).since(slot);
        let left = u128::from(self.left(windows, now, slot).max(1));
        let before = u128::from(units.saturating_sub(one));
        slot.shifted(i64::try_from(span.as_nanos() * before / left).unwrap_or(i64::MAX))
    }

    /// The windows of `at` on the wall clock and, while it is stepped, in store time.
    fn spans_at(&self, now: Now, at: Timestamp) -> (calendar::Window, Option<calendar::Window>) {
        let store = now.is_stepped().then(|| self.calendar.window(at));
        (self.calendar.window(now.to_wall(at)), store)
    }

    fn left_in(&self, window: Window) -> u64 {
        self.grants().saturating_sub(window.spent)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::calendar::Per;

    fn budget(amount: u64) -> Budget {
        Budget {
            amount,
            calendar: Calendar::parse("America/Los_Angeles", Per::Day, "00:00").unwrap(),
            counts: Counts::Sent,
            reserve: 0,
            spread: false,
            settle_after_reset: Duration::ZERO,
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse::<chrono::DateTime<chrono::Utc>>().unwrap().into()
    }

    fn now(text: &str) -> Now {
        Now::same(at(text))
    }

    /// When a unit may go, asked and counted at one instant of an unstepped clock.
    fn next(budget: &Budget, windows: &Windows, text: &str) -> String {
        budget.earliest(windows, now(text), at(text), 1).unwrap().to_rfc3339()
    }

    #[test]
    fn a_day_used_up_opens_after_the_next_reset() {
        let (budget, mut windows) = (budget(2), Windows::default());
        for text in ["2026-03-07T12:00:00Z", "2026-03-07T13:00:00Z"] {
            assert_eq!(next(&budget, &windows, text), text);
            budget.charge(&mut windows, now(text), at(text), 1);
        }
        assert_eq!(next(&budget, &windows, "2026-03-07T13:00:01Z"), "2026-03-08T08:00:02Z");
        let text = "2026-03-08T08:00:02Z";
        budget.charge(&mut windows, now(text), at(text), 2);
        // The day has 23 hours: the clock was set forward in it.
        assert_eq!(next(&budget, &windows, text), "2026-03-09T07:00:02Z");
    }

    #[test]
    fn nothing_goes_near_a_reset() {
        let (mut budget, windows) = (budget(2), Windows::default());
        let next_of = |budget: &Budget, text| next(budget, &windows, text);
        assert_eq!(next_of(&budget, "2026-06-01T06:59:57.999Z"), "2026-06-01T06:59:57.999Z");
        for text in ["2026-06-01T06:59:58Z", "2026-06-01T07:00:00Z", "2026-06-01T07:00:01.999Z"] {
            assert_eq!(next_of(&budget, text), "2026-06-01T07:00:02Z");
        }
        budget.settle_after_reset = Duration::from_secs(120);
        assert_eq!(next_of(&budget, "2026-06-01T07:00:02Z"), "2026-06-01T07:02:00Z");
    }

    #[test]
    fn a_reserve_is_kept_back() {
        let (budget, windows) = (Budget { reserve: 5, ..budget(8) }, Windows::default());
        let noon = now("2026-06-01T12:00:00Z");
        assert_eq!(budget.earliest(&windows, noon, noon.store, 4), None);
        assert_eq!(budget.left(&windows, noon, noon.store), 3);
    }

    #[test]
    fn a_spread_budget_lasts_to_the_reset() {
        let (budget, mut windows) = (Budget { spread: true, ..budget(4) }, Windows::default());
        let mut text = "2026-06-01T07:00:02Z".to_owned();
        for expected in ["2026-06-01T13:00:01Z", "2026-06-01T19:00:00Z", "2026-06-02T00:59:59Z"] {
            budget.charge(&mut windows, now(&text), at(&text), 1);
            text = next(&budget, &windows, &text);
            assert_eq!(text, expected);
        }
        budget.charge(&mut windows, now(&text), at(&text), 1);
        assert_eq!(next(&budget, &windows, &text), "2026-06-02T07:00:02Z");
    }

    #[test]
    fn a_spread_budget_gives_a_call_of_two_units_twice_the_room() {
        let (budget, mut windows) = (Budget { spread: true, ..budget(8) }, Windows::default());
        let text = "2026-06-01T07:00:02Z";
        budget.charge(&mut windows, now(text), at(text), 2);
        let next = budget.earliest(&windows, now(text), at(text), 2);
        assert_eq!(next, Some(at("2026-06-01T13:00:01Z")), "a quarter of the day");
    }

    #[test]
    fn the_last_of_many_goes_when_it_would_one_by_one() {
        let start = at("2026-06-01T07:00:02Z");
        for (spread, cost) in [(true, 1), (true, 2), (false, 2)] {
            let (budget, mut windows) = (Budget { spread, ..budget(40) }, Windows::default());
            budget.charge(&mut windows, Now::same(start), start, 3);
            let first = budget.earliest(&windows, Now::same(start), start, cost).unwrap();
            let at_once = budget.last_slot(&windows, Now::same(first), first, 12 * cost, cost);
            let mut slot = first;
            for _ in 1..12 {
                budget.charge(&mut windows, Now::same(slot), slot, cost);
                slot = budget.earliest(&windows, Now::same(slot), slot, cost).unwrap();
            }
            let apart = slot.since(at_once).max(at_once.since(slot));
            assert!(apart < Duration::from_millis(1), "{slot:?} {at_once:?}");
        }
    }

    #[test]
    fn what_takes_no_units_leaves_no_trace() {
        let (budget, mut windows) = (budget(2), Windows::default());
        let noon = now("2026-06-01T12:00:00Z");
        assert_eq!(budget.charge(&mut windows, noon, noon.store, 0).len(), 1);
        assert_eq!(windows, Windows::default());
    }

    #[test]
    fn a_stepped_clock_must_find_room_in_both_windows() {
        let (budget, mut windows) = (budget(1), Windows::default());
        let real = at("2026-06-01T12:00:00Z");
        budget.charge(&mut windows, Now::same(real), real, 1);
        let day = Duration::from_secs(86_400);
        let stepped = Now { store: real, wall: real + day };
        assert_eq!(budget.left(&windows, stepped, real), 0, "the day was spent in store time");
        // Store time's tomorrow is free in both.
        let next = budget.earliest(&windows, stepped, real, 1).unwrap();
        assert_eq!(next, at("2026-06-02T07:00:02Z"));
        assert_eq!(budget.charge(&mut windows, stepped, next, 1).len(), 2);
        // Set right again, the window that was charged as tomorrow's has its count.
        let tomorrow = Now::same(real + day);
        assert_eq!(budget.left(&windows, tomorrow, tomorrow.store), 0);
    }
}
