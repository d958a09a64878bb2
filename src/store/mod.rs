//! Durable truth: jobs, permits, blocks, history.
//!
//! [`Store`] is named by transitions, each of which is one transaction. What they decide, they decide
//! by the pure modules; what they keep, any implementation keeps alike: `tests/conformance` is the
//! one suite that each must pass. Today there is [`sqlite::SqliteStore`].

pub mod claimed;
pub mod error;
#[cfg(test)]
pub(crate) mod faulty;
pub mod filter;
pub mod owned;
pub mod retention;
pub mod settled;
pub mod sqlite;
pub mod views;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::{Now, Timeline, Timestamp};
use crate::job::{CallId, Columns, JobId, NewJob};
use crate::quota::Upstream;
use crate::quota::forecast::Backlog;
pub(crate) use claimed::QUOTA_PATIENCE;
pub use claimed::{Call, Claim, Claimed, ClaimedJob, QuotaAnswer, QuotaQuestion};
pub use error::StoreError;
pub use filter::{AttemptFilter, Cursor, Filter, NoCursor};
pub use owned::{OwnedJob, Serves, Withdrawal};
pub use settled::{
    Blocked, Held, ItemEnd, KeptBody, Release, ReleaseWhy, SettleEnd, Settled, Settlement,
};
use views::{
    AttemptView, HoldNews, JobView, LoadView, ResetsView, ResultNames, RunnerView, Tally, Tidied,
    UpstreamView,
};

/// A process that sends, as the store knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunnerId(pub i64);

/// What an addition came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Added {
    /// The ids of the jobs that were added, in the order given.
    pub ids: Vec<JobId>,
    /// Jobs that were there already.
    pub duplicates: u64,
    /// How many of those added took the place of one that waited, which ended as cancelled.
    pub replaced: u64,
}

/// Queued jobs of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// The store was a copy until now.
    pub restored: Option<Restored>,
}

/// A copy became a store, and what was sent since it was made is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// When the copy was made (wall time).
    pub copied_at: Timestamp,
    /// Queued jobs that may have been sent since, and must not be sent twice.
    pub unsure: u64,
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
    /// It ends by itself then (store time); `None`: a person acts, or whoever made it.
    pub until: Option<Timestamp>,
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

    /// Queues jobs that their owner alone sends: they take turns with the queue, and end with their owner.
    fn enter(
        &self,
        upstream: Arc<Upstream>,
        owner: RunnerId,
        load: String,
        jobs: Vec<OwnedJob>,
    ) -> impl Future<Output = Result<Vec<JobId>, StoreError>> + Send;

    /// Ends owned jobs that nobody waits for any more. Those that are in a call, or have ended, stay as
    /// they are.
    fn withdraw(
        &self,
        owner: RunnerId,
        jobs: Vec<Withdrawal>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Enters a process that will send, and finds the leases of dead ones.
    fn register(
        &self,
        serves: Serves,
    ) -> impl Future<Output = Result<(RunnerId, Swept), StoreError>> + Send;

    /// The process leaves. Its calls must have been settled or released; jobs that it owns end.
    fn retire(&self, runner: RunnerId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Picks jobs, makes calls of them, takes their permits from all their limits, leases them.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Writes down that these calls are about to leave. Synced.
    fn mark(&self, calls: Vec<CallId>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives calls back unsent, with their slots and units, newest first.
    fn release(
        &self,
        releases: Vec<Release>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Ends calls. Settling twice is the same as once.
    fn settle(
        &self,
        upstream: Arc<Upstream>,
        settlements: Vec<Settlement>,
    ) -> impl Future<Output = Result<Vec<Settled>, StoreError>> + Send;

    /// Takes note of what the upstream said is left, or that it said nothing, when it was asked.
    fn quota_told(
        &self,
        upstream: Arc<Upstream>,
        answer: QuotaAnswer,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Finds leases that ran out, dead processes and passed deadlines.
    fn sweep(&self) -> impl Future<Output = Result<Swept, StoreError>> + Send;

    /// Closes partitions, or a whole upstream, until a person acts or an instant has come. Tells how many
    /// partitions.
    fn hold(&self, hold: Hold) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Holds that no person was told of yet, and that count as told from now on: whoever asks tells them.
    /// One that a person made needs no telling; one that ended and came again is new.
    fn tell_holds(&self) -> impl Future<Output = Result<Vec<HoldNews>, StoreError>> + Send;

    /// These could not be told: the next that asks tells them.
    fn holds_untold(
        &self,
        holds: Vec<HoldNews>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Opens what was held; each partition sends one probe before the rest. Tells how many.
    fn resume(
        &self,
        upstream: String,
        key: Columns,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Opens what is held for `reason` alone, until whenever. Tells how many partitions or upstreams.
    fn let_go(
        &self,
        upstream: String,
        reason: String,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Acts on every job that the filter finds and the act fits. Tells how many. Where it queues jobs again it may
    /// do so in steps, each of them one transaction: whoever is killed meanwhile has queued the first ones.
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

    /// Removes what nobody needs any more: marks of days that are over, limit instances that count
    /// nothing.
    fn tidy(&self) -> impl Future<Output = Result<Tidied, StoreError>> + Send;

    /// Gives at most `most` bytes of the room that pruned jobs left back to the system. Tells how many it
    /// were; 0: there is nothing more to give.
    fn give_back(&self, most: u64) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Records units spent elsewhere on a budget or rolling limit, or (`units` negative) fewer.
    fn spend(
        &self,
        upstream: Arc<Upstream>,
        limit: String,
        key: Columns,
        units: i64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// A number that rises whenever a block or hold begins anywhere; at most 10 ms old.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
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

    /// What waits of an upstream, and the limits that it waits for. With a load, its jobs are those asked
    /// about: the others before them go first.
    fn backlog(
        &self,
        upstream: Arc<Upstream>,
        load: Option<String>,
    ) -> impl Future<Output = Result<Backlog, StoreError>> + Send;

    /// Of its budgets whose days begin nobody knows when: what its latest answers show of it.
    fn resets(
        &self,
        upstream: Arc<Upstream>,
    ) -> impl Future<Output = Result<Vec<ResetsView>, StoreError>> + Send;

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

    /// How many ended jobs that fit the filter, after the cursor, were answered and have no kept body;
    /// with `whole` those too whose body was cut.
    fn bodiless(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        whole: bool,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

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
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn news(&self) -> Result<i64, StoreError>;

    /// Resolves once anybody has committed something after `news` ([`Claimed::news`]) that lets more
    /// go: an addition, a release, a place that came free. What this process commits is heard of at once, what
    /// another does within 50 ms as a rule, and within a second in any case.
    fn changed(&self, news: i64) -> impl Future<Output = ()> + Send;
}
