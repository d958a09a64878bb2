//! What people and tools are shown. All instants here are wall time.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::clock::Timestamp;
use crate::job::{CallId, Columns, JobId, JobState};
use crate::quota::evidence::Allowed;
use crate::store::{KeptBody, RunnerId};

/// Jobs by state.
pub type Tally = BTreeMap<JobState, u64>;

/// A load, with its jobs by state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadView {
    /// Its name.
    pub name: String,
    /// When its first jobs were added.
    pub added_at: Timestamp,
    /// Its jobs.
    pub jobs: Tally,
}

/// An upstream: its jobs, limits and the partitions that are not free.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamView {
    /// Its name.
    pub name: String,
    /// Its jobs.
    pub jobs: Tally,
    /// Why the whole upstream is held.
    pub held: Option<HoldView>,
    /// Its limit instances; those with keys only as far as [`SHOWN`] goes.
    pub limits: Vec<LimitView>,
    /// Its partitions that are not free; as far as [`SHOWN`] goes.
    pub partitions: Vec<PartitionView>,
    /// Limit instances and partitions that are not shown.
    pub omitted: u64,
    /// When something of it can go next; `None`: nothing waits for an instant.
    pub next_at: Option<Timestamp>,
}

/// At most so many keyed limit instances, and so many partitions, are shown of an upstream.
pub const SHOWN: usize = 1000;

/// The hold that a missing secret makes, and that a run lifts by itself once it is there.
pub(crate) const MISSING_SECRET: &str = "missing_secret";

/// The hold that a token which cannot be fetched makes, and that a run lifts by itself once it can.
pub(crate) const NO_TOKEN: &str = "no_token";

/// A hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldView {
    /// Since when.
    pub at: Timestamp,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub detail: String,
}

/// A hold that no person was told of yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldNews {
    /// The upstream.
    pub upstream: String,
    /// The partition's columns; `None`: the whole upstream.
    pub key: Option<Columns>,
    /// Its queued jobs.
    pub jobs: u64,
    /// Since when, and why.
    pub hold: HoldView,
    /// Until when the upstream wants to be left alone, where that is why.
    pub until: Option<Timestamp>,
}

/// A limit instance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LimitView {
    /// The limit's name.
    pub name: String,
    /// `rate`, `budget`, `rolling` or `concurrency`.
    pub kind: &'static str,
    /// The instance's columns.
    pub key: Columns,
    /// Units that we spent in the current window; of a concurrency limit: calls in flight.
    pub spent: Option<u64>,
    /// Units that the rule allows.
    pub amount: u64,
    /// Units of it that are kept for people.
    pub reserve: u64,
    /// What the upstream reported as left, less what was sent since.
    pub remaining: Option<u64>,
    /// The end of the current window.
    pub resets_at: Option<Timestamp>,
    /// The zone of a budget's calendar.
    pub zone: Option<chrono_tz::Tz>,
    /// When it grants one unit next; `None`: when something in flight ends.
    pub next_at: Option<Timestamp>,
    /// Closed by a refusal until then.
    pub blocked_until: Option<Timestamp>,
    /// The refusal's reason.
    pub reason: Option<String>,
    /// The refusal in the server's own words.
    pub detail: Option<String>,
    /// Of a rate: units a second that are planned.
    pub effective_rate: Option<f64>,
    /// The share of the declared pace that is used, where refusals inside it cut that.
    pub slowed: Option<f64>,
    /// When all of the declared pace is back, if nothing is refused until then.
    pub full_at: Option<Timestamp>,
    /// Of a rate: units a second that would be planned, had nothing been refused.
    pub declared_rate: Option<f64>,
    /// The current window counts as spent, because the store was restored in it.
    pub restored: bool,
}

/// When the day of a budget may begin, which nobody states, as answers show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResetsView {
    /// The limit's name.
    pub limit: String,
    /// The instance's columns.
    pub key: Columns,
    /// What is left.
    pub allowed: Allowed,
}

/// Why something cannot go at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitView {
    /// What kind of wait.
    pub turn: Turn,
    /// The limit that binds; `None`: none does.
    pub limit: Option<String>,
    /// Until when; `None`: no instant can be named. Of what is held: until when the upstream wants to be
    /// left alone, where it is held for that; it does not go on by itself.
    pub until: Option<Timestamp>,
    /// Why, in one word: a reading's reason, a limit's kind, or what a person gave.
    pub reason: String,
    /// Why, in a sentence.
    pub detail: String,
}

/// A queued job's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Turn {
    /// May go now.
    Ready,
    /// Not due yet.
    Scheduled,
    /// For a limit or a block.
    Waiting,
    /// For a person.
    Held,
}

impl Turn {
    /// Its name, as shown.
    pub const fn name(self) -> &'static str {
        match self {
            Turn::Ready => "ready",
            Turn::Scheduled => "scheduled",
            Turn::Waiting => "waiting",
            Turn::Held => "held",
        }
    }
}

/// A partition that is not free.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionView {
    /// Its columns.
    pub key: Columns,
    /// Its queued jobs; those that run wait for nothing.
    pub jobs: u64,
    /// Why it cannot go.
    pub wait: WaitView,
}

/// How many queued jobs of its partition go before a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// So many.
    pub jobs: u64,
    /// And more: they were not counted on.
    pub more: bool,
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// Its number.
    pub id: JobId,
    /// Its upstream.
    pub upstream: String,
    /// Its load.
    pub load: String,
    /// The method.
    pub method: String,
    /// The address; secrets are placeholders.
    pub url: String,
    /// Its state.
    pub state: JobState,
    /// Why it cannot go now, where it is queued and cannot.
    pub waiting: Option<WaitView>,
    /// How many of its partition go before it, where it is queued.
    pub ahead: Option<Ahead>,
    /// Its columns.
    pub columns: Columns,
    /// Its partition's columns.
    pub partition: Columns,
    /// 0 to 9.
    pub priority: u8,
    /// Not before this.
    pub due_at: Timestamp,
    /// Worthless after this.
    pub deadline_at: Option<Timestamp>,
    /// When it was added.
    pub added_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Attempts so far.
    pub attempts: u32,
    /// Of these, failures.
    pub failures: u32,
    /// The last answer's status.
    pub status: Option<u16>,
    /// The last reason.
    pub reason: Option<String>,
    /// The last answer in a sentence.
    pub detail: Option<String>,
    /// Of one that expired, or whose cost can never fit: the limit that kept it from going.
    pub limit: Option<String>,
    /// Of one that expired: when it could have gone.
    pub could_go_at: Option<Timestamp>,
    /// Fields taken from its answer.
    pub fields: BTreeMap<String, Value>,
}

/// An attempt that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptView {
    /// Its own number, rising in the order in which attempts ended.
    pub id: i64,
    /// The job.
    pub job: JobId,
    /// Its upstream.
    pub upstream: String,
    /// The job's column `url`, or where it has none the address.
    pub url: String,
    /// Its number, from 1.
    pub n: u32,
    /// Its call.
    pub call: CallId,
    /// When it left.
    pub sent_at: Timestamp,
    /// When it ended; `None`: it was lost with its process.
    pub ended_at: Option<Timestamp>,
    /// The answer's status.
    pub status: Option<u16>,
    /// What the answer meant; `None`: it was lost with its process.
    pub reason: Option<String>,
    /// Where reason and hint came from.
    pub source: Option<String>,
    /// The limit that it concerned.
    pub limit: Option<String>,
    /// The upstream's hint.
    pub hint_at: Option<Timestamp>,
    /// The answer in a sentence.
    pub detail: Option<String>,
    /// Where it sent the job on.
    pub redirect: Option<String>,
    /// The body that was kept.
    pub body: Option<KeptBody>,
    /// The connection that it went over, where they are counted.
    pub connection: Option<u32>,
    /// Its partition's columns.
    pub partition: Columns,
}

/// The names that results have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultNames {
    /// Fields taken from answers.
    pub fields: Vec<String>,
    /// Columns of jobs.
    pub columns: Vec<String>,
}

/// What tidying removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tidied {
    /// Marks of `--dedupe day` whose day is over.
    pub marks: u64,
    /// Limit instances that nobody waits for and that count nothing.
    pub instances: u64,
}

/// A runner at work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunnerView {
    /// Its number.
    pub id: RunnerId,
    /// Its process.
    pub pid: u32,
    /// The upstreams it serves; empty: all.
    pub upstreams: Vec<String>,
}
