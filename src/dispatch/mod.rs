//! The loop: claim → send → read → next → settle.
//!
//! | file | noun |
//! | --- | --- |
//! | [`events`] | what happens, as a documented list |
//! | `shared` | what the lanes of one run share |
//! | `lane` | one upstream's loop: claims, settles, waits |
//! | `call` | one call's way: its slot, its mark, the send, the reading |
//! | `desk` | where a process waits with jobs of its own |
//! | `lead` | how far ahead of a claim its first slot lies |
//! | `outage` | a time in which the store cannot answer |
//! | `reload` | a changed quota file is taken up |
//! | `tell` | what a settled call means, as events |
//! | `auth` | `${token}`: fetched, replaced before it expires |
//! | `question` | the upstream is asked what is left |
//! | `prepare` | a request with its secrets filled in |
//! | `guard` | the last count before a send |
//! | `transport` | HTTP; `connections`: just so many of them; `stream`: bodies that pass through |
//! | `upkeep` | what is too old goes, by the way |

mod auth;
pub(crate) mod call;
mod connections;
pub(crate) mod desk;
pub mod events;
mod guard;
mod lane;
mod lead;
mod outage;
pub mod prepare;
mod question;
mod reload;
mod shared;
#[cfg(feature = "gateway")]
pub(crate) mod stream;
mod tell;
pub mod transport;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::Timestamp;
use crate::quota::Upstream;
use crate::quota::library::Library;
use crate::store::{RunnerId, Serves, Store, StoreError};
pub(crate) use auth::Tokens;
pub use events::Event;
use lane::Lane;
use shared::Shared;
use transport::{HttpTransport, Transport};
use upkeep::Upkeep;

/// How long, and for whom, a runner works.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Upstreams by name; empty: all that have jobs.
    pub upstreams: Vec<String>,
    /// Leave an upstream when its next permit is further off than this.
    pub max_wait: Option<Duration>,
    /// Leave at this instant (wall time).
    pub until: Option<Timestamp>,
    /// Send at most this many calls.
    pub count: Option<u64>,
    /// Stay for new jobs.
    pub follow: bool,
    /// Leave at once where another runner that was there before serves any of the upstreams.
    pub single: bool,
    /// Calls in flight at once, at most.
    pub concurrency: usize,
    /// What jitter is made of; `None`: drawn from the system.
    pub seed: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            upstreams: Vec::new(),
            max_wait: None,
            until: None,
            count: None,
            follow: false,
            single: false,
            concurrency: 64,
            seed: None,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Calls that left.
    pub sent: u64,
    /// Calls that did not: no connection came about, or nothing could be made of the request.
    pub unreached: u64,
    /// Calls that the upstream refused: "not now" or "not you".
    pub refused: u64,
    /// Jobs of this run that were done.
    pub done: u64,
    /// Jobs of this run that failed.
    pub failed: u64,
    /// Jobs that this run found too late.
    pub expired: u64,
    /// Jobs of this run, or found by it, that may have been sent and must not be sent twice.
    pub unsure: u64,
    /// Queued jobs that a person must let go, of the upstreams that were served.
    pub held: u64,
    /// Other queued jobs of these upstreams.
    pub waiting: u64,
    /// When the first of those that wait can go (wall time); `None`: no instant can be named.
    pub next_at: Option<Timestamp>,
    /// The upstream whose job goes then.
    pub next_upstream: Option<String>,
    /// The limit that binds until then.
    pub limit: Option<String>,
    /// Upstreams with jobs that were not served, by name, and what is wrong with their quota files.
    pub unserved: BTreeMap<String, String>,
    /// Whether somebody asked the run to leave.
    pub interrupted: bool,
    /// Whether it left because its time was over.
    pub timed_out: bool,
    /// Whether it left because it had sent as many calls as it might.
    pub counted_out: bool,
    /// The process that serves already, for which a single run left.
    pub served_by: Option<u32>,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The store cannot do its work, and the trouble will not pass by itself.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No quota file for an upstream that was named.
    #[error(transparent)]
    Library(#[from] crate::quota::library::LibraryError),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[source] reqwest::Error),
}

/// Tells a runner to leave: set it to true and it drains.
pub type Leave = watch::Receiver<bool>;

/// Hears every event.
pub type Tell = Arc<dyn Fn(&Event) + Send + Sync>;

/// How often dead runners, run-out leases and passed deadlines are looked for: a dead process's places
/// in flight are lost to the others for so long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// From a change in the store to the look for upstreams that had no job before.
const NEWS_PAUSE: Duration = Duration::from_millis(20);

/// Serves upstreams over HTTP until nothing is left that it may wait for. `tell` hears every [`Event`].
///
/// # Errors
///
/// Where the store cannot be used at all. What an upstream says, or lacks, is never an error.
pub async fn run<S: Store>(
    store: S,
    library: Arc<Library>,
    options: RunOptions,
    leave: Leave,
    tell: Tell,
) -> Result<Report, RunError> {
    let idle = options.concurrency;
    let transport = move |upstream: &Upstream| {
        let request = &upstream.request;
        HttpTransport::new(idle, request.connections, request.timeout).map_err(RunError::Client)
    };
    run_over(store, library, options, leave, tell, transport).await
}

/// As [`run`], over any transport: `transport` makes one for each upstream.
///
/// # Errors
///
/// As [`run`].
pub async fn run_over<S: Store, T: Transport>(
    store: S,
    library: Arc<Library>,
    options: RunOptions,
    leave: Leave,
    tell: Tell,
    transport: impl Fn(&Upstream) -> Result<T, RunError>,
) -> Result<Report, RunError> {
    let shared = Arc::new(Shared::new(options, library, leave, tell));
    let (runner, swept) = store.register(Serves::Queue(shared.options.upstreams.clone())).await?;
    if shared.options.single
        && let Some(served_by) = served_by(&store, runner, &shared.options.upstreams).await?
    {
        store.retire(runner).await?;
        return Ok(Report { served_by: Some(served_by), ..Report::default() });
    }
    shared.count_swept(swept);
    shared.tell(&Event::Started { swept });
    let (served, unserved, lanes, upkeep) = Default::default();
    let mut run = Run { store, shared, runner, transport, served, unserved, lanes, upkeep };
    let ended = run.serve().await;
    // Lanes that are still at work drain before the runner is gone.
    let drained = run.drain().await;
    if ended.is_ok() {
        run.upkeep.at_end(&run.store, &run.shared, &run.served).await;
    }
    let retired = run.store.retire(runner).await;
    ended.and(drained)?;
    retired?;
    run.report().await
}

/// The process that was there before this runner, and serves any of these upstreams; none named are all.
async fn served_by<S: Store>(
    store: &S,
    own: RunnerId,
    named: &[String],
) -> Result<Option<u32>, RunError> {
    let serves = |theirs: &[String]| {
        named.is_empty() || theirs.is_empty() || theirs.iter().any(|name| named.contains(name))
    };
    let runners = store.runners().await?;
    let earlier = runners.iter().take_while(|runner| runner.id != own);
    Ok(earlier.into_iter().find(|runner| serves(&runner.upstreams)).map(|runner| runner.pid))
}

/// One run: its lanes, and what goes on beside them.
struct Run<S, F> {
    store: S,
    shared: Arc<Shared>,
    runner: RunnerId,
    transport: F,
    served: BTreeSet<String>,
    /// As [`Report::unserved`].
    unserved: BTreeMap<String, String>,
    lanes: JoinSet<Result<(), RunError>>,
    upkeep: Upkeep,
}

impl<S: Store, T: Transport, F: Fn(&Upstream) -> Result<T, RunError>> Run<S, F> {
    async fn serve(&mut self) -> Result<(), RunError> {
        loop {
            self.serve_all().await?;
            // What a runner that died meanwhile had in flight is still to be done.
            if self.shared.is_leaving(self.store.now().wall) || !self.sweep().await? {
                return Ok(());
            }
            self.served.clear();
        }
    }

    async fn serve_all(&mut self) -> Result<(), RunError> {
        self.start_lanes().await?;
        let store = self.store.clone();
        let timeline = store.timeline().clone();
        let mut told = false;
        let mut leave = self.shared.leave.clone();
        let mut sweep_at = timeline.now().store + SWEEP_INTERVAL;
        let grows = self.shared.options.follow && self.shared.options.upstreams.is_empty();
        let mut news = if grows { self.store.news().unwrap_or(0) } else { 0 };
        while !self.lanes.is_empty() || self.stays() {
            tokio::select! {
                Some(ended) = self.lanes.join_next() => joined(ended)?,
                () = timeline.sleep_until(sweep_at) => {
                    self.sweep().await?;
                    self.upkeep.step(&self.store, &self.shared, &self.served).await;
                    if !self.unserved.is_empty() {
                        self.look_for_lanes().await?;
                    }
                    sweep_at = timeline.now().store + SWEEP_INTERVAL;
                }
                () = changed_since(&store, news), if grows => {
                    news = self.store.news().unwrap_or(news);
                    self.look_for_lanes().await?;
                }
                () = async { drop(leave.wait_for(|leave| *leave).await) }, if !told => {
                    told = true;
                    let in_flight = self.shared.in_flight();
                    self.shared.tell(&Event::Draining { in_flight });
                }
            }
        }
        Ok(())
    }

    /// Whether the run goes on without anything to do.
    fn stays(&self) -> bool {
        self.shared.options.follow && !self.shared.is_leaving(self.store.now().wall)
    }

    async fn drain(&mut self) -> Result<(), RunError> {
        let mut drained = Ok(());
        while let Some(ended) = self.lanes.join_next().await {
            drained = drained.and(joined(ended));
        }
        drained
    }

    /// As [`Run::start_lanes`], later on: while the store cannot answer there is nothing new to see.
    async fn look_for_lanes(&mut self) -> Result<(), RunError> {
        match self.start_lanes().await {
            Err(RunError::Store(error)) if error.may_pass() => Ok(()),
            looked => looked,
        }
    }

    /// Starts a lane for each upstream that is served and has none yet.
    async fn start_lanes(&mut self) -> Result<(), RunError> {
        let named = &self.shared.options.upstreams;
        let all = named.is_empty();
        let names = if all { self.store.upstream_names().await? } else { named.clone() };
        for name in names {
            if self.served.contains(&name) {
                continue;
            }
            match self.shared.library.get(&name) {
                Ok(upstream) => {
                    self.unserved.remove(&name);
                    self.served.insert(name);
                    self.start_lane(upstream)?;
                }
                Err(error) if all => self.leave_out(name, error.to_string()).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A quota file is wrong: the other upstreams go on, and this one does once its file is mended.
    async fn leave_out(&mut self, upstream: String, problem: String) -> Result<(), RunError> {
        let remaining = self.store.remaining(upstream.clone()).await?;
        let has_jobs = remaining.waiting + remaining.held > 0;
        if has_jobs && self.unserved.insert(upstream.clone(), problem.clone()).is_none() {
            self.shared.tell(&Event::Unserved { upstream, problem });
        }
        Ok(())
    }

    fn start_lane(&mut self, upstream: Arc<Upstream>) -> Result<(), RunError> {
        let seed = self.shared.options.seed.unwrap_or_else(seed);
        let rng = StdRng::seed_from_u64(seed.wrapping_add(self.served.len() as u64));
        let (store, shared) = (self.store.clone(), Arc::clone(&self.shared));
        let transport = Arc::new((self.transport)(&upstream)?);
        self.lanes.spawn(Lane::new(store, shared, upstream, transport, self.runner, rng).serve());
        Ok(())
    }

    /// Tells whether jobs were found that go again.
    async fn sweep(&mut self) -> Result<bool, RunError> {
        match self.store.sweep().await {
            Ok(swept) => {
                self.shared.count_swept(swept);
                Ok(swept.returned > 0)
            }
            // The lanes meet the same trouble, and tell it.
            Err(error) if error.may_pass() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn report(&self) -> Result<Report, RunError> {
        let mut report = self.shared.report();
        let until = self.shared.options.until;
        report.timed_out = until.is_some_and(|until| self.store.now().wall >= until);
        report.unserved = self.unserved.clone();
        for name in self.served.iter().chain(self.unserved.keys()) {
            let remaining = self.store.remaining(name.clone()).await?;
            report.waiting += remaining.waiting + remaining.running;
            report.held += remaining.held;
            let Ok(upstream) = self.shared.library.get(name) else { continue };
            if remaining.waiting == 0 {
                continue;
            }
            let view = self.store.upstream(upstream).await?;
            let Some(next_at) = view.next_at else { continue };
            if report.next_at.is_none_or(|known| next_at < known) {
                let first = view.partitions.iter().find(|p| p.wait.until == Some(next_at));
                report.next_at = Some(next_at);
                report.next_upstream = Some(name.clone());
                report.limit = first.and_then(|partition| partition.wait.limit.clone());
            }
        }
        Ok(report)
    }
}

/// Something was committed after `news`. A busy store tells so all the time: not more often than is of
/// use.
async fn changed_since(store: &impl Store, news: i64) {
    store.changed(news).await;
    store.timeline().sleep(NEWS_PAUSE).await;
}

/// What a generator of jitter begins with, where nobody says it.
fn seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the one place where randomness comes in")]
    rand::random()
}

fn joined(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), RunError> {
    match ended {
        Ok(ended) => ended,
        // A lane is never aborted, so this is a panic in it: let it be seen.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests;
