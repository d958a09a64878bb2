//! How late calls leave after their slots, while the queue is large and the store at work: 200 calls a
//! second, for ten seconds, with 1.2 million jobs queued.
//!
//! `cargo bench --bench lateness`; filling the queue takes half a minute. BENCH_JOBS: fewer jobs,
//! BENCH_CALLS: more calls, BENCH_RATE: another rate a second.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "common/mod.rs"]
mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::Queue;
use paceline::dispatch::{self, Event, RunOptions};
use paceline::practice::{Config, Limit, Practice, Rule};
use paceline::quota::library::Library;

/// What was heard of the calls.
#[derive(Default)]
struct Heard {
    late: Vec<Duration>,
    given_back: u64,
    refused: u64,
}

fn main() {
    let figure =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (jobs, rate) = (figure("BENCH_JOBS", 1_200_000), figure("BENCH_RATE", 200));
    let (calls, burst) = (figure("BENCH_CALLS", rate * 10), (rate / 10).max(1));
    let practice = upstream(rate, burst);
    let limits = format!(
        "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"{rate}/s\"\nburst = {burst}\n\
         counted = \"bucket\"\n"
    );
    let queue = Queue::addressed(&practice, &limits, usize::try_from(jobs).unwrap());
    let log = Arc::new(Mutex::new(Heard::default()));
    run(&queue, calls, &log);
    tell(&mut log.lock().unwrap(), &queue.file(), jobs);
}

/// On a thread of its own, as another machine would be.
fn upstream(rate: u64, burst: u64) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let limit = Limit::Bucket { units: rate, per: Duration::from_secs(1), burst };
            let config = Config::new().rule(Rule::new("plan", limit));
            let practice = Practice::start(config).await.unwrap();
            tell.send(practice.url("/call")).unwrap();
            std::future::pending::<()>().await;
        });
    });
    told.recv().unwrap()
}

fn run(queue: &Queue, calls: u64, log: &Arc<Mutex<Heard>>) {
    let library = Arc::new(Library::new(vec![queue.quotas()]));
    let options = RunOptions { count: Some(calls), ..RunOptions::default() };
    let (_leave, left) = tokio::sync::watch::channel(false);
    let heard = Arc::clone(log);
    let tell = Arc::new(move |event: &Event| {
        let mut heard = heard.lock().unwrap();
        match event {
            Event::Sent { late, .. } => heard.late.push(*late),
            Event::Released { .. } => heard.given_back += 1,
            Event::Answered { status: Some(429), .. } => heard.refused += 1,
            _ => {}
        }
    });
    let run = dispatch::run(queue.store.clone(), library, options, left, tell);
    queue.runtime.block_on(run).unwrap();
}

fn tell(heard: &mut Heard, file: &Path, jobs: u64) {
    heard.late.sort_unstable();
    let last = heard.late.len() - 1;
    let share =
        |thousandths: usize| heard.late.get(last * thousandths / 1000).unwrap().as_secs_f64();
    let log = std::fs::metadata(format!("{}-wal", file.display())).map_or(0, |log| log.len());
    println!(
        "{} calls of {jobs} jobs: late by {:.2} ms (p50), {:.2} ms (p99), {:.2} ms (p99.9), {:.2} ms \
         (most); {} given back, {} refused; the log has {} KiB",
        last + 1,
        share(500) * 1e3,
        share(990) * 1e3,
        share(999) * 1e3,
        share(1000) * 1e3,
        heard.given_back,
        heard.refused,
        log / 1024,
    );
}
