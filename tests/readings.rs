//! Realistic answers with their right readings, one a line: `tests/data/readings.jsonl`, and
//! `preset_readings.jsonl` of what the rules of presets say beyond it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod upstreams;

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use paceline::clock::Timestamp;
use paceline::quota::Upstream;
use paceline::quota::calendar::Resets;
use paceline::quota::library::Library;
use paceline::reading::rules::{ResetHeader, ResetUnit, Rule, StatusPattern, ValuePattern, When};
use paceline::reading::{Answer, Explanation, Reading, Reason, Said, Step, Topic, explain, read};
use regex::Regex;
use serde::Deserialize;
use upstreams::{rule, status, status_json};

#[derive(Deserialize)]
struct Case {
    id: String,
    upstream: Option<String>,
    method: String,
    url: String,
    received_at: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    reason: String,
    retryable: bool,
    retry_at: Option<String>,
}

fn instant(text: &str) -> Timestamp {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc().into()
}

fn cases() -> Vec<Case> {
    let all = [include_str!("data/readings.jsonl"), include_str!("data/preset_readings.jsonl")];
    all.iter()
        .flat_map(|text| text.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn answer(case: &Case) -> Answer<'_> {
    Answer {
        method: &case.method,
        url: &case.url,
        received_at: instant(&case.received_at),
        status: case.status,
        headers: &case.headers,
        body: case.body.as_bytes(),
    }
}

/// What is wrong with a reading; `None` where it is right.
fn fault(case: &Case, upstream: Option<&Upstream>) -> Option<String> {
    let expect = &case.expect;
    let got = read(upstream, &answer(case));
    let at = expect.retry_at.as_deref().map(instant);
    let right = got.reason.name() == expect.reason
        && got.retryable == expect.retryable
        && got.retry_at == at;
    (!right).then(|| {
        let got_at = got.retry_at.map(Timestamp::to_rfc3339);
        format!(
            "{}: expected {} {} {:?}, read {} {} {:?} from {}",
            case.id,
            expect.reason,
            expect.retryable,
            expect.retry_at,
            got.reason,
            got.retryable,
            got_at,
            got.source
        )
    })
}

/// The preset that a case names, else the one whose `[match]` fits its address, else none.
fn upstream_of(case: &Case, library: &Library) -> Option<Arc<Upstream>> {
    match case.upstream.as_deref() {
        Some(name) => Some(library.get(name).unwrap()),
        None => library.match_url(&case.url),
    }
}

/// Each case is read with its upstream's preset.
#[test]
fn all_cases() {
    let library = Library::new(Vec::new());
    let (mut ran, mut faults) = (0, Vec::new());
    for case in cases() {
        let upstream = upstream_of(&case, &library);
        ran += 1;
        faults.extend(fault(&case, upstream.as_deref()));
    }
    assert!(faults.is_empty(), "{} of {ran}:\n{}", faults.len(), faults.join("\n"));
    assert!(ran >= 205, "{ran} cases");
}

fn deciders(explanation: &Explanation, topic: Topic) -> Vec<&Step> {
    explanation.steps.iter().filter(|step| step.topic == topic && step.decided).collect()
}

#[test]
fn an_explanation_never_disagrees_with_the_reading() {
    let library = Library::new(Vec::new());
    for case in cases() {
        let upstream = upstream_of(&case, &library);
        let explanation = explain(upstream.as_deref(), &answer(&case));
        let reading = read(upstream.as_deref(), &answer(&case));
        assert_eq!(explanation.reading, reading, "{}", case.id);
        let reasons = deciders(&explanation, Topic::Reason);
        let last = reasons.last().and_then(|step| step.said.clone()).unwrap();
        let Said::Reason { reason, retryable, .. } = last else { unreachable!() };
        assert_eq!((reason, retryable), (reading.reason, reading.retryable), "{}", case.id);
        let hints = deciders(&explanation, Topic::Hint);
        let at = hints.first().and_then(|step| step.said.clone());
        assert!(reading.clamped || at == reading.retry_at.map(Said::Hint), "{}", case.id);
        let silent = |step: &&Step| !step.decided && step.said.is_some() && step.why.is_none();
        assert_eq!(explanation.steps.iter().find(silent), None, "{}", case.id);
    }
}

#[test]
fn an_explanation_says_why_a_hint_was_passed_over() {
    let why = |status, headers: &[(&str, &str)], body: &str| {
        let explained = with_answer(status, headers, body, |answer| explain(None, answer));
        let steps = explained.steps.into_iter();
        let told = steps.filter(|step| step.topic == Topic::Hint);
        told.filter_map(|step| step.why).collect::<Vec<_>>().join("; ")
    };
    let reset = ("x-ratelimit-reset", "60");
    for (status, headers, body, expected) in [
        (429, vec![("retry-after", "0")], "", "it is zero, negative or past"),
        (429, vec![("retry-after", "soon")], "", "it cannot be read as a time"),
        (429, vec![reset, ("x-ratelimit-remaining", "3")], "", "remaining is not 0"),
        (500, vec![reset], "", "no limit refused"),
        (429, vec![reset, ("x-ratelimit-reset-after", "5")], "", "another of them is later"),
        (
            429,
            vec![("x-ratelimit-reset", "1795165500"), ("x-ratelimit-reset-after", "5")],
            "",
            "a delay of the same limit is surer",
        ),
        (429, vec![("ratelimit", "\"d\";r=0;t=5"), ("age", "9")], "", "from a cache"),
        (429, vec![("ratelimit", "\"d;r=0")], "", "it cannot be read as a time"),
        (429, vec![("retry-after", "5"), reset], "", "an earlier source decided"),
        (
            403,
            vec![
                ("retry-after", "5"),
                ("x-ratelimit-resource", "core"),
                ("x-ratelimit-remaining", "0"),
                reset,
            ],
            "",
            "both conditions count here",
        ),
        (404, vec![("retry-after", "5")], "", "waiting alone does not help"),
        (429, vec![], r#"{"code":"DAILY_QUOTA_EXCEEDED","retry_after":58}"#, "of a day or longer"),
    ] {
        let told = why(status, &headers, body);
        assert!(told.contains(expected), "{status} {headers:?} {body}: {told}");
    }
}

/// What is made of an answer to one address, received at one instant.
fn with_answer<T>(
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
    make: impl FnOnce(&Answer<'_>) -> T,
) -> T {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let answer = Answer {
        method: "GET",
        url: "https://api.example.com/v1/items",
        received_at: instant("2026-11-20T09:00:00Z"),
        status,
        headers: &headers,
        body: body.as_bytes(),
    };
    make(&answer)
}

fn answered(upstream: &Upstream, status: u16, headers: &[(&str, &str)], body: &str) -> Reading {
    with_answer(status, headers, body, |answer| read(Some(upstream), answer))
}

fn with_rules(readings: Vec<Rule>) -> Upstream {
    Upstream { readings, ..upstreams::bare("practice") }
}

fn at(text: &str) -> Option<Timestamp> {
    Some(instant(text))
}

#[test]
fn a_rule_decides_before_the_built_in_readers() {
    let pending = Rule {
        wait: Some(Duration::from_secs(60)),
        for_at_most: Some(Duration::from_secs(900)),
        then: Some(Reason::Misconfigured),
        limit: Some("daily".to_owned()),
        says: Some("not checked yet".to_owned()),
        ..rule(status_json(404, "/code", "7"), Reason::KeyPending)
    };
    let upstream = with_rules(vec![pending, rule(status(404), Reason::Ok)]);
    let reading = answered(&upstream, 404, &[], r#"{"code":7,"message":"soon"}"#);
    assert_eq!((reading.reason, reading.retryable), (Reason::KeyPending, true));
    assert_eq!(reading.retry_at, None, "our own wait is no hint");
    assert_eq!(reading.wait, Some(Duration::from_secs(60)));
    assert_eq!(reading.becomes, Some((Duration::from_secs(900), Reason::Misconfigured)));
    assert_eq!(reading.limit.as_deref(), Some("daily"));
    assert_eq!(
        (reading.source.as_str(), reading.detail.as_str()),
        ("rule 1", "not checked yet: soon")
    );
    assert_eq!(answered(&upstream, 404, &[], "").reason, Reason::Ok);
    assert_eq!(answered(&upstream, 410, &[], "").reason, Reason::Gone);
}

#[test]
fn when_compares_values_by_their_text() {
    let fits = |when: When, headers: &[(&str, &str)], body: &str| {
        let upstream = with_rules(vec![rule(when, Reason::Blocked)]);
        answered(&upstream, 503, headers, body).reason == Reason::Blocked
    };
    let header =
        |pattern| When { header: [("X-Mark".to_owned(), pattern)].into(), ..When::default() };
    assert!(fits(header(ValuePattern::Present(true)), &[("x-mark", "1")], ""));
    assert!(
        !fits(header(ValuePattern::Present(true)), &[("x-mark", " ")], ""),
        "empty is no value"
    );
    assert!(fits(header(ValuePattern::Present(false)), &[], ""));
    assert!(!fits(header(ValuePattern::Equals("a".to_owned())), &[("x-mark", "ab")], ""));
    assert!(fits(
        header(ValuePattern::Matches(Regex::new("^a").unwrap())),
        &[("X-MARK", "ab")],
        ""
    ));
    let json = |value: &str| When {
        json: [("/a/0".to_owned(), ValuePattern::Equals(value.to_owned()))].into(),
        ..When::default()
    };
    assert!(fits(json("2"), &[], r#"{"a":[2]}"#));
    assert!(fits(json("true"), &[], r#"{"a":[true]}"#));
    assert!(!fits(json("2"), &[], "<html>"));
    let class = When { status: vec![StatusPattern::Class(5)], ..When::default() };
    assert!(fits(class, &[], ""));
}

#[test]
fn a_rules_hints_stand_in_their_order() {
    let limited =
        || Rule { hint: Some(Duration::from_secs(30)), ..rule(status(429), Reason::RateLimited) };
    let upstream = with_rules(vec![limited()]);
    assert_eq!(answered(&upstream, 429, &[], "").retry_at, at("2026-11-20T09:00:30Z"));
    let told = answered(&upstream, 429, &[("Retry-After", "5")], "");
    assert_eq!(told.retry_at, at("2026-11-20T09:00:05Z"), "the penalty is a fallback");
    assert_eq!(told.source, "rule 1; retry-after");

    let sentence = |pattern: &str| {
        let wait_pattern = Some(Regex::new(pattern).unwrap());
        with_rules(vec![Rule { wait_pattern, ..limited() }])
    };
    let upstream = sentence("in (?:(?<m>[0-9]+)m)?(?<s>[0-9.]+)s");
    let said = |text| answered(&upstream, 429, &[], text).retry_at;
    assert_eq!(said("try again in 1m2.5s"), at("2026-11-20T09:01:02.500Z"));
    assert_eq!(said("try again in 20s"), at("2026-11-20T09:00:20Z"));
    assert_eq!(said("try again in a while"), at("2026-11-20T09:00:30Z"));
    let upstream = sentence("on (?<date>[0-9-]+) at (?<time>[0-9:]+) UTC");
    let reading = answered(&upstream, 429, &[], "back on 2026-12-01 at 00:00 UTC.");
    assert_eq!(reading.retry_at, at("2026-12-01T00:00:00Z"));

    let reset = |unit| {
        let reset = Some(ResetHeader {
            header: "X-RateLimit-Reset".to_owned(),
            remaining: Some("X-RateLimit-Remaining".to_owned()),
            unit: Some(unit),
        });
        with_rules(vec![Rule { reset, ..rule(status(429), Reason::RateLimited) }])
    };
    let empty = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1500")];
    let reading = answered(&reset(ResetUnit::DeltaSeconds), 429, &empty, "");
    assert_eq!(reading.retry_at, at("2026-11-20T09:25:00Z"));
    let reading = answered(&reset(ResetUnit::EpochMillis), 429, &empty, "");
    assert_eq!(
        reading.retry_at, None,
        "elapsed by the declared unit; not judged by size after all"
    );
    let healthy = [("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "1500")];
    assert_eq!(answered(&reset(ResetUnit::DeltaSeconds), 429, &healthy, "").retry_at, None);
}

#[test]
fn a_quota_waits_for_the_reset_of_its_budget() {
    let time = chrono::NaiveTime::MIN;
    let daily = upstreams::budget("daily", "Asia/Tokyo", Resets::Daily { time });
    let monthly = upstreams::budget("monthly", "UTC", Resets::Monthly { day: 1, time });
    let limits = vec![monthly, daily];
    let quota = |limit: Option<&str>| Upstream {
        limits: limits.clone(),
        readings: vec![Rule {
            limit: limit.map(str::to_owned),
            ..rule(status(403), Reason::QuotaExhausted)
        }],
        ..upstreams::bare("practice")
    };
    let read = |limit, body| answered(&quota(limit), 403, &[], body);
    let reading = read(Some("monthly"), "");
    assert_eq!(reading.retry_at, at("2026-12-01T00:00:00Z"));
    assert_eq!(reading.limit.as_deref(), Some("monthly"));
    assert_eq!(read(None, "").retry_at, at("2026-11-20T15:00:00Z"));
    assert_eq!(read(None, "").limit.as_deref(), Some("daily"), "the one that resets first");
    assert_eq!(read(Some("gone"), "").retry_at, None, "a limit without a calendar has no reset");
    let short = r#"{"retry_after":58}"#;
    assert_eq!(read(Some("daily"), short).retry_at, at("2026-11-20T15:00:00Z"));
    let named = answered(&quota(None), 429, &[], r#"{"code":"MONTHLY_QUOTA_EXCEEDED"}"#);
    assert_eq!(named.limit.as_deref(), Some("monthly"));
    let plain = answered(&quota(None), 429, &[], "");
    assert_eq!((plain.reason, plain.retry_at), (Reason::RateLimited, None));
}

#[test]
fn github_means_both_of_its_hints() {
    let headers = |remaining| {
        [
            ("x-ratelimit-resource", "core"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", "1795165500"),
            ("retry-after", "60"),
        ]
    };
    let github = upstreams::bare("github");
    let both = answered(&github, 403, &headers("0"), "");
    assert_eq!(both.retry_at, at("2026-11-20T09:05:00Z"));
    assert_eq!(answered(&github, 403, &headers("9"), "").retry_at, at("2026-11-20T09:01:00Z"));
}

#[test]
fn tomorrow_is_the_only_budget_by_the_day() {
    let library = Library::new(Vec::new());
    let body = r#"{"error":{"code":429,"message":"Quota exceeded, try again tomorrow"}}"#;
    let told = |name: &str| {
        let upstream = library.get(name).unwrap();
        let reading = with_answer(429, &[], body, |answer| read(Some(&upstream), answer));
        (reading.limit, reading.retry_at.is_some(), reading.wait)
    };
    let daily = || Some("daily".to_owned());
    assert_eq!(told("google-indexing"), (daily(), true, None));
    // Nobody knows when that day begins: its span covers every zone.
    let (limit, is_hint, wait) = told("google-request-indexing");
    assert_eq!((limit, is_hint), (daily(), false));
    assert!(wait.unwrap() >= Duration::from_secs(86_400));
    // Of several budgets by the day a rule tells which, or nobody can.
    assert_eq!(told("bing-webmaster").0, daily());
    assert_eq!(told("google-search-console").0, None);
}
