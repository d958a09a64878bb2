//! Any answer at all: random bytes where servers put a status, headers and a body.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

#[expect(dead_code, reason = "the rest is for the other tests")]
mod upstreams;

use std::time::Duration;

use chrono::NaiveTime;
use paceline::clock::Timestamp;
use paceline::quota::Upstream;
use paceline::quota::calendar::Resets;
use paceline::reading::rules::{ResetHeader, ResetUnit, Rule, StatusPattern, ValuePattern, When};
use paceline::reading::{
    Answer, Explanation, Reason, Said, Topic, explain, read, remaining::remaining, unreachable,
};
use proptest::collection::{btree_map, vec};
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::FileFailurePersistence;
use regex::Regex;
use serde_json::{Map, Number, Value, json};

const FURTHEST: Duration = Duration::from_secs(31 * 86_400);

const NAMES: &[&str] = &[
    "Retry-After",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "Date",
    "Age",
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "RateLimit-Reason",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-RateLimit-Reset-Ms",
    "x-ratelimit-reset-after",
    "X-RateLimit-Remaining-Day",
    "x-ratelimit-resource",
    "Zendesk-RateLimit-Foo",
    "Content-Type",
    "Server",
    "WWW-Authenticate",
    "Stripe-Rate-Limited-Reason",
    "X-Shopify-Shop-Api-Call-Limit",
    "MediaWiki-API-Error",
    "x-amzn-ErrorType",
    "cf-mitigated",
    "Location",
];

const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "15",
    "1.5",
    "0.0000000001",
    "1772366490",
    "1772366490000",
    "99999999999999999999999999",
    "6m0s",
    "99999999999999999999h",
    "0, 30, x",
    "Sun, 01 Mar 2026 12:10:00 GMT",
    "Sunday, 31-Dec-99 23:59:60 GMT",
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "9999-12-31T23:59:60+23:59",
    "\"d\";r=0;t=30",
    "\"d\";q=1;w=999999999999999",
    "limit=1, remaining=0, reset=5",
    "remaining=0; resets=41",
    "application/problem+json",
    "text/html",
    "cloudflare",
    "challenge",
    "quota",
    "39/40",
    "ratelimited",
    "Bearer error=\"insufficient_scope\"",
];

/// Names that readers look for in bodies.
const KEYS: &[&str] = &[
    "error",
    "errors",
    "code",
    "message",
    "type",
    "status",
    "reason",
    "details",
    "metadata",
    "extensions",
    "cost",
    "requestedQueryCost",
    "throttleStatus",
    "currentlyAvailable",
    "maximumAvailable",
    "restoreRate",
    "retry_after",
    "retry_after_ms",
    "retryDelay",
    "seconds",
    "nanos",
    "@type",
    "quota_limit_value",
    "violations",
    "quotaId",
    "violated-policies",
    "period",
    "policyName",
    "ok",
    "success",
    "json",
    "ratelimit",
    "__type",
    "parameters",
    "data",
];

const WORDS: &[&str] = &[
    "RATE_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "THROTTLED",
    "QuotaExceeded",
    "daily_quota_exceeded",
    "insufficient_quota",
    "type.googleapis.com/google.rpc.RetryInfo",
    "type.googleapis.com/google.rpc.ErrorInfo",
    "type.googleapis.com/google.rpc.QuotaFailure",
    "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "You have exceeded your daily limit",
    "limit exceeded",
    "try again in 3m2.5s",
    "34.5s",
    "999999999999999999999s",
    "1/d/{project}",
    "\u{1b}[31m\u{202e}\u{0}\u{85}red",
    "é\u{fffd}\u{2028}",
];

fn text() -> impl Strategy<Value = String> {
    let bytes = vec(any::<u8>(), 0..60).prop_map(|b| String::from_utf8_lossy(&b).into_owned());
    prop_oneof![
        6 => select(VALUES).prop_map(str::to_owned),
        3 => select(WORDS).prop_map(str::to_owned),
        3 => bytes,
        1 => (any::<char>(), 0_usize..3_000).prop_map(|(c, n)| c.to_string().repeat(n)),
    ]
}

fn header() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        8 => select(NAMES).prop_map(str::to_owned),
        1 => "x-rate-?limit-(remaining|reset)-[a-z]{0,4}",
        1 => text(),
    ];
    (name, text())
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(|n| json!(n)),
        any::<u64>().prop_map(|n| json!(n)),
        (-10_i64..200).prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| Number::from_f64(n).map_or(Value::Null, Value::Number)),
        select([1e300, 5e-324, -0.0, 1e19].as_slice()).prop_map(|n| json!(n)),
    ]
}

/// JSON made of the names and words that readers look for.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        3 => number(),
        5 => text().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let fields = vec((select(KEYS), inner.clone()), 0..6);
        let object = fields.prop_map(|fields| {
            let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
            Value::Object(fields.collect::<Map<_, _>>())
        });
        prop_oneof![4 => object, 1 => vec(inner, 0..4).prop_map(Value::Array)]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let cut = (tree(), 0_usize..40).prop_map(|(tree, kept)| {
        let mut text = tree.to_string().into_bytes();
        text.truncate(kept);
        text
    });
    let deep = (select(["[", "{\"error\":", "<title><"].as_slice()), 0_usize..20_000)
        .prop_map(|(part, n)| part.repeat(n).into_bytes());
    let huge = "[0-9]{1,400}".prop_map(|digits| {
        format!("{{\"retry_after\":{digits},\"error\":{{\"code\":{digits}}}}}").into_bytes()
    });
    let packed =
        vec(any::<u8>(), 0..300).prop_map(|rest| [b"\x1f\x8b\x08\x00".as_slice(), &rest].concat());
    let page = (select(["<html>", "<Error><Code>", "<title", "<h1 >"].as_slice()), text())
        .prop_map(|(tag, text)| format!("{tag}{text}</").into_bytes());
    prop_oneof![
        6 => tree().prop_map(|tree| tree.to_string().into_bytes()),
        1 => cut,
        1 => deep,
        1 => huge,
        1 => packed,
        1 => page,
        2 => vec(any::<u8>(), 0..300),
        2 => text().prop_map(String::into_bytes),
    ]
}

fn status() -> impl Strategy<Value = u16> {
    let known = [200_u16, 202, 302, 400, 401, 402, 403, 404, 409, 413, 420, 422, 429, 500, 503];
    prop_oneof![1 => any::<u16>(), 5 => select(known.to_vec())]
}

fn instant() -> impl Strategy<Value = Timestamp> {
    let at = prop_oneof![
        4 => 0_i64..4_000_000_000_000_000_000,
        1 => any::<i64>(),
        1 => select([i64::MIN, -1, 0, i64::MAX - 1, i64::MAX].as_slice()),
    ];
    at.prop_map(Timestamp::from_nanos)
}

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

fn upstream() -> impl Strategy<Value = Upstream> {
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

#[derive(Clone, Debug)]
struct Any {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    received_at: Timestamp,
    url: String,
}

fn any_answer() -> impl Strategy<Value = Any> {
    (status(), vec(header(), 0..8), body(), instant(), text()).prop_map(
        |(status, headers, body, received_at, url)| Any { status, headers, body, received_at, url },
    )
}

impl Any {
    fn answer(&self) -> Answer<'_> {
        Answer {
            method: "GET",
            url: &self.url,
            received_at: self.received_at,
            status: self.status,
            headers: &self.headers,
            body: &self.body,
        }
    }
}

fn is_sound(any: &Any, upstream: Option<&Upstream>) -> Result<(), TestCaseError> {
    let received = any.received_at;
    let reading = read(upstream, &any.answer());
    if let Some(at) = reading.retry_at {
        prop_assert!(reading.retryable || reading.reason == Reason::AcceptedPending);
        prop_assert!(at >= received, "{at:?} is before {received:?}");
        prop_assert!(at <= received + FURTHEST, "{at:?} is past the clamp");
    }
    prop_assert!(reading.detail.chars().count() <= 400, "{}", reading.detail);
    prop_assert!(!reading.detail.chars().any(char::is_control), "{:?}", reading.detail);
    prop_assert!(!reading.detail.is_empty());
    let explanation = explain(upstream, &any.answer());
    prop_assert_eq!(&explanation.reading, &reading);
    agrees(&explanation)?;
    for left in upstream
        .map(|up| remaining(up, &paceline::job::Columns::new(), &any.answer()))
        .unwrap_or_default()
    {
        let resets_at = left.resets_at;
        prop_assert!(resets_at.is_none_or(|at| at >= received && at <= received + FURTHEST));
    }
    reachable(&explanation, upstream)
}

/// The last reason that counts, and the hint that counts, are the reading's.
fn agrees(explanation: &Explanation) -> Result<(), TestCaseError> {
    let reading = &explanation.reading;
    let of =
        |topic| explanation.steps.iter().filter(move |step| step.topic == topic && step.decided);
    let Some(Said::Reason { reason, retryable, .. }) =
        of(Topic::Reason).next_back().and_then(|step| step.said.clone())
    else {
        return Err(TestCaseError::fail("nobody decided"));
    };
    prop_assert_eq!((reason, retryable), (reading.reason, reading.retryable));
    prop_assert_eq!(of(Topic::Hint).next().is_some(), reading.retry_at.is_some());
    Ok(())
}

/// A rule that is said never to match does not decide.
fn reachable(explanation: &Explanation, upstream: Option<&Upstream>) -> Result<(), TestCaseError> {
    let rules = upstream.map(|upstream| upstream.readings.as_slice()).unwrap_or_default();
    for never in unreachable(rules) {
        let name = format!("rule {}", never.number);
        let decides = explanation.steps.iter().any(|step| step.decided && step.reader == name);
        prop_assert!(!decides, "{:?}", never);
    }
    Ok(())
}

/// An answer of 256 KiB, made of one part.
fn made_of(part: &str) -> String {
    part.repeat(256 * 1024 / part.len())
}

/// What costs the square of its length, or more, takes minutes here instead of a second.
#[test]
fn what_is_made_to_be_slow_is_read() {
    let policies = made_of("\"a\";q=1;w=60, ") + "\"b\"";
    let limits = made_of("\"zz\";r=0, ") + "\"b\"";
    let list = |start: &str, part: &str, end: &str| format!("{start}{}1{end}", made_of(part));
    let info = "{\"@type\":\"ErrorInfo\",\"metadata\":{\"quota_unit\":\"aB cD\"}},";
    let header = [("Retry-After".to_owned(), made_of("1,"))];
    let headers = [("RateLimit-Policy".to_owned(), policies), ("RateLimit".to_owned(), limits)];
    let names = list("{\"type\":\"a:quota-exceeded\",\"violated-policies\":[", "\"zz\",", "]}");
    let bodies = [
        made_of("<title "),
        made_of("<Message <Code "),
        made_of("[{\"error\":"),
        made_of("exceeded per dail "),
        made_of("\n"),
        made_of("\u{1} "),
        list("{\"error\":{\"details\":[", info, "]}}"),
        list("{\"errors\":[", "{\"extensions\":{\"code\":\"x\"}},", "]}"),
        list("{\"retry_after\":", "9", "}"),
    ];
    let none = [].as_slice();
    let told = [(header.as_slice(), &names), (headers.as_slice(), &names)];
    for (headers, body) in bodies.iter().map(|body| (none, body)).chain(told) {
        let answer = Answer {
            method: "GET",
            url: "https://api.example.com/",
            received_at: Timestamp::from_secs(1_772_366_400),
            status: 429,
            headers,
            body: body.as_bytes(),
        };
        assert!(read(None, &answer).detail.chars().count() <= 400);
    }
}

/// Words of refusals, as data holds them too.
const REFUSALS: &[&str] = &[
    "Too many requests",
    "Rate limit exceeded",
    "Quota exceeded, try again tomorrow",
    "daily limit exceeded",
    "You are being rate limited",
];

/// A document that is no error, with words of refusals anywhere in it.
fn document() -> impl Strategy<Value = Value> {
    let words = || prop_oneof![3 => select(REFUSALS).prop_map(str::to_owned), 1 => "[a-z ]{0,9}"];
    let names = ["title", "description", "message", "text", "detail", "author", "name"];
    let fields = btree_map(select(names.to_vec()), words().prop_map(Value::String), 0..6);
    // What makes it one: an identifier of its own, a list of things, an author.
    let own = prop_oneof![
        any::<u32>().prop_map(|id| json!({ "id": id })),
        vec(words(), 1..4).prop_map(|items| json!({ "items": items })),
        words().prop_map(|name| json!({ "author": { "name": name } })),
        select(
            [json!({ "success": true }), json!({ "status": "done" }), json!({ "status": 200 })]
                .to_vec()
        ),
    ];
    let whole = (fields, own).prop_map(|(fields, own)| {
        let own = own.as_object().cloned().unwrap();
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        Value::Object(own.into_iter().chain(fields).collect())
    });
    let many = vec(whole.clone(), 1..4).prop_map(Value::Array);
    let page = vec(whole.clone(), 0..4).prop_map(|data| json!({ "data": data, "count": 1 }));
    prop_oneof![3 => whole, 1 => many, 1 => page.prop_filter("empty", |page| page["data"] != json!([]))]
}

/// Of each kind 1,000 cases, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = usual.cases.max(1_000);
    let file = FileFailurePersistence::Direct("proptest-regressions/readings_any.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(file)), ..usual }
}

proptest! {
    #![proptest_config(config())]

    /// A success that merely contains the words of a refusal is one.
    #[test]
    fn data_that_speaks_of_limits_is_no_refusal(document in document()) {
        let body = document.to_string().into_bytes();
        let received_at = Timestamp::from_secs(1_772_366_400);
        let url = "https://api.example.com/".to_owned();
        let any = Any { status: 200, headers: Vec::new(), body, received_at, url };
        let reading = read(None, &any.answer());
        prop_assert_eq!(reading.reason, Reason::Ok, "{} from {}", document, reading.source);
    }

    #[test]
    fn any_answer_is_read_by_the_built_in_readers(any in any_answer()) {
        is_sound(&any, None)?;
    }

    #[test]
    fn any_answer_is_read_by_any_rules(any in any_answer(), upstream in upstream()) {
        is_sound(&any, Some(&upstream))?;
    }
}
