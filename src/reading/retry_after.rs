//! `Retry-After` and its relatives in milliseconds.

use super::candidate::Candidate;
use super::dates;
use super::moment::Moment;
use super::number::{Number, parse_duration};
use super::view::View;
use crate::clock::Timestamp;

/// Fields in milliseconds: Azure and the OpenAI clients, Cosmos DB, AWS.
const MILLISECONDS: [&str; 3] = ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"];

/// What the fields in milliseconds say.
pub(crate) fn milliseconds<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    let values = MILLISECONDS.into_iter().flat_map(|name| {
        let values = view.values(name).flat_map(|line| line.split(',')).map(str::trim);
        values.map(move |value| (name, value))
    });
    values.map(|(name, value)| Candidate::new(name, value, millis(value), view)).collect()
}

/// What `Retry-After` says (RFC 9110 section 10.2.3).
pub(crate) fn seconds<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    view.values("retry-after").flat_map(|line| line_of(line, view)).collect()
}

/// Whether one of these fields names a wait.
pub(crate) fn is_there(view: &View<'_>) -> bool {
    let usable = |all: Vec<Candidate<'_>>| all.iter().any(|one| one.at.is_ok());
    usable(milliseconds(view)) || usable(seconds(view))
}

/// One line: dates hold a comma.
fn line_of<'v>(line: &'v str, view: &View<'_>) -> Vec<Candidate<'v>> {
    let read = |text: &str| whole(text, view.received_at());
    let all = listed(line, read).into_iter();
    all.map(|(value, moment)| Candidate::new("retry-after", value, moment, view)).collect()
}

/// A value, tried whole first; else, where each part is a number or a duration, the list that a proxy
/// made of several.
pub(crate) fn listed(
    line: &str,
    read: impl Fn(&str) -> Option<Moment>,
) -> Vec<(&str, Option<Moment>)> {
    let whole = read(line);
    let parts = || line.split(',').map(str::trim);
    if whole.is_some() || parts().any(|part| delay(part).is_none()) {
        return vec![(line, whole)];
    }
    parts().map(|part| (part, read(part))).collect()
}

/// A number, a duration or a date. Digits never fall through to dates: each reads the whole text.
pub(crate) fn whole(text: &str, now: Timestamp) -> Option<Moment> {
    delay(text).or_else(|| dates::parse(text, now).map(Moment::At))
}

fn delay(text: &str) -> Option<Moment> {
    let number = Number::parse(text).map(Number::judged);
    number.or_else(|| parse_duration(text).map(Moment::After))
}

fn millis(text: &str) -> Option<Moment> {
    let number = Number::parse(text).map(Number::millis);
    number.or_else(|| parse_duration(text).map(Moment::After))
}
