//! The `X-RateLimit-*` families: a remaining and a reset, paired by what is left of their names.
//!
//! There is no standard; the spellings differ by hyphens, place and unit. `x-ratelimit-reset`,
//! `x-rate-limit-reset`, `ratelimit-reset`, `anthropic-ratelimit-requests-reset` and
//! `x-ratelimit-reset-tokens` are all met.

use std::collections::BTreeMap;

use super::limits::{Bucket, Told};
use super::moment::Moment;
use super::number::Number;
use super::retry_after;
use super::view::View;
use super::window::Window;

/// What a field of a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Remaining,
    /// A delay or an instant, judged by its size.
    Reset,
    /// A delay or an instant in milliseconds.
    ResetMillis,
    /// Zendesk: `total=50; remaining=0; resets=41`.
    Parts,
}

/// One bucket for each name that a remaining or a reset has.
pub(crate) fn buckets<'v>(view: &'v View<'_>) -> Vec<Bucket<'v>> {
    let mut found: BTreeMap<String, Bucket<'v>> = BTreeMap::new();
    for (field, value) in view.fields() {
        if let Some((name, holds)) = parse_name(field, value) {
            let bucket = found.entry(name.clone()).or_insert_with(|| Bucket {
                window: Window::in_name(&name),
                field: field.to_ascii_lowercase(),
                name,
                ..Bucket::default()
            });
            note(bucket, holds, field, value, view);
        }
    }
    if let Some(bucket) = found.get_mut("ratelimit") {
        bucket.window = bucket.window.or_else(|| super::fields::only_window(view));
    }
    found.into_values().collect()
}

/// The bucket's name and what the field holds; `None` where it is of no family. `Beta-` fields are
/// informational (Jira).
fn parse_name(field: &str, value: &str) -> Option<(String, Holds)> {
    let field = field.to_ascii_lowercase().replace("rate-limit", "ratelimit");
    let words: Vec<&str> = field.split(['-', '_']).collect();
    if !words.contains(&"ratelimit") || words.contains(&"beta") {
        return None;
    }
    let has = |word| words.contains(&word);
    let holds = if has("remaining") {
        Holds::Remaining
    } else if has("reset") && (has("ms") || has("millis") || has("milliseconds")) {
        Holds::ResetMillis
    } else if has("reset") || (has("retry") && has("after")) {
        Holds::Reset
    } else if value.contains("remaining=") && value.contains("resets=") {
        Holds::Parts
    } else {
        return None;
    };
    const NOT_NAMES: [&str; 15] = [
        "x",
        "remaining",
        "reset",
        "retry",
        "after",
        "in",
        "at",
        "ms",
        "millis",
        "milliseconds",
        "seconds",
        "time",
        "timestamp",
        "date",
        "epoch",
    ];
    let kept: Vec<&str> = words.into_iter().filter(|word| !NOT_NAMES.contains(word)).collect();
    Some((kept.join("-"), holds))
}

fn note<'v>(bucket: &mut Bucket<'v>, holds: Holds, field: &str, value: &'v str, view: &View<'_>) {
    let moment = match holds {
        Holds::Remaining => return note_remaining(bucket, value),
        Holds::Parts => return note_parts(bucket, field, value, view),
        Holds::Reset => retry_after::whole(value, view.received_at()),
        Holds::ResetMillis => Number::parse(value).map(|millis| match millis.judged() {
            Moment::After(_) => millis.millis(),
            Moment::At(_) => millis.epoch_millis(),
        }),
    };
    bucket.field = field.to_ascii_lowercase();
    bucket.resets.push(Told::new(bucket.field.clone(), value, moment, view));
}

/// Of several values of one bucket the emptiest: it is what refused.
fn note_remaining(bucket: &mut Bucket<'_>, value: &str) {
    let is_empty = Number::parse(value).is_some_and(Number::is_zero) && !value.starts_with('-');
    bucket.is_empty = Some(is_empty || bucket.is_empty == Some(true));
}

fn note_parts<'v>(bucket: &mut Bucket<'v>, field: &str, value: &'v str, view: &View<'_>) {
    for part in value.split([';', ',']) {
        match part.trim().split_once('=') {
            Some(("remaining", left)) => note_remaining(bucket, left),
            Some(("resets", delay)) => {
                let moment = Number::parse(delay).map(Number::seconds);
                bucket.resets.push(Told::new(field.to_ascii_lowercase(), delay, moment, view));
            }
            _ => {}
        }
    }
}
