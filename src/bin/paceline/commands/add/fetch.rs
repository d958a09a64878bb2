//! Sitemaps that are fetched: each is a job of the upstream `sitemaps`, under its limits and readings,
//! in a store of its own that goes with the command.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use paceline::clock::SystemClock;
use paceline::dispatch::transport::{HttpTransport, Spool};
use paceline::dispatch::{Event, RunError, RunOptions, run_over};
use paceline::input::sitemap::MOST_BYTES;
use paceline::job::{Columns, JobId, JobState};
use paceline::plan::{AddOptions, Planner};
use paceline::quota::Upstream;
use paceline::quota::library::Library;
use paceline::report::words::span;
use paceline::store::sqlite::{Options, SqliteStore};
use paceline::store::views::AttemptView;
use paceline::store::{AttemptFilter, Filter, Store as _};
use tokio::sync::watch;
use url::Url;

use super::place::again;
use crate::context::Context;
use crate::render::text::visible_lines;

/// The upstream whose quota file says how sitemaps are fetched.
const UPSTREAM: &str = "sitemaps";

/// One that cannot be had within this time is given up, whatever its site asks for.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// A wait that is worth a line.
const LONG: Duration = Duration::from_secs(5);

/// Its site does not give it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotFetched(String);

/// What is fetched.
#[derive(Debug)]
struct Kept(Mutex<File>);

impl Kept {
    fn file(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spool for Kept {
    fn begin(&self, _: u16, _: &[(String, String)]) -> io::Result<()> {
        let mut file = self.file();
        file.set_len(0)?;
        file.rewind()
    }

    fn write(&self, part: &[u8]) -> io::Result<bool> {
        let mut file = self.file();
        file.write_all(part)?;
        // More than a sitemap may have: it will be found too large.
        Ok(file.stream_position()? > MOST_BYTES)
    }
}

/// Fetches.
#[derive(Debug)]
pub struct Fetcher {
    library: Arc<Library>,
    quiet: bool,
    queue: RefCell<Option<Queue>>,
}

/// Where the fetches wait for their turn.
#[derive(Clone, Debug)]
struct Queue {
    store: SqliteStore,
    _folder: Arc<tempfile::TempDir>,
}

impl Fetcher {
    /// Nothing is opened yet.
    pub fn new(context: &Context) -> Fetcher {
        let quiet = context.global.quiet;
        Fetcher { library: context.library(), quiet, queue: RefCell::default() }
    }

    /// The file that is there, unpacked as far as HTTP had packed it.
    pub fn fetch(&self, url: &Url) -> anyhow::Result<File> {
        let upstream = self.library.get(UPSTREAM)?;
        let queue = self.queue()?;
        let (library, quiet) = (&self.library, self.quiet);
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(fetch(&queue.store, library, upstream, url, quiet))
        };
        // The command's own loop is in the middle of something.
        let fetched = std::thread::scope(|scope| scope.spawn(work).join());
        fetched.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn queue(&self) -> anyhow::Result<Queue> {
        let mut queue = self.queue.borrow_mut();
        if let Some(queue) = &*queue {
            return Ok(queue.clone());
        }
        let folder = tempfile::tempdir().context("no folder for what is fetched can be made")?;
        let path = folder.path().join("fetches.db");
        let store = SqliteStore::open(Options::new(path, Arc::new(SystemClock::new())))?;
        let made = Queue { store, _folder: Arc::new(folder) };
        Ok(queue.insert(made).clone())
    }
}

async fn fetch(
    store: &SqliteStore,
    library: &Arc<Library>,
    upstream: Arc<Upstream>,
    url: &Url,
    quiet: bool,
) -> anyhow::Result<File> {
    let now = store.now();
    let deadline_at = Some(now.store + PATIENCE);
    let planner = Planner::new(&upstream, AddOptions { deadline_at, ..AddOptions::default() })?;
    let job = planner.plan(Columns::from([("url".to_owned(), url.to_string())]))?;
    let added = store.add(Arc::clone(&upstream), UPSTREAM.to_owned(), vec![job]).await?;
    let Some(id) = added.ids.first().copied() else { bail!("it is being fetched already") };
    let file = tempfile::tempfile().context("no file for what is fetched can be made")?;
    let spool = Arc::new(Kept(Mutex::new(file.try_clone()?)));
    let transport = move |upstream: &Upstream| {
        let http =
            HttpTransport::new(1, None, upstream.request.timeout).map_err(RunError::Client)?;
        Ok(http.with_spool(Arc::<Kept>::clone(&spool)))
    };
    let options = RunOptions {
        upstreams: vec![UPSTREAM.to_owned()],
        until: Some(now.wall + PATIENCE),
        concurrency: 1,
        ..RunOptions::default()
    };
    let (_stay, leave) = watch::channel(false);
    let told = url.clone();
    let tell = move |event: &Event| tell(event, &told, quiet);
    run_over(store.clone(), Arc::clone(library), options, leave, Arc::new(tell), transport).await?;
    outcome(store, &upstream, id).await?;
    Ok(again(&file)?)
}

/// Says that it takes a while.
fn tell(event: &Event, url: &Url, quiet: bool) {
    let Event::Waiting { until, .. } = event else { return };
    let now = paceline::clock::Clock::wall(&SystemClock::new());
    let wait = until.since(now);
    if wait >= LONG && !quiet {
        eprintln!("{}", visible_lines(&format!("{url} is fetched in {}", span(wait))));
    }
}

/// Why it was not fetched.
async fn outcome(store: &SqliteStore, upstream: &Arc<Upstream>, id: JobId) -> anyhow::Result<()> {
    let filter = Filter { ids: vec![id], ..Filter::default() };
    let upstreams = BTreeMap::from([(UPSTREAM.to_owned(), Arc::clone(upstream))]);
    let jobs = store.jobs(filter, upstreams).await?;
    let Some(job) = jobs.first().filter(|job| job.state != JobState::Done) else { return Ok(()) };
    let filter = AttemptFilter { job: Some(id), ..AttemptFilter::default() };
    let attempts = store.attempts(filter).await?;
    if let Some(wait) = &job.waiting {
        bail!(NotFetched(format!("{}: {}", wait.reason, wait.detail)));
    }
    let Some(last) = attempts.last() else {
        let why = job.detail.as_deref().unwrap_or("its site is waited for");
        bail!(NotFetched(format!("no call was made: {why}")));
    };
    let late = if job.state == JobState::Expired { late(last) } else { String::new() };
    let status = last.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let reason = last.reason.as_deref().unwrap_or("lost");
    let detail = last.detail.as_deref().unwrap_or_default();
    bail!(NotFetched(format!("{status} {reason}: {detail}{late}")))
}

/// That it is not waited for, and how long its site asks to wait.
fn late(last: &AttemptView) -> String {
    let heard_at = last.ended_at.unwrap_or(last.sent_at);
    let asked =
        last.hint_at.map(|hint| format!(": its site asks for {}", span(hint.since(heard_at))));
    format!("; it would take longer than {}{}", span(PATIENCE), asked.unwrap_or_default())
}
