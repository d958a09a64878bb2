//! Rules of any kind: `[[reading]]` tables that no person would write, too.

use std::time::Duration;

use chrono::NaiveTime;
use paceline::quota::Upstream;
use paceline::quota::calendar::Resets;
use paceline::reading::Reason;
use paceline::reading::rules::{ResetHeader, ResetUnit, Rule, StatusPattern, ValuePattern, When};
use proptest::collection::{btree_map, vec};
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use regex::Regex;

use crate::answers::{KEYS, NAMES, status, text};
use crate::upstreams;

fn value() -> impl Strategy<Value = ValuePattern> {
    let pattern = select([".", "^$", "limit", "^[0-9]+$"].as_slice());
    prop_oneof![
        text().prop_map(ValuePattern::Equals),
        pattern.prop_map(|pattern| ValuePattern::Matches(Regex::new(pattern).unwrap())),
        any::<bool>().prop_map(ValuePattern::Present),
    ]
}

fn when() -> impl Strategy<Value = When> {
    let one = prop_oneof![
        3 => status().prop_map(StatusPattern::Exact),
        1 => (1_u16..6).prop_map(StatusPattern::Class),
    ];
    let pointer = prop_oneof![
        Just(String::new()),
        select(KEYS).prop_map(|key| format!("/{key}")),
        (select(KEYS), select(KEYS)).prop_map(|(a, b)| format!("/{a}/{b}")),
        text(),
    ];
    let body = weighted(0.1, Just(()).prop_map(|()| Regex::new("(?i)limit").unwrap()));
    (
        vec(one, 0..3),
        btree_map(pointer, value(), 0..2),
        btree_map(select(NAMES).prop_map(str::to_owned), value(), 0..2),
        body,
    )
        .prop_map(|(status, json, header, body)| When { status, json, header, body })
}

fn reset() -> impl Strategy<Value = ResetHeader> {
    let units = [
        ResetUnit::EpochSeconds,
        ResetUnit::EpochMillis,
        ResetUnit::DeltaSeconds,
        ResetUnit::Duration,
        ResetUnit::Rfc3339,
    ];
    let name = || select(NAMES).prop_map(str::to_owned);
    (name(), of(name()), of(select(units.to_vec())))
        .prop_map(|(header, remaining, unit)| ResetHeader { header, remaining, unit })
}

fn rule() -> impl Strategy<Value = Rule> {
    let patterns = [
        "in (?:(?<m>[0-9]+)m)?(?<s>[0-9.]+)s",
        "(?<at>.+)",
        "(?<date>[0-9-]+)T(?<time>[0-9:]+)",
        "(?<h>[0-9]+)",
    ];
    let span = || of(any::<u64>().prop_map(Duration::from_nanos));
    let says = of(text());
    let limit = of(select(["daily", "weekly", "none"].as_slice()).prop_map(str::to_owned));
    let declared =
        (when(), select(Reason::ALL.to_vec()), span(), span(), of(select(patterns.to_vec())));
    let more = (weighted(0.3, reset()), of(any::<bool>()), says, limit);
    (declared, more).prop_map(|(declared, (reset, retryable, says, limit))| {
        let (when, reason, wait, hint, pattern) = declared;
        let wait_pattern = pattern.map(|pattern| Regex::new(pattern).unwrap());
        let plain = upstreams::rule(when, reason);
        Rule { wait, hint, wait_pattern, reset, retryable, says, limit, ..plain }
    })
}

/// An upstream with rules of its own, and limits that they may name.
pub fn upstream() -> impl Strategy<Value = Upstream> {
    let time = NaiveTime::MIN;
    let weekly = Resets::Weekly { weekday: chrono::Weekday::Sun, time };
    let limits = vec![
        upstreams::budget("daily", "America/Los_Angeles", Resets::Daily { time }),
        upstreams::budget("weekly", "Pacific/Apia", weekly),
    ];
    let name = select(["shop", "github"].as_slice());
    (name, vec(rule(), 0..5)).prop_map(move |(name, readings)| Upstream {
        readings,
        limits: limits.clone(),
        ..upstreams::bare(name)
    })
}
