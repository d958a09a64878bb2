//! PURE: what a token server, or a command, said: a token, or why there is none.

use std::time::Duration;

use serde_json::Value;

use super::{Failure, Fetched};
use crate::clock::Timestamp;
use crate::dispatch::transport::Received;
use crate::reading::{self, Answer, read, shown};

/// Clocks that differ by less are not what an assertion is refused for.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Errors that pass by themselves (RFC 6749 section 4.1.2.1, RFC 8628 section 3.5).
const PASSING: [&str; 3] = ["temporarily_unavailable", "server_error", "slow_down"];

/// Whose fault a refusal is, and what a person does about it.
#[derive(Debug)]
pub(super) struct Blame {
    /// The token server, by its host.
    pub host: String,
    /// What a token is asked for with, as in "the refresh token".
    pub grant: &'static str,
    /// What to do where that is refused.
    pub grant_fix: String,
    /// What to do where the client is.
    pub client_fix: String,
    /// Whether the grant says when it was made.
    pub is_dated: bool,
}

/// What a token server answered.
pub(super) fn of_server(received: &Received, blame: &Blame) -> Result<Fetched, Failure> {
    let body = serde_json::from_slice::<Value>(&received.body).unwrap_or_default();
    if (200..300).contains(&received.status) && error_of(&body).is_none() {
        let missing = || Failure::Lasting(without_token(&blame.host, received.status, &body));
        let value = body.get("access_token").and_then(Value::as_str).ok_or_else(missing)?;
        let others = ["refresh_token", "id_token"];
        let others = others.iter().filter_map(|name| body.get(name)?.as_str().map(str::to_owned));
        let others = others.collect();
        let unfit = |why| {
            let host = &blame.host;
            Failure::Lasting(format!(
                "the token server at {host} gave no token: {why}; check `token_url`"
            ))
        };
        return fetched(value, lasts(&body, received.received_at), others).map_err(unfit);
    }
    Err(refusal(received, &body, blame))
}

/// What a command wrote: the token, or an object that holds it; else why it is none.
pub(super) fn of_command(written: &str, now: Timestamp) -> Result<Fetched, String> {
    let text = written.trim();
    let names = ["access_token", "accessToken", "token"];
    match serde_json::from_str::<Value>(text) {
        Ok(body @ Value::Object(_)) => {
            let value = names.iter().find_map(|name| body.get(name)?.as_str());
            let missing =
                || "it wrote an object without a text `access_token` or `token`".to_owned();
            value
                .ok_or_else(missing)
                .and_then(|value| fetched(value, lasts(&body, now), Vec::new()))
        }
        Ok(Value::String(quoted)) => fetched(&quoted, None, Vec::new()),
        _ => fetched(text, None, Vec::new()),
    }
}

/// A token is letters, digits and signs (RFC 6749 appendix A.12): a header can carry it.
fn fetched(value: &str, lasts: Option<Duration>, others: Vec<String>) -> Result<Fetched, String> {
    if value.is_empty() {
        return Err("it is empty".to_owned());
    }
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("it holds a line break or another sign that no header can carry".to_owned());
    }
    Ok(Fetched { value: value.to_owned(), lasts, others })
}

/// How long the token lasts, where that is told: `expires_in` in seconds, `expires_on` in seconds since
/// 1970, or an instant. What has passed already says nothing.
fn lasts(body: &Value, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| match body.get(name)? {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    let until = |at: Timestamp| at.since(now);
    let seconds = || Duration::try_from_secs_f64(number("expires_in")?).ok();
    let epoch = || {
        let since_1970 = Duration::try_from_secs_f64(number("expires_on")?).ok()?;
        Some(until(Timestamp::EPOCH + since_1970))
    };
    let instant = || {
        let names = ["expiry", "expires_at", "expiration", "expirationTimestamp"];
        let text = names.iter().find_map(|name| body.get(name)?.as_str())?;
        Some(until(reading::date(text, now)?))
    };
    seconds().or_else(epoch).or_else(instant).filter(|lasts| !lasts.is_zero())
}

fn error_of(body: &Value) -> Option<&str> {
    body.get("error").and_then(Value::as_str)
}

/// A success without a token. Of what it holds only names are told.
fn without_token(host: &str, status: u16, body: &Value) -> String {
    let names = body.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    let has = match names {
        Some(names) if !names.is_empty() => shown(&format!("only {}", names.join(", "))),
        _ => "no fields at all".to_owned(),
    };
    format!(
        "the token server at {host} answered {status} without a text `access_token` ({has}): check `token_url`"
    )
}

fn refusal(received: &Received, body: &Value, blame: &Blame) -> Failure {
    let (status, host) = (received.status, &blame.host);
    let answer = Answer {
        method: "POST",
        url: "",
        received_at: received.received_at,
        status,
        headers: &received.headers,
        body: &received.body,
    };
    let reading = read(None, &answer);
    let error = error_of(body).unwrap_or_default();
    let description = body.get("error_description").and_then(Value::as_str);
    let said = match (error, description) {
        ("", _) if received.body.is_empty() => String::new(),
        ("", _) => shown(&reading.detail),
        (error, None) => shown(error),
        (error, Some(description)) => shown(&format!("{error}: {description}")),
    };
    let said = if said.is_empty() { status.to_string() } else { format!("{status}, {said}") };
    let is_passing = reading.retryable || status >= 500 || PASSING.contains(&error);
    if is_passing {
        let detail = format!("the token server at {host} answered {said}");
        return Failure::Passing { detail, retry_at: reading.retry_at };
    }
    Failure::Lasting(match error {
        "invalid_grant" => {
            let off = clock_is_off(received).filter(|_| blame.is_dated);
            let fix = off.unwrap_or_else(|| blame.grant_fix.clone());
            let said = said.split_once(", ").map_or(said.as_str(), |(_, said)| said);
            format!("{} was refused ({said}): {fix}", blame.grant)
        }
        "invalid_scope" => {
            format!("the token server at {host} refuses the scopes ({said}): check `scopes`")
        }
        _ if (300..400).contains(&status) => format!(
            "the token server at {host} redirects ({status}), and secrets are not sent on: write the new address as `token_url`"
        ),
        "invalid_client" | "unauthorized_client" | "" if matches!(status, 400 | 401 | 403) => {
            let fix = &blame.client_fix;
            format!("the token server at {host} refuses the client ({said}): {fix}")
        }
        _ => format!("the token server at {host} refuses ({said}): check [auth]"),
    })
}

/// By how much this machine's clock differs from the server's, where that is what is wrong.
fn clock_is_off(received: &Received) -> Option<String> {
    let is_date = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("date");
    let (_, date) = received.headers.iter().find(is_date)?;
    let theirs = reading::date(date, received.received_at)?;
    let ours = received.received_at;
    let off = ours.since(theirs).max(theirs.since(ours));
    if off <= CLOCK_TOLERANCE {
        return None;
    }
    let way = if ours > theirs { "ahead of" } else { "behind" };
    let by = match off.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    };
    Some(format!("this machine's clock is {by} {way} the token server's: set it"))
}

#[cfg(test)]
mod tests;
