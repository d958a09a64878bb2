//! Google's error bodies: the older `errors[]` with `domain` and `reason`, and `google.rpc.Status`
//! with `status` and typed `details` (google/rpc/error_details.proto).
//!
//! `ErrorInfo.reason` is `RATE_LIMIT_EXCEEDED` for daily quotas too; the names of the limit tell
//! them apart.

use serde_json::Value;

use super::{text_of, words};
use crate::reading::Reason;
use crate::reading::candidate::Candidate;
use crate::reading::moment::Moment;
use crate::reading::number::{Number, parse_duration};
use crate::reading::verdict::Verdict;
use crate::reading::view::{View, contains};
use crate::reading::window::Window;

/// What a reason of Google's means.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A limit refused; its names tell the window.
    Limit,
    /// A quota refused, unless the message speaks of a rate.
    Quota,
    /// The day's quota is used up.
    Day,
    /// A quota that no time gives back.
    Allocation,
    /// Anything else.
    Plain(Reason),
}

/// Reasons of `ErrorInfo` and of `errors[]`. Sources: google/api/error_reason.proto, and the
/// "Handle errors" pages of the Drive, YouTube, Search Console and Analytics APIs.
const REASONS: &[(&str, Meaning)] = &[
    ("RATE_LIMIT_EXCEEDED", Meaning::Limit),
    ("RESOURCE_QUOTA_EXCEEDED", Meaning::Allocation),
    ("SERVICE_DISABLED", Meaning::Plain(Reason::Misconfigured)),
    ("BILLING_DISABLED", Meaning::Plain(Reason::Misconfigured)),
    ("API_KEY_INVALID", Meaning::Plain(Reason::Misconfigured)),
    ("API_KEY_SERVICE_BLOCKED", Meaning::Plain(Reason::Misconfigured)),
    ("API_KEY_HTTP_REFERRER_BLOCKED", Meaning::Plain(Reason::Misconfigured)),
    ("API_KEY_IP_ADDRESS_BLOCKED", Meaning::Plain(Reason::Misconfigured)),
    ("CONSUMER_INVALID", Meaning::Plain(Reason::Misconfigured)),
    ("CREDENTIALS_MISSING", Meaning::Plain(Reason::Misconfigured)),
    ("ACCESS_TOKEN_EXPIRED", Meaning::Plain(Reason::AuthExpired)),
    ("ACCESS_TOKEN_SCOPE_INSUFFICIENT", Meaning::Plain(Reason::Forbidden)),
    ("IAM_PERMISSION_DENIED", Meaning::Plain(Reason::Forbidden)),
    ("USER_PROJECT_DENIED", Meaning::Plain(Reason::Forbidden)),
    ("CONSUMER_SUSPENDED", Meaning::Plain(Reason::Blocked)),
    ("userRateLimitExceeded", Meaning::Limit),
    ("rateLimitExceeded", Meaning::Limit),
    ("sharingRateLimitExceeded", Meaning::Limit),
    ("concurrentLimitExceeded", Meaning::Plain(Reason::ConcurrencyLimited)),
    ("dailyLimitExceeded", Meaning::Day),
    ("quotaExceeded", Meaning::Quota),
    ("dailyLimitExceededUnreg", Meaning::Plain(Reason::Misconfigured)),
    ("userRateLimitExceededUnreg", Meaning::Plain(Reason::Misconfigured)),
    ("accessNotConfigured", Meaning::Plain(Reason::Misconfigured)),
    ("keyInvalid", Meaning::Plain(Reason::Misconfigured)),
    ("keyExpired", Meaning::Plain(Reason::Misconfigured)),
    ("ipRefererBlocked", Meaning::Plain(Reason::Misconfigured)),
    ("authError", Meaning::Plain(Reason::AuthExpired)),
    ("expired", Meaning::Plain(Reason::AuthExpired)),
    ("insufficientPermissions", Meaning::Plain(Reason::Forbidden)),
    ("storageQuotaExceeded", Meaning::Allocation),
    ("responseTooLarge", Meaning::Plain(Reason::TooLarge)),
    ("uploadTooLarge", Meaning::Plain(Reason::TooLarge)),
    ("backendError", Meaning::Plain(Reason::Transient)),
];

/// Statuses of `google.rpc.Code` that say more than their HTTP status.
const STATUSES: &[(&str, Meaning)] =
    &[("RESOURCE_EXHAUSTED", Meaning::Limit), ("ABORTED", Meaning::Plain(Reason::Transient))];

/// Reads a Google error; its reasons first, then its status.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    view.at("/error")?.as_object()?;
    let mut details = details(view, "ErrorInfo").map(|info| info.get("reason"));
    let info = details.find_map(|reason| lookup(REASONS, reason?.as_str()?));
    let mut errors = list(view, "/error/errors").filter_map(|error| error.get("reason")?.as_str());
    let (name, meaning) = info
        .or_else(|| errors.find_map(|reason| lookup(REASONS, reason)))
        .or_else(|| lookup(STATUSES, view.text_at("/error/status")?))?;
    Some(verdict(view, meaning, format!("body {name}")))
}

fn verdict(view: &View<'_>, meaning: Meaning, source: String) -> Verdict {
    let window = window(view);
    match meaning {
        Meaning::Limit => Verdict::limited(window, source),
        Meaning::Day => Verdict::limited(Some(window.unwrap_or(Window::Day)), source),
        Meaning::Quota => {
            let rate = window == Some(Window::Short)
                || words::said(view).is_some_and(|said| contains(said, "request rate"));
            let reason = if rate { Reason::RateLimited } else { Reason::QuotaExhausted };
            Verdict { window, ..Verdict::new(reason, source) }
        }
        Meaning::Allocation => Verdict::new(Reason::QuotaExhausted, source).never(),
        Meaning::Plain(reason) => Verdict::new(reason, source),
    }
}

/// Whether the quota that refused is 0: `ErrorInfo` and `QuotaFailure` tell it, or the message ("limit: 0").
pub(crate) fn is_limit_zero(view: &View<'_>) -> bool {
    let zero = |value: &Value| Number::from_json(value).is_some_and(Number::is_zero);
    let violations = details(view, "QuotaFailure")
        .filter_map(|detail| detail.get("violations")?.as_array())
        .flatten()
        .filter_map(|violation| violation.get("quotaValue"));
    let granted =
        details(view, "ErrorInfo").filter_map(|info| info.pointer("/metadata/quota_limit_value"));
    violations.chain(granted).any(zero) || view.text_at("/error/message").is_some_and(says_zero)
}

/// "Quota exceeded for metric: ..., limit: 0".
fn says_zero(message: &str) -> bool {
    message.match_indices("limit: 0").any(|(at, found)| {
        let after = message.get(at + found.len()..).unwrap_or_default();
        !after.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit())
    })
}

/// The window of the limit that refused: by its unit (`1/d/{project}`), its names, or the message.
pub(crate) fn window(view: &View<'_>) -> Option<Window> {
    let metadata = |key: &str| {
        let text = |info: &Value| Some(info.pointer(key)?.as_str()?.to_owned());
        details(view, "ErrorInfo").filter_map(text).collect::<Vec<_>>()
    };
    let named = |names: Vec<String>| names.iter().filter_map(|name| Window::in_name(name)).max();
    named(metadata("/metadata/quota_unit"))
        .or_else(|| named(metadata("/metadata/quota_limit")))
        .or_else(|| named(violations(view)))
        .or_else(|| Window::in_sentence(view.text_at("/error/message")?))
}

/// What names the limits in `QuotaFailure`.
fn violations(view: &View<'_>) -> Vec<String> {
    let all =
        details(view, "QuotaFailure").filter_map(|detail| detail.get("violations")?.as_array());
    let text = |violation: &Value, key| Some(violation.get(key)?.as_str()?.to_owned());
    all.flatten()
        .filter_map(|violation| {
            let id = text(violation, "quotaId").filter(|id| Window::in_name(id).is_some());
            id.or_else(|| text(violation, "description"))
        })
        .collect()
}

/// `RetryInfo.retryDelay`: a protobuf duration (`34.5s`, or seconds and nanos apart).
pub(crate) fn hints<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    let delays = details(view, "RetryInfo").filter_map(|info| info.get("retryDelay"));
    let one = |value| Candidate::new("body retryDelay", text_of(value), delay(value), view);
    delays.map(one).collect()
}

fn delay(value: &Value) -> Option<Moment> {
    match value {
        Value::String(text) => parse_duration(text).map(Moment::After),
        Value::Object(parts) => {
            let part = |key| parts.get(key).and_then(Value::as_u64);
            let nanos =
                u32::try_from(part("nanos").unwrap_or(0)).ok().filter(|n| *n < 1_000_000_000)?;
            let seconds = part("seconds").unwrap_or(0);
            Some(Moment::After(std::time::Duration::new(seconds, nanos)))
        }
        other => Number::from_json(other).map(Number::seconds),
    }
}

/// The details of one type, whatever the prefix of `@type`.
fn details<'v>(view: &'v View<'_>, kind: &'static str) -> impl Iterator<Item = &'v Value> {
    list(view, "/error/details").filter(move |detail| {
        let name = detail.get("@type").and_then(Value::as_str);
        name.and_then(|name| name.rsplit('.').next()) == Some(kind)
    })
}

fn list<'v>(view: &'v View<'_>, pointer: &str) -> impl Iterator<Item = &'v Value> {
    view.at(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn lookup(table: &[(&'static str, Meaning)], text: &str) -> Option<(&'static str, Meaning)> {
    table.iter().find(|(name, _)| *name == text).copied()
}
