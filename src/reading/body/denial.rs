//! Successes that say they are none: not done, for whatever reason.

use super::codes::is_denied;
use super::{error, graphql};
use crate::reading::Reason;
use crate::reading::verdict::Verdict;
use crate::reading::view::View;

/// Reads a success with `ok: false` or `success: false` beside an error, or that is errors and nothing
/// else. Slack's codes tell a missing thing and a wrong argument by their form; beyond that nothing is
/// guessed.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    if !view.is_success() || !(is_denied(view) || error::is_only_error(view)) {
        return graphql::unknown(view);
    }
    let reason = match view.text_at("/error") {
        Some(code) if code.ends_with("_not_found") => Reason::NotFound,
        Some(code) if code.starts_with("invalid_arg") => Reason::InvalidRequest,
        _ => Reason::Unknown,
    };
    Some(Verdict::new(reason, "body says not ok"))
}
