//! A rolling limit: units in any span of a fixed length.

use std::time::Duration;

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

/// What was sent: (instant of the slot in store time, units), in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries(pub Vec<(crate::clock::Timestamp, u64)>);
