//! Marks of those who stand before the upstream: challenge pages and blocks of CDNs and firewalls.

use super::Reason;
use super::body::words;
use super::verdict::Verdict;
use super::view::{View, contains};

/// Fields that mark a challenge, and their values; a program cannot pass one. Sources:
/// developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response,
/// docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge.html.
const CHALLENGES: &[(&str, &[&str])] = &[
    ("cf-mitigated", &["challenge"]),
    ("x-amzn-waf-action", &["challenge", "captcha"]),
    ("x-vercel-mitigated", &["challenge", "deny"]),
];

/// A challenge beats everything, a success and the upstream's own rules included.
pub(crate) fn challenge(view: &View<'_>) -> Option<Verdict> {
    let marked = |name: &str| view.values(name).any(|value| is_challenge(name, value));
    let (name, _) = CHALLENGES.iter().find(|(name, _)| marked(name))?;
    Some(Verdict::new(Reason::Blocked, *name).never())
}

/// Whether that value of that field marks a challenge.
pub(crate) fn is_challenge(name: &str, value: &str) -> bool {
    CHALLENGES.iter().any(|(known, marks)| {
        known.eq_ignore_ascii_case(name)
            && marks.iter().any(|mark| value.eq_ignore_ascii_case(mark))
    })
}

/// A block page: the field that names its maker, the maker's mark there, and words of the page; each
/// page has one of the words.
const PAGES: &[(&str, &str, &[&str])] = &[
    ("server", "cloudfront", &["request blocked"]),
    ("x-cache", "error from cloudfront", &["request blocked"]),
    ("server", "cloudflare", &["error code: 10", "error 10", "just a moment..."]),
    ("server", "akamaighost", &["access denied"]),
    ("server", "sucuri", &["access denied"]),
    ("x-iinfo", "", &["incapsula incident"]),
    ("x-datadome", "", &["captcha", "datadome"]),
];

/// Headings of block pages whose maker does not say its name.
const HEADINGS: [&str; 4] =
    ["access blocked", "blocked", "request blocked", "you have been blocked"];

/// A page of the edge instead of an answer of the API.
pub(crate) fn block_page(view: &View<'_>) -> Option<Verdict> {
    if !matches!(view.status(), 403 | 405 | 406 | 429) || view.json().is_some() {
        return None;
    }
    let page = PAGES.iter().find(|(field, mark, words)| {
        view.values(field).any(|value| mark.is_empty() || contains(value, mark))
            && words.iter().any(|word| contains(view.text(), word))
    });
    if let Some((field, mark, _)) = page {
        return Some(Verdict::new(Reason::Blocked, format!("page of {field} {mark}")));
    }
    let heading = |name| words::element(view, name).unwrap_or_default();
    let headed = HEADINGS.iter().any(|words| {
        ["title", "h1"].into_iter().any(|name| heading(name).eq_ignore_ascii_case(words))
    });
    (view.status() == 403 && view.is_html() && headed)
        .then(|| Verdict::new(Reason::Blocked, "heading of the page"))
}
