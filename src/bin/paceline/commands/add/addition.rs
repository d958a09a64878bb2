//! Jobs enter the queue, chunk by chunk, under one load's name.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use anyhow::Context as _;
use paceline::job::{Dedupe, JobId};
use paceline::quota::Upstream;
use paceline::store::sqlite::SqliteStore;
use paceline::store::{Added, Store as _, StoreError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::intake::{CHUNK, CHUNK_ALONE, Chunk, Intake, Left};
use super::interrupt::{Told, on_signal};
use super::progress::Progress;
use super::source::Rows;
use crate::context::Context;
use crate::render::text::{count, grouped};

/// Ids are told up to this number.
const IDS_TOLD: u64 = 1000;

/// What one upstream got.
#[derive(Debug)]
struct Share {
    upstream: Arc<Upstream>,
    added: u64,
    duplicates: u64,
    replaced: u64,
    /// Empty once there are more than [`IDS_TOLD`].
    ids: Vec<JobId>,
    /// Those that its jobs use.
    credentials: BTreeSet<String>,
}

/// A chunk on its way into the store; what came of it for each upstream, up to the first that failed.
type Entering = JoinHandle<Vec<Result<Added, StoreError>>>;

/// An `add` at work.
#[derive(Debug)]
pub struct Addition {
    /// Where they go.
    pub store: SqliteStore,
    load: String,
    shares: Vec<Share>,
    dedupe: Dedupe,
}

impl Addition {
    /// Nothing is added yet.
    pub fn new(
        store: SqliteStore,
        load: String,
        upstreams: &[Arc<Upstream>],
        dedupe: Dedupe,
    ) -> Addition {
        let share = |upstream: &Arc<Upstream>| {
            let (added, duplicates, replaced, ids, credentials) = Default::default();
            let upstream = Arc::clone(upstream);
            Share { upstream, added, duplicates, replaced, ids, credentials }
        };
        Addition { store, load, shares: upstreams.iter().map(share).collect(), dedupe }
    }

    /// Adds all rows. While a chunk enters the queue the next one is planned.
    pub async fn all(
        &mut self,
        mut rows: Rows,
        intake: &mut Intake<'_>,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let mut entering: Option<Entering> = None;
        let told = Told::default();
        self.note(&told);
        on_signal(Arc::clone(&told), progress.clone()).context("signals cannot be heard")?;
        loop {
            let most = self.most(&rows).await;
            let chunk = intake.chunk(&mut rows, most);
            if let Some(entering) = entering.take() {
                self.entered(entering).await.with_context(|| self.so_far())?;
                self.note(&told);
                progress.show(&rows, self.sum(|share| share.added), intake.seen());
            }
            let chunk = chunk.with_context(|| self.so_far())?;
            if chunk.is_empty() {
                return Ok(());
            }
            entering = Some(self.enter(chunk));
            // So that it reaches the store before the next rows are read.
            tokio::task::yield_now().await;
        }
    }

    /// How many rows go in one transaction. What comes from elsewhere than a file may come slowly, and
    /// what has come is wanted.
    async fn most(&self, rows: &Rows) -> usize {
        let is_file = rows.reach.total.is_some();
        match is_file && self.store.runners().await.is_ok_and(|runners| runners.is_empty()) {
            true => CHUNK_ALONE,
            false => CHUNK,
        }
    }

    /// Hands a chunk to the store.
    fn enter(&mut self, chunk: Chunk) -> Entering {
        let mut parts = Vec::with_capacity(chunk.jobs.len());
        for (share, jobs) in self.shares.iter_mut().zip(chunk.jobs) {
            for name in jobs.iter().filter_map(|job| job.columns.get("credential")) {
                if !share.credentials.contains(name) {
                    share.credentials.insert(name.clone());
                }
            }
            parts.push((Arc::clone(&share.upstream), jobs));
        }
        let (store, load) = (self.store.clone(), self.load.clone());
        tokio::spawn(async move {
            let mut all = Vec::with_capacity(parts.len());
            for (upstream, jobs) in parts {
                let added = match jobs.is_empty() {
                    true => Ok(Added::default()),
                    false => store.add(upstream, load.clone(), jobs).await,
                };
                let failed = added.is_err();
                all.push(added);
                if failed {
                    break;
                }
            }
            all
        })
    }

    /// Waits for a chunk, and counts it.
    async fn entered(&mut self, entering: Entering) -> anyhow::Result<()> {
        for (share, added) in self.shares.iter_mut().zip(entering.await?) {
            let added = added?;
            share.added += added.ids.len() as u64;
            share.duplicates += added.duplicates;
            share.replaced += added.replaced;
            if share.added <= IDS_TOLD {
                share.ids.extend(added.ids);
            } else {
                share.ids = Vec::new();
            }
        }
        Ok(())
    }

    /// The upstreams, with the credentials that what was added to each uses.
    pub fn credentials(&self) -> impl Iterator<Item = (&Upstream, &BTreeSet<String>)> {
        self.shares.iter().map(|share| (&*share.upstream, &share.credentials))
    }

    /// The upstreams that have more jobs now.
    pub fn added_to(&self) -> impl Iterator<Item = &str> {
        let more = self.shares.iter().filter(|share| share.added > 0);
        more.map(|share| share.upstream.name.as_str())
    }

    fn sum(&self, part: impl Fn(&Share) -> u64) -> u64 {
        self.shares.iter().map(part).sum()
    }

    /// What is told where a later chunk fails.
    fn so_far(&self) -> String {
        match self.sum(|share| share.added) {
            0 => "nothing was added".to_owned(),
            added => format!("{} were added to the load {}", count(added, "job"), self.before()),
        }
    }

    /// What is told where somebody ends it: a chunk may be on its way.
    fn note(&self, told: &Told) {
        let text = match self.sum(|share| share.added) {
            0 => format!("some jobs may have been added to the load {}", self.before()),
            added => {
                format!("at least {} were added to the load {}", count(added, "job"), self.before())
            }
        };
        *told.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// The load, and how to go on.
    fn before(&self) -> String {
        let load = &self.load;
        match self.dedupe {
            Dedupe::None => format!(
                "{load} before this; with --dedupe none the same command adds them again: cancel that load first"
            ),
            _ => format!(
                "{load} before this; the same command with --load {load} adds only the rest"
            ),
        }
    }

    /// Tells what it came to.
    pub fn tell(&self, left: &Left, strict: bool, context: &Context) -> anyhow::Result<()> {
        if strict && left.rejected > 0 {
            context
                .complain("nothing was added, because of --strict; without it the other rows are");
        }
        if context.global.json {
            return context.out.json(&self.json(left));
        }
        if context.global.quiet {
            return Ok(());
        }
        let mut lines: Vec<String> = self.shares.iter().map(|share| self.line(share)).collect();
        let more = [(left.older, "older"), (left.rejected, "rejected")];
        let more = more.into_iter().filter(|(count, _)| *count > 0);
        let more: String =
            more.map(|(count, what)| format!(", {} {what}", grouped(count))).collect();
        match lines.as_mut_slice() {
            [only] => only.push_str(&more),
            _ if more.is_empty() => {}
            _ => lines.push(format!("of the rows{}", more.trim_start_matches(','))),
        }
        lines.iter().try_for_each(|line| context.out.text(line))?;
        Ok(())
    }

    fn line(&self, share: &Share) -> String {
        let mut text = format!("load {}: {} added", self.load, grouped(share.added));
        if self.shares.len() > 1 {
            text.push_str(&format!(" to {}", share.upstream.name));
        }
        if share.replaced > 0 {
            text.push_str(&format!(", {} of them in place of older ones", grouped(share.replaced)));
        }
        if share.duplicates > 0 {
            text.push_str(&format!(", {} there already", grouped(share.duplicates)));
        }
        text
    }

    /// The sums; of several upstreams each one's own figures too.
    fn json(&self, left: &Left) -> Value {
        let mut told = json!({
            "load": self.load,
            "added": self.sum(|share| share.added),
            "duplicates": self.sum(|share| share.duplicates),
            "replaced": self.sum(|share| share.replaced),
            "rejected": left.rejected,
            "older": left.older,
        });
        let Some(fields) = told.as_object_mut() else { return told };
        match self.shares.as_slice() {
            [only] if only.added <= IDS_TOLD => {
                fields.insert("ids".to_owned(), json!(only.ids));
            }
            [_] => {}
            several => {
                let shares = several.iter().zip(&left.by_upstream).map(|(share, rejected)| {
                    let mut told = json!({
                        "upstream": share.upstream.name, "added": share.added,
                        "duplicates": share.duplicates, "replaced": share.replaced,
                        "rejected": rejected,
                    });
                    let fields = told.as_object_mut().filter(|_| share.added <= IDS_TOLD);
                    if let Some(fields) = fields {
                        fields.insert("ids".to_owned(), json!(share.ids));
                    }
                    told
                });
                fields.insert("upstreams".to_owned(), shares.collect());
            }
        }
        told
    }
}
