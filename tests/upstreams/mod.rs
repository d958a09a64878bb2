//! The upstreams that the cases name, with as much of them as reading needs. They stand in for the
//! presets and say the same.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline::quota::budget::{Budget, Counts};
use paceline::quota::calendar::{Calendar, Resets};
use paceline::quota::{
    Cost, Keep, Limit, LimitRule, Match, RequestRule, RetryPolicy, StoreFailure, Sureness, Upstream,
};
use paceline::reading::Reason;
use paceline::reading::rules::{Rule, StatusPattern, ValuePattern, When};
use regex::Regex;

/// The upstream of that name.
pub fn named(name: &str) -> Option<Upstream> {
    match name {
        "indexnow" => Some(indexnow()),
        "google-indexing" => Some(google("google-indexing")),
        "bing-webmaster" => Some(bing()),
        _ => None,
    }
}

/// The upstream whose address it is, where a case names none.
pub fn matching(url: &str) -> Option<Upstream> {
    url.starts_with("https://www.googleapis.com/books/").then(|| google("google-books"))
}

/// An upstream without limits and rules.
pub fn bare(name: &str) -> Upstream {
    Upstream {
        name: name.to_owned(),
        title: name.to_owned(),
        docs: None,
        checked: None,
        matches: Match::default(),
        columns: BTreeMap::new(),
        credentials: BTreeMap::new(),
        request: RequestRule {
            method: "POST".to_owned(),
            url: None,
            base_url: None,
            headers: BTreeMap::new(),
            body: None,
            timeout: Duration::from_secs(30),
            repeatable: None,
            idempotency_header: None,
        },
        limits: Vec::new(),
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

fn body(pattern: &str) -> When {
    When { body: Some(Regex::new(pattern).unwrap()), ..status(400) }
}

fn google(name: &str) -> Upstream {
    let midnight = Resets::Daily { time: chrono::NaiveTime::MIN };
    Upstream { limits: vec![budget("daily", "America/Los_Angeles", midnight)], ..bare(name) }
}

fn indexnow() -> Upstream {
    let readings = vec![
        Rule {
            wait: Some(Duration::from_secs(60)),
            for_at_most: Some(Duration::from_secs(900)),
            then: Some(Reason::Misconfigured),
            ..rule(
                status_json(403, "/errorCode", "SiteVerificationNotCompleted"),
                Reason::KeyPending,
            )
        },
        rule(status(403), Reason::Misconfigured),
    ];
    Upstream { readings, ..bare("indexnow") }
}

fn bing() -> Upstream {
    let readings = vec![
        rule(body("(?i)quota remaining|daily url submission quota"), Reason::QuotaExhausted),
        rule(body("Throttle"), Reason::RateLimited),
        rule(status_json(400, "/ErrorCode", "14"), Reason::Forbidden),
        rule(status_json(400, "/ErrorCode", "3"), Reason::Misconfigured),
    ];
    Upstream { readings, ..bare("bing-webmaster") }
}
