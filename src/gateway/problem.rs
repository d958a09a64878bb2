//! PURE: an answer of the gateway's own: problem+json, marked as ours, never cacheable.

use std::time::Duration;

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::clock::Timestamp;

/// Which answers are the gateway's own, and why, in one word.
pub const REASON: HeaderName = HeaderName::from_static("paceline-reason");

/// What clients of HTTP know a used-up quota by.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// A problem as it is read: what everybody knows first.
#[derive(Serialize)]
struct Body<'p> {
    #[serde(rename = "type")]
    kind: &'p str,
    title: &'p str,
    status: u16,
    detail: &'p str,
    reason: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(flatten)]
    more: &'p Map<String, Value>,
}

/// Why a request was not sent, or has no answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// The status.
    pub status: u16,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence, and what to do.
    pub detail: String,
    /// When it is worth coming back.
    pub retry_after: Option<Duration>,
    /// Further members of the body.
    pub more: Map<String, Value>,
    /// Further header fields.
    pub fields: Vec<(HeaderName, String)>,
}

impl Problem {
    /// With this status, and nothing more.
    pub fn new(status: u16, reason: &str, detail: impl Into<String>) -> Problem {
        let (more, fields) = Default::default();
        let (reason, detail) = (reason.to_owned(), detail.into());
        Problem { status, reason, detail, retry_after: None, more, fields }
    }

    /// The request itself is wrong: 400.
    pub fn bad_request(reason: &str, detail: impl Into<String>) -> Problem {
        Problem::new(400, reason, detail)
    }

    /// The caller may not come in: 403.
    pub fn forbidden(reason: &str, detail: impl Into<String>) -> Problem {
        Problem::new(403, reason, detail)
    }

    /// CONNECT: what goes through a tunnel can be neither counted nor read.
    pub fn tunnel() -> Problem {
        let detail = "the gateway opens no tunnels: it could neither count nor read what goes through one. \
            For https, call http://GATEWAY/UPSTREAM/path instead: it goes on to the upstream by https";
        Problem::new(501, "tunnel", detail)
    }

    /// A change of protocol.
    pub fn upgrade(to: &str) -> Problem {
        let detail = format!(
            "the gateway does not pass on `Upgrade: {to}` (such as WebSocket): a connection is no call \
             that limits could count; connect to the upstream itself"
        );
        Problem::new(501, "upgrade", detail)
    }

    /// With a further member of the body.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// As of that upstream.
    #[must_use]
    pub fn of(self, upstream: &str) -> Problem {
        self.with("upstream", upstream)
    }

    /// Worth coming back at `until`, as seen from `now`.
    #[must_use]
    pub fn until(mut self, until: Option<Timestamp>, now: Timestamp) -> Problem {
        if let Some(until) = until {
            self.retry_after = Some(until.since(now));
            self = self.with("until", until.to_rfc3339());
        }
        self
    }

    /// `Retry-After`: whole seconds, so that nobody comes too early.
    fn seconds(&self) -> Option<u64> {
        let span = self.retry_after?;
        Some((span.as_secs() + u64::from(span.subsec_nanos() > 0)).max(1))
    }

    /// The status line's number.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Its header fields.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Ok(reason) = HeaderValue::from_str(&self.reason) {
            headers.insert(REASON, reason);
        }
        if let Some(seconds) = self.seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        for (name, value) in &self.fields {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.append(name, value);
            }
        }
        headers
    }

    /// Its body.
    pub fn body(&self) -> String {
        let is_quota = self.more.contains_key("limit");
        let kind = if is_quota { QUOTA_EXCEEDED } else { "about:blank" };
        let phrase = self.status().canonical_reason().unwrap_or("Error");
        let title = if is_quota {
            "Request cannot be satisfied as assigned quota has been exceeded"
        } else {
            phrase
        };
        let body = Body {
            kind,
            title,
            status: self.status,
            detail: &self.detail,
            reason: &self.reason,
            retry_after: self.seconds(),
            more: &self.more,
        };
        let mut text = serde_json::to_string_pretty(&body).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_come_too_early() {
        let after = |millis| {
            let retry_after = Some(Duration::from_millis(millis));
            Problem { retry_after, ..Problem::new(429, "rate", "x") }.seconds()
        };
        assert_eq!(
            [after(0), after(1), after(1_000), after(1_001)],
            [Some(1), Some(1), Some(1), Some(2)]
        );
    }

    #[test]
    fn it_is_marked_and_never_cached() {
        let now = Timestamp::from_secs(1_796_100_482);
        let until = now + Duration::from_millis(1_500);
        let problem = Problem::new(429, "budget", "all spent").of("shop").with("limit", "daily");
        let problem = problem.until(Some(until), now);
        let headers = problem.headers();
        let field = |name: &str| headers[name].to_str().unwrap();
        assert_eq!(field("paceline-reason"), "budget");
        assert_eq!(field("cache-control"), "no-store");
        assert_eq!(field("content-type"), "application/problem+json");
        assert_eq!(field("retry-after"), "2");
        let body: Value = serde_json::from_str(&problem.body()).unwrap();
        let expected = serde_json::json!({
            "type": QUOTA_EXCEEDED, "title": body["title"], "status": 429, "detail": "all spent",
            "reason": "budget", "retry_after": 2, "upstream": "shop", "limit": "daily",
            "until": until.to_rfc3339(),
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn what_names_no_limit_is_plain() {
        let body: Value = serde_json::from_str(&Problem::tunnel().body()).unwrap();
        assert_eq!(
            (&body["type"], &body["title"]),
            (&"about:blank".into(), &"Not Implemented".into())
        );
    }
}
