//! When to come back: the sources of a hint in one table, in their order.

use std::time::Duration;

use super::calendar::next_reset;
use super::candidate::{Candidate, PassedOver, latest};
use super::moment::Moment;
use super::rules::Rule;
use super::verdict::Verdict;
use super::view::View;
use super::window::Window;
use super::{Reason, body, github, limits, remaining, retry_after};
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::{Limit, Upstream};

/// What the hint is looked for in.
pub(crate) struct Asked<'v, 'a> {
    /// The answer.
    pub(crate) view: &'v View<'a>,
    /// Whose answer it is.
    pub(crate) upstream: Option<&'v Upstream>,
    /// The rule that read it.
    pub(crate) rule: Option<&'v Rule>,
    /// What was read.
    pub(crate) verdict: &'v Verdict,
    /// The columns of the partition that it concerns; none where nobody knows it.
    pub(crate) partition: &'v Columns,
}

/// One source of hints.
pub(crate) struct Source {
    /// For people.
    pub(crate) name: &'static str,
    /// Where it looks.
    pub(crate) looks_at: &'static str,
    kind: Kind,
    ask: for<'v, 'a> fn(&Asked<'v, 'a>) -> Vec<Candidate<'v>>,
}

/// What sets some sources apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// At GitHub's the reset of an empty window counts beside it.
    RetryField,
    /// Not believed where a limit of a day refused.
    Body,
    Reset,
    /// What the quota file says.
    Declared,
}

/// All sources in the order in which they are asked; the first that has a usable one decides.
pub(crate) const SOURCES: [Source; 13] = [
    Source {
        name: "fields in milliseconds",
        looks_at: "retry-after-ms, x-ms-retry-after-ms, x-amz-retry-after",
        kind: Kind::RetryField,
        ask: |asked| retry_after::milliseconds(asked.view),
    },
    Source {
        name: "Retry-After",
        looks_at: "retry-after",
        kind: Kind::RetryField,
        ask: |asked| retry_after::seconds(asked.view),
    },
    Source {
        name: "sentence of the rule",
        looks_at: "the body, by wait_pattern",
        kind: Kind::Declared,
        ask: sentence,
    },
    Source {
        name: "RetryInfo",
        looks_at: "retryDelay in /error/details",
        kind: Kind::Body,
        ask: |asked| body::google::hints(asked.view),
    },
    Source {
        name: "GraphQL cost",
        looks_at: "/extensions/cost",
        kind: Kind::Body,
        ask: |asked| body::graphql::hints(asked.view),
    },
    Source {
        name: "milliseconds in the body",
        looks_at: "retry_after_ms and its spellings",
        kind: Kind::Body,
        ask: |asked| body::milliseconds(asked.view),
    },
    Source {
        name: "seconds in the body",
        looks_at: "retry_after and its spellings",
        kind: Kind::Body,
        ask: |asked| body::seconds(asked.view),
    },
    Source {
        name: "ratelimit in the body",
        looks_at: "/json/ratelimit",
        kind: Kind::Body,
        ask: |asked| body::reddit(asked.view),
    },
    Source {
        name: "reset of the rule",
        looks_at: "the header that the rule declares",
        kind: Kind::Reset,
        ask: declared_reset,
    },
    Source {
        name: "reset of the limit",
        looks_at: "the header that a limit declares, where nothing of it is left",
        kind: Kind::Reset,
        ask: reported_reset,
    },
    Source {
        name: "reset headers",
        looks_at: "RateLimit and X-RateLimit-* of limits that are used up",
        kind: Kind::Reset,
        ask: resets,
    },
    Source {
        name: "penalty of the rule",
        looks_at: "hint in the quota file",
        kind: Kind::Declared,
        ask: penalty,
    },
    Source {
        name: "calendar",
        looks_at: "the next reset of a declared budget",
        kind: Kind::Declared,
        ask: calendar,
    },
];

impl Source {
    /// All that it finds, usable or not.
    pub(crate) fn candidates<'v>(&self, asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
        let mut all = (self.ask)(asked);
        if self.kind == Kind::Body && !all.is_empty() && is_by_the_day(asked) {
            let hour = asked.view.received_at() + Duration::from_secs(3_600);
            for one in all.iter_mut().filter(|one| one.at.is_ok_and(|at| at < hour)) {
                one.at = Err(PassedOver::ByTheDay);
            }
        }
        all
    }
}

/// The hint that counts.
#[derive(Debug)]
pub(crate) struct Hint<'v> {
    /// The earliest instant to come back, by our wall clock, not yet clamped.
    pub(crate) at: Timestamp,
    /// The place in [`SOURCES`] that it comes from.
    pub(crate) from: usize,
    /// Where it stands.
    pub(crate) candidate: Candidate<'v>,
}

/// The first usable hint. GitHub states `Retry-After` and the reset of an empty window as two
/// conditions, so there the later of both counts.
pub(crate) fn find<'v>(asked: &Asked<'v, '_>) -> Option<Hint<'v>> {
    let first = first(asked, |_| true)?;
    let retry_field = SOURCES.get(first.from).is_some_and(|source| source.kind == Kind::RetryField);
    if !retry_field || !github::is_github(asked.view, asked.upstream) {
        return Some(first);
    }
    let reset = self::first(asked, |kind| kind == Kind::Reset).filter(|reset| reset.at > first.at);
    Some(reset.unwrap_or(first))
}

fn first<'v>(asked: &Asked<'v, '_>, of: impl Fn(Kind) -> bool) -> Option<Hint<'v>> {
    let sources = SOURCES.iter().enumerate().filter(|(_, source)| of(source.kind));
    { sources }.find_map(|(from, source)| {
        let (at, candidate) = latest(source.candidates(asked))?;
        Some(Hint { at, from, candidate })
    })
}

/// A sentence whose pattern the rule declares.
fn sentence<'v>(asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
    let found = asked.rule.and_then(|rule| rule.sentence(asked.view));
    let one = |(text, moment)| Candidate::new("sentence in body", text, moment, asked.view);
    found.map(one).into_iter().collect()
}

/// The short delay of a refusal by the day (RetryInfo of 58 s) is no hint: the calendar decides.
fn is_by_the_day(asked: &Asked<'_, '_>) -> bool {
    let declared = asked.rule.and_then(|rule| rule.limit.as_deref());
    let declared = declared.and_then(|name| asked.upstream?.limit(name)?.rule.calendar());
    let window = declared
        .map(super::calendar::window)
        .or(asked.verdict.window)
        .or_else(|| body::google::window(asked.view));
    asked.verdict.reason == Reason::QuotaExhausted && window.is_some_and(|w| w >= Window::Day)
}

fn declared_reset<'v>(asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
    let pending = asked.verdict.reason == Reason::AcceptedPending;
    let reset = asked.rule.and_then(|rule| rule.reset.as_ref()).filter(|_| !pending);
    reset.map(|reset| reset.candidates(asked.view)).unwrap_or_default()
}

/// The reset of a limit of which the answer says that nothing is left, where it says where that stands.
fn reported_reset<'v>(asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
    let refused = asked.verdict.reason != Reason::AcceptedPending;
    let used_up = remaining::used_up(asked.upstream.filter(|_| refused), asked.view);
    let one = |(limit, at): (&Limit, Option<Timestamp>)| {
        let at = at?;
        let known = Candidate::known(format!("reset of {}", limit.name), at.to_rfc3339(), Ok(at));
        Some(Candidate { limit: Some(limit.name.clone()), ..known })
    };
    used_up.and_then(one).into_iter().collect()
}

/// The reset of used-up windows. Where no limit refused (a 500), a window must say itself that it is
/// used up.
fn resets<'v>(asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
    if asked.verdict.reason == Reason::AcceptedPending {
        return Vec::new();
    }
    let refused = matches!(
        asked.verdict.reason,
        Reason::RateLimited | Reason::QuotaExhausted | Reason::ConcurrencyLimited
    );
    let declared = asked.rule.and_then(|rule| rule.reset.as_ref());
    let except = declared.map(|reset| reset.header.as_str());
    limits::resets(asked.view, limits::Resets { except, of_unknown: refused })
}

/// A penalty that the upstream documents: for so long, or until a calendar's window begins.
fn penalty<'v>(asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
    let Some(rule) = asked.rule else { return Vec::new() };
    let source = "documented penalty";
    let penalty = rule.hint.filter(|penalty| !penalty.is_zero()).map(|penalty| {
        let value = format!("{penalty:?}");
        Candidate::new(source, value, Some(Moment::After(penalty)), asked.view)
    });
    let until = rule.hint_until.as_ref().map(|calendar| {
        let at = calendar.window(asked.view.received_at()).next_reset;
        Candidate::known(source, at.to_rfc3339(), Ok(at))
    });
    penalty.into_iter().chain(until).collect()
}

/// The next reset of the budget that is used up.
fn calendar<'v>(asked: &Asked<'v, '_>) -> Vec<Candidate<'v>> {
    if asked.verdict.reason != Reason::QuotaExhausted {
        return Vec::new();
    }
    let limit = asked.rule.and_then(|rule| rule.limit.as_deref());
    let window = asked.verdict.window.or_else(|| body::google::window(asked.view));
    let reset = |upstream| next_reset(upstream, limit, window, asked.view.received_at());
    let one = |(name, at): (String, Timestamp)| Candidate {
        limit: Some(name.clone()),
        ..Candidate::known(format!("reset of {name}"), at.to_rfc3339(), Ok(at))
    };
    asked.upstream.and_then(reset).map(one).into_iter().collect()
}
