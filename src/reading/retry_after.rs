//! `Retry-After` and its relatives in milliseconds.

use super::dates;
use super::hint::Hint;
use super::moment::Moment;
use super::number::{Number, parse_duration};
use super::view::View;
use crate::clock::Timestamp;

/// Fields in milliseconds: Azure and the OpenAI clients, Cosmos DB, AWS.
const MILLISECONDS: [&str; 3] = ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"];

/// The hint of the fields in milliseconds; of several the latest.
pub(crate) fn milliseconds(view: &View<'_>) -> Option<Hint> {
    let hints = MILLISECONDS.into_iter().flat_map(|name| {
        let values = view.values(name).flat_map(|line| line.split(',')).map(str::trim);
        values.filter_map(move |value| Some((name, millis(value)?.resolve(view)?)))
    });
    let (name, at) = hints.max_by_key(|(_, at)| *at)?;
    Some(Hint::new(at, name))
}

/// The hint of `Retry-After` (RFC 9110 section 10.2.3); of several values the latest.
pub(crate) fn seconds(view: &View<'_>) -> Option<Hint> {
    let at = view.values("retry-after").filter_map(|line| line_at(line, view)).max()?;
    Some(Hint::new(at, "retry-after"))
}

/// One line: tried whole first, for dates hold a comma; then as a list that a proxy joined.
fn line_at(line: &str, view: &View<'_>) -> Option<Timestamp> {
    if let Some(moment) = whole(line, view.received_at()) {
        return moment.resolve(view);
    }
    let parts: Option<Vec<Moment>> = line.split(',').map(|part| delay(part.trim())).collect();
    parts?.into_iter().filter_map(|moment| moment.resolve(view)).max()
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
