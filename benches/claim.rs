//! A claim and the settle of what it gave: 1, 16 and 64 calls on SQLite, each limited by a rate that all
//! share, with 1.2 million jobs queued in one partition, and in 100,000 (each with a rate of its own).
//!
//! `cargo bench --bench claim`; filling both queues takes a minute. BENCH_JOBS: fewer jobs.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "common/mod.rs"]
mod common;

use std::sync::{Arc, LazyLock, Mutex};

use common::Queue;
use divan::Bencher;
use divan::counter::ItemsCount;
use paceline::reading::{Reading, Reason};
use paceline::store::{Call, Claim, Settlement, Store as _};

/// What all share; so wide that it never binds.
const SHARED: &str =
    "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"100000000/s\"\nburst = 1000000\n";

const OWN: &str = "[[limit]]\nname = \"site\"\nkind = \"rate\"\nrate = \"100000000/s\"\n\
    burst = 1000000\nkey = [\"site\"]\n";

static ONE: LazyLock<Mutex<Queue>> = LazyLock::new(|| Mutex::new(filled(SHARED.to_owned(), 1)));

static MANY: LazyLock<Mutex<Queue>> =
    LazyLock::new(|| Mutex::new(filled(format!("{SHARED}{OWN}"), 100_000)));

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 16, 64])]
fn one_partition(bencher: Bencher<'_, '_>, calls: usize) {
    round(bencher, &ONE, calls);
}

#[divan::bench(args = [1, 16, 64])]
fn many_partitions(bencher: Bencher<'_, '_>, calls: usize) {
    round(bencher, &MANY, calls);
}

fn filled(limits: String, partitions: usize) -> Queue {
    let jobs = std::env::var("BENCH_JOBS").map_or(1_200_000, |jobs| jobs.parse().unwrap());
    Queue::filled(&limits, jobs, partitions)
}

fn round(bencher: Bencher<'_, '_>, queue: &LazyLock<Mutex<Queue>>, calls: usize) {
    let queue = queue.lock().unwrap();
    bencher.counter(ItemsCount::new(calls)).bench_local(|| {
        let wish = Claim::new(Arc::clone(&queue.upstream), queue.runner, calls);
        let claimed = queue.runtime.block_on(queue.store.claim(wish)).unwrap();
        assert_eq!(claimed.calls.len(), calls);
        let ends = claimed.calls.iter().map(answered).collect();
        let settled = queue.store.settle(Arc::clone(&queue.upstream), ends);
        assert_eq!(queue.runtime.block_on(settled).unwrap().len(), calls);
    });
}

fn answered(call: &Call) -> Settlement {
    let reading = Reading::plain(Reason::Ok, "status", "200 OK".to_owned());
    Settlement { status: Some(200), random: 0.5, ..Settlement::of(call, reading) }
}
