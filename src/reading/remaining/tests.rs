//! What answers say is left: examples, and whatever bytes come.

use super::*;
use crate::quota::declare;

const RECEIVED_AT: Timestamp = Timestamp::from_secs(1_780_315_200);

fn upstream(limits: &str) -> Upstream {
    declare::parse("shop", "shop.toml", &format!("name = \"shop\"\n{limits}")).unwrap()
}

fn told_to(
    upstream: &Upstream,
    columns: &[(&str, &str)],
    headers: &[(&str, &str)],
    body: &str,
) -> Vec<(String, u64, Option<i64>)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let headers: Vec<_> = headers.iter().map(owned).collect();
    let columns: Columns = columns.iter().map(owned).collect();
    let answer = Answer {
        method: "GET",
        url: "https://api.example.com/",
        received_at: RECEIVED_AT,
        status: 200,
        headers: &headers,
        body: body.as_bytes(),
    };
    let secs = |at: Timestamp| i64::try_from(at.since(RECEIVED_AT).as_secs()).unwrap();
    let told = remaining(upstream, &columns, &answer).into_iter();
    told.map(|told| (told.limit, told.left, told.resets_at.map(secs))).collect()
}

fn told(limits: &str, headers: &[(&str, &str)], body: &str) -> Vec<(String, u64, Option<i64>)> {
    told_to(&upstream(limits), &[], headers, body)
}

fn hour(reported: &str) -> String {
    format!(
        "[[limit]]\nname = \"hour\"\nkind = \"rolling\"\namount = 100\nper = \"1h\"\nreported = {reported}\n"
    )
}

fn one(left: u64, resets_in: Option<i64>) -> Vec<(String, u64, Option<i64>)> {
    vec![("hour".to_owned(), left, resets_in)]
}

#[test]
fn a_declared_header_is_read_with_its_reset() {
    let limits =
        hour("{ header = \"X-Left\", reset = { header = \"X-Reset\", unit = \"epoch-s\" } }");
    let reset = (RECEIVED_AT.as_nanos() / 1_000_000_000 + 90).to_string();
    assert_eq!(told(&limits, &[("x-left", "7"), ("x-reset", &reset)], ""), one(7, Some(90)));
    assert_eq!(told(&limits, &[("x-left", "7.9")], ""), one(7, None), "whole units, rounded down");
    assert_eq!(told(&limits, &[("x-left", "-3")], ""), one(0, None), "owed is none");
    assert_eq!(told(&limits, &[("x-left", "9"), ("X-Left", "4")], ""), one(4, None));
    assert_eq!(told(&limits, &[("x-left", "many")], ""), []);
    let over = [("x-left", "0"), ("x-reset", "1780315200")];
    assert_eq!(told(&limits, &over, ""), [], "the window is over");
}

#[test]
fn what_is_another_limits_is_not_taken() {
    let limits = hour("{ header = \"x-left\", when = { header = { x-resource = \"core\" } } }");
    assert_eq!(told(&limits, &[("x-left", "3"), ("x-resource", "core")], ""), one(3, None));
    assert_eq!(told(&limits, &[("x-left", "3"), ("x-resource", "search")], ""), []);
    let limits = hour("{ header = \"x-left\", amount = \"x-limit\" }");
    assert_eq!(told(&limits, &[("x-left", "3"), ("x-limit", "100")], ""), one(3, None));
    assert_eq!(told(&limits, &[("x-left", "3"), ("x-limit", "15")], ""), []);
    assert_eq!(told(&limits, &[("x-left", "3")], ""), [], "nobody says which limit it is");
    let none = "[[limit]]\nname = \"hour\"\nkind = \"rolling\"\namount = 100\nper = \"1h\"\n";
    let family = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "60")];
    assert_eq!(told(none, &family, ""), [], "an undeclared field says nothing of this limit");
}

#[test]
fn bodies_are_read_by_pointer_and_by_pattern() {
    let limits = hour("{ json = \"/d/DailyQuota\" }");
    assert_eq!(told(&limits, &[], r#"{"d": {"DailyQuota": 12}}"#), one(12, None));
    assert_eq!(told(&limits, &[], r#"{"d": {}}"#), []);
    let limits = hour("{ body = '(?i)remaining for today: ?(?<remaining>[0-9]+)' }");
    let body = "ERROR!!! Quota remaining for today: 10, Submitted: 32";
    assert_eq!(told(&limits, &[], body), one(10, None));
    assert_eq!(told(&limits, &[], "Quota remaining for today: some"), []);
}

#[test]
fn words_are_taken_where_one_limit_can_be_meant() {
    let day = |name: &str, zone: &str, cost: &str| {
        format!(
            "[[limit]]\nname = \"{name}\"\nkind = \"budget\"\namount = 100\nper = \"day\"\n\
            time_zone = \"{zone}\"\ncost = \"{cost}\"\n"
        )
    };
    let left = |limits: &str, status, said: &str| {
        let body = serde_json::json!({ "ErrorCode": 2, "Message": said }).to_string();
        let url = "https://api.example.com/";
        let (method, headers, body) = ("POST", [].as_slice(), body.as_bytes());
        let answer = Answer { method, url, received_at: RECEIVED_AT, status, headers, body };
        let upstream = upstream(limits);
        let reading = crate::reading::read(Some(&upstream), &answer);
        let told = remaining(&upstream, &Columns::new(), &answer);
        (reading.reason, reading.limit, told.first().map(|told| (told.limit.clone(), told.left)))
    };
    let said = "ERROR!!! Quota remaining for today: 10, Submitted: 32";
    for zone in ["UTC", "unknown"] {
        let limits = day("calls", "UTC", "calls") + &day("urls", zone, "items");
        let urls = "urls".to_owned();
        let known = (Reason::QuotaExhausted, Some(urls.clone()), Some((urls, 10)));
        assert_eq!(left(&limits, 400, said), known, "{zone}");
        assert_eq!(left(&limits, 429, said), known, "{zone}");
        assert_eq!(left(&limits, 503, said).0, Reason::Overloaded, "no limit refused");
        let rule = "[[reading]]\nwhen = { status = 400 }\nreason = \"invalid_request\"\n";
        let ruled = left(&format!("{limits}{rule}"), 400, said);
        assert_eq!(ruled.0, Reason::InvalidRequest, "a rule has the last word");
        assert_eq!(left(&limits, 200, said).2, None, "no refusal");
        assert_eq!(left(&limits, 400, "Quota remaining for today: none").2, None);
    }
    let two = day("a", "UTC", "items") + &day("b", "UTC", "items");
    assert_eq!(left(&two, 400, said), (Reason::InvalidRequest, None, None), "which of them?");
}

const PLAN: &str =
    "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\nkey = [\"site\"]\n";
const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 200\nper = \"day\"\n\
    time_zone = \"UTC\"\nkey = [\"site\"]\n[[limit.for]]\nwhen = { site = \"big\" }\namount = 900\n";

#[test]
fn a_policy_that_is_exactly_a_declared_limit_needs_no_declaration() {
    let upstream = upstream(&format!("{PLAN}{DAILY}"));
    let told = |site, policy: &str, left: &str| {
        let headers = [("RateLimit-Policy", policy), ("RateLimit", left)];
        told_to(&upstream, &[("site", site)], &headers, "")
    };
    let policies = "\"day\";q=200;w=86400, \"burst\";q=10;w=1";
    let left = "\"day\";r=4;t=600, \"burst\";r=9;t=1";
    let both = [("plan".to_owned(), 9, Some(1)), ("daily".to_owned(), 4, Some(600))];
    assert_eq!(told("a", policies, left), both);
    let big = told("big", policies, left);
    assert_eq!(big, [("plan".to_owned(), 9, Some(1))], "that instance has another amount");
    let day = "\"day\";r=4;t=600";
    assert_eq!(told("a", "\"day\";q=500;w=86400", day), [], "another amount");
    assert_eq!(told("a", "\"day\";q=200;w=3600", day), [], "another window");
    assert_eq!(told("a", "\"day\";q=200;w=86400;qu=\"content-bytes\"", day), [], "another unit");
    assert_eq!(told("a", "\"other\";q=200;w=86400", day), [], "another policy");
    let cached = [("RateLimit-Policy", policies), ("RateLimit", left), ("Age", "7")];
    assert_eq!(told_to(&upstream, &[("site", "a")], &cached, ""), [], "told long ago");
}

#[test]
fn a_policy_that_could_be_two_limits_is_neither() {
    let twin = PLAN.replace("plan", "twin");
    let headers = [("RateLimit-Policy", "\"p\";q=10;w=1"), ("RateLimit", "\"p\";r=0;t=1")];
    assert_eq!(told(&format!("{PLAN}{twin}"), &headers, ""), []);
    assert_eq!(told(PLAN, &headers, ""), [("plan".to_owned(), 0, Some(1))]);
}

fn refused(limits: &str, headers: &[(&str, &str)]) -> super::super::Reading {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let headers: Vec<_> = headers.iter().map(owned).collect();
    let answer = Answer {
        method: "GET",
        url: "https://api.example.com/",
        received_at: RECEIVED_AT,
        status: 429,
        headers: &headers,
        body: b"",
    };
    super::super::read(Some(&upstream(limits)), &answer)
}

#[test]
fn a_refusal_that_says_nothing_is_left_is_of_that_limit_until_its_reset() {
    let limits =
        hour("{ header = \"x-left\", reset = { header = \"x-reset\", unit = \"delta-s\" } }");
    let reading = refused(&limits, &[("x-left", "0"), ("x-reset", "90")]);
    assert_eq!(reading.reason, Reason::QuotaExhausted, "an hour's quota");
    assert_eq!(reading.retry_at, Some(RECEIVED_AT + std::time::Duration::from_secs(90)));
    assert_eq!(reading.limit.as_deref(), Some("hour"));
    assert_eq!(reading.source, "status 429; what is left of hour; reset of hour");
    let other = refused(&limits, &[("x-left", "7"), ("x-reset", "90")]);
    assert_eq!((other.reason, other.retry_at, other.limit), (Reason::RateLimited, None, None));
    let minute = limits.replace("1h", "1m");
    let reading = refused(&minute, &[("x-left", "0"), ("Retry-After", "5")]);
    assert_eq!((reading.reason, reading.limit.as_deref()), (Reason::RateLimited, Some("hour")));
    assert_eq!(reading.retry_at, Some(RECEIVED_AT + std::time::Duration::from_secs(5)));
}

#[test]
fn only_what_is_still_open_is_refined_by_what_is_left() {
    let body_left = |more: &str| {
        let limits = hour("{ header = \"x-left\" }");
        let reading = refused(&format!("{limits}{more}"), &[("x-left", "0")]);
        (reading.reason, reading.wait.map(|wait| wait.as_secs()))
    };
    let rule = "[[reading]]\nwhen = { status = 429 }\nreason = \"rate_limited\"\nwait = \"9s\"\n";
    assert_eq!(body_left(""), (Reason::QuotaExhausted, None));
    assert_eq!(body_left(rule), (Reason::RateLimited, Some(9)), "a rule has the last word");
}
