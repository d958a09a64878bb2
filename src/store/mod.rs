//! Durable truth: jobs, permits, blocks, history.
//!
//! [`Store`] is named by transitions, each of which is one transaction. What they decide, they decide
//! by the pure modules; what they keep, any implementation keeps alike: `tests/conformance` is the
//! one suite that each must pass. Today there is [`sqlite::SqliteStore`].

pub mod error;
pub mod filter;
pub mod sqlite;
pub mod views;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::{Now, Timeline, Timestamp};
use crate::job::{CallId, Columns, JobId, JobState, NewJob, Request};
use crate::quota::Upstream;
use crate::reading::{Reading, Reason};
use crate::redirect::Redirect;
pub use error::StoreError;
pub use filter::{AttemptFilter, Cursor, Filter, NoCursor};
use views::{AttemptView, JobView, LoadView, ResultNames, RunnerView, Tally, Tidied, UpstreamView};

/// A process that sends, as the store knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunnerId(pub i64);

/// What an addition came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Added {
    /// The ids of the jobs that were added, in the order given.
    pub ids: Vec<JobId>,
    /// Jobs that were there already.
    pub duplicates: u64,
    /// How many of those added took the place of one that waited, which ended as cancelled.
    pub replaced: u64,
}

/// A wish for calls of one upstream.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Whose.
    pub upstream: Arc<Upstream>,
    /// Who will send them.
    pub runner: RunnerId,
    /// At most this many.
    pub most: usize,
    /// No slot before this long from now: the time it takes to hand a claim over.
    pub lead: std::time::Duration,
    /// Of a partition that was not answered, never or not the last time, at most this many are out at a
    /// time: should the upstream refuse whatever comes, or be silent, no more than these find out. At
    /// least 1.
    pub unanswered: usize,
}

impl Claim {
    /// A wish for at most `most` calls, from now on, however many of a partition.
    pub fn new(upstream: Arc<Upstream>, runner: RunnerId, most: usize) -> Claim {
        let (lead, unanswered) = (std::time::Duration::ZERO, usize::MAX);
        Claim { upstream, runner, most, lead, unanswered }
    }
}

/// What a claim came to.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// The calls, by slot.
    pub calls: Vec<Call>,
    /// When asking again makes sense (store time); `None`: once something is added, ends or is let go.
    pub next_at: Option<Timestamp>,
    /// The limit that binds until then, where one does.
    pub limit: Option<String>,
    /// Jobs that expired on the way.
    pub expired: u64,
    /// Jobs that failed on the way: their cost can never fit.
    pub failed: u64,
    /// What [`Store::changed`] tells changes from.
    pub news: i64,
    /// The machine's wall clock was found stepped by this many nanoseconds since last time.
    pub stepped: Option<i64>,
}

/// A leased call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The fence: no call after it has this id.
    pub id: CallId,
    /// Its partition's columns.
    pub partition: Columns,
    /// The instant reserved for the send (store time).
    pub slot_at: Timestamp,
    /// When the lease runs out (store time).
    pub expires_at: Timestamp,
    /// The block sequence that its claim saw.
    pub block_seq: i64,
    /// Whether sending it twice does no harm; any other is marked before it leaves.
    pub repeatable: bool,
    /// Whether its slot is one of a limit: late use must be forfeited.
    pub paced: bool,
    /// The job it carries; of a batch the first.
    pub job: ClaimedJob,
    /// The other jobs of a batch.
    pub more: Vec<ClaimedJob>,
}

impl Call {
    /// All the jobs it carries.
    pub fn jobs(&self) -> impl Iterator<Item = &ClaimedJob> {
        std::iter::once(&self.job).chain(&self.more)
    }
}

/// A job as its call needs it.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    /// Its number.
    pub id: JobId,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// What is sent, as it was added.
    pub request: Request,
    /// Where it goes instead, after a redirect.
    pub redirect: Option<Redirect>,
    /// Its columns.
    pub columns: Columns,
    /// When it was added (store time).
    pub added_at: Timestamp,
    /// Worthless after this (store time).
    pub deadline_at: Option<Timestamp>,
}

impl ClaimedJob {
    /// The address that is called.
    pub fn url(&self) -> &str {
        self.redirect.as_ref().map_or(&self.request.url, |redirect| &redirect.url)
    }

    /// The method that it is called by.
    pub fn method(&self) -> &str {
        if self.as_get() { "GET" } else { &self.request.method }
    }

    /// The template of the body that is sent.
    pub fn body(&self) -> Option<&str> {
        self.request.body.as_deref().filter(|_| !self.as_get())
    }

    fn as_get(&self) -> bool {
        self.redirect.as_ref().is_some_and(|redirect| redirect.as_get)
    }
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The call.
    pub call: CallId,
    /// When it left (store time).
    pub sent_at: Timestamp,
    /// Whether any of it may have reached the upstream.
    pub left: bool,
    /// The answer's status; `None`: there was no answer.
    pub status: Option<u16>,
    /// What the answer, or its absence, means.
    pub reading: Reading,
    /// What it says of single jobs of a batch, and goes for them instead.
    pub items: Vec<ItemEnd>,
    /// Where the answer sends the job on, where it is to follow.
    pub redirect: Option<Redirect>,
    /// Fields taken from the answer.
    pub fields: BTreeMap<String, serde_json::Value>,
    /// The body, where it is to be kept.
    pub body: Option<KeptBody>,
    /// A number from 0 to 1 that jitter is made of.
    pub random: f64,
}

impl Settlement {
    /// What it says of the limits and the partition: a refusal of a single job, where there is one that
    /// is not that job's own fault; else what the whole answer means.
    pub fn general(&self) -> &Reading {
        let own = |reason: Reason| reason.is_success() || reason.is_permanent();
        let mut items = self.items.iter().map(|item| &item.reading);
        items.find(|reading| !own(reading.reason)).unwrap_or(&self.reading)
    }
}

/// How one job of a batch was answered.
#[derive(Clone, Debug)]
pub struct ItemEnd {
    /// The job.
    pub job: JobId,
    /// Its own status.
    pub status: Option<u16>,
    /// What that means.
    pub reading: Reading,
    /// Fields taken from its part of the answer.
    pub fields: BTreeMap<String, serde_json::Value>,
}

/// A body to be kept, secrets already searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBody {
    /// Its bytes, up to the cap.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

/// What a settle did to its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The call.
    pub call: CallId,
    /// The job; of a batch the first.
    pub job: Option<JobId>,
    /// What became of it.
    pub end: SettleEnd,
    /// The other jobs of a batch, and what became of them.
    pub more: Vec<(JobId, SettleEnd)>,
    /// A batch was refused for what is in it: the next ones carry at most so many jobs.
    pub split: Option<usize>,
    /// A block that began with it.
    pub block: Option<Blocked>,
    /// A hold that began with it.
    pub hold: Option<Held>,
}

impl Settled {
    /// All its jobs, and what became of them.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, SettleEnd)> {
        self.job.map(|job| (job, self.end)).into_iter().chain(self.more.iter().copied())
    }
}

/// What became of a job whose call was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleEnd {
    /// It ended so.
    Ended(JobState),
    /// It goes again, not before this (store time).
    Again(Timestamp),
    /// The lease had run out and the job moved on: only its attempt was recorded.
    Late,
}

/// A block that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The limit; `None`: the partition.
    pub limit: Option<String>,
    /// The columns of the instance or partition.
    pub key: Columns,
    /// Until when (store time).
    pub until: Timestamp,
    /// Why.
    pub reason: Reason,
}

/// A hold that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The partition's columns.
    pub key: Columns,
    /// Why.
    pub reason: String,
    /// The server's own words, and what a person must do.
    pub detail: String,
}

/// A call given back unsent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The call.
    pub call: CallId,
    /// Why.
    pub why: ReleaseWhy,
}

/// Why a call was given back unsent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseWhy {
    /// Its slot was missed by more than the slack.
    Forfeited,
    /// A block or hold began after the claim.
    Blocked,
    /// The runner is leaving.
    Drained,
    /// A secret that it needs is not there.
    Unprepared,
    /// Its deadline passed while it waited for its slot.
    Expired,
}

/// Queued jobs of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Those that wait for their turn.
    pub waiting: u64,
    /// Those that wait for a person.
    pub held: u64,
    /// Those in a call that is out, of whichever process.
    pub running: u64,
}

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Jobs whose lease ran out, or whose process is dead, that go again.
    pub returned: u64,
    /// Jobs that may have been sent and must not be sent twice.
    pub unsure: u64,
    /// Jobs whose deadline passed.
    pub expired: u64,
}

/// Where a partition's or upstream's way is closed by a person, or for one.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Which upstream.
    pub upstream: String,
    /// Columns that its partitions must have; empty: the whole upstream.
    pub key: Columns,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub detail: String,
}

/// An act on many jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Queued jobs end as cancelled.
    Cancel,
    /// Ended jobs are queued again, with their failures forgotten.
    Retry,
    /// Unsure jobs end so, or are queued again.
    Resolve(Resolution),
    /// Queued jobs get another priority, deadline or not-before.
    Set {
        /// 0 to 9.
        priority: Option<u8>,
        /// Store time; `Some(None)` removes it.
        deadline_at: Option<Option<Timestamp>>,
        /// Store time.
        due_at: Option<Timestamp>,
    },
    /// Ended jobs are removed, with their attempts and bodies.
    Prune,
}

/// How an unsure job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It was done.
    Done,
    /// It was not, and shall not be.
    Failed,
    /// It was not: send it.
    Queued,
}

/// The store's contract. Every method is one transaction or one consistent read; instants in and out
/// are store time. Errors are what could not be done; waiting and refusing are values.
pub trait Store: Clone + Send + Sync + 'static {
    /// The clock that all of this store's instants come from.
    fn timeline(&self) -> &Timeline;

    /// Both times, now.
    fn now(&self) -> Now {
        self.timeline().now()
    }

    /// Queues jobs of one upstream under a load's name. All of them or, on an error, none.
    fn add(
        &self,
        upstream: Arc<Upstream>,
        load: String,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Result<Added, StoreError>> + Send;

    /// Enters a process that will send, and finds the leases of dead ones.
    fn register(
        &self,
        upstreams: Vec<String>,
    ) -> impl Future<Output = Result<(RunnerId, Swept), StoreError>> + Send;

    /// The process leaves. Its calls must have been settled or released.
    fn retire(&self, runner: RunnerId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Picks jobs, makes calls of them, takes their permits from all their limits, leases them.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Writes down that these calls are about to leave. Synced.
    fn mark(&self, calls: Vec<CallId>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives calls back unsent, with their slots and units, newest first.
    fn release(
        &self,
        upstream: Arc<Upstream>,
        releases: Vec<Release>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Ends calls. Settling twice is the same as once.
    fn settle(
        &self,
        upstream: Arc<Upstream>,
        settlements: Vec<Settlement>,
    ) -> impl Future<Output = Result<Vec<Settled>, StoreError>> + Send;

    /// Finds leases that ran out, dead processes and passed deadlines.
    fn sweep(&self) -> impl Future<Output = Result<Swept, StoreError>> + Send;

    /// Closes partitions, or a whole upstream, until a person acts. Tells how many partitions.
    fn hold(&self, hold: Hold) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Opens what was held; each partition sends one probe before the rest. Tells how many.
    fn resume(
        &self,
        upstream: String,
        key: Columns,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Opens what is held for `reason` alone. Tells how many partitions or upstreams.
    fn let_go(
        &self,
        upstream: String,
        reason: String,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Acts on every job that the filter finds and the act fits. Tells how many.
    fn act(&self, filter: Filter, act: Act)
    -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// How many jobs [`Store::act`] would change.
    fn count(
        &self,
        filter: Filter,
        act: Act,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// How many jobs that fit the filter are running now, so that no act can change them.
    fn running(&self, filter: Filter) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Removes what nobody needs any more: marks of days that are over, bodies without an attempt,
    /// limit instances that count nothing.
    fn tidy(&self) -> impl Future<Output = Result<Tidied, StoreError>> + Send;

    /// Records units spent elsewhere on a budget or rolling limit, or (`units` negative) fewer.
    fn spend(
        &self,
        upstream: Arc<Upstream>,
        limit: String,
        key: Columns,
        units: i64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Has every waiting partition of the upstream looked at again: its limits changed.
    fn reconsider(
        &self,
        upstream: Arc<Upstream>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// A number that rises whenever a block or hold begins anywhere; at most 10 ms old.
    fn block_seq(&self) -> Result<i64, StoreError>;

    /// Whether a block or hold stands in this call's way now.
    fn is_blocked(&self, call: CallId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Jobs by state, of all upstreams.
    fn tally(&self) -> impl Future<Output = Result<Tally, StoreError>> + Send;

    /// The names of all upstreams that ever had a job here.
    fn upstream_names(&self) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;

    /// Whether a load of that name exists.
    fn is_load(&self, name: String) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Loads with jobs, oldest first.
    fn loads(&self) -> impl Future<Output = Result<Vec<LoadView>, StoreError>> + Send;

    /// Runners that are alive.
    fn runners(&self) -> impl Future<Output = Result<Vec<RunnerView>, StoreError>> + Send;

    /// An upstream as it stands: its limits, and what is not free.
    fn upstream(
        &self,
        upstream: Arc<Upstream>,
    ) -> impl Future<Output = Result<UpstreamView, StoreError>> + Send;

    /// Jobs that fit the filter, by number. What they wait for is told where their upstream is among
    /// those given.
    fn jobs(
        &self,
        filter: Filter,
        upstreams: BTreeMap<String, Arc<Upstream>>,
    ) -> impl Future<Output = Result<Vec<JobView>, StoreError>> + Send;

    /// Attempts that ended, oldest first.
    fn attempts(
        &self,
        filter: AttemptFilter,
    ) -> impl Future<Output = Result<Vec<AttemptView>, StoreError>> + Send;

    /// Ended jobs that fit the filter, in the order in which they ended; with `latest_by` of those
    /// with the same value in that column only the last.
    fn ended(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        latest_by: Option<String>,
    ) -> impl Future<Output = Result<Vec<Cursor>, StoreError>> + Send;

    /// The names that the results of ended jobs that fit the filter have.
    fn result_names(
        &self,
        filter: Filter,
    ) -> impl Future<Output = Result<ResultNames, StoreError>> + Send;

    /// The bodies that the last attempts of these jobs kept.
    fn last_bodies(
        &self,
        jobs: Vec<JobId>,
    ) -> impl Future<Output = Result<BTreeMap<JobId, KeptBody>, StoreError>> + Send;

    /// How many queued jobs of an upstream wait for their turn, and how many for a person.
    fn remaining(
        &self,
        upstream: String,
    ) -> impl Future<Output = Result<Remaining, StoreError>> + Send;

    /// The newest change there is, for [`Store::changed`].
    fn news(&self) -> Result<i64, StoreError>;

    /// Resolves once anybody has committed something after `news` ([`Claimed::news`]) that lets more
    /// go: an addition, a release, a place that came free.
    fn changed(&self, news: i64) -> impl Future<Output = ()> + Send;
}
