//! What one reader found: a reason, and what it knows beside.

use std::time::Duration;

use super::Reason;
use super::window::Window;

/// The reason of an answer, before hints are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Why.
    pub(crate) reason: Reason,
    /// Whether waiting alone helps; by the reason unless something says other.
    pub(crate) retryable: bool,
    /// Where the reason comes from.
    pub(crate) source: String,
    /// The window of the limit that refused, where it is named.
    pub(crate) window: Option<Window>,
    /// Our own delay where there is no hint.
    pub(crate) wait: Option<Duration>,
    /// Whether header fields may still tell a rate from a quota, and a hint make it waitable.
    pub(crate) open: bool,
    /// Where a redirect leads, as it stands in the answer.
    pub(crate) location: Option<String>,
}

impl Verdict {
    /// `reason` with all that follows from it.
    pub(crate) fn new(reason: Reason, source: impl Into<String>) -> Self {
        Verdict {
            reason,
            retryable: reason.is_retryable(),
            source: source.into(),
            window: None,
            wait: None,
            open: true,
            location: None,
        }
    }

    /// A refusal by a limit: a window of an hour or longer makes it a quota.
    pub(crate) fn limited(window: Option<Window>, source: impl Into<String>) -> Self {
        let quota = window.is_some_and(Window::is_quota);
        let reason = if quota { Reason::QuotaExhausted } else { Reason::RateLimited };
        Verdict { window, ..Verdict::new(reason, source) }
    }

    /// Whether an instant to come back, or to look again, means anything.
    pub(crate) fn may_wait(&self) -> bool {
        self.retryable || self.reason == Reason::AcceptedPending
    }

    /// The same, but waiting alone does not help: money, a limit of 0.
    pub(crate) fn never(self) -> Self {
        Verdict { retryable: false, open: false, ..self }
    }
}
