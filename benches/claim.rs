//! A claim and the settle of what it gave: 1, 16 and 64 calls on SQLite, each limited by a rate that all
//! share, with 1.2 million jobs queued in one partition, and in 100,000 (each with a rate of its own). Then with
//! 10,000 jobs and no limit, and three: the difference is what three limits cost a call.
//!
//! As many jobs are added before each round, so that the queue stays as long as it is.
//!
//! `cargo bench --bench claim`; filling both queues takes a minute. BENCH_JOBS: fewer jobs, 64 at least.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use common::{Queue, columns, job};
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

/// A budget and a place in flight beside it: what an upstream usually declares.
const THREE: &str = "[[limit]]\nname = \"day\"\nkind = \"budget\"\namount = 1000000000\nper = \"day\"\n\
    time_zone = \"UTC\"\n[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = 64\n";

const FEW: usize = 10_000;

static UNLIMITED: LazyLock<Mutex<Queue>> = LazyLock::new(|| Mutex::new(Queue::filled("", FEW, 1)));

static LIMITED: LazyLock<Mutex<Queue>> =
    LazyLock::new(|| Mutex::new(Queue::filled(&format!("{SHARED}{THREE}"), FEW, 1)));

/// The number of the next job: beyond those that fill the queues.
static NEXT: AtomicUsize = AtomicUsize::new(100_000_000);

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

#[divan::bench(args = [16, 64])]
fn no_limit(bencher: Bencher<'_, '_>, calls: usize) {
    round(bencher, &UNLIMITED, calls);
}

#[divan::bench(args = [16, 64])]
fn three_limits(bencher: Bencher<'_, '_>, calls: usize) {
    round(bencher, &LIMITED, calls);
}

fn filled(limits: String, partitions: usize) -> Queue {
    let jobs = std::env::var("BENCH_JOBS").map_or(1_200_000, |jobs| jobs.parse().unwrap());
    Queue::filled(&limits, jobs, partitions)
}

fn round(bencher: Bencher<'_, '_>, queue: &LazyLock<Mutex<Queue>>, calls: usize) {
    let queue = queue.lock().unwrap();
    let site = columns(&[("site", "s0")]);
    let refill = || {
        let first = NEXT.fetch_add(calls, Ordering::Relaxed);
        queue.add((first..first + calls).map(|number| job(number, &site)).collect());
    };
    bencher.counter(ItemsCount::new(calls)).with_inputs(refill).bench_local_values(|()| {
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
