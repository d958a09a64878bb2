//! What an answer, a success or a refusal, tells of how much is left, and of which limit.
//!
//! Nothing is guessed: a figure counts where the limit declares in which field of an answer it stands,
//! where the answer itself describes a limit (`RateLimit-Policy`) that is exactly a declared one, or where
//! its words (`spoken`) can be meant of one only.

mod spoken;

use regex::Regex;

use super::number::Number;
use super::rules::{ResetHeader, When};
use super::verdict::Verdict;
use super::view::View;
use super::window::Window;
use super::{Answer, Reason, fields, limits, moment};
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::{Cost, Limit, LimitRule, Upstream};
pub(crate) use spoken::spoken;

/// `[limit.reported]`: where answers tell what is left of a limit.
#[derive(Clone, Debug)]
pub struct ReportedIn {
    /// Of which answers; empty: of all.
    pub when: When,
    /// Where the figure stands.
    pub figure: Figure,
    /// A header that holds the limit's amount: the figure counts only where that is the declared one.
    pub amount: Option<String>,
    /// The header that holds when that window ends.
    pub reset: Option<ResetHeader>,
}

/// Where a figure stands.
#[derive(Clone, Debug)]
pub enum Figure {
    /// In a header.
    Header(String),
    /// At a JSON pointer.
    Json(String),
    /// In the body, where the pattern's group `remaining` finds it.
    Body(Regex),
}

/// What is left of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The limit's name.
    pub limit: String,
    /// Units.
    pub left: u64,
    /// When its window ends (wall time), where the answer tells.
    pub resets_at: Option<Timestamp>,
}

/// What an answer to a call of the partition with these columns tells of what is left.
///
/// ```
/// use paceline::clock::Timestamp;
/// use paceline::job::Columns;
/// use paceline::quota::declare;
/// use paceline::reading::{Answer, remaining::remaining};
///
/// let text = "name = \"shop\"\n[[limit]]\nname = \"hour\"\nkind = \"rolling\"\namount = 5000\nper = \"1h\"\n\
///     reported = { header = \"x-left\", reset = { header = \"x-reset\", unit = \"delta-s\" } }\n";
/// let upstream = declare::parse("shop", "shop.toml", text).unwrap();
/// let headers = [("X-Left", "12"), ("X-Reset", "60")];
/// let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
/// let received_at = Timestamp::from_secs(1_772_366_400);
/// let (method, url) = ("GET", "https://api.example.com/v1/items");
/// let answer = Answer { method, url, received_at, status: 200, headers: &headers, body: b"{}" };
/// let told = remaining(&upstream, &Columns::new(), &answer);
/// assert_eq!((told[0].limit.as_str(), told[0].left), ("hour", 12));
/// assert_eq!(told[0].resets_at, Some(Timestamp::from_secs(1_772_366_460)));
/// ```
pub fn remaining(upstream: &Upstream, columns: &Columns, answer: &Answer<'_>) -> Vec<Left> {
    let view = View::new(answer);
    let policies = fields::remaining(&view);
    let spoken = spoken(upstream, &view);
    let said = |limit: &Limit| {
        spoken.filter(|(of, _)| of.name == limit.name).map(|(_, left)| (left, None))
    };
    let told = |limit: &Limit| match &limit.reported {
        Some(reported) => declared(reported, limit.rule_for(columns), &view),
        None => described(upstream, limit, columns, &policies).or_else(|| said(limit)),
    };
    let named = |limit: &Limit| {
        let (left, resets_at) = told(limit)?;
        Some(Left { limit: limit.name.clone(), left, resets_at })
    };
    upstream.limits.iter().filter_map(named).collect()
}

/// The limit of which a refusal says, where the quota file declares that it does, that nothing is left;
/// and when that changes. Of several the one that takes longest.
pub(crate) fn used_up<'u>(
    upstream: Option<&'u Upstream>,
    view: &View<'_>,
) -> Option<(&'u Limit, Option<Timestamp>)> {
    if view.is_success() {
        return None;
    }
    let empty = upstream?.limits.iter().filter_map(|limit| {
        let (left, resets_at) = declared(limit.reported.as_ref()?, &limit.rule, view)?;
        (left == 0).then_some((limit, resets_at))
    });
    empty.max_by_key(|(_, resets_at)| *resets_at)
}

/// Makes a refusal of a limit whose window is unknown a quota, where nothing is left of one of an hour or
/// longer, in a field that only the quota file knows of; and any whose words tell what is left of a day.
pub(crate) fn refine(upstream: Option<&Upstream>, view: &View<'_>, verdict: Verdict) -> Verdict {
    let is_limit = verdict.reason.is_permanent() || verdict.reason == Reason::RateLimited;
    if verdict.open
        && is_limit
        && let Some((limit, _)) = upstream.and_then(|upstream| spoken(upstream, view))
    {
        let source = format!("{}; words on {}", verdict.source, limit.name);
        return Verdict::limited(Some(Window::Day), source);
    }
    let is_open = verdict.open && verdict.reason == Reason::RateLimited && verdict.window.is_none();
    if !is_open || limits::is_told(view) {
        return verdict;
    }
    let Some((limit, _)) = used_up(upstream, view) else { return verdict };
    let window = match &limit.rule {
        LimitRule::Budget(budget) => super::calendar::window(&budget.calendar),
        LimitRule::Rolling(rolling) => Window::of_seconds(rolling.span.as_secs()),
        LimitRule::Rate(rate) => Window::of_seconds(rate.period.as_secs()),
        LimitRule::Concurrency(_) => return verdict,
    };
    let source = format!("{}; what is left of {}", verdict.source, limit.name);
    Verdict::limited(Some(window), source)
}

/// The limit's own place in the answer. A reset that is there and cannot be read, or has passed, is that
/// of a window that is over.
fn declared(
    reported: &ReportedIn,
    rule: &LimitRule,
    view: &View<'_>,
) -> Option<(u64, Option<Timestamp>)> {
    if !reported.when.parts().all(|part| part.fits(view)) || !is_of(reported, rule, view) {
        return None;
    }
    let left = reported.figure.read(view)?;
    let Some(reset) = reported.reset.as_ref().filter(|reset| view.header(&reset.header).is_some())
    else {
        return Some((left, None));
    };
    let at = reset.candidates(view).into_iter().filter_map(|one| one.at.ok()).max()?;
    Some((left, Some(moment::clamp(view.received_at(), at).0)))
}

/// Whether the answer's limit has the declared amount, where a header tells it.
fn is_of(reported: &ReportedIn, rule: &LimitRule, view: &View<'_>) -> bool {
    let Some(header) = &reported.amount else { return true };
    let told = view.header(header).and_then(Number::parse).map(Number::floor);
    told == Some(amount(rule))
}

/// A JSON number, or a text that is one, as whole units.
pub fn whole(value: &serde_json::Value) -> Option<u64> {
    Number::from_json(value).map(Number::floor)
}

impl Figure {
    /// The figure: the least, where a header has several.
    fn read(&self, view: &View<'_>) -> Option<u64> {
        match self {
            Figure::Header(name) => {
                view.values(name).filter_map(Number::parse).map(Number::floor).min()
            }
            Figure::Json(pointer) => whole(view.at(pointer)?),
            Figure::Body(pattern) => {
                let found = pattern.captures(view.text())?;
                Number::parse(found.name("remaining")?.as_str()).map(Number::floor)
            }
        }
    }
}

/// The least that a policy of the answer tells, where it has the amount and the window of this limit and
/// of no other.
fn described(
    upstream: &Upstream,
    limit: &Limit,
    columns: &Columns,
    policies: &[fields::PolicyLeft],
) -> Option<(u64, Option<Timestamp>)> {
    let shape =
        |limit: &Limit| shape(limit.rule_for(columns)).filter(|_| limit.cost == Cost::Calls);
    let own = shape(limit)?;
    if upstream.limits.iter().filter(|other| shape(other) == Some(own)).count() > 1 {
        return None;
    }
    let fitting = policies.iter().filter(|policy| (policy.amount, policy.seconds) == own);
    let least = fitting.min_by_key(|policy| policy.left)?;
    Some((least.left, Some(least.resets_at)))
}

/// Amount and window in seconds; `None` where no number of seconds is the window.
fn shape(rule: &LimitRule) -> Option<(u64, u64)> {
    use crate::quota::calendar::Per;
    let per = |per: Per| match per {
        Per::Hour => Some(3_600),
        Per::Day => Some(86_400),
        Per::Week => Some(604_800),
        Per::Month => None,
    };
    let seconds_of =
        |span: std::time::Duration| (span.subsec_nanos() == 0).then_some(span.as_secs());
    let seconds = match rule {
        LimitRule::Rate(rate) => seconds_of(rate.period),
        LimitRule::Budget(budget) => per(budget.calendar.resets.per()),
        LimitRule::Rolling(rolling) => match rolling.stands_for {
            Some(stands_for) => per(stands_for),
            None => seconds_of(rolling.span),
        },
        LimitRule::Concurrency(_) => None,
    };
    seconds.map(|seconds| (amount(rule), seconds))
}

const fn amount(rule: &LimitRule) -> u64 {
    match rule {
        LimitRule::Rate(rate) => rate.amount,
        LimitRule::Budget(budget) => budget.amount,
        LimitRule::Rolling(rolling) => rolling.amount,
        LimitRule::Concurrency(limit) => limit.amount,
    }
}

#[cfg(test)]
mod tests;
