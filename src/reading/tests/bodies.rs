//! Bodies: codes, problems, pages and words, and the delays in them.

use super::*;

#[test]
fn words_name_the_window_that_the_headers_do_not() {
    let body = r#"{"message": "You have used up your requests for this day"}"#;
    let reading = read_in(429, &[("X-RateLimit-Remaining", "0")], body);
    assert_eq!(reading.reason, Reason::QuotaExhausted, "{reading:?}");
}

#[test]
fn a_list_of_one_is_its_member_where_that_is_an_error() {
    let list = r#"[{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]"#;
    assert_eq!(read_in(400, &[], list).reason, Reason::RateLimited);
    assert_eq!(read_in(200, &[], list).reason, Reason::Ok, "rows of an answer");
    let row = r#"[{"code": "RATE_LIMITED"}]"#;
    assert_eq!(read_in(400, &[], row).reason, Reason::InvalidRequest);
}

#[test]
fn of_a_page_the_title_is_what_was_said() {
    let page = "<html><title>Down for now</title><p>more</p></html>";
    for body in [page.to_owned(), format!("\n<!-- x -->{page}"), format!("<!DOCTYPE html>{page}")] {
        let typed = [("Content-Type", "text/html")];
        assert_eq!(read_in(503, &typed, &body).detail, "Down for now", "{body}");
    }
    assert_eq!(read_in(503, &[], page).detail, "Down for now");
    let text = "<html> is not closed in line 3\nmore";
    assert_eq!(read_in(200, &[], "").detail, "status 200");
    assert_eq!(read_in(503, &[], "").detail, "status 503 without a word");
    assert_eq!(
        read_in(400, &[], &format!("the tag {text}")).detail,
        format!("the tag {}", &text[..30])
    );
}

#[test]
fn a_code_that_only_echoes_the_status_leaves_the_rest_its_say() {
    let used_up = [("RateLimit-Remaining", "0"), ("RateLimit-Reset", "7")];
    let reading = read_in(403, &used_up, r#"{"code":"forbidden"}"#);
    assert_eq!(reading.reason, Reason::RateLimited);
    assert_eq!(read_in(400, &used_up, r#"{"code":"forbidden"}"#).reason, Reason::Forbidden);
}

#[test]
fn amazons_bucket_is_a_rate_and_its_unauthorized_may_be_the_token() {
    let reason = |status, body: &str| {
        let fields = [("x-amzn-RequestId", "1"), ("X-RateLimit-Remaining-Day", "0")];
        read_in(status, &fields, body).reason
    };
    let quota = r#"{"errors":[{"code":"QuotaExceeded","message":"You exceeded your quota"}]}"#;
    assert_eq!(reason(429, quota), Reason::RateLimited);
    assert_eq!(reason(400, quota), Reason::QuotaExhausted);
    let unauthorized = |message: &str| {
        let body = format!(r#"{{"errors":[{{"code":"Unauthorized","message":"{message}"}}]}}"#);
        reason(403, &body)
    };
    assert_eq!(unauthorized("The access token has expired"), Reason::AuthExpired);
    assert_eq!(unauthorized("No grant of this kind has expired"), Reason::Forbidden);
    assert_eq!(unauthorized("This token may not do that"), Reason::Forbidden);
}

#[test]
fn a_page_is_not_one_whole_message() {
    let html = [("Content-Type", "text/html")];
    assert_eq!(read_in(200, &html, "Too many requests").reason, Reason::Ok);
}

#[test]
fn a_throttled_query_waits_for_its_cost_where_that_can_ever_be_had() {
    let told = |requested, available, maximum| {
        let body = format!(
            r#"{{"errors":[{{"message":"Throttled","extensions":{{"code":"THROTTLED"}}}}],
            "extensions":{{"cost":{{"requestedQueryCost":{requested},"throttleStatus":{{
            "maximumAvailable":{maximum},"currentlyAvailable":{available},"restoreRate":10}}}}}}}}"#
        );
        let reading = read_in(200, &[], &body);
        (reading.reason, reading.retryable, wait(&reading))
    };
    assert_eq!(told(100, 40, 100), (Reason::RateLimited, true, Some(6_000)));
    assert_eq!(told(101, 40, 100), (Reason::TooLarge, false, None));
}

#[test]
fn problem_types_are_told_by_their_address() {
    let problem = |status, kind: &str, more: &str| {
        let body = format!(r#"{{"type":"{kind}"{more}}}"#);
        read_in(status, &[], &body).reason
    };
    let draft = "https://iana.org/assignments/http-problem-types#";
    let of_draft = |name: &str| problem(400, &format!("{draft}{name}"), "");
    assert_eq!(of_draft("quota-exceeded"), Reason::RateLimited);
    assert_eq!(of_draft("temporary-reduced-capacity"), Reason::Overloaded);
    assert_eq!(of_draft("abnormal-usage-detected"), Reason::Blocked);
    assert_eq!(
        problem(400, "temporary-reduced-capacity", ""),
        Reason::InvalidRequest,
        "no address"
    );
    let x = "https://api.twitter.com/2/problems/";
    assert_eq!(problem(400, &format!("{x}client-forbidden"), ""), Reason::Forbidden);
    let capped = format!("{x}usage-capped");
    assert_eq!(problem(400, &capped, r#","period":"Monthly""#), Reason::QuotaExhausted);
    let kind = format!("{draft}temporary-reduced-capacity");
    assert_eq!(problem(200, &kind, r#","id":7"#), Reason::Ok, "rows have types too");
    let typed = [("Content-Type", "application/problem+json")];
    let body = format!(r#"{{"type":"{kind}"}}"#);
    assert_eq!(read_in(200, &typed, &body).reason, Reason::Overloaded);
}

#[test]
fn delays_stand_in_bodies_by_many_names() {
    for (body, expected) in [
        (r#"{"retry_after_ms":1500}"#, Some(1_500)),
        (r#"{"error":{"retryAfterMs":"250"}}"#, Some(250)),
        (r#"{"parameters":{"retry_after":7}}"#, Some(7_000)),
        (r#"{"retry_after_ms":300,"retry_after":7}"#, Some(300)),
        (r#"{"json":{"ratelimit":12.5,"errors":[["RATELIMIT","slow","x"]]}}"#, Some(12_500)),
        (r#"{"retry_after":["7"]}"#, None),
        (r#"{"data":{"retry_after":7}}"#, None),
    ] {
        assert_eq!(wait(&read_in(429, &[], body)), expected, "{body}");
    }
}

#[test]
fn an_hours_quota_keeps_the_short_delay_that_a_days_has_not() {
    let of = |code: &str| {
        let body = format!(r#"{{"code":"{code}","retry_after":58}}"#);
        let reading = read_in(429, &[], &body);
        (reading.reason, wait(&reading))
    };
    assert_eq!(of("HOURLY_QUOTA_EXCEEDED"), (Reason::QuotaExhausted, Some(58_000)));
    assert_eq!(of("DAILY_QUOTA_EXCEEDED"), (Reason::QuotaExhausted, None));
}

#[test]
fn a_wait_that_github_documents_is_kept_to() {
    let body = r#"{"message":"You have exceeded a secondary rate limit."}"#;
    let reading = read_in(403, &[], body);
    assert_eq!(reading.wait, Some(std::time::Duration::from_secs(60)), "{reading:?}");
}

#[test]
fn a_retry_delay_may_be_in_parts() {
    let delay = |parts: &str| {
        let body = format!(
            r#"{{"error":{{"code":429,"details":[{{"@type":"x/google.rpc.RetryInfo","retryDelay":{parts}}}]}}}}"#
        );
        wait(&read_in(429, &[], &body))
    };
    assert_eq!(delay(r#""34.5s""#), Some(34_500));
    assert_eq!(delay(r#"{"seconds":7,"nanos":500000000}"#), Some(7_500));
    assert_eq!(delay(r#"{"seconds":7}"#), Some(7_000));
    assert_eq!(delay(r#"{"seconds":7,"nanos":999999999}"#), Some(8_000), "rounded up");
    assert_eq!(delay(r#"{"seconds":7,"nanos":1000000000}"#), None, "a second too many");
}
