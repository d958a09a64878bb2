//! Who reads the reason of an answer: all readers in one table, in the order in which they are asked.

use super::rules::Rule;
use super::verdict::Verdict;
use super::view::View;
use super::{Reason, body, limits, marks, named, remaining, retry_after, status};
use crate::quota::Upstream;

/// One reader.
pub(crate) struct Reader {
    /// For people.
    pub(crate) name: &'static str,
    /// Where it looks.
    pub(crate) looks_at: &'static str,
    ask: Ask,
}

enum Ask {
    /// Of what the answer says.
    Answer(fn(&View<'_>) -> Option<Verdict>),
    /// The upstream's own rules, one by one.
    Rules,
}

impl Reader {
    const fn new(
        name: &'static str,
        looks_at: &'static str,
        ask: fn(&View<'_>) -> Option<Verdict>,
    ) -> Reader {
        Reader { name, looks_at, ask: Ask::Answer(ask) }
    }
}

/// All readers; the first that knows the answer decides. The last knows every answer.
pub(crate) const READERS: [Reader; 15] = [
    Reader::new(
        "challenge mark",
        "cf-mitigated, x-amzn-waf-action, x-vercel-mitigated",
        marks::challenge,
    ),
    Reader { name: "rule", looks_at: "its `when`", ask: Ask::Rules },
    Reader::new("block page", "the maker's header and the page's words", marks::block_page),
    Reader::new(
        "named reason",
        "stripe-rate-limited-reason, ratelimit-reason, x-shopify-shop-api-call-limit",
        named::read,
    ),
    Reader::new("problem+json", "/type", body::problem::read),
    Reader::new("Google error", "/error/details, /error/errors, /error/status", body::google::read),
    Reader::new(
        "AWS code",
        "/__type, x-amzn-errortype, /code, <Code>, /message, /errors/0/code",
        body::aws::read,
    ),
    Reader::new(
        "MediaWiki error",
        "mediawiki-api-error, /error/code of a success that is an error alone",
        body::mediawiki::read,
    ),
    Reader::new("GraphQL errors", "/errors under a success", body::graphql::read),
    Reader::new("typed code", "/error/code, /code, /error and their like", body::codes::read),
    Reader::new("whole message", "messages of an error, under any status", body::not_now::read),
    Reader::new("fixed phrase", "the server's words, under an error", body::phrases::read),
    Reader::new(
        "denial",
        "/ok, /success, /error of a success that is an error alone",
        body::denial::read,
    ),
    Reader::new("limit headers", "RateLimit and X-RateLimit-*: what is left", limits::read),
    Reader::new("status table", "the status", |view| Some(status::read(view))),
];

/// One question: to a reader, or to one rule.
#[derive(Clone, Copy)]
pub(crate) struct Question<'u> {
    /// Who is asked.
    pub(crate) reader: &'static Reader,
    /// The rule and its number, from 1.
    pub(crate) rule: Option<(usize, &'u Rule)>,
}

/// All questions, in their order.
pub(crate) fn questions(upstream: Option<&Upstream>) -> impl Iterator<Item = Question<'_>> {
    let all = upstream.map(|upstream| upstream.readings.as_slice()).unwrap_or_default();
    READERS.iter().flat_map(move |reader| {
        let (one, rules) = match reader.ask {
            Ask::Answer(_) => (Some(Question { reader, rule: None }), [].as_slice()),
            Ask::Rules => (None, all),
        };
        let rule = move |rule| Question { reader, rule: Some(rule) };
        one.into_iter().chain((1..).zip(rules).map(rule))
    })
}

impl<'u> Question<'u> {
    /// What it says of the answer.
    pub(crate) fn ask(self, view: &View<'_>) -> Option<Verdict> {
        match (&self.reader.ask, self.rule) {
            (Ask::Answer(read), _) => read(view),
            (Ask::Rules, Some((number, rule))) => rule.fits(view).then(|| rule.verdict(number)),
            (Ask::Rules, None) => None,
        }
    }
}

/// The first verdict, and the rule that gave it.
pub(crate) fn decide<'u>(
    upstream: Option<&'u Upstream>,
    view: &View<'_>,
) -> (Verdict, Option<&'u Rule>) {
    let said =
        |question: Question<'u>| Some((question.ask(view)?, question.rule.map(|(_, rule)| rule)));
    questions(upstream).find_map(said).unwrap_or_else(|| (status::read(view), None))
}

/// What makes a verdict more exact.
pub(crate) struct Refiner {
    /// For people.
    pub(crate) name: &'static str,
    /// Where it looks.
    pub(crate) looks_at: &'static str,
    /// The verdict, changed or not.
    pub(crate) refine: fn(Option<&Upstream>, &View<'_>, Verdict) -> Verdict,
}

/// All of them, in their order.
pub(crate) const REFINERS: [Refiner; 4] = [
    Refiner {
        name: "length of the window",
        looks_at: "the headers of used-up limits, the server's words",
        refine: |_, view, verdict| limits::refine(view, verdict),
    },
    Refiner {
        name: "what is reported",
        looks_at: "where the quota file says that answers tell what is left",
        refine: remaining::refine,
    },
    Refiner {
        name: "limit of zero",
        looks_at: "the value of the limit that refused, in the body and in header fields",
        refine: |_, view, verdict| never_granted(view, verdict),
    },
    Refiner {
        name: "passing state",
        looks_at: "whether a size or a block names a wait",
        refine: |_, view, verdict| passing(view, verdict),
    },
];

/// A limit whose value is 0 was never granted, whatever a rule makes of the rest; waiting grants none.
fn never_granted(view: &View<'_>, verdict: Verdict) -> Verdict {
    let is_limit = matches!(verdict.reason, Reason::RateLimited | Reason::QuotaExhausted);
    if !is_limit || !(body::google::is_limit_zero(view) || limits::is_zero(view)) {
        return verdict;
    }
    let source = format!("{}; a limit of 0", verdict.source);
    Verdict { reason: Reason::QuotaExhausted, source, ..verdict }.never()
}

/// A size or a block that names a wait is a passing state (RFC 9110 section 15.5.14).
fn passing(view: &View<'_>, verdict: Verdict) -> Verdict {
    let may_pass = match verdict.reason {
        Reason::TooLarge => view.status() == 413,
        Reason::Blocked => true,
        _ => false,
    };
    let passes = verdict.open && may_pass && retry_after::is_there(view);
    Verdict { retryable: verdict.retryable || passes, ..verdict }
}
