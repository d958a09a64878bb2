//! Bodies that name their own reason, one dialect a file, and hints that stand in them.

pub(crate) mod aws;
pub(crate) mod codes;
pub(crate) mod denial;
pub(crate) mod error;
pub(crate) mod google;
pub(crate) mod graphql;
pub(crate) mod mediawiki;
pub(crate) mod not_now;
pub(crate) mod phrases;
pub(crate) mod problem;
pub(crate) mod words;

use std::borrow::Cow;

use serde_json::Value;

use super::candidate::Candidate;
use super::moment::Moment;
use super::number::Number;
use super::retry_after;
use super::view::View;

/// Where a delay stands: at the top, in the error, or in Telegram's `parameters`.
const PLACES: [&str; 6] =
    ["", "/error", "/error/details", "/error/metadata", "/parameters", "/errors/0"];
/// Names of a delay in seconds.
const SECONDS: [&str; 5] =
    ["retry_after", "retryAfter", "retry_after_seconds", "retryAfterSeconds", "retry-after"];
/// Names of a delay in milliseconds.
const MILLISECONDS: [&str; 3] = ["retry_after_ms", "retryAfterMs", "retry-after-ms"];

/// A field named `retry_after_ms`, in any of its spellings.
pub(crate) fn milliseconds<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    named(view, &MILLISECONDS, Number::millis)
}

/// A field named `retry_after`, in any of its spellings.
pub(crate) fn seconds<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    named(view, &SECONDS, Number::judged)
}

/// Reddit's `json.ratelimit`: seconds, beside the error of that name.
pub(crate) fn reddit<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    let value = view.at("/json/ratelimit").into_iter();
    let moment = |value| Number::from_json(value).map(Number::judged);
    value
        .map(|value| Candidate::new("body ratelimit", text_of(value), moment(value), view))
        .collect()
}

fn named<'v>(
    view: &'v View<'_>,
    names: &[&'static str],
    number: fn(Number) -> Moment,
) -> Vec<Candidate<'v>> {
    let moment = |value: &Value| match Number::from_json(value) {
        Some(known) => Some(number(known)),
        None => retry_after::whole(value.as_str()?.trim(), view.received_at()),
    };
    let objects = PLACES.iter().filter_map(|place| view.at(place)?.as_object());
    let fields = objects.flat_map(|object| names.iter().map(move |name| (name, object.get(*name))));
    let given = fields.filter_map(|(name, value)| Some((name, value.filter(|v| !v.is_null())?)));
    given
        .map(|(name, value)| {
            Candidate::new(format!("body {name}"), text_of(value), moment(value), view)
        })
        .collect()
}

/// A value as text, for people.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(_) => Cow::Borrowed("an array"),
        Value::Object(_) => Cow::Borrowed("an object"),
        plain => Cow::Owned(plain.to_string()),
    }
}
