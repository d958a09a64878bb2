//! Jobs that a process waits for, and that it alone sends: those of `call`, `exec`, a gateway, the library.

use crate::clock::Timestamp;
use crate::job::{JobId, JobState, NewJob};

/// What a process sends that enters the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serves {
    /// The queue, of these upstreams; none named are all.
    Queue(Vec<String>),
    /// Only the jobs that it owns.
    Itself,
}

/// A job that its owner alone sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedJob {
    /// The job. It is no duplicate of any other: its `dedupe` must be none.
    pub job: NewJob,
    /// It is one permit: it ends with its call, refused or not, and its lease runs as long as its owner.
    pub once: bool,
    /// What its call takes of limits that count calls or items; at least 1.
    pub units: u64,
    /// Whether it may use what budgets keep for people (`reserve`).
    pub use_reserve: bool,
}

/// An owned job that nobody waits for any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The job.
    pub job: JobId,
    /// How it ends: cancelled, expired or failed.
    pub state: JobState,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub detail: String,
    /// When it could have gone (wall time), where that is known.
    pub could_go_at: Option<Timestamp>,
    /// The limit that kept it from going.
    pub limit: Option<String>,
}
