//! PURE: what was said?
//!
//! An answer goes in, a [`Reading`] comes out: a typed reason, whether waiting alone can help, and
//! the earliest instant at which the upstream lets us come back.

pub mod reason;
pub mod rules;

use std::time::Duration;

use crate::clock::Timestamp;
pub use reason::Reason;

/// One HTTP answer with the request it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The request's method, in capitals.
    pub method: &'a str,
    /// The address that was called.
    pub url: &'a str,
    /// When the answer's head came in (wall time).
    pub received_at: Timestamp,
    /// The HTTP status.
    pub status: u16,
    /// Header fields in the order received; names in any case.
    pub headers: &'a [(String, String)],
    /// The body, perhaps cut at the cap.
    pub body: &'a [u8],
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Why it was answered so.
    pub reason: Reason,
    /// Whether the same call can succeed by waiting alone.
    pub retryable: bool,
    /// The upstream's own hint: the earliest instant (wall time) to come back, no jitter added.
    pub retry_at: Option<Timestamp>,
    /// Whether the hint was further than 31 days off and was clamped there.
    pub clamped: bool,
    /// Where reason and hint come from, for people: `retry-after`, `status 429`, `rule 2`.
    pub source: String,
    /// The limit that it concerns, by name, where a rule or the calendar says.
    pub limit: Option<String>,
    /// One sentence for people: the server's own words where it used any.
    pub detail: String,
    /// Our own delay where there is no hint: a rule's `wait`.
    pub wait: Option<Duration>,
    /// How long this reason may stand before it becomes another: a rule's `for_at_most` and `then`.
    pub becomes: Option<(Duration, Reason)>,
}
