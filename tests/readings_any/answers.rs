//! Answers of any kind: what servers say, and anything else, where they say it.

use paceline::clock::Timestamp;
use paceline::reading::Answer;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Number, Value, json};

/// Names that readers look for in headers.
pub const NAMES: &[&str] = &[
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
pub const KEYS: &[&str] = &[
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

pub fn text() -> impl Strategy<Value = String> {
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

pub fn status() -> impl Strategy<Value = u16> {
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

#[derive(Clone, Debug)]
pub struct Any {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub received_at: Timestamp,
    pub url: String,
}

pub fn any_answer() -> impl Strategy<Value = Any> {
    (status(), vec(header(), 0..8), body(), instant(), text()).prop_map(
        |(status, headers, body, received_at, url)| Any { status, headers, body, received_at, url },
    )
}

impl Any {
    pub fn answer(&self) -> Answer<'_> {
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

/// Words of refusals, as data holds them too.
const REFUSALS: &[&str] = &[
    "Too many requests",
    "Rate limit exceeded",
    "Quota exceeded, try again tomorrow",
    "daily limit exceeded",
    "You are being rate limited",
];

/// A document that is no error, with words of refusals anywhere in it.
pub fn document() -> impl Strategy<Value = Value> {
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
