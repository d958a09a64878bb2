//! `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers): today's lists of
//! structured fields (RFC 9651), and the forms of its older drafts.
//!
//! Malformed fields are ignored, as the draft demands, and so are those of an answer that comes from
//! a cache.

use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

use super::candidate::{Candidate, PassedOver};
use super::limits::{Bucket, Told};
use super::moment::{self, Moment};
use super::number::Number;
use super::view::View;
use super::window::Window;
use crate::clock::Timestamp;

/// So many members of a list are read. Nobody has more limits, and whoever sends thousands must not
/// hold up the process that reads them.
const MOST: usize = 64;

/// One declared policy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Policy {
    /// Its name; drafts before 08 had the amount in its place.
    name: Option<String>,
    /// How many units.
    amount: Option<i64>,
    /// The length of its window.
    window: Option<Window>,
    /// The same in seconds.
    seconds: Option<u64>,
    /// Whether its unit is calls.
    is_requests: bool,
    /// Whether its unit is calls in flight.
    is_concurrency: bool,
}

/// What is left of one policy that tells its amount, its window and its reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyLeft {
    /// How many calls a window.
    pub(crate) amount: u64,
    /// The window.
    pub(crate) seconds: u64,
    /// Calls left.
    pub(crate) left: u64,
    /// When the window ends, by our wall clock.
    pub(crate) resets_at: Timestamp,
}

/// What is left of the policies that `RateLimit` and `RateLimit-Policy` tell of.
pub(crate) fn remaining(view: &View<'_>) -> Vec<PolicyLeft> {
    let Some(text) = view.joined("ratelimit").filter(|_| !is_cached(view)) else {
        return Vec::new();
    };
    let policies = policies(view);
    let left = |item: &Item| {
        let name = self::text(&item.bare_item)?;
        let mut named = policies.iter().filter(|policy| policy.name.as_deref() == Some(&name));
        let policy = named.next().filter(|policy| policy.is_requests)?;
        let until = item.params.get("t").and_then(seconds)?.resolve(view)?;
        Some(PolicyLeft {
            amount: u64::try_from(policy.amount?).ok()?,
            seconds: policy.seconds?,
            left: u64::try_from(integer(item, "r")?).ok()?,
            resets_at: moment::clamp(view.received_at(), until).0,
        })
    };
    items(&text).unwrap_or_default().iter().filter_map(left).collect()
}

/// One bucket for each member of `RateLimit`.
pub(crate) fn buckets<'v>(view: &'v View<'_>) -> Vec<Bucket<'v>> {
    if is_cached(view) {
        return Vec::new();
    }
    let Some(text) = view.joined("ratelimit") else { return alone(view) };
    if let Some(items) = items(&text) {
        let policies = policies(view);
        return items.iter().filter_map(|item| bucket(item, &policies, view)).collect();
    }
    Parser::new(&text).parse().ok().and_then(|fields| draft07(&fields, view)).into_iter().collect()
}

/// Policies that come without `RateLimit`: of interest are those of which there never is anything.
fn alone<'v>(view: &View<'_>) -> Vec<Bucket<'v>> {
    let bucket = |policy: Policy| Bucket {
        name: policy.name.unwrap_or_default(),
        is_zero: policy.amount == Some(0),
        field: "ratelimit-policy".to_owned(),
        ..Bucket::default()
    };
    let all: Vec<Bucket<'v>> = policies(view).into_iter().map(bucket).collect();
    if all.iter().all(|bucket| bucket.is_zero) { all } else { Vec::new() }
}

/// `RateLimit` itself, where nothing of it is believed.
pub(crate) fn ignored<'v>(view: &'v View<'_>) -> Option<Candidate<'v>> {
    let text = view.joined("ratelimit").filter(|_| buckets(view).is_empty())?;
    let why = if is_cached(view) { PassedOver::Cached } else { PassedOver::Unreadable };
    Some(Candidate::known("ratelimit", text, Err(why)))
}

/// The longest window of the named policies; for a problem's `violated-policies`.
pub(crate) fn longest_window<'n>(
    view: &View<'_>,
    names: impl Iterator<Item = &'n str>,
) -> Option<Window> {
    let policies = policies(view);
    let window = |name: &str| {
        let policy = policies.iter().find(|policy| policy.name.as_deref() == Some(name));
        policy.and_then(|policy| policy.window).or_else(|| Window::in_name(name))
    };
    { names }.take(MOST).filter_map(window).max()
}

/// The window behind `RateLimit-Remaining` of drafts 00 to 06: of the only policy, or of the one
/// whose amount `RateLimit-Limit` names first (`10, 10;w=1, 1000;w=3600`).
pub(crate) fn only_window(view: &View<'_>) -> Option<Window> {
    let limit = view.joined("ratelimit-limit").and_then(|text| items(&text)).unwrap_or_default();
    let amount = limit.first().and_then(|item| item.bare_item.as_integer()).map(i64::from);
    let mut known: Vec<Policy> = limit.iter().map(policy).collect();
    known.extend(policies(view));
    known.retain(|policy| policy.window.is_some());
    let same = known.iter().filter(|policy| amount.is_some() && policy.amount == amount);
    match (known.as_slice(), same.map(|policy| policy.window).min()) {
        (_, Some(window)) => window,
        ([only], None) => only.window,
        _ => None,
    }
}

fn is_cached(view: &View<'_>) -> bool {
    view.header("age").and_then(Number::parse).is_some_and(|age| !age.is_zero())
}

fn items(text: &str) -> Option<Vec<Item>> {
    let list: List = Parser::new(text).parse().ok()?;
    let item = |entry| match entry {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    };
    Some(list.into_iter().take(MOST).filter_map(item).collect())
}

fn policies(view: &View<'_>) -> Vec<Policy> {
    let items = view.joined("ratelimit-policy").and_then(|text| items(&text));
    items.unwrap_or_default().iter().map(policy).collect()
}

fn policy(item: &Item) -> Policy {
    let unit = item.params.get("qu").and_then(text);
    let seconds = integer(item, "w").and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0);
    Policy {
        name: text(&item.bare_item),
        amount: integer(item, "q").or_else(|| item.bare_item.as_integer().map(i64::from)),
        window: seconds.map(Window::of_seconds),
        seconds,
        is_requests: matches!(unit.as_deref(), None | Some("requests")),
        is_concurrency: unit.as_deref() == Some("concurrent-requests"),
    }
}

fn bucket<'v>(item: &Item, policies: &[Policy], view: &View<'_>) -> Option<Bucket<'v>> {
    let name = text(&item.bare_item)?;
    let policy = policies.iter().find(|policy| policy.name.as_deref() == Some(name.as_str()));
    let told = item.params.get("t").map(|t| told(t, view));
    Some(Bucket {
        is_empty: integer(item, "r").map(|left| left == 0),
        resets: told.into_iter().collect(),
        field: "ratelimit".to_owned(),
        window: policy.and_then(|policy| policy.window).or_else(|| Window::in_name(&name)),
        is_concurrency: policy.is_some_and(|policy| policy.is_concurrency),
        is_zero: policy.is_some_and(|policy| policy.amount == Some(0)),
        name,
    })
}

/// Draft 07 alone: `limit=100, remaining=50, reset=5`, one dictionary under today's name.
fn draft07<'v>(fields: &Dictionary, view: &View<'_>) -> Option<Bucket<'v>> {
    let value = |key: &str| match fields.get(key) {
        Some(ListEntry::Item(item)) => Some(&item.bare_item),
        _ => None,
    };
    let reset = value("reset").filter(|reset| seconds(reset).is_some())?;
    let left = value("remaining").and_then(BareItem::as_integer).map(i64::from);
    let amount = value("limit").and_then(BareItem::as_integer).map(i64::from);
    let mut policies = policies(view);
    if policies.len() > 1 {
        policies.retain(|policy| policy.amount == amount);
    }
    Some(Bucket {
        name: "ratelimit".to_owned(),
        is_empty: left.map(|left| left == 0),
        is_zero: amount == Some(0),
        resets: vec![told(reset, view)],
        field: "ratelimit".to_owned(),
        window: policies.first().and_then(|policy| policy.window),
        ..Bucket::default()
    })
}

fn integer(item: &Item, key: &str) -> Option<i64> {
    item.params.get(key).and_then(BareItem::as_integer).map(i64::from)
}

fn told<'v>(value: &BareItem, view: &View<'_>) -> Told<'v> {
    let said = match value {
        BareItem::Integer(whole) => whole.to_string(),
        BareItem::Decimal(decimal) => decimal.to_string(),
        _ => "no number".to_owned(),
    };
    Told::new("ratelimit", said, seconds(value), view)
}

/// A number as a delay: decimals are not in the draft, and do no harm.
fn seconds(value: &BareItem) -> Option<Moment> {
    let number = match value {
        BareItem::Integer(whole) => whole.to_string(),
        BareItem::Decimal(decimal) => decimal.to_string(),
        _ => return None,
    };
    Number::parse(&number).map(Number::seconds)
}

/// A name: a string, or (leniently) a token, as one of the draft's own examples has it.
fn text(value: &BareItem) -> Option<String> {
    match value {
        BareItem::String(text) => Some(text.as_str().to_owned()),
        BareItem::Token(token) => Some(token.as_str().to_owned()),
        _ => None,
    }
}
