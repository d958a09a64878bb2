//! Fixed phrases: the last resort among the readers of a body. They give a reason, never an instant,
//! and only under a status that is an error.

use std::time::Duration;

use super::words;
use crate::reading::Reason;
use crate::reading::verdict::Verdict;
use crate::reading::view::{View, contains};
use crate::reading::window::Window;

/// Phrases in lower case, and what they mean; the first that is found counts.
const PHRASES: &[(&str, Reason)] = &[
    ("temporarily blocked from", Reason::Blocked),
    ("blocked from accessing", Reason::Blocked),
    ("your ip has been", Reason::Blocked),
    ("set a user-agent", Reason::Misconfigured),
    ("incorrect api key", Reason::Misconfigured),
    ("invalid api key", Reason::Misconfigured),
    ("invalid x-api-key", Reason::Misconfigured),
    ("api key not valid", Reason::Misconfigured),
    ("secondary rate limit", Reason::RateLimited),
    ("abuse detection", Reason::RateLimited),
    ("rate limit exceeded", Reason::RateLimited),
    ("out of call volume quota", Reason::QuotaExhausted),
];

/// GitHub's secondary limits have no header; its documentation asks for at least a minute.
const GITHUB_WAIT: Duration = Duration::from_secs(60);
const GITHUB: [&str; 2] = ["secondary rate limit", "abuse detection"];

/// Money: waiting brings none.
const MONEY: [&str; 3] =
    ["check your plan and billing", "credit balance is too low", "insufficient credits"];

/// Reads the server's words.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    let said = words::said(view).filter(|_| view.status() >= 400)?;
    let source = |phrase: &str| format!("body \"{phrase}\"");
    if let Some(phrase) = MONEY.into_iter().find(|phrase| contains(said, phrase)) {
        return Some(Verdict::new(Reason::QuotaExhausted, source(phrase)).never());
    }
    if let Some((phrase, reason)) = PHRASES.iter().find(|(phrase, _)| contains(said, phrase)) {
        let wait = GITHUB.contains(phrase).then_some(GITHUB_WAIT);
        return Some(Verdict { wait, ..Verdict::new(*reason, source(phrase)) });
    }
    per_call(view, said).or_else(|| spent(said))
}

/// The size of one call: "URL quota is 500 at a time", "No more than 10000 urls allowed". Where the
/// sentence names a window it is about a rate.
fn per_call(view: &View<'_>, said: &str) -> Option<Verdict> {
    const SIZES: [&str; 4] = ["at a time", "no more than", "too many urls", "too many items"];
    let sized = matches!(view.status(), 400 | 413 | 422) && Window::in_sentence(said).is_none();
    let phrase = SIZES.into_iter().find(|phrase| sized && contains(said, phrase))?;
    Some(Verdict::new(Reason::TooLarge, format!("body \"{phrase}\"")))
}

/// "You have exceeded your daily quota", under any error.
fn spent(said: &str) -> Option<Verdict> {
    let any = |parts: &[&str]| parts.iter().any(|part| contains(said, part));
    let window = Window::in_sentence(said).filter(|window| window.is_quota())?;
    let spent = any(&["exceed", "reached", "exhausted", "used up", "out of"])
        && any(&["limit", "quota", "cap", "allowance"]);
    spent.then(|| Verdict::limited(Some(window), "words of the body"))
}
