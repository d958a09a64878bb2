//! The status table: what an answer means that says nothing else.

use super::Reason;
use super::retry_after;
use super::verdict::Verdict;
use super::view::View;
use crate::redirect;

/// The last reader: every status means something, if only `unknown`.
pub(crate) fn read(view: &View<'_>) -> Verdict {
    let source = format!("status {}", view.status());
    let verdict = Verdict::new(reason(view.status()), source);
    match view.status() {
        // Payment Required: no time passes that pays the bill.
        402 => verdict.never(),
        401 => unauthorized(view, verdict),
        // RFC 6750 section 3.1 asks for 401, and some answer 403.
        403 if challenges(view).any(|challenge| challenge.contains("invalid_token")) => {
            Verdict::new(Reason::AuthExpired, "status 403; www-authenticate")
        }
        403 | 409 => waitable(view, verdict),
        status if redirect::is_redirect(status) => {
            Verdict { location: view.header("location").map(str::to_owned), ..verdict }
        }
        _ => verdict,
    }
}

/// What each status means. Sources: RFC 9110 section 15, RFC 6585, RFC 4918 (423, 424, 507),
/// RFC 8470 (425), RFC 7725 (451); of the unregistered ones: 420 Twitter's old 429, 430 Shopify's
/// "Security Rejection", 440 and 498 expired sessions and tokens, 499 nginx's closed request, 509
/// hosters' bandwidth quota, 520 to 527 and 530 Cloudflare, 529 overload (Anthropic, Qualys), 598
/// and 599 proxies' timeouts.
pub(crate) const fn reason(status: u16) -> Reason {
    match status {
        202 => Reason::AcceptedPending,
        // 304: the thing is as the caller's own condition says it may be; that is an answer.
        200..=299 | 304 => Reason::Ok,
        // A redirect that is followed is not read. What is left is an address of ours that must change.
        300..=399 | 407 | 421 | 426 | 511 => Reason::Misconfigured,
        400 | 405 | 406 | 411 | 415..=417 | 428 | 501 | 505 => Reason::InvalidRequest,
        401 | 440 | 498 => Reason::AuthExpired,
        402 | 509 => Reason::QuotaExhausted,
        403 | 451 => Reason::Forbidden,
        404 => Reason::NotFound,
        410 => Reason::Gone,
        413 | 414 | 431 => Reason::TooLarge,
        409 | 412 | 422 | 424 => Reason::Unprocessable,
        420 | 429 => Reason::RateLimited,
        423 => Reason::ConcurrencyLimited,
        430 => Reason::Blocked,
        503 | 507 | 529 => Reason::Overloaded,
        408 | 425 | 499 => Reason::Transient,
        // A 5xx that nobody knows is a 500 (RFC 9110 section 15).
        500..=599 => Reason::Transient,
        _ => Reason::Unknown,
    }
}

/// RFC 6750 section 3.1: a token may be right and its scope too narrow. Basic and Digest carry a
/// fixed secret, which no refresh mends.
fn unauthorized(view: &View<'_>, verdict: Verdict) -> Verdict {
    let challenges: Vec<String> = challenges(view).collect();
    let source = "status 401; www-authenticate";
    if challenges.iter().any(|challenge| challenge.contains("insufficient_scope")) {
        return Verdict::new(Reason::Forbidden, source);
    }
    let fixed =
        |challenge: &String| challenge.starts_with("basic") || challenge.starts_with("digest");
    if !challenges.is_empty() && challenges.iter().all(fixed) {
        return Verdict::new(Reason::Misconfigured, source);
    }
    verdict
}

fn challenges(view: &View<'_>) -> impl Iterator<Item = String> {
    view.values("www-authenticate").map(str::to_ascii_lowercase)
}

/// A refusal that names a wait is waitable, whatever its status means otherwise.
fn waitable(view: &View<'_>, verdict: Verdict) -> Verdict {
    if !retry_after::is_there(view) {
        return verdict;
    }
    let reason = if view.status() == 409 { Reason::Transient } else { Reason::RateLimited };
    Verdict::new(reason, verdict.source)
}
