//! Any answer at all: random bytes where servers put a status, headers and a body.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

#[path = "readings_any/answers.rs"]
mod answers;
#[path = "readings_any/rules.rs"]
mod rules;
#[expect(dead_code, reason = "the rest is for the other tests")]
mod upstreams;

use std::time::Duration;

use answers::{Any, any_answer, document};
use paceline::clock::Timestamp;
use paceline::quota::Upstream;
use paceline::reading::{
    Answer, Explanation, Reason, Said, Topic, explain, read, remaining::remaining, unreachable,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rules::upstream;

const FURTHEST: Duration = Duration::from_secs(31 * 86_400);

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
