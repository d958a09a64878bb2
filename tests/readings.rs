//! Realistic answers with their right readings: `tests/data/readings.jsonl`, one a line.

mod upstreams;

use std::collections::BTreeMap;

use chrono::DateTime;
use paceline::clock::Timestamp;
use paceline::quota::Upstream;
use paceline::reading::{Answer, Reading, read};
use serde::Deserialize;

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
    let text = include_str!("data/readings.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn reading(case: &Case, upstream: Option<&Upstream>) -> Reading {
    let answer = Answer {
        method: &case.method,
        url: &case.url,
        received_at: instant(&case.received_at),
        status: case.status,
        headers: &case.headers,
        body: case.body.as_bytes(),
    };
    read(upstream, &answer)
}

/// What is wrong with a reading; `None` where it is right.
fn fault(case: &Case, upstream: Option<&Upstream>) -> Option<String> {
    let expect = &case.expect;
    let got = reading(case, upstream);
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

#[test]
fn all_cases() {
    let (mut ran, mut faults) = (0, Vec::new());
    let mut without_preset: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in cases() {
        let named = case.upstream.as_deref();
        let upstream = match named {
            Some(name) => upstreams::named(name),
            None => upstreams::matching(&case.url),
        };
        let fault = fault(&case, upstream.as_ref());
        match (named, &upstream) {
            // Its rules are not written yet: the built-in readers may get it right or not.
            (Some(name), None) => {
                without_preset.entry(name.to_owned()).or_default().extend(fault);
            }
            _ => {
                ran += 1;
                faults.extend(fault);
            }
        }
    }
    println!("{ran} cases ran");
    for (name, faults) in without_preset {
        println!("no preset for {name}: {} not right without: {faults:#?}", faults.len());
    }
    assert!(faults.is_empty(), "{} of {ran}:\n{}", faults.len(), faults.join("\n"));
}
