//! A form to a token server, over a client of its own: no redirect is followed, nothing sent twice.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};

use super::answer::{self, Blame};
use super::{Ask, Failure, Fetched, TIMEOUT};
use crate::address;
use crate::dispatch::prepare::{ANSWER_CAP, Prepared};
use crate::dispatch::transport::{HttpTransport, Transport as _};
use crate::template::Template;

/// `application/x-www-form-urlencoded` leaves these as they are.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');

/// Encoded for a form (RFC 6749 appendix B).
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string().replace("%20", "+")
}

/// Asks a token server. `basic` is what an `Authorization: Basic` header holds.
pub(super) async fn ask(
    ask: &Ask<'_>,
    url: &str,
    form: &[(&str, String)],
    basic: Option<String>,
    blame: impl FnOnce(String) -> Blame,
) -> Result<Fetched, Failure> {
    let told = |error| Failure::Lasting(format!("`token_url` cannot be asked: {error}"));
    let url = address::for_secrets(url).map_err(told)?;
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let pairs: Vec<_> =
        form.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    let headers = headers(ask, basic)?;
    let body = Some(pairs.join("&").into_bytes());
    let call =
        Prepared { method: Method::POST, url, headers, body, answer_cap: ANSWER_CAP, spool: None };
    let unmade = |_| Failure::Lasting("the HTTP client cannot be made".to_owned());
    let transport = HttpTransport::new(0, None, TIMEOUT).map_err(unmade)?;
    match transport.send(call, TIMEOUT, ask.timeline).await {
        Ok(mut received) => {
            let blame = blame(host);
            let read = answer::of_server(&received, &blame);
            // What is shown of a refusal is cut: half of a secret would not be found in it any more.
            read.or_else(|_| {
                let redactor = ask.secrets.redactor();
                received.body = redactor.redact_bytes(&received.body).into_owned();
                answer::of_server(&received, &blame)
            })
        }
        Err(silence) => {
            let detail = format!("the token server at {host} did not answer ({})", silence.detail);
            Err(Failure::Passing { detail, retry_at: None })
        }
    }
}

fn headers(ask: &Ask<'_>, basic: Option<String>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(CONTENT_TYPE, form);
    let unfit = |_| Failure::Lasting("a value of [auth] fits into no header".to_owned());
    if let Some(basic) = basic {
        let mut value = HeaderValue::from_str(&format!("Basic {basic}")).map_err(unfit)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(agent) = user_agent(ask)? {
        headers.insert(USER_AGENT, HeaderValue::from_str(&agent).map_err(unfit)?);
    }
    Ok(headers)
}

/// The upstream's own, where it is no job's: some refuse a caller that does not say who it is.
fn user_agent(ask: &Ask<'_>) -> Result<Option<String>, Failure> {
    let mut own = ask.upstream.request.headers.iter();
    let Some((_, text)) = own.find(|(name, _)| name.eq_ignore_ascii_case("user-agent")) else {
        return Ok(None);
    };
    match Template::parse(text).is_ok_and(|template| template.columns().is_empty()) {
        true => Ok(Some(ask.fill(text)?)),
        false => Ok(None),
    }
}
