//! PURE: `RateLimit-Policy` and `RateLimit`: what is declared, and what is left, as structured fields.

use std::time::Duration;

use sfv::{KeyRef, ListSerializer, StringRef};

use crate::job::Columns;
use crate::quota::calendar::Per;
use crate::quota::{Limit, LimitRule, Upstream};

/// The largest integer that a structured field carries.
const LARGEST: u64 = 999_999_999_999_999;

/// `"plan";q=10;w=1, "daily";q=200;w=86400`: the limits that a call with these columns is under.
pub(super) fn policy(upstream: &Upstream, columns: &Columns) -> Option<String> {
    let mut list = ListSerializer::new();
    for limit in &upstream.limits {
        add(&mut list, limit, limit.rule_for(columns));
    }
    list.finish()
}

/// `"daily";r=0;t=3600`: nothing is left of that limit for so long.
pub(super) fn nothing_left(limit: &str, wait: Option<Duration>) -> Option<String> {
    let mut list = ListSerializer::new();
    let mut item = list.bare_item(StringRef::from_str(limit).ok()?);
    item = item.parameter(key("r")?, 0);
    if let Some(wait) = wait {
        item.parameter(key("t")?, integer(seconds(wait)));
    }
    list.finish()
}

fn add(list: &mut ListSerializer<String>, limit: &Limit, rule: &LimitRule) -> Option<()> {
    // A name that no structured field carries is left out.
    let item = list.bare_item(StringRef::from_str(&limit.name).ok()?);
    let (amount, span) = match rule {
        LimitRule::Rate(rate) => a_second_at_least(rate.amount, rate.period),
        LimitRule::Budget(budget) => (budget.amount, length(budget.calendar.resets.per())),
        LimitRule::Rolling(rolling) => (rolling.amount, rolling.span),
        LimitRule::Concurrency(concurrency) => {
            let item = item.parameter(key("q")?, integer(concurrency.amount));
            item.parameter(key("qu")?, StringRef::from_str("concurrent-requests").ok()?);
            return Some(());
        }
    };
    let item = item.parameter(key("q")?, integer(amount));
    item.parameter(key("w")?, integer(seconds(span)));
    Some(())
}

/// A window is told in whole seconds: `10` in 100 ms are `100` in one.
fn a_second_at_least(amount: u64, period: Duration) -> (u64, Duration) {
    let second = Duration::from_secs(1);
    if period >= second {
        return (amount, period);
    }
    let times = second.as_nanos() / period.as_nanos().max(1);
    let amount = u128::from(amount).saturating_mul(times);
    (u64::try_from(amount).unwrap_or(LARGEST), second)
}

/// The usual length of a window.
fn length(per: Per) -> Duration {
    let days = |days: u64| Duration::from_secs(days * 86_400);
    match per {
        Per::Hour => Duration::from_secs(3_600),
        Per::Day => days(1),
        Per::Week => days(7),
        Per::Month => days(30),
    }
}

fn key(name: &'static str) -> Option<&'static KeyRef> {
    KeyRef::from_str(name).ok()
}

fn seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

fn integer(value: u64) -> sfv::Integer {
    let value = i64::try_from(value.min(LARGEST)).unwrap_or(i64::MAX);
    sfv::Integer::try_from(value).unwrap_or(sfv::Integer::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::declare;

    #[test]
    fn each_limit_is_told() {
        let text = r#"
            [[limit]]
            name = "plan"
            kind = "rate"
            rate = "10/s"
            [[limit]]
            name = "quick"
            kind = "rate"
            rate = "3/100ms"
            [[limit]]
            name = "daily"
            kind = "budget"
            amount = 200
            per = "day"
            time_zone = "America/Los_Angeles"
            key = ["site"]
            [[limit.for]]
            when = { site = "big" }
            amount = 10000
            [[limit]]
            name = "rolling"
            kind = "rolling"
            amount = 1000
            per = "24h"
            [[limit]]
            name = "in-flight"
            kind = "concurrency"
            amount = 4
        "#;
        let upstream = declare::parse("shop", "shop.toml", text).unwrap();
        let told = |site: &str| {
            let columns = Columns::from([("site".to_owned(), site.to_owned())]);
            policy(&upstream, &columns).unwrap()
        };
        assert_eq!(
            told("small"),
            "\"plan\";q=10;w=1, \"quick\";q=30;w=1, \"daily\";q=200;w=86400, \
             \"rolling\";q=1000;w=86400, \"in-flight\";q=4;qu=\"concurrent-requests\""
        );
        assert!(told("big").contains("\"daily\";q=10000;w=86400"), "{}", told("big"));
    }

    #[test]
    fn what_is_spent_tells_for_how_long() {
        let told = nothing_left("daily", Some(Duration::from_millis(3_599_001))).unwrap();
        assert_eq!(told, "\"daily\";r=0;t=3600");
        assert_eq!(nothing_left("in-flight", None).unwrap(), "\"in-flight\";r=0");
        assert_eq!(nothing_left("täglich", None), None);
    }
}
