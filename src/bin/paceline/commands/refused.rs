//! What is told where a permit, or an answer, is not to be had.

use chrono_tz::Tz;
use paceline::client::{Error, NotNow};
use paceline::clock::Timestamp;
use paceline::report::instant;
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;

/// Tells why not, in a line on stderr or as JSON on stdout; `Err`: it is no refusal, but a fault.
pub fn tell(error: Error, upstream: &str, context: &Context) -> anyhow::Result<Exit> {
    let (exit, line) = match &error {
        Error::NotNow(not_now) => (Exit::Waiting, not_now_line(not_now, context)),
        Error::NoToken { until: until @ Some(_), detail } => (
            Exit::Waiting,
            format!("{upstream} has no token: {detail}{}", until_of(*until, None, context)),
        ),
        Error::Expired(NotNow { limit: None, until: None, .. }) => {
            (Exit::Failed, format!("{upstream}: its deadline has passed"))
        }
        Error::Expired(not_now) => {
            // What its job says of it is the same in other words.
            let mut bare = not_now.clone();
            bare.detail.clear();
            (Exit::Failed, format!("{}, past its deadline", not_now_line(&bare, context)))
        }
        Error::NeverFits { detail, .. } => (Exit::Failed, format!("{upstream}: {detail}")),
        Error::Cancelled { detail } => {
            (Exit::Failed, format!("{upstream}: it was withdrawn: {detail}"))
        }
        Error::Over { detail } => {
            (Exit::Failed, format!("{upstream}: its answer came too late to count: {detail}"))
        }
        Error::Held { reason, detail, until, .. } => {
            let until = until_of(*until, Some(Tz::UTC), context);
            let line = format!("{upstream} is held ({reason}): {detail}{until}");
            (Exit::Held, format!("{line}; `paceline why {upstream}` tells more"))
        }
        Error::Secret(detail) | Error::NoToken { detail, .. } => {
            (Exit::Held, format!("{upstream}: {detail}"))
        }
        Error::Request(detail) => (Exit::Failed, format!("{upstream}: {detail}")),
        _ => return Err(error.into()),
    };
    if context.global.json {
        context.out.json(&json_of(&error, upstream, exit))?;
    } else if exit == Exit::Waiting {
        context.note(&line);
    } else {
        context.complain(&line);
    }
    Ok(exit)
}

/// `shop: the limit `daily` binds until 2026-12-02 00:00:00 JST (Asia/Tokyo) = …: 1 of 1 are spent …`
fn not_now_line(not_now: &NotNow, context: &Context) -> String {
    let NotNow { upstream, limit, until, zone, reason, detail, .. } = not_now;
    let what = match limit {
        Some(limit) => format!("{upstream}: the limit `{limit}` binds"),
        None if reason == "deadline" => format!("{upstream}: nothing can go"),
        None => format!("{upstream}: it must wait ({reason})"),
    };
    let when = match until {
        Some(until) => format!("until {}", context.times().both(*until, *zone)),
        None => "until something in flight ends".to_owned(),
    };
    let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    format!("{what} {when}{detail}")
}

fn until_of(until: Option<Timestamp>, zone: Option<Tz>, context: &Context) -> String {
    until.map(|until| format!("; until {}", context.times().both(until, zone))).unwrap_or_default()
}

fn json_of(error: &Error, upstream: &str, exit: Exit) -> Value {
    let not_now = match error {
        Error::NotNow(not_now) | Error::Expired(not_now) => Some(not_now),
        _ => None,
    };
    let limit = match error {
        Error::NeverFits { limit, .. } => limit.clone(),
        _ => not_now.and_then(|not_now| not_now.limit.clone()),
    };
    let reason = match error {
        Error::Held { reason, .. } => reason.clone(),
        Error::Secret(_) => "missing_secret".to_owned(),
        Error::NoToken { .. } => "no_token".to_owned(),
        Error::NeverFits { .. } => "never_fits".to_owned(),
        Error::Cancelled { .. } => "cancelled".to_owned(),
        Error::Over { .. } => "late".to_owned(),
        Error::Request(_) => "invalid_request".to_owned(),
        _ => not_now.map(|not_now| not_now.reason.clone()).unwrap_or_default(),
    };
    let state = match error {
        Error::Expired(_) => "expired",
        Error::NeverFits { .. } | Error::Request(_) | Error::Secret(_) => "failed",
        _ => "cancelled",
    };
    json!({
        "upstream": upstream, "state": state, "limit": limit, "until": instant(error.until()),
        "zone": not_now.and_then(|not_now| not_now.zone).map(|zone| zone.name()),
        "reason": reason, "detail": error.to_string(), "exit": exit.code(),
    })
}
