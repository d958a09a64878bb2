//! The `X-RateLimit-*` families: a remaining and a reset, paired by what is left of their names.
//!
//! There is no standard; the spellings differ by hyphens, place and unit. `x-ratelimit-reset`,
//! `x-rate-limit-reset`, `ratelimit-reset`, `anthropic-ratelimit-requests-reset`,
//! `x-ratelimit-reset-tokens` and `x-app-limit-24hour-reset` are all met. Some upstreams spell one bucket
//! in two ways; where both say what is left and disagree, they are two.

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
    /// How much the limit is at most.
    Amount,
    Remaining,
    /// A delay or an instant, judged by its size.
    Reset,
    /// A delay or an instant in milliseconds.
    ResetMillis,
    /// Zendesk: `total=50; remaining=0; resets=41`.
    Parts,
}

/// One bucket for each name that a limit, a remaining or a reset has.
pub(crate) fn buckets<'v>(view: &'v View<'_>) -> Vec<Bucket<'v>> {
    let mut found: BTreeMap<String, BTreeMap<String, Bucket<'v>>> = BTreeMap::new();
    for (field, value) in view.fields() {
        if let Some((name, spelling, holds)) = parse_name(field, value) {
            let spelled = found.entry(name.clone()).or_default();
            let bucket = spelled.entry(spelling).or_insert_with(|| Bucket {
                window: Window::in_name(&name),
                field: field.to_ascii_lowercase(),
                name,
                ..Bucket::default()
            });
            note(bucket, holds, field, value, view);
        }
    }
    let mut all: Vec<Bucket<'v>> = found.into_values().flat_map(joined).collect();
    for bucket in all.iter_mut().filter(|bucket| bucket.name == "ratelimit") {
        bucket.window = bucket.window.or_else(|| super::fields::only_window(view));
    }
    all
}

/// The spellings of one name as one bucket, unless they disagree about whether anything is left.
fn joined(spelled: BTreeMap<String, Bucket<'_>>) -> Vec<Bucket<'_>> {
    let says = |left| spelled.values().any(|bucket| bucket.is_empty == Some(left));
    if says(true) && says(false) {
        return spelled.into_values().collect();
    }
    let mut all = spelled.into_values();
    let Some(mut first) = all.next() else { return Vec::new() };
    for other in all {
        let has_reset = !first.resets.is_empty();
        first.is_empty = first.is_empty.or(other.is_empty);
        first.is_zero |= other.is_zero;
        first.field = if has_reset { first.field } else { other.field };
        first.resets.extend(other.resets);
    }
    vec![first]
}

/// The bucket's name, how that is spelled, and what the field holds; `None` where it is of no family.
/// `Beta-` fields are informational (Jira).
fn parse_name(field: &str, value: &str) -> Option<(String, String, Holds)> {
    let lower = field.to_ascii_lowercase();
    let field = lower.replace("rate-limit", "ratelimit");
    let words: Vec<&str> = field.split(['-', '_']).collect();
    let has = |word| words.contains(&word);
    if !(has("ratelimit") || has("limit") || has("quota")) || has("beta") {
        return None;
    }
    let holds = if has("remaining") {
        Holds::Remaining
    } else if has("reset") && (has("ms") || has("millis") || has("milliseconds")) {
        Holds::ResetMillis
    } else if has("reset") || (has("retry") && has("after")) {
        Holds::Reset
    } else if value.contains("remaining=") && value.contains("resets=") {
        Holds::Parts
    } else if has("ratelimit") && has("limit") {
        Holds::Amount
    } else {
        return None;
    };
    const NOT_NAMES: [&str; 16] = [
        "x",
        "limit",
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
    let kept: Vec<&str> = words.iter().copied().filter(|w| !NOT_NAMES.contains(w)).collect();
    let x = if words.first() == Some(&"x") { "x-" } else { "" };
    let hyphen = if field == lower { "" } else { "rate-limit" };
    Some((kept.join("-"), format!("{x}{hyphen}"), holds))
}

fn note<'v>(bucket: &mut Bucket<'v>, holds: Holds, field: &str, value: &'v str, view: &View<'_>) {
    let read = |text: &str| match holds {
        Holds::ResetMillis => Number::parse(text).map(|millis| match millis.judged() {
            Moment::After(_) => millis.millis(),
            Moment::At(_) => millis.epoch_millis(),
        }),
        _ => retry_after::whole(text, view.received_at()),
    };
    match holds {
        Holds::Amount => return bucket.is_zero |= is_zero(value),
        Holds::Remaining => {
            return value.split(',').for_each(|left| note_remaining(bucket, left.trim()));
        }
        Holds::Parts => return note_parts(bucket, field, value, view),
        Holds::Reset | Holds::ResetMillis => bucket.field = field.to_ascii_lowercase(),
    }
    for (said, moment) in retry_after::listed(value, read) {
        bucket.resets.push(Told::new(bucket.field.clone(), said, moment, view));
    }
}

/// Whether the limit is 0; drafts 00 to 06 list windows behind it.
fn is_zero(value: &str) -> bool {
    let amount = value.split([',', ';']).next().map(str::trim).and_then(Number::parse);
    amount.is_some_and(Number::is_zero) && !value.starts_with('-')
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
