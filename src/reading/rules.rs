//! `[[reading]]`: rules of a quota file, as data.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::{Captures, Regex};

use super::Reason;
use super::candidate::{Candidate, PassedOver};
use super::moment::Moment;
use super::number::{Number, parse_duration};
use super::verdict::Verdict;
use super::view::View;
use super::{dates, retry_after};
use crate::quota::Sureness;
use crate::quota::calendar::Calendar;

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
    /// The same, where it ends as a calendar's window does.
    pub hint_until: Option<Calendar>,
    /// Takes a hint from a sentence in the body. The named groups `h`, `m`, `s`, `ms` are parts of a
    /// duration; or `at` is an instant (RFC 3339 or an HTTP date), or `date` a day (`2026-12-01`)
    /// and `time` a time of it (`00:00`, the default), both in UTC.
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
    /// Where it is written; `None` where no file says it.
    pub place: Option<Place>,
}

/// Where in a quota file something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
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

impl Rule {
    /// Whether all of `when` agrees.
    pub(crate) fn fits(&self, view: &View<'_>) -> bool {
        self.when.parts().all(|part| part.fits(view))
    }

    /// What it says; hints are looked for elsewhere. `number` counts the rules from 1.
    pub(crate) fn verdict(&self, number: usize) -> Verdict {
        Verdict {
            retryable: self.retryable.unwrap_or(self.reason.is_retryable()),
            wait: self.wait,
            open: false,
            ..Verdict::new(self.reason, format!("rule {number}"))
        }
    }

    /// The sentence that `wait_pattern` finds, and the hint in it.
    pub(crate) fn sentence<'v>(&self, view: &'v View<'_>) -> Option<(&'v str, Option<Moment>)> {
        let found = self.wait_pattern.as_ref()?.captures(view.text())?;
        Some((found.get(0)?.as_str(), hint_in(&found, view)))
    }
}

/// What the named groups say.
fn hint_in(found: &Captures<'_>, view: &View<'_>) -> Option<Moment> {
    if let Some(at) = found.name("at") {
        return retry_after::whole(at.as_str(), view.received_at());
    }
    if let Some(date) = found.name("date") {
        let time = found.name("time").map_or("00:00", |time| time.as_str());
        return dates::rfc3339(&format!("{}T{time}Z", date.as_str())).map(Moment::At);
    }
    let part = |unit: &str| Some(format!("{}{unit}", found.name(unit)?.as_str()));
    let text: String = ["h", "m", "s", "ms"].into_iter().filter_map(part).collect();
    parse_duration(&text).map(Moment::After)
}

impl StatusPattern {
    /// Whether it is that status, or of that hundred.
    pub const fn fits(self, status: u16) -> bool {
        match self {
            StatusPattern::Exact(exact) => status == exact,
            StatusPattern::Class(class) => status / 100 == class,
        }
    }
}

impl ValuePattern {
    /// Whether one of `values` is as it must be; without any, only `present = false` fits.
    pub(super) fn fits<'v>(&self, mut values: impl Iterator<Item = &'v str>) -> bool {
        match self {
            ValuePattern::Equals(text) => values.any(|value| value == text),
            ValuePattern::Matches(pattern) => values.any(|value| pattern.is_match(value)),
            ValuePattern::Present(present) => values.next().is_some() == *present,
        }
    }
}

impl ResetHeader {
    /// What the header says, usable where the window that it belongs to is used up.
    pub(crate) fn candidates<'v>(&self, view: &'v View<'_>) -> Vec<Candidate<'v>> {
        let remaining = self.remaining.as_deref().and_then(|name| view.header(name));
        let left = remaining.is_some_and(|left| !Number::parse(left).is_some_and(Number::is_zero));
        let header = self.header.to_ascii_lowercase();
        let one = |(value, moment)| match left {
            true => Candidate::known(header.clone(), value, Err(PassedOver::HasLeft)),
            false => Candidate::new(header.clone(), value, moment, view),
        };
        let listed = |line| retry_after::listed(line, |text| self.moment(text, view));
        view.values(&self.header).flat_map(listed).map(one).collect()
    }

    fn moment(&self, value: &str, view: &View<'_>) -> Option<Moment> {
        match self.unit {
            Some(ResetUnit::EpochSeconds) => Number::parse(value).map(Number::epoch_seconds),
            Some(ResetUnit::EpochMillis) => Number::parse(value).map(Number::epoch_millis),
            Some(ResetUnit::DeltaSeconds) => Number::parse(value).map(Number::seconds),
            Some(ResetUnit::Duration) => parse_duration(value).map(Moment::After),
            Some(ResetUnit::Rfc3339) => dates::rfc3339(value).map(Moment::At),
            None => retry_after::whole(value, view.received_at()),
        }
    }
}
