//! What a job is, and which moves between its states are legal.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::quota::declare::meant;

/// A job's number: unique in its store, rising in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A call's number: unique in its store and never used again, so it fences late settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub i64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The named values of a job, and likewise of a key or a partition.
pub type Columns = BTreeMap<String, String>;

/// Where a job stands. The last five are ends; `retry` leads back from each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits for its turn.
    Queued,
    /// Is part of a leased call.
    Running,
    /// Was answered as wished.
    Done,
    /// Will not be answered as wished, however often it is sent.
    Failed,
    /// Its deadline passed, or no permit can come before it.
    Expired,
    /// A person withdrew it.
    Cancelled,
    /// May have been sent, must not be sent twice: a person resolves it.
    Unsure,
}

impl JobState {
    /// All states, in the order in which people are shown them.
    pub const ALL: [JobState; 7] = [
        JobState::Queued,
        JobState::Running,
        JobState::Done,
        JobState::Failed,
        JobState::Expired,
        JobState::Cancelled,
        JobState::Unsure,
    ];

    /// The state's name, as stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Expired => "expired",
            JobState::Cancelled => "cancelled",
            JobState::Unsure => "unsure",
        }
    }

    /// Whether nothing more happens to the job by itself.
    pub const fn is_final(self) -> bool {
        !matches!(self, JobState::Queued | JobState::Running)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for JobState {
    type Err = UnknownState;

    fn from_str(name: &str) -> Result<Self, UnknownState> {
        let known = JobState::ALL.into_iter().find(|state| state.name() == name);
        known.ok_or_else(|| UnknownState(name.to_owned()))
    }
}

/// A name that is no job state.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no job state{meant}: queued, running, done, failed, expired, cancelled or unsure",
    meant = meant(.0, JobState::ALL.into_iter().map(JobState::name))
)]
pub struct UnknownState(String);

/// What is sent. Everything here froze when the job was added; secrets are still placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// The HTTP method, in capitals.
    pub method: String,
    /// The address, rendered; `${env:X}` and its kin stand in it as typed.
    pub url: String,
    /// Header templates of this job (`add --header`); those of the quota file come beside them.
    pub headers: BTreeMap<String, String>,
    /// The body template, where the call has one: the columns fill it when it is sent.
    pub body: Option<String>,
}

/// What a row says of its own request beside its columns: word for word, never as a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The method: capitals, or one of the usual ones in any letters.
    pub method: Option<String>,
    /// Header fields, sent beside the others and instead of those of one name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Option<String>,
}

/// Which earlier job makes a new one a duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dedupe {
    /// None.
    None,
    /// One of the same key that has not ended.
    #[default]
    Active,
    /// One of the same key added on the same UTC day, ended or not; or an active one.
    Day,
    /// Any of the same key, even one pruned since.
    Ever,
}

/// A job to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// What is sent.
    pub request: Request,
    /// Its columns: the row's own, set, derived and default ones.
    pub columns: Columns,
    /// The part of `columns` that its partition is named by.
    pub partition: Columns,
    /// 0 to 9, higher first.
    pub priority: u8,
    /// Among those of its priority it stands as if it had come then; never behind those that come now.
    pub line_at: Option<Timestamp>,
    /// Not to be sent before this (store time).
    pub not_before: Option<Timestamp>,
    /// Worthless after this (store time).
    pub deadline_at: Option<Timestamp>,
    /// The rule for duplicates.
    pub dedupe: Dedupe,
    /// What duplicates are told by, where the user gave it; else partition, method, URL and body.
    pub dedupe_key: Option<String>,
    /// When what it is about was last changed, in a text that is the same for the same moment.
    pub lastmod: Option<String>,
    /// A duplicate also where one of the same key was last added with the same `lastmod`, and did not
    /// come to nothing.
    pub changed: bool,
    /// Takes the place of one of the same key that is queued and not running.
    pub replace: bool,
    /// `priority` is nobody's wish: one that is replaced leaves its own.
    pub keeps_priority: bool,
    /// Whether sending twice does no harm.
    pub repeatable: bool,
}
