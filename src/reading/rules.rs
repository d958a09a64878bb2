//! `[[reading]]`: rules of a quota file, as data.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;

use super::Reason;
use crate::quota::Sureness;

/// One rule: where all of `when` agrees, the rest is the reading.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What the answer must look like.
    pub when: When,
    /// The reason.
    pub reason: Reason,
    /// Our own delay where the answer has no hint.
    pub wait: Option<Duration>,
    /// A penalty that the upstream documents; counts as the upstream's hint.
    pub hint: Option<Duration>,
    /// Takes a hint from a sentence: groups `h`, `m`, `s`, `ms` are parts of a duration.
    pub wait_pattern: Option<Regex>,
    /// Takes a hint from a header of declared unit.
    pub reset: Option<ResetHeader>,
    /// After this the reason becomes `then`.
    pub for_at_most: Option<Duration>,
    /// What it becomes.
    pub then: Option<Reason>,
    /// Where it differs from the reason's own.
    pub retryable: Option<bool>,
    /// The limit that it concerns, by name.
    pub limit: Option<String>,
    /// For people.
    pub says: Option<String>,
    /// How sure the rule is.
    pub sure: Sureness,
}

/// What an answer must look like: all parts that are given.
#[derive(Clone, Debug, Default)]
pub struct When {
    /// One of these statuses; empty: any.
    pub status: Vec<StatusPattern>,
    /// JSON pointer into the body, and what stands there.
    pub json: BTreeMap<String, ValuePattern>,
    /// Header name, and its value.
    pub header: BTreeMap<String, ValuePattern>,
    /// Found somewhere in the body.
    pub body: Option<Regex>,
}

/// `403`, or `"5xx"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPattern {
    /// That status.
    Exact(u16),
    /// All of that hundred: `5` for 500 to 599.
    Class(u16),
}

/// What a value must be.
#[derive(Clone, Debug)]
pub enum ValuePattern {
    /// Equal to this text; a JSON number or boolean is compared by its text.
    Equals(String),
    /// Matched by this pattern somewhere.
    Matches(Regex),
    /// There, or not there.
    Present(bool),
}

/// `reset = { header = ..., remaining = ..., unit = ... }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetHeader {
    /// The header that holds the instant or delay.
    pub header: String,
    /// The header that must be 0 or absent for it to count.
    pub remaining: Option<String>,
    /// What the number means; `None`: judged by its size.
    pub unit: Option<ResetUnit>,
}

/// The unit of a reset header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetUnit {
    /// `epoch-s`: seconds since 1970.
    EpochSeconds,
    /// `epoch-ms`: milliseconds since 1970.
    EpochMillis,
    /// `delta-s`: seconds from now.
    DeltaSeconds,
    /// `duration`: text such as `6m0s`.
    Duration,
    /// `rfc3339`: an instant.
    Rfc3339,
}
