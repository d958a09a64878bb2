//! Header fields and statuses: what each means by itself.

use super::*;

#[test]
fn a_forbidden_whose_limit_is_used_up_is_refused_by_it() {
    let used_up = [("RateLimit-Remaining", "0"), ("RateLimit-Reset", "7")];
    let reading = read_in(403, &used_up, "");
    assert_eq!((reading.reason, wait(&reading)), (Reason::RateLimited, Some(7_000)));
    let healthy = [("RateLimit-Remaining", "9"), ("RateLimit-Reset", "7")];
    let reading = read_in(403, &healthy, "");
    assert_eq!((reading.reason, wait(&reading)), (Reason::Forbidden, None));
}

#[test]
fn a_401_says_what_is_wrong_with_the_secret() {
    let reason = |status, challenges: &[&str]| {
        let fields: Vec<_> = challenges.iter().map(|text| ("WWW-Authenticate", *text)).collect();
        read_in(status, &fields, "").reason
    };
    let (basic, digest, bearer) = ("Basic realm=\"x\"", "Digest realm=\"x\"", "Bearer");
    assert_eq!(reason(401, &[]), Reason::AuthExpired);
    assert_eq!(reason(401, &[bearer]), Reason::AuthExpired);
    assert_eq!(reason(401, &[basic]), Reason::Misconfigured, "no refresh mends it");
    assert_eq!(reason(401, &[digest, basic]), Reason::Misconfigured);
    assert_eq!(reason(401, &[basic, bearer]), Reason::AuthExpired);
    let narrow = "Bearer error=\"insufficient_scope\"";
    assert_eq!(reason(401, &[narrow]), Reason::Forbidden);
    assert_eq!(reason(403, &["Bearer error=\"invalid_token\""]), Reason::AuthExpired);
    assert_eq!(reason(402, &[basic]), Reason::QuotaExhausted);
}

#[test]
fn a_redirect_tells_where_it_leads_and_nothing_else_does() {
    let there = "https://api.example.com/v2/items";
    let leads = |status| read_in(status, &[("Location", there)], "").location;
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(leads(status).as_deref(), Some(there), "{status}");
    }
    for status in [200, 201, 304, 503] {
        assert_eq!(leads(status), None, "{status}");
    }
}

#[test]
fn every_status_means_something_by_itself() {
    let table: &[(&[u16], Reason)] = &[
        (&[200, 201, 204, 304], Reason::Ok),
        (&[202], Reason::AcceptedPending),
        (&[301, 308, 407, 421, 511], Reason::Misconfigured),
        (&[400, 405, 415, 416, 417, 501], Reason::InvalidRequest),
        (&[401, 440, 498], Reason::AuthExpired),
        (&[402, 509], Reason::QuotaExhausted),
        (&[403, 451], Reason::Forbidden),
        (&[404], Reason::NotFound),
        (&[410], Reason::Gone),
        (&[413, 414, 431], Reason::TooLarge),
        (&[409, 412, 422, 424], Reason::Unprocessable),
        (&[420, 429], Reason::RateLimited),
        (&[423], Reason::ConcurrencyLimited),
        (&[430], Reason::Blocked),
        (&[503, 507, 529], Reason::Overloaded),
        (&[408, 425, 499, 500, 502, 504, 520, 599], Reason::Transient),
        (&[100, 418, 600], Reason::Unknown),
    ];
    for (statuses, reason) in table {
        for status in *statuses {
            assert_eq!(read_in(*status, &[], "").reason, *reason, "{status}");
        }
    }
}

#[test]
fn fields_of_one_maker_name_the_reason() {
    let reason = |status, name, value| read_in(status, &[(name, value)], "").reason;
    let jira = "RateLimit-Reason";
    assert_eq!(reason(429, jira, "jira-quota-tenant-based"), Reason::QuotaExhausted);
    assert_eq!(reason(429, jira, "jira-burst-based"), Reason::RateLimited);
    assert_eq!(reason(503, jira, "jira-quota-tenant-based"), Reason::Overloaded);
    let shopify = "X-Shopify-Shop-Api-Call-Limit";
    assert_eq!(reason(429, shopify, "40/40"), Reason::RateLimited);
    assert_eq!(reason(429, shopify, "39/40"), Reason::QuotaExhausted, "not of the bucket");
    assert_eq!(reason(403, shopify, "39/40"), Reason::Forbidden);
}

#[test]
fn resets_are_told_by_many_names() {
    let instant = ((NOW + 60) * 1_000).to_string();
    for (fields, expected) in [
        ([("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset-Ms", "1500")], Some(1_500)),
        ([("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset-Millis", &instant)], Some(60_000)),
        ([("X-Quota-Remaining", "0"), ("X-Quota-Reset", "30")], Some(30_000)),
        ([("Limit-Remaining", "0"), ("Limit-Reset", "30")], Some(30_000)),
        ([("X-RateLimit-Remaining", "0"), ("X-RateLimit-Retry-After", "9")], Some(9_000)),
        ([("X-RateLimit-Remaining", "0"), ("X-RateLimit-After", "9")], None),
        ([("X-Remaining", "0"), ("X-Reset", "9")], None),
        ([("zendesk-ratelimit-x", "total=9; remaining=0; resets=41"), ("a", "")], Some(41_000)),
        ([("zendesk-ratelimit-x", "total=9; remaining=5; resets=41"), ("a", "")], None),
        ([("RateLimit", "limit=9, remaining=0, reset=7"), ("a", "")], Some(7_000)),
        ([("RateLimit", "limit=9, remaining=0, reset=7.5"), ("a", "")], Some(7_500)),
        ([("RateLimit", "limit=9, remaining=4, reset=7"), ("a", "")], None),
    ] {
        assert_eq!(wait(&read_in(429, &fields, "")), expected, "{fields:?}");
    }
}

#[test]
fn the_policy_tells_the_window_of_what_is_left() {
    let reason = |left, policy| {
        let fields = [left, ("RateLimit-Policy", policy)];
        read_in(429, &fields, "").reason
    };
    let (plain, dictionary) =
        (("RateLimit-Remaining", "0"), ("RateLimit", "limit=100, remaining=0, reset=7"));
    assert_eq!(reason(plain, "\"d\";q=100;w=86400"), Reason::QuotaExhausted, "the only one");
    assert_eq!(reason(plain, "\"d\";q=100;w=86400, \"s\";q=9;w=1"), Reason::RateLimited);
    assert_eq!(reason(dictionary, "100;w=86400"), Reason::QuotaExhausted);
    assert_eq!(reason(dictionary, "9;w=1, 100;w=86400"), Reason::QuotaExhausted, "by its amount");
    assert_eq!(reason(dictionary, "100;w=1, 9;w=86400"), Reason::RateLimited);
    let two = read_in(429, &[("RateLimit-Limit", "0"), ("X-RateLimit-Remaining", "0")], "");
    assert_eq!((two.reason, two.retryable), (Reason::QuotaExhausted, false), "both spellings");
    let none = read_in(429, &[("RateLimit", "limit=0, remaining=0, reset=7")], "");
    assert_eq!((none.reason, none.retryable), (Reason::QuotaExhausted, false), "a limit of 0");
    assert!(none.source.ends_with("a limit of 0"), "{}", none.source);
}

#[test]
fn github_is_known_by_its_own_fields() {
    let both = [("Retry-After", "5"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "60")];
    let with = |mark| {
        let fields: Vec<_> = both.iter().copied().chain([(mark, "core")]).collect();
        wait(&read_in(403, &fields, ""))
    };
    assert_eq!(with("X-Other"), Some(5_000));
    assert_eq!(with("X-GitHub-Request-Id"), Some(60_000));
    assert_eq!(with("X-RateLimit-Resource"), Some(60_000));
}

#[test]
fn a_page_of_the_edge_is_known_by_its_maker_and_its_words() {
    let reason = |status, server, body: &str| read_in(status, &[("Server", server)], body).reason;
    let (ours, theirs) = ("<html>no rows</html>", "<html><p>Request blocked.</p></html>");
    assert_eq!(reason(403, "CloudFront", theirs), Reason::Blocked);
    assert_eq!(reason(403, "CloudFront", ours), Reason::Forbidden);
    assert_eq!(reason(403, "nginx", theirs), Reason::Forbidden);
    assert_eq!(reason(500, "CloudFront", theirs), Reason::Transient);
    let json = r#"{"message":"Request blocked"}"#;
    assert_eq!(reason(403, "CloudFront", json), Reason::Forbidden, "the API's own");
    let headed = "<html><title>Access Blocked</title></html>";
    assert_eq!(reason(403, "nginx", headed), Reason::Blocked);
    assert_eq!(reason(429, "nginx", headed), Reason::RateLimited);
    assert_eq!(reason(403, "nginx", "<html><title>News</title></html>"), Reason::Forbidden);
}
