//! A budget: units per calendar window.

use std::collections::BTreeMap;
use std::time::Duration;

use super::calendar::Calendar;
use crate::clock::{Now, Timestamp};

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

impl Budget {
    /// The starts of the windows that a send at the store instant `at` counts in: the wall clock's,
    /// and store time's too while somebody has set the clock.
    pub fn windows_at(&self, now: Now, at: Timestamp) -> Vec<Timestamp> {
        let _ = (now, at);
        todo!()
    }
}
