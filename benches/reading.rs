//! A reading: all saved answers in turn, by the built-in readers alone.
//!
//! `cargo bench --bench reading`

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use paceline::clock::Timestamp;
use paceline::reading::{Answer, read};
use serde::Deserialize;

#[derive(Deserialize)]
struct Saved {
    url: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

fn main() {
    divan::main();
}

#[divan::bench]
fn saved_answers(bencher: Bencher<'_, '_>) {
    let text = include_str!("../tests/data/readings.jsonl");
    let saved: Vec<Saved> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<Answer<'_>> = saved.iter().map(answer).collect();
    bencher.counter(ItemsCount::new(answers.len())).bench_local(|| {
        for answer in &answers {
            black_box(read(None, black_box(answer)));
        }
    });
}

fn answer(saved: &Saved) -> Answer<'_> {
    Answer {
        method: "GET",
        url: &saved.url,
        received_at: Timestamp::from_secs(1_772_366_400),
        status: saved.status,
        headers: &saved.headers,
        body: saved.body.as_bytes(),
    }
}
