//! What benches share: quota files as text, and stores that hold a queue of a given size.

#![allow(dead_code, reason = "each bench uses its part")]

use std::path::PathBuf;
use std::sync::Arc;

use paceline::clock::SystemClock;
use paceline::job::{Columns, Dedupe, NewJob, Request};
use paceline::quota::{Upstream, declare};
use paceline::store::sqlite::{Options, SqliteStore};
use paceline::store::{RunnerId, Serves, Store as _};
use tokio::runtime::Runtime;

/// Jobs of one transaction while a queue is filled.
const CHUNK: usize = 5000;

/// Where nothing is called.
const NOWHERE: &str = "http://127.0.0.1:9/v1";

/// Reads an upstream from its limits, as a quota file gives them.
pub fn upstream(limits: &str) -> Upstream {
    declare::parse("bench", "bench.toml", &quota_file(NOWHERE, limits)).unwrap()
}

fn quota_file(address: &str, limits: &str) -> String {
    format!("schema = 1\nname = \"bench\"\n[request]\nurl = \"{address}?isbn={{isbn}}\"\n{limits}")
}

/// The columns of a row, from pairs.
pub fn columns(pairs: &[(&str, &str)]) -> Columns {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Job `number` of a partition; keys come in no order, as ISBNs or addresses do.
pub fn job(number: usize, partition: &Columns) -> NewJob {
    job_to(NOWHERE, number, partition)
}

fn job_to(address: &str, number: usize, partition: &Columns) -> NewJob {
    let isbn = format!("{:016x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut columns = partition.clone();
    columns.insert("isbn".to_owned(), isbn.clone());
    columns.insert("method".to_owned(), "GET".to_owned());
    NewJob {
        request: Request {
            method: "GET".to_owned(),
            url: format!("{address}?isbn={isbn}"),
            headers: std::collections::BTreeMap::new(),
            body: None,
        },
        columns,
        partition: partition.clone(),
        priority: 0,
        line_at: None,
        not_before: None,
        deadline_at: None,
        dedupe: Dedupe::Active,
        dedupe_key: None,
        lastmod: None,
        changed: false,
        replace: false,
        keeps_priority: true,
        repeatable: true,
    }
}

/// A store in a folder of its own that a runner has entered.
pub struct Queue {
    pub store: SqliteStore,
    pub upstream: Arc<Upstream>,
    pub runner: RunnerId,
    pub runtime: Runtime,
    folder: tempfile::TempDir,
}

impl Queue {
    /// An empty one.
    pub fn new(limits: &str) -> Queue {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("queue.db");
        let store = SqliteStore::open(Options::new(file, Arc::new(SystemClock::new()))).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (runner, _) = runtime.block_on(store.register(Serves::Queue(Vec::new()))).unwrap();
        Queue { store, upstream: Arc::new(upstream(limits)), runner, runtime, folder }
    }

    /// One with so many jobs, spread over so many partitions by their column `site`.
    pub fn filled(limits: &str, jobs: usize, partitions: usize) -> Queue {
        let queue = Queue::new(limits);
        let numbers: Vec<usize> = (0..jobs).collect();
        for chunk in numbers.chunks(CHUNK) {
            let partition = |number| columns(&[("site", &format!("s{}", number % partitions))]);
            queue.add(chunk.iter().map(|number| job(*number, &partition(*number))).collect());
        }
        queue
    }

    /// One whose jobs call this address, with its quota file in [`Queue::quotas`].
    pub fn addressed(address: &str, limits: &str, jobs: usize) -> Queue {
        let queue = Queue::new(limits);
        std::fs::create_dir(queue.quotas()).unwrap();
        let file = queue.quotas().join("bench.toml");
        std::fs::write(file, quota_file(address, limits)).unwrap();
        let numbers: Vec<usize> = (0..jobs).collect();
        for chunk in numbers.chunks(CHUNK) {
            let job = |number: &usize| job_to(address, *number, &Columns::new());
            queue.add(chunk.iter().map(job).collect());
        }
        queue
    }

    /// The folder of its quota file.
    pub fn quotas(&self) -> PathBuf {
        self.folder.path().join("quotas")
    }

    /// Its file.
    pub fn file(&self) -> PathBuf {
        self.store.path().to_owned()
    }

    /// Adds jobs in one transaction.
    pub fn add(&self, jobs: Vec<NewJob>) {
        let added = self.store.add(Arc::clone(&self.upstream), "bench".to_owned(), jobs);
        self.runtime.block_on(added).unwrap();
    }
}
