//! PURE: why a request got no permit, as an answer: which limit, until when, in whose zone, what to do.

use std::time::Duration;

use chrono::SecondsFormat;
use chrono_tz::Tz;
use hyper::header::HeaderName;

use super::asked;
use super::problem::Problem;
use super::quota_fields;
use crate::client::{Error, NotNow};
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::Upstream;
use crate::report::why::way_out;
use crate::report::words::span;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Where no instant can be named: what is in flight may end at any time, a store may be back.
const SOON: Duration = Duration::from_secs(1);
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// What a caller is told. `now` is wall time.
pub(super) fn problem(
    error: &Error,
    upstream: &Upstream,
    partition: &Columns,
    now: Timestamp,
) -> Problem {
    let problem = match error {
        Error::NotNow(wait) | Error::Expired(wait) => not_now(wait, upstream, partition, now),
        Error::Held { reason, detail, until, .. } => {
            let way_out = way_out(&upstream.name, partition, reason, detail);
            let told =
                format!("{} is held until a person acts: {detail}; {way_out}", upstream.name);
            Problem::new(503, reason, told).until(*until, now)
        }
        Error::NeverFits { limit, detail } => {
            Problem::new(422, "never_fits", detail.clone()).with("limit", limit.clone())
        }
        Error::Cancelled { detail } => Problem::new(409, "cancelled", detail.clone()),
        Error::Plan(error) => asked::problem(upstream, error),
        Error::Secret(detail) => Problem::new(503, "missing_secret", detail.clone()),
        Error::NoToken { detail, until } => {
            Problem::new(503, "no_token", detail.clone()).until(*until, now)
        }
        Error::Closed => leaving(),
        Error::Store(_) | Error::Silent => {
            let detail = format!("Paceline cannot decide now, and so sent nothing: {error}");
            Problem { retry_after: Some(STORE_PAUSE), ..Problem::new(503, "store", detail) }
        }
        other => Problem::new(500, "fault", other.to_string()),
    };
    problem.of(&upstream.name)
}

/// The gateway is about to end.
pub(super) fn leaving() -> Problem {
    let detail = "the gateway is ending; nothing was sent";
    Problem { retry_after: Some(SOON), ..Problem::new(503, "leaving", detail) }
}

fn not_now(wait: &NotNow, upstream: &Upstream, partition: &Columns, now: Timestamp) -> Problem {
    let zone = wait.zone.unwrap_or(Tz::UTC);
    let left = wait.until.map_or(Duration::ZERO, |until| until.since(now));
    let mut told = match &wait.limit {
        Some(limit) => format!("{}: the limit `{limit}` grants no call now", upstream.name),
        None => format!("{} grants no call now", upstream.name),
    };
    if !wait.detail.is_empty() {
        told.push_str(&format!(" ({})", wait.detail));
    }
    if let Some(until) = wait.until {
        let face = until.to_utc().with_timezone(&zone).format("%Y-%m-%d %H:%M:%S %Z");
        told.push_str(&format!("; come back at {face} ({zone}), in {}", span(left)));
    }
    told.push_str(". Nothing was sent");
    let mut problem = Problem::new(429, &wait.reason, told).until(wait.until, now);
    problem.retry_after = problem.retry_after.or(Some(SOON));
    if let Some(until) = wait.until {
        let there = until.to_utc().with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, true);
        problem = problem.with("until_there", there).with("time_zone", zone.name());
    }
    if let Some(limit) = &wait.limit {
        problem =
            problem.with("limit", limit.as_str()).with("violated-policies", vec![limit.as_str()]);
        problem.fields.extend(
            quota_fields::nothing_left(limit, wait.until.map(|_| left)).map(|field| (LIMIT, field)),
        );
    }
    problem.fields.extend(quota_fields::policy(upstream, partition).map(|field| (POLICY, field)));
    problem
}
