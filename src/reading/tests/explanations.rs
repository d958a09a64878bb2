//! How a reading came about, as it is told.

use super::*;

#[test]
fn an_explanation_shows_what_was_there_and_who_found_nothing() {
    let answer = Answer {
        method: "GET",
        url: "https://api.example.com/v1/items",
        received_at: Timestamp::from_secs(NOW),
        status: 429,
        headers: &[],
        body: br#"{"retry_after":["7"],"error":{"retry_after_ms":"250"}}"#,
    };
    let steps = explain(None, &answer).steps;
    let of = |reader: &str| steps.iter().find(|step| step.reader == reader).unwrap();
    let list = of("seconds in the body");
    assert_eq!((list.topic.name(), list.is_silent()), ("hint", false), "{list:?}");
    assert!(list.looked_at.contains("an array"), "{list:?}");
    let found = of("milliseconds in the body");
    assert!(found.decided && !found.is_silent() && found.looked_at.contains("250"), "{found:?}");
    let other = of("Retry-After");
    assert_eq!((other.is_silent(), other.decided), (true, false), "{other:?}");
    let table = of("status table");
    assert_eq!((table.topic.name(), table.is_silent()), ("reason", false), "{table:?}");
}

#[test]
fn an_explanation_says_what_of_a_rule_does_not_agree() {
    let rule = "[[reading]]\nwhen = { status = [403, 429], header = { x-why = \"slow\" } }\nreason = \"blocked\"\n";
    let upstream = crate::quota::declare::parse("u", "u.toml", rule).unwrap();
    let headers = [("x-why".to_owned(), "fast".to_owned())];
    let answer = Answer {
        method: "GET",
        url: "https://api.example.com/v1/items",
        received_at: Timestamp::from_secs(NOW),
        status: 429,
        headers: &headers,
        body: b"",
    };
    let steps = explain(Some(&upstream), &answer).steps;
    let rule = steps.iter().find(|step| step.reader == "rule 1").unwrap();
    let why = rule.why.as_deref().unwrap();
    assert!(why.contains("x-why") && why.contains("fast"), "{why}");
    for part in ["403 or 429", "x-why", "slow"] {
        assert!(rule.looked_at.contains(part), "{}", rule.looked_at);
    }
}
