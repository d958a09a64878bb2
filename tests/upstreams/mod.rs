//! Upstreams and rules made in a test, with as much of them as reading needs.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline::quota::budget::{Budget, Counts};
use paceline::quota::calendar::{Calendar, Resets};
use paceline::quota::{
    Cost, Keep, Limit, LimitRule, Match, RequestRule, RetryPolicy, StoreFailure, Sureness, Upstream,
};
use paceline::reading::Reason;
use paceline::reading::rules::{Rule, StatusPattern, ValuePattern, When};

/// An upstream without limits and rules.
pub fn bare(name: &str) -> Upstream {
    Upstream {
        batch: None,
        name: name.to_owned(),
        title: name.to_owned(),
        docs: None,
        checked: None,
        matches: Match::default(),
        columns: BTreeMap::new(),
        credentials: BTreeMap::new(),
        auth: None,
        request: RequestRule {
            method: "POST".to_owned(),
            url: None,
            base_url: None,
            headers: BTreeMap::new(),
            body: None,
            timeout: Duration::from_secs(30),
            repeatable: None,
            idempotency_header: None,
            connections: None,
        },
        limits: Vec::new(),
        quota_call: None,
        readings: Vec::new(),
        retry: RetryPolicy::default(),
        results: BTreeMap::new(),
        keep: Keep::default(),
        when_store_fails: StoreFailure::default(),
    }
}

/// A budget of the name, in the zone.
pub fn budget(name: &str, zone: &str, resets: Resets) -> Limit {
    Limit {
        name: name.to_owned(),
        key: Vec::new(),
        cost: Cost::default(),
        sure: Sureness::default(),
        reported: None,
        rule: LimitRule::Budget(Budget {
            amount: 200,
            calendar: Calendar { zone: zone.parse().unwrap(), resets },
            counts: Counts::default(),
            reserve: 0,
            spread: false,
            settle_after_reset: Duration::ZERO,
        }),
        exceptions: Vec::new(),
    }
}

/// A rule that states a reason alone.
pub fn rule(when: When, reason: Reason) -> Rule {
    Rule {
        when,
        reason,
        wait: None,
        hint: None,
        hint_until: None,
        wait_pattern: None,
        reset: None,
        for_at_most: None,
        then: None,
        retryable: None,
        limit: None,
        says: None,
        sure: Sureness::default(),
        place: None,
    }
}

/// That status.
pub fn status(status: u16) -> When {
    When { status: vec![StatusPattern::Exact(status)], ..When::default() }
}

/// That status, and that text at a JSON pointer.
pub fn status_json(code: u16, pointer: &str, value: &str) -> When {
    let json = [(pointer.to_owned(), ValuePattern::Equals(value.to_owned()))].into();
    When { json, ..status(code) }
}
