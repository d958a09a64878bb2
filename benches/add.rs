//! An addition of 100,000 rows whose keys come in no order, in transactions of 2,000: to an empty store,
//! and behind a million that are there.
//!
//! `cargo bench --bench add`; BENCH_JOBS: fewer that are there.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "common/mod.rs"]
mod common;

use common::{Queue, columns, job};
use divan::Bencher;
use divan::counter::ItemsCount;
use paceline::job::NewJob;

const ROWS: usize = 100_000;

/// As the program adds them.
const CHUNK: usize = 2000;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 5)]
fn to_nothing(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(ROWS))
        .with_inputs(|| (Queue::new(""), chunks(0)))
        .bench_local_values(|(queue, chunks)| {
            chunks.into_iter().for_each(|chunk| queue.add(chunk));
            // Dropped by the bench, outside of what is measured.
            queue
        });
}

#[divan::bench(sample_count = 5)]
fn behind_a_million(bencher: Bencher<'_, '_>) {
    let mut next = std::env::var("BENCH_JOBS").map_or(1_000_000, |jobs| jobs.parse().unwrap());
    let queue = Queue::filled("", next, 1);
    let inputs = || {
        next += ROWS;
        chunks(next)
    };
    bencher
        .counter(ItemsCount::new(ROWS))
        .with_inputs(inputs)
        .bench_local_values(|chunks| chunks.into_iter().for_each(|chunk| queue.add(chunk)));
}

fn chunks(from: usize) -> Vec<Vec<NewJob>> {
    let site = columns(&[("site", "s0")]);
    let jobs: Vec<NewJob> = (from..from + ROWS).map(|number| job(number, &site)).collect();
    jobs.chunks(CHUNK).map(<[NewJob]>::to_vec).collect()
}
