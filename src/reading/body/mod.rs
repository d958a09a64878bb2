//! Bodies that name their own reason, one dialect a file, and hints that stand in them.

pub(crate) mod aws;
pub(crate) mod codes;
pub(crate) mod google;
pub(crate) mod graphql;
pub(crate) mod phrases;
pub(crate) mod problem;
pub(crate) mod words;

use super::hint::Hint;
use super::moment::Moment;
use super::number::Number;
use super::retry_after;
use super::view::View;

/// The body's own typed hint.
pub(crate) fn hint(view: &View<'_>) -> Option<Hint> {
    google::hint(view).or_else(|| graphql::hint(view)).or_else(|| retry_field(view))
}

/// Where a delay stands: at the top, in the error, or in Telegram's `parameters`.
const PLACES: [&str; 6] =
    ["", "/error", "/error/details", "/error/metadata", "/parameters", "/errors/0"];
/// Names of a delay in seconds.
const SECONDS: [&str; 5] =
    ["retry_after", "retryAfter", "retry_after_seconds", "retryAfterSeconds", "retry-after"];
/// Names of a delay in milliseconds.
const MILLISECONDS: [&str; 3] = ["retry_after_ms", "retryAfterMs", "retry-after-ms"];

/// A field named `retry_after`, in any of its spellings; the finer unit first.
fn retry_field(view: &View<'_>) -> Option<Hint> {
    let find = |names: &[&str], millis: bool| {
        PLACES.iter().flat_map(|place| names.iter().map(move |name| (place, *name))).find_map(
            |(place, name)| {
                let value = view.at(&format!("{place}/{name}"))?;
                let moment = moment(value, millis, view)?;
                Some(Hint::new(moment.resolve(view)?, format!("body {name}")))
            },
        )
    };
    find(&MILLISECONDS, true).or_else(|| find(&SECONDS, false)).or_else(|| reddit(view))
}

/// Reddit's `json.ratelimit`: seconds, beside the error of that name.
fn reddit(view: &View<'_>) -> Option<Hint> {
    let number = Number::from_json(view.at("/json/ratelimit")?)?;
    Some(Hint::new(number.judged().resolve(view)?, "body ratelimit"))
}

fn moment(value: &serde_json::Value, millis: bool, view: &View<'_>) -> Option<Moment> {
    if let Some(number) = Number::from_json(value) {
        return Some(if millis { number.millis() } else { number.judged() });
    }
    retry_after::whole(value.as_str()?.trim(), view.received_at())
}
