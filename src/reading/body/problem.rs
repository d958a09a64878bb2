//! `application/problem+json` (RFC 9457), and the problem types of the RateLimit draft.

use serde_json::Value;

use crate::reading::verdict::Verdict;
use crate::reading::view::{View, contains};
use crate::reading::window::Window;
use crate::reading::{Reason, fields};

/// Reads a problem by the end of its type: `...#quota-exceeded`, `.../usage-capped`.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    let declared = view.header("content-type").is_some_and(|kind| contains(kind, "problem+json"));
    if view.is_success() && !declared {
        return None;
    }
    let uri = view.text_at("/type").filter(|uri| uri.contains(':'))?;
    let name = uri.trim_end_matches('/').rsplit(['/', '#', ':']).next()?;
    let source = format!("body type {name}");
    Some(match name {
        "quota-exceeded" => Verdict::limited(window(view), source),
        "temporary-reduced-capacity" => Verdict::new(Reason::Overloaded, source),
        "abnormal-usage-detected" => Verdict::new(Reason::Blocked, source),
        // The two of X, https://docs.x.com/x-api/fundamentals/response-codes-and-errors
        "usage-capped" => {
            let period = view.text_at("/period").and_then(Window::in_name);
            Verdict { window: period, ..Verdict::new(Reason::QuotaExhausted, source) }
        }
        "client-forbidden" => Verdict::new(Reason::Forbidden, source),
        _ => return super::codes::lookup(name, view.status(), &source),
    })
}

/// The longest window of the policies that were violated.
fn window(view: &View<'_>) -> Option<Window> {
    let names = view.at("/violated-policies").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    fields::longest_window(view, names)
}
