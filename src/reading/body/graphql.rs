//! GraphQL: refusals come with status 200, in `errors[]`. Shopify's cost extension tells the wait:
//! <https://shopify.dev/docs/api/usage/limits>

use std::time::Duration;

use serde_json::Value;

use super::codes;
use crate::reading::Reason;
use crate::reading::candidate::{Candidate, PassedOver};
use crate::reading::moment::Moment;
use crate::reading::verdict::Verdict;
use crate::reading::view::View;

/// Codes of servers built on graphql-js and Apollo.
const CODES: &[(&str, Reason)] = &[
    ("UNAUTHENTICATED", Reason::AuthExpired),
    ("FORBIDDEN", Reason::Forbidden),
    ("ACCESS_DENIED", Reason::Forbidden),
    ("MAX_COST_EXCEEDED", Reason::TooLarge),
    ("MAX_COMPLEXITY_EXCEEDED", Reason::TooLarge),
    ("INTERNAL_SERVER_ERROR", Reason::Transient),
    ("SHOP_INACTIVE", Reason::Forbidden),
    ("BAD_USER_INPUT", Reason::InvalidRequest),
    ("GRAPHQL_PARSE_FAILED", Reason::InvalidRequest),
    ("GRAPHQL_VALIDATION_FAILED", Reason::InvalidRequest),
    ("NOT_FOUND", Reason::NotFound),
];

/// Reads the errors of a GraphQL answer under a success.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    let errors = view.at("/errors").and_then(Value::as_array).filter(|list| !list.is_empty())?;
    if !view.is_success() {
        return None;
    }
    let code = |error: &Value| {
        let code = error.pointer("/extensions/code").or_else(|| error.get("type"))?;
        Some(code.as_str()?.to_owned())
    };
    let verdicts = errors.iter().filter_map(|error| verdict(view, &code(error)?));
    { verdicts }.next()
}

fn verdict(view: &View<'_>, code: &str) -> Option<Verdict> {
    let source = format!("body {code}");
    if code == "THROTTLED" && cost(view).is_some_and(|cost| cost.requested > cost.maximum) {
        return Some(Verdict::new(Reason::TooLarge, source).never());
    }
    let known = CODES.iter().find(|(name, _)| *name == code);
    known
        .map(|(_, reason)| Verdict::new(*reason, source.clone()))
        .or_else(|| codes::lookup(code, view.status(), &source))
}

/// Reads errors that nobody knows, and no data beside them: not done. With data it is a partial answer.
pub(crate) fn unknown(view: &View<'_>) -> Option<Verdict> {
    let errors = view.at("/errors").and_then(Value::as_array).filter(|_| view.is_success())?;
    let graphql = errors.iter().any(|error| error.get("message").is_some());
    let whole = view.json()?.as_object()?.keys();
    let only = { whole }.all(|key| matches!(key.as_str(), "errors" | "data" | "extensions"));
    (graphql && only && view.at("/data").is_none())
        .then(|| Verdict::new(Reason::Unknown, "body errors"))
}

/// When the bucket will hold what the query costs.
pub(crate) fn hints<'v>(view: &'v View<'_>) -> Vec<Candidate<'v>> {
    let Some(cost) = cost(view) else { return Vec::new() };
    let value = format!("{} of {} at {} a second", cost.requested, cost.available, cost.per_second);
    if cost.requested > cost.maximum {
        return vec![Candidate::known("body cost", value, Err(PassedOver::NeverFits))];
    }
    let missing = (cost.requested - cost.available).max(0.0);
    let delay = Duration::try_from_secs_f64(missing / cost.per_second).ok();
    vec![Candidate::new("body cost", value, delay.map(Moment::After), view)]
}

struct Cost {
    requested: f64,
    available: f64,
    maximum: f64,
    per_second: f64,
}

fn cost(view: &View<'_>) -> Option<Cost> {
    let number = |place: &str| view.at(&format!("/extensions/cost/{place}"))?.as_f64();
    Some(Cost {
        requested: number("requestedQueryCost")?,
        available: number("throttleStatus/currentlyAvailable")?,
        maximum: number("throttleStatus/maximumAvailable")?,
        per_second: number("throttleStatus/restoreRate").filter(|rate| *rate > 0.0)?,
    })
}
