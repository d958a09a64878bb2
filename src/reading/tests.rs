//! Answers by rule: one table a rule of what is written, and properties of any answer.

mod bodies;
mod explanations;
mod headers;

use proptest::prelude::*;

use super::*;

const NOW: i64 = 1_772_366_400; // 2026-03-01T12:00:00Z

fn read_in(status: u16, fields: &[(&str, &str)], body: &str) -> Reading {
    let headers: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(
        None,
        &Answer {
            method: "GET",
            url: "https://api.example.com/v1/items",
            received_at: Timestamp::from_secs(NOW),
            status,
            headers: &headers,
            body: body.as_bytes(),
        },
    )
}

/// Milliseconds from receipt to the hint.
fn wait(reading: &Reading) -> Option<u128> {
    reading.retry_at.map(|at| at.since(Timestamp::from_secs(NOW)).as_millis())
}

fn retry_after(value: &str) -> Option<u128> {
    wait(&read_in(429, &[("Retry-After", value)], ""))
}

const FURTHEST_MS: Option<u128> = Some(31 * 86_400_000);

#[test]
fn retry_after_in_every_form() {
    for (value, expected) in [
        ("120", Some(120_000)),
        (" 120\t", Some(120_000)),
        ("0.0001", Some(1)),
        ("1m0s", Some(60_000)),
        ("500ms", Some(500)),
        ("0", None),
        ("0.0", None),
        ("-0.5", None),
        ("120junk", None),
        ("+120", None),
        ("1e3", None),
        ("NaN", None),
        ("Infinity", None),
        ("\"120\"", None),
        ("999999999", FURTHEST_MS),
        ("1000000000", None),
        ("1772366490.5", Some(90_500)),
        ("1772366490000", Some(90_000)),
        ("1772366490000000", Some(90_000)),
        ("1772366490000000000", Some(90_000)),
        ("30, 90", Some(90_000)),
        ("0, 30", Some(30_000)),
        ("30, soon", None),
        ("Sun, 01 Mar 2026 12:10:00 GMT", Some(600_000)),
        ("Sunday, 01-Mar-26 12:10:00 GMT", Some(600_000)),
        ("Sunday, 01-Mar-77 12:10:00 GMT", None),
        ("Sun, 01 Mar 2026 12:10:00 EST", None),
        ("2026-03-01T12:00:07.25Z", Some(7_250)),
        ("2026-03-01T12:00:07", None),
    ] {
        assert_eq!(retry_after(value), expected, "{value:?}");
    }
}

#[test]
fn the_first_usable_source_wins() {
    let both = [("retry-after-ms", "1500"), ("Retry-After", "9")];
    assert_eq!(wait(&read_in(429, &both, "")), Some(1_500));
    let zero = [("retry-after-ms", "0"), ("Retry-After", "9")];
    assert_eq!(wait(&read_in(429, &zero, "")), Some(9_000));
    let body = r#"{"retry_after": 3.5}"#;
    assert_eq!(wait(&read_in(429, &[("Retry-After", "0")], body)), Some(3_500));
    let reset = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "30")];
    assert_eq!(wait(&read_in(429, &reset, body)), Some(3_500));
    assert_eq!(wait(&read_in(429, &reset, r#"{"retry_after": 0}"#)), Some(30_000));
}

#[test]
fn dates_are_measured_against_the_server_unless_cached() {
    let date = ("Date", "Sun, 01 Mar 2026 12:05:00 GMT");
    let hint = ("Retry-After", "Sun, 01 Mar 2026 12:05:30 GMT");
    assert_eq!(wait(&read_in(503, &[date, hint], "")), Some(30_000));
    assert_eq!(wait(&read_in(503, &[date, hint, ("Age", "3")], "")), Some(330_000));
    let unreadable = ("Date", "yesterday");
    assert_eq!(wait(&read_in(503, &[unreadable, hint], "")), Some(330_000));
}

#[test]
fn resets_are_paired_by_bucket() {
    let healthy = [("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "30")];
    assert_eq!(wait(&read_in(429, &healthy, "")), None);
    let unknown = [("x-ratelimit-reset", "30")];
    assert_eq!(wait(&read_in(429, &unknown, "")), Some(30_000));
    assert_eq!(wait(&read_in(500, &unknown, "")), None, "no limit refused");
    let relative = [
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1772366500"),
        ("X-RateLimit-Reset-After", "2.5"),
    ];
    assert_eq!(wait(&read_in(429, &relative, "")), Some(2_500));
    let two = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6s"),
    ];
    assert_eq!(wait(&read_in(429, &two, "")), Some(6_000));
    let cross = [("x-rate-limit-remaining", "512"), ("ratelimit-reset", "12")];
    assert_eq!(wait(&read_in(429, &cross, "")), None);
}

#[test]
fn buckets_that_name_an_hour_or_more_are_quotas() {
    let kong = [("X-RateLimit-Remaining-Minute", "7"), ("X-RateLimit-Remaining-Day", "0")];
    assert_eq!(read_in(429, &kong, "").reason, Reason::QuotaExhausted);
    let minute = [("X-RateLimit-Remaining-Minute", "0"), ("X-RateLimit-Remaining-Day", "9")];
    assert_eq!(read_in(429, &minute, "").reason, Reason::RateLimited);
    let policy =
        [("RateLimit-Policy", "\"default\";q=1000;w=86400"), ("RateLimit", "\"default\";r=0;t=60")];
    let reading = read_in(429, &policy, "");
    assert_eq!((reading.reason, wait(&reading)), (Reason::QuotaExhausted, Some(60_000)));
    let old = [
        ("RateLimit-Limit", "1000, 10;w=1, 1000;w=3600"),
        ("RateLimit-Remaining", "0"),
        ("RateLimit-Reset", "7"),
    ];
    assert_eq!(read_in(429, &old, "").reason, Reason::QuotaExhausted);
}

#[test]
fn malformed_and_cached_ratelimit_fields_are_ignored() {
    for value in
        ["\"default\";r=0;t=", "\"default;r=0", "default r=0", "(\"a\" \"b\");r=0;t=5", ";;;"]
    {
        assert_eq!(wait(&read_in(429, &[("RateLimit", value)], "")), None, "{value}");
    }
    let cached = [("RateLimit", "\"default\";r=0;t=5"), ("Age", "9")];
    assert_eq!(wait(&read_in(429, &cached, "")), None);
}

#[test]
fn a_clamped_hint_says_so() {
    let reading = read_in(429, &[("Retry-After", "99999999")], "");
    assert!(reading.clamped && reading.detail.contains("31 days"), "{reading:?}");
    assert_eq!(wait(&reading), FURTHEST_MS);
    assert!(!read_in(429, &[("Retry-After", "2678400")], "").clamped);
}

/// Status, body, reason, retryable.
type Row = (u16, &'static str, Reason, bool);

fn holds(rows: &[Row]) {
    for (status, body, reason, retryable) in rows {
        let reading = read_in(*status, &[], body);
        assert_eq!((reading.reason, reading.retryable), (*reason, *retryable), "{status} {body}");
    }
}

#[test]
fn typed_codes_beat_the_status() {
    holds(&[
        (400, r#"{"code":"RATE_LIMIT_REACHED"}"#, Reason::RateLimited, true),
        (409, r#"{"error":"too_many_concurrent_requests"}"#, Reason::ConcurrencyLimited, true),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, Reason::QuotaExhausted, false),
        (429, r#"{"error":{"code":"DAILY_LIMIT_EXCEEDED"}}"#, Reason::QuotaExhausted, true),
        (429, r#"{"errorType":"RATE_LIMIT","policyName":"DAILY"}"#, Reason::QuotaExhausted, true),
        (409, r#"{"error":{"code":"QuotaExceeded"}}"#, Reason::QuotaExhausted, false),
        (403, r#"{"error":"token_expired"}"#, Reason::AuthExpired, false),
        (503, r#"{"error":{"type":"server_error","code":null}}"#, Reason::Overloaded, true),
        (400, r#"{"error":{"type":"server_error"}}"#, Reason::Transient, true),
        (400, r#"{"Code":"RequestExpired"}"#, Reason::AuthExpired, false),
        (400, r#"{"code":"CONCURRENCY_LIMIT"}"#, Reason::ConcurrencyLimited, true),
        (400, r#"{"code":"TOO_MANY_CONCURRENT"}"#, Reason::ConcurrencyLimited, true),
        (400, r#"{"code":"concurrent_jobs_reached"}"#, Reason::ConcurrencyLimited, true),
        (403, r#"{"errorType":"MISSING_SCOPES","policyName":"DAILY"}"#, Reason::Forbidden, false),
        (
            409,
            r#"{"error":"too_many_concurrent_requests","policyName":"DAILY"}"#,
            Reason::ConcurrencyLimited,
            true,
        ),
        (422, r#"[{"message":"Too many requests"}]"#, Reason::RateLimited, true),
        (422, r#"{"errors":"Too many requests"}"#, Reason::RateLimited, true),
        (422, r#"{"errors":"Title: too many requests"}"#, Reason::Unprocessable, false),
        (422, r#"{"errors":{"title":["Too many requests"]}}"#, Reason::Unprocessable, false),
    ]);
}

#[test]
fn refusals_come_under_a_success_too() {
    holds(&[
        (200, r#"{"ok":false,"error":"ratelimited"}"#, Reason::RateLimited, true),
        (200, r#"{"ok":false,"error":"missing_scope"}"#, Reason::Forbidden, false),
        (200, r#"{"ok":false,"error":"channel_not_found"}"#, Reason::NotFound, false),
        (200, r#"{"ok":false,"error":"odd"}"#, Reason::Unknown, false),
        (200, r#"{"error":{"code":"maxlag","info":"waiting"}}"#, Reason::Overloaded, true),
        (200, r#"{"errors":[{"type":"RATE_LIMITED","message":"x"}]}"#, Reason::RateLimited, true),
        (200, r#"{"json":{"errors":[["RATELIMIT","slow","x"]]}}"#, Reason::RateLimited, true),
        (200, r#"{"errors":[{"message":"boom"}],"data":null}"#, Reason::Unknown, false),
        (200, r#"{"errors":[{"message":"boom"}],"data":{"a":1}}"#, Reason::Ok, false),
        (200, r#"{"error":{"code":429,"message":"x"}}"#, Reason::RateLimited, true),
        (200, r#"{"error":null,"status":"forbidden","code":"forbidden"}"#, Reason::Ok, false),
        (200, r#"{"message":"daily limit exceeded"}"#, Reason::QuotaExhausted, true),
        (200, r#"{"message":"daily limit exceeded","id":7}"#, Reason::Ok, false),
        (200, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}"#, Reason::Unknown, false),
        (200, r#"{"jsonrpc":"2.0","id":1,"result":"Too many requests"}"#, Reason::Ok, false),
        (200, r#"{"title":"Too many requests","description":"A song"}"#, Reason::Ok, false),
        (200, r#"{"title":"Too many requests","status":429}"#, Reason::RateLimited, true),
        (200, r#"{"error":{"code":0,"message":"done"}}"#, Reason::Ok, false),
        (200, r#"{"error":{"code":"x"},"data":{"a":1}}"#, Reason::Ok, false),
        (200, r#"{"status":404,"title":"Not Found"}"#, Reason::Ok, false),
        (
            200,
            r#"{"errors":[{"message":"boom"}],"data":null,"extensions":{"cost":1}}"#,
            Reason::Unknown,
            false,
        ),
        (200, r#"{"errors":[{"message":"boom"}],"rows":[1]}"#, Reason::Ok, false),
        (200, r#"{"code":"RequestExpired","id":7}"#, Reason::Ok, false),
        (200, r#"{"code":"FORBIDDEN","id":7}"#, Reason::Ok, false),
        (200, r#"{"ok":false,"error":"invalid_arguments"}"#, Reason::InvalidRequest, false),
        (200, "Too many requests", Reason::RateLimited, true),
        (302, "Too many requests", Reason::Misconfigured, false),
        (402, "Too many requests", Reason::QuotaExhausted, false),
        (
            200,
            r#"{"message":"Too many requests","data":null,"rows":[],"meta":{}}"#,
            Reason::RateLimited,
            true,
        ),
        (200, r#"{"message":"Too many requests","rows":[1]}"#, Reason::Ok, false),
        (200, r#"{"title":"Too many requests","code":"SONG"}"#, Reason::Ok, false),
        (200, r#"{"title":"Too many requests","type":"a:b"}"#, Reason::RateLimited, true),
        (200, r#"{"message":"Too many requests","status":"200"}"#, Reason::Ok, false),
        (200, r#"{"message":"Too many requests","status":"400"}"#, Reason::RateLimited, true),
        (200, r#"{"message":"Too many requests","status":400}"#, Reason::RateLimited, true),
    ]);
}

#[test]
fn every_reason_is_read_by_the_name_it_is_shown_by() {
    for reason in Reason::ALL {
        assert_eq!(reason.to_string().parse::<Reason>().unwrap(), reason);
    }
}

#[test]
fn phrases_are_the_last_resort() {
    holds(&[
        (429, r#"{"message":"You have reached your daily limit."}"#, Reason::QuotaExhausted, true),
        (
            400,
            r#"{"Message":"You have exceeded your daily url submission quota : 100"}"#,
            Reason::QuotaExhausted,
            true,
        ),
        (400, r#"{"message":"The daily report is at /limit"}"#, Reason::InvalidRequest, false),
        (400, r#"{"message":"Jane reached the daily cap"}"#, Reason::QuotaExhausted, true),
        (429, r#"{"message":"Jane reached the minutely cap"}"#, Reason::RateLimited, true),
        (400, r#"{"message":"Send no more than 5 rows"}"#, Reason::TooLarge, false),
        (429, r#"{"message":"Send no more than 5 rows"}"#, Reason::RateLimited, true),
        (400, r#"{"message":"Send no more than 5 rows per day"}"#, Reason::InvalidRequest, false),
        (429, r#"{"message":"Limit Exceeded"}"#, Reason::QuotaExhausted, true),
        (
            429,
            r#"{"message":"limit of 10 per minute and 1000 per day"}"#,
            Reason::RateLimited,
            true,
        ),
        (422, "No more than 10000 urls allowed", Reason::TooLarge, false),
        (401, r#"{"error":{"message":"invalid x-api-key"}}"#, Reason::Misconfigured, false),
        (403, "<html><h1>Forbidden</h1>rate limit exceeded</html>", Reason::Forbidden, false),
    ]);
}

#[test]
fn a_google_limit_of_zero_never_waits() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":
        "type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":
        {"quota_limit_value":"0","quota_unit":"1/d/{project}"}}]}}"#;
    let reading = read_in(429, &[("Retry-After", "5")], body);
    assert_eq!((reading.reason, reading.retryable), (Reason::QuotaExhausted, false));
    assert_eq!(reading.retry_at, None);
}

#[test]
fn blocks_are_marked() {
    let challenge = [("cf-mitigated", "challenge"), ("Retry-After", "5")];
    let reading = read_in(429, &challenge, r#"{"code":"rate_limited"}"#);
    assert_eq!((reading.reason, wait(&reading)), (Reason::Blocked, None));
    let page = [("Server", "cloudflare"), ("Retry-After", "60")];
    let reading = read_in(429, &page, "error code: 1015");
    assert_eq!((reading.reason, wait(&reading)), (Reason::Blocked, Some(60_000)));
    assert_eq!(read_in(403, &[("Server", "cloudflare")], "{}").reason, Reason::Forbidden);
}

#[test]
fn the_servers_words_are_one_clean_line() {
    let long = "x".repeat(500);
    for (body, expected) in [
        (r#"{"message":"slow\u001b[31m\r\ndown"}"#.to_owned(), "slow [31m down".to_owned()),
        ("first\nsecond".to_owned(), "first".to_owned()),
        (String::new(), "status 429 without a word".to_owned()),
        (format!(r#"{{"detail":"{long}"}}"#), format!("{}…", "x".repeat(199))),
    ] {
        assert_eq!(read_in(429, &[], &body).detail, expected);
    }
}

#[test]
fn a_detail_is_one_short_line_whatever_a_rule_says() {
    let said = |says: &str, value: &str| {
        let text =
            "name = \"shop\"\n[[reading]]\nwhen = { status = 429 }\nreason = \"rate_limited\"\n";
        let mut upstream = crate::quota::declare::parse("shop", "shop.toml", text).unwrap();
        upstream.readings[0].says = Some(says.to_owned());
        let headers = [("Retry-After".to_owned(), value.to_owned())];
        let answer = Answer {
            method: "GET",
            url: "",
            received_at: Timestamp::from_secs(NOW),
            status: 429,
            headers: &headers,
            body: b"slow down",
        };
        read(Some(&upstream), &answer).detail
    };
    assert_eq!(said("wait\u{1b}\n a while", "5"), "wait a while: slow down");
    assert_eq!(said("\u{0}", "5"), "slow down");
    let long = said(&"x".repeat(500), "99999999");
    assert!(long.chars().count() <= 400, "{long}");
    let end = "x…: slow down (the hint is more than 31 days off and was clamped there)";
    assert!(long.ends_with(end), "{long}");
}

#[test]
fn lists_are_read_to_their_sixty_fourth_member() {
    let policy = [("RateLimit-Policy", "\"burst\";q=1;w=1, \"daily\";q=9;w=86400")];
    let reason = |others: usize| {
        let names = "\"burst\",".repeat(others);
        let body = format!(r#"{{"type":"a:quota-exceeded","violated-policies":[{names}"daily"]}}"#);
        read_in(429, &policy, &body).reason
    };
    assert_eq!(reason(63), Reason::QuotaExhausted);
    assert_eq!(reason(64), Reason::RateLimited);
}

fn field() -> impl Strategy<Value = (String, String)> {
    const NAMES: &[&str] = &[
        "Retry-After",
        "retry-after-ms",
        "Date",
        "Age",
        "X-RateLimit-Reset",
        "X-RateLimit-Remaining",
        "RateLimit",
        "RateLimit-Policy",
        "RateLimit-Limit",
        "RateLimit-Reset",
        "RateLimit-Remaining",
        "Content-Type",
        "Server",
        "WWW-Authenticate",
        "x-shopify-shop-api-call-limit",
        "x-ratelimit-reset-after",
        "x-ratelimit-index",
    ];
    const VALUES: &[&str] = &[
        "0",
        "15",
        "1.5",
        "-3",
        "1772366490",
        "99999999999999999999",
        "6m0s",
        "0,30",
        "",
        "Sun, 01 Mar 2026 12:10:00 GMT",
        "Sunday, 01-Mar-77 12:10:00 GMT",
        "2026-03-01T12:10Z",
        "\"d\";r=0;t=30",
        "limit=1, remaining=0, reset=5",
        "\"d\";q=1;w=86400",
        "remaining=0; resets=41",
        "text/html",
        "cloudflare",
        "Bearer",
        "40/40",
    ];
    let value = prop_oneof![
        3 => proptest::sample::select(VALUES).prop_map(str::to_owned),
        1 => "\\PC{0,40}",
    ];
    (proptest::sample::select(NAMES), value).prop_map(|(name, value)| (name.to_owned(), value))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    const BODIES: &[&str] = &[
        r#"{"error":{"code":"rate_limit_exceeded"},"retry_after":1e300}"#,
        r#"{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"@type":".RetryInfo","retryDelay":"9s"}]}}"#,
        r#"{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":1e308,"throttleStatus":{"maximumAvailable":1e308,"currentlyAvailable":-1e308,"restoreRate":1e-300}}}}"#,
        "<Error><Code>SlowDown</Code>",
        "<title",
        "<Code>",
        "<é",
        "[[[[",
        "\"",
        "error code: 10",
    ];
    prop_oneof![
        proptest::sample::select(BODIES).prop_map(|text| text.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..200),
        "[<>{}\"/a-zA-Zé]{0,60}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn any_answer_has_a_sound_reading(
        status in prop_oneof![any::<u16>(), proptest::sample::select(
            [200_u16, 202, 401, 403, 413, 429, 500, 503].as_slice(),
        )],
        headers in proptest::collection::vec(field(), 0..6),
        body in body(),
        received in 0_i64..4_000_000_000_000_000_000,
    ) {
        let received_at = Timestamp::from_nanos(received);
        let answer = Answer {
            method: "GET", url: "https://api.example/", received_at, status,
            headers: &headers, body: &body,
        };
        let reading = read(None, &answer);
        if let Some(at) = reading.retry_at {
            prop_assert!(reading.retryable || reading.reason == Reason::AcceptedPending);
            prop_assert!(at >= received_at + Duration::from_millis(1));
            prop_assert!(at <= received_at + moment::FURTHEST);
        }
        prop_assert!(!reading.detail.chars().any(char::is_control));
        prop_assert!(reading.detail.chars().count() <= super::LONGEST);
    }

    #[test]
    fn any_instant_of_receipt_is_borne(received in any::<i64>(), value in "\\PC{0,30}") {
        let headers = [
            ("Retry-After".to_owned(), value),
            ("Date".to_owned(), "Sun, 01 Mar 2026 12:00:00 GMT".to_owned()),
            ("X-RateLimit-Reset".to_owned(), "Sunday, 01-Mar-77 12:10:00 GMT".to_owned()),
        ];
        let answer = Answer {
            method: "GET", url: "", received_at: Timestamp::from_nanos(received), status: 429,
            headers: &headers, body: b"",
        };
        let _ = read(None, &answer);
    }
}
