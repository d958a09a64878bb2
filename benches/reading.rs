//! Readings a second on one core: all saved answers, by the built-in readers alone.
//!
//! `cargo bench --bench reading`

#![expect(clippy::unwrap_used, reason = "a bench may panic")]
#![expect(clippy::disallowed_methods, reason = "what is measured here is the machine's own time")]

use std::hint::black_box;
use std::time::Instant;

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
    let text = include_str!("../tests/data/readings.jsonl");
    let saved: Vec<Saved> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<Answer<'_>> = saved.iter().map(answer).collect();
    let rounds = 50_usize.max(20_000 / answers.len());
    let start = Instant::now();
    for _ in 0..rounds {
        for answer in &answers {
            black_box(read(None, black_box(answer)));
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let readings = u32::try_from(rounds * answers.len()).unwrap();
    println!("{:.0} readings a second", f64::from(readings) / seconds);
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
