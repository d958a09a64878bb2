//! When to come back: the sources of a hint, in their order.

use super::calendar::next_reset;
use super::rules::Rule;
use super::verdict::Verdict;
use super::view::View;
use super::window::Window;
use super::{Reason, body, github, limits, retry_after};
use crate::clock::Timestamp;
use crate::quota::Upstream;

/// A usable hint: after the receipt, not yet clamped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The earliest instant to come back, by our wall clock.
    pub(crate) at: Timestamp,
    /// Where it comes from.
    pub(crate) source: String,
    /// The limit whose reset it is.
    pub(crate) limit: Option<String>,
}

impl Hint {
    /// A hint of an answer.
    pub(crate) fn new(at: Timestamp, source: impl Into<String>) -> Self {
        Hint { at, source: source.into(), limit: None }
    }
}

/// What the hint is looked for in.
pub(crate) struct Asked<'v, 'a> {
    /// The answer.
    pub(crate) view: &'v View<'a>,
    /// Whose answer it is.
    pub(crate) upstream: Option<&'v Upstream>,
    /// The rule that read it.
    pub(crate) rule: Option<&'v Rule>,
    /// What was read.
    pub(crate) verdict: &'v Verdict,
}

/// The first usable hint.
pub(crate) fn find(asked: &Asked<'_, '_>) -> Option<Hint> {
    fields(asked)
        .or_else(|| from_body(asked))
        .or_else(|| resets(asked))
        .or_else(|| penalty(asked))
        .or_else(|| calendar(asked))
}

/// The retry fields. GitHub states `Retry-After` and the reset of an empty window as two
/// conditions, so there the later of both counts.
fn fields(asked: &Asked<'_, '_>) -> Option<Hint> {
    let hint =
        retry_after::milliseconds(asked.view).or_else(|| retry_after::seconds(asked.view))?;
    if !github::is_github(asked.view, asked.upstream) {
        return Some(hint);
    }
    Some(resets(asked).filter(|reset| reset.at > hint.at).unwrap_or(hint))
}

/// The body's own hint, or a sentence whose pattern the rule declares. The short delay of a refusal
/// by the day (RetryInfo of 58 s) is none: the calendar decides.
fn from_body(asked: &Asked<'_, '_>) -> Option<Hint> {
    let sentence = asked.rule.and_then(|rule| rule.sentence_hint(asked.view)?.resolve(asked.view));
    if let Some(at) = sentence {
        return Some(Hint::new(at, "sentence in body"));
    }
    let hint = body::hint(asked.view)?;
    let hour = asked.view.received_at() + std::time::Duration::from_secs(3_600);
    (!is_by_the_day(asked) || hint.at >= hour).then_some(hint)
}

fn is_by_the_day(asked: &Asked<'_, '_>) -> bool {
    let declared = asked.rule.and_then(|rule| rule.limit.as_deref());
    let declared = declared.and_then(|name| asked.upstream?.limit(name)?.rule.calendar());
    let window = declared
        .map(super::calendar::window)
        .or(asked.verdict.window)
        .or_else(|| body::google::window(asked.view));
    asked.verdict.reason == Reason::QuotaExhausted && window.is_some_and(|w| w >= Window::Day)
}

/// The reset of used-up windows: as the rule declares it, else as the fields are known. Where no
/// limit refused (a 500), a window must say itself that it is used up.
fn resets(asked: &Asked<'_, '_>) -> Option<Hint> {
    if asked.verdict.reason == Reason::AcceptedPending {
        return None;
    }
    let declared = asked.rule.and_then(|rule| rule.reset.as_ref());
    let hint = declared.and_then(|reset| {
        Some(Hint::new(reset.read(asked.view)?, reset.header.to_ascii_lowercase()))
    });
    let limit = matches!(
        asked.verdict.reason,
        Reason::RateLimited | Reason::QuotaExhausted | Reason::ConcurrencyLimited
    );
    let known =
        limits::Resets { except: declared.map(|reset| reset.header.as_str()), of_unknown: limit };
    hint.or_else(|| limits::reset(asked.view, known))
}

/// A penalty that the upstream documents.
fn penalty(asked: &Asked<'_, '_>) -> Option<Hint> {
    let penalty = asked.rule?.hint.filter(|penalty| !penalty.is_zero())?;
    let moment = super::moment::Moment::After(penalty);
    Some(Hint::new(moment.resolve(asked.view)?, "documented penalty"))
}

/// The next reset of the budget that is used up.
fn calendar(asked: &Asked<'_, '_>) -> Option<Hint> {
    if asked.verdict.reason != Reason::QuotaExhausted {
        return None;
    }
    let limit = asked.rule.and_then(|rule| rule.limit.as_deref());
    let window = asked.verdict.window.or_else(|| body::google::window(asked.view));
    let (name, at) = next_reset(asked.upstream?, limit, window, asked.view.received_at())?;
    let source = format!("reset of {name}");
    Some(Hint { limit: Some(name), ..Hint::new(at, source) })
}
