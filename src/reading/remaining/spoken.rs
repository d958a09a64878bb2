//! What the server's own words leave of a day: "Quota remaining for today: 10, Submitted: 32".

use crate::quota::calendar::Per;
use crate::quota::{Cost, Limit, LimitRule, Upstream};
use crate::reading::body::words;
use crate::reading::view::View;

const LEFT_TODAY: &str = "quota remaining for today";

/// The limit, and the units that a refusal says are left of it. They can be meant of one limit only: of a
/// day, counting items, and the quota file does not say where else the figure stands.
pub(crate) fn spoken<'u>(upstream: &'u Upstream, view: &View<'_>) -> Option<(&'u Limit, u64)> {
    if view.status() < 400 {
        return None;
    }
    let mut daily = upstream.limits.iter().filter(|limit| is_of_items_a_day(limit));
    let (Some(limit), None) = (daily.next(), daily.next()) else { return None };
    if limit.reported.is_some() {
        return None;
    }
    let said = words::said(view)?.to_ascii_lowercase();
    let (_, rest) = said.split_once(LEFT_TODAY)?;
    let figure = rest.trim_start_matches([' ', ':']);
    let digits = figure.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((limit, digits.parse().ok()?))
}

fn is_of_items_a_day(limit: &Limit) -> bool {
    let per = match &limit.rule {
        LimitRule::Budget(budget) => Some(budget.calendar.resets.per()),
        LimitRule::Rolling(rolling) => rolling.stands_for,
        LimitRule::Rate(_) | LimitRule::Concurrency(_) => None,
    };
    limit.cost == Cost::Items && per == Some(Per::Day)
}
