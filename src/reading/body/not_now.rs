//! Messages that say "not now" and nothing else: "Too many requests, please slow down", "Quota
//! exceeded, try again tomorrow". They give a reason under any status, never an instant.
//!
//! A message counts as a whole: each of its words is one of these. Under a success the body must be an
//! error and nothing beside, so that no data that speaks of limits is taken for a refusal.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::error::{Parts, says_fine};
use crate::reading::Reason;
use crate::reading::verdict::Verdict;
use crate::reading::view::View;
use crate::reading::window::Window;

/// All words of such messages, beside numbers.
const WORDS: &str = "a about account address after again allowed allowance an and any api app \
    application are at be because been before being by cap call calls can client concurrent could \
    couldn current currently daily day days don down due error every exceed exceeded exceeding \
    exceeds exhausted few for from get has have hit hour hourly hours http if in ip is it key later \
    limit limited limiting limits made make making many max maximum minute minutes moment month \
    monthly more much next not now number of on or out over parallel per please process project \
    quota quotas rate ratelimit ratelimited reached request requests reset resets resource retry \
    retrying s second seconds sending sent server service simultaneous site slow some soon sorry \
    submission submissions submit submitting t temporarily that the then this throttled throttling \
    to today token tomorrow too try up url urls usage use used user ve wait was we week weekly will \
    with you your";

/// The same, to be looked up: every answer asks.
static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split(' ').collect());

/// No such message is longer.
const LONGEST: usize = 400;

/// Reads a body whose message says "not now".
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    // A bill, and the size of what was sent, are other limits.
    if !(view.is_success() || view.status() >= 400) || matches!(view.status(), 402 | 413) {
        return None;
    }
    let parts = Parts::of(view);
    if view.is_success() && (parts.has_more || says_fine(view)) {
        return None;
    }
    let strong = parts.messages.iter().find_map(|text| refusal(text));
    // A success with a title may be data: then nothing else may be told but the same, and addresses.
    let alone = || {
        let mut others = parts.messages.iter().chain(&parts.weak).chain(&parts.beside);
        !view.is_success() || others.all(|text| refusal(text).is_some() || text.contains(':'))
    };
    strong.or_else(|| parts.weak.iter().find_map(|text| refusal(text)).filter(|_| alone()))
}

/// What a message says as a whole.
fn refusal(text: &str) -> Option<Verdict> {
    if text.len() > LONGEST {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let is_known =
        |word: &&str| KNOWN.contains(word) || word.bytes().all(|byte| byte.is_ascii_digit());
    if !words.iter().all(is_known) {
        return None;
    }
    let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
    let follow = |phrase: &[&str]| words.windows(phrase.len()).any(|part| part == phrase);
    let many = follow(&["too", "many"]) || follow(&["slow", "down"]);
    let window = Window::in_sentence(text);
    let over =
        has(&["exceed", "exceeded", "exceeding", "exceeds", "reached", "exhausted", "hit", "over"])
            || follow(&["used", "up"])
            || follow(&["out", "of"]);
    let calls = has(&["rate", "requests", "calls", "api", "usage", "submission", "submissions"])
        || follow(&["request", "limit"]);
    let spent = over
        && (has(&["quota", "quotas", "allowance"])
            || has(&["limit", "limits", "cap"]) && (calls || window.is_some())
            || has(&["ratelimit"]));
    let throttled = has(&["throttled", "throttling", "ratelimited"])
        || follow(&["rate", "limited"])
        || follow(&["rate", "limiting"]);
    if !(throttled
        || spent
        || many && has(&["requests", "request", "calls", "submissions", "rate"]))
    {
        return None;
    }
    if has(&["concurrent", "parallel", "simultaneous"]) {
        return Some(Verdict::new(Reason::ConcurrencyLimited, "whole message"));
    }
    Some(Verdict::limited(window, "whole message"))
}

#[cfg(test)]
mod tests {
    use super::refusal;
    use crate::reading::Reason;

    #[test]
    fn whole_messages() {
        let is =
            |text: &str, reason| assert_eq!(refusal(text).map(|one| one.reason), reason, "{text}");
        for text in [
            "Too many requests",
            "ERROR!!! Too Many Requests.",
            "Too many requests, please try again in 20 seconds",
            "429 Too Many Requests",
            "API rate limit exceeded",
            "Rate limit reached. Slow down!",
            "You are being rate limited.",
            "Request was throttled.",
            "Quota exceeded",
        ] {
            is(text, Some(Reason::RateLimited));
        }
        for text in [
            "Quota exceeded, try again tomorrow",
            "Sorry, we couldn't process this request because you've exceeded your daily quota. \
             Please try submitting this again tomorrow.",
            "Your daily quota is used up",
            "Hourly request limit reached",
        ] {
            is(text, Some(Reason::QuotaExhausted));
        }
        is("Too many concurrent requests", Some(Reason::ConcurrencyLimited));
        for text in [
            "",
            "try again later",
            "limit exceeded",
            "How we handle too many requests",
            "Too many requests: a novel",
            "no quota exceeded for example.com",
            "too many urls",
            "the request is over the limit",
        ] {
            is(text, None);
        }
    }
}
