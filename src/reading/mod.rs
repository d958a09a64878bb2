//! PURE: what was said?
//!
//! An answer goes in, a [`Reading`] comes out: a typed reason, whether waiting alone can help, and
//! the earliest instant at which the upstream lets us come back.
//!
//! | file | noun |
//! | --- | --- |
//! | [`reason`] | why an answer is what it is |
//! | [`rules`] | `[[reading]]` of a quota file |
//! | [`items`] | what an answer says of each item of a batch |
//! | [`remaining`] | what is left, and of which limit |
//! | `view` | the answer as readers see it |
//! | `readers` | the table of those who read the reason, in their order |
//! | `explain` | how a reading came about: a walk over the same tables |
//! | `unreachable` | rules that can never match |
//! | `parts` | the conditions of a rule |
//! | `advice` | what a person must do |
//! | `verdict` | what one reader found |
//! | `marks` | challenge and block pages of CDNs |
//! | `named` | header fields that name the reason |
//! | `body` | dialects of bodies, one a file |
//! | `limits` | buckets in header fields; `families` (`X-RateLimit-*`) and `fields` (`RateLimit`) find them |
//! | `status` | the status table |
//! | `hint` | the table of the sources of a hint, in their order; `candidate`: what stands in one |
//! | `retry_after`, `dates`, `number`, `moment`, `window` | how times are written |
//! | `calendar` | the next reset of a budget |

mod advice;
mod body;
mod calendar;
mod candidate;
mod dates;
mod explain;
mod families;
mod fields;
mod github;
mod hint;
pub mod items;
mod limits;
mod marks;
mod moment;
mod named;
mod number;
mod parts;
mod readers;
pub mod reason;
pub mod remaining;
mod retry_after;
pub mod rules;
mod status;
#[cfg(test)]
mod tests;
mod unreachable;
mod verdict;
mod view;
mod window;

use std::time::Duration;

use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::Upstream;
pub(crate) use advice::placeholders;
pub(crate) use body::words::shown;
pub(crate) use dates::parse as date;
pub use explain::{Explanation, Said, Step, Topic, explain};
use hint::{Asked, Hint};
pub(crate) use moment::FURTHEST;
use readers::REFINERS;
pub use reason::Reason;
use rules::Rule;
pub use unreachable::{Never, Unreachable, unreachable};
use verdict::Verdict;
use view::View;

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
    /// Where the answer sends the call on, as it wrote it: of a redirect that nothing else explains.
    /// Whoever does not follow it goes by the reason.
    pub location: Option<String>,
}

impl Reading {
    /// A reason that no hint comes with.
    pub fn plain(reason: Reason, source: &str, detail: String) -> Reading {
        Reading {
            reason,
            retryable: reason.is_retryable(),
            retry_at: None,
            clamped: false,
            source: source.to_owned(),
            limit: None,
            detail,
            wait: None,
            becomes: None,
            location: None,
        }
    }
}

/// Reads an answer of `upstream`: the mark of a challenge, the upstream's rules, a body or header
/// that names its own reason, header fields, status. Pure; never fails, whatever the bytes.
///
/// ```
/// use paceline::clock::Timestamp;
/// use paceline::reading::{Answer, Reason, read};
///
/// let headers = [("Retry-After".to_owned(), "120".to_owned())];
/// let reading = read(None, &Answer {
///     method: "GET",
///     url: "https://api.example.com/v1/items",
///     received_at: Timestamp::from_secs(1_772_366_400),
///     status: 429,
///     headers: &headers,
///     body: b"",
/// });
/// assert_eq!(reading.reason, Reason::RateLimited);
/// assert_eq!(reading.retry_at, Some(Timestamp::from_secs(1_772_366_520)));
/// assert_eq!(reading.source, "status 429; retry-after");
/// ```
pub fn read(upstream: Option<&Upstream>, answer: &Answer<'_>) -> Reading {
    read_for(&Columns::new(), upstream, answer)
}

/// As [`read`], an answer to a call of the partition of these columns, which what a rule `says` may name.
pub fn read_for(partition: &Columns, upstream: Option<&Upstream>, answer: &Answer<'_>) -> Reading {
    let view = &View::new(answer);
    let (verdict, rule) = readers::decide(upstream, view);
    let verdict = refined(upstream, view, verdict);
    let asked = hint::Asked { view, upstream, rule, verdict: &verdict, partition };
    let hint = if verdict.may_wait() { hint::find(&asked) } else { None };
    conclude(&asked, hint.as_ref())
}

fn refined(upstream: Option<&Upstream>, view: &View<'_>, verdict: Verdict) -> Verdict {
    REFINERS.iter().fold(verdict, |verdict, refiner| (refiner.refine)(upstream, view, verdict))
}

fn conclude(asked: &Asked<'_, '_>, hint: Option<&Hint<'_>>) -> Reading {
    let Asked { view, rule, verdict, .. } = asked;
    let told = hint.map(|hint| moment::clamp(view.received_at(), hint.at));
    let clamped = told.is_some_and(|(_, clamped)| clamped);
    let source = match hint {
        Some(hint) => format!("{}; {}", verdict.source, hint.candidate.source),
        None => verdict.source.clone(),
    };
    let named = rule.and_then(|rule| rule.limit.clone());
    Reading {
        location: verdict.location.clone(),
        reason: verdict.reason,
        retryable: verdict.retryable,
        retry_at: told.map(|(at, _)| at),
        clamped,
        source,
        limit: named
            .or_else(|| spoken_limit(asked))
            .or_else(|| hint?.candidate.limit.clone())
            .or_else(|| reported_limit(asked))
            .or_else(|| named_by_window(asked)),
        detail: detail(asked, clamped),
        wait: verdict.wait.or_else(|| calendar::unknown(asked)).filter(|_| verdict.retryable),
        becomes: rule.and_then(|rule| Some((rule.for_at_most?, rule.then?))),
    }
}

/// The limit of which the answer says that nothing is left, where a limit refused.
fn reported_limit(asked: &Asked<'_, '_>) -> Option<String> {
    let is_limit = matches!(asked.verdict.reason, Reason::RateLimited | Reason::QuotaExhausted);
    let (limit, _) = remaining::used_up(asked.upstream.filter(|_| is_limit), asked.view)?;
    Some(limit.name.clone())
}

/// The only budget of the length that a refusal by a quota names.
fn named_by_window(asked: &Asked<'_, '_>) -> Option<String> {
    let waits = asked.verdict.reason == Reason::QuotaExhausted && asked.verdict.retryable;
    calendar::only(asked).filter(|_| waits).map(|limit| limit.name.clone())
}

/// The limit of which the server's words say how much is left, where that refused.
fn spoken_limit(asked: &Asked<'_, '_>) -> Option<String> {
    let refused = asked.upstream.filter(|_| asked.verdict.reason == Reason::QuotaExhausted)?;
    remaining::spoken(refused, asked.view).map(|(limit, _)| limit.name.clone())
}

/// How long a detail may be: a sentence for people, and as much of the server's own words.
const LONGEST: usize = 2 * body::words::LONGEST;

/// Said where a hint was clamped.
const CLAMPED: &str = " (the hint is more than 31 days off and was clamped there)";

/// What a person must do or the rule says, what the server said (a success is data, not words), and
/// whether its hint was clamped.
fn detail(asked: &Asked<'_, '_>, clamped: bool) -> String {
    let Asked { view, upstream, rule, verdict, partition, .. } = asked;
    let reason = verdict.reason;
    let words = if reason == Reason::Ok { None } else { body::words::said(view) };
    let shown = |text: &str| Some(body::words::shown(text)).filter(|shown| !shown.is_empty());
    let said = words.and_then(shown);
    // What a rule says to wait for is no help where waiting is none, as of a limit of 0.
    let holds = |rule: &&Rule| rule.verdict(0).retryable == verdict.retryable;
    let says = rule.filter(holds).and_then(|rule| advice::says(rule, view, partition));
    let status = view.status();
    let told = match (&says, said) {
        (Some(_), None) => None,
        (_, Some(said)) => Some(said),
        (None, None) if reason == Reason::Ok => Some(format!("status {status}")),
        (None, None) => Some(format!("status {status} without a word")),
    };
    let says = says.or_else(|| advice::of_reason(verdict, status, (*upstream)?, partition));
    let parts: Vec<String> = says.into_iter().chain(told).collect();
    let detail = parts.join(": ");
    let note = if clamped { CLAMPED } else { "" };
    format!("{}{note}", body::words::line(&detail, LONGEST - note.len()))
}
