//! How calls end, sent or not, and what that did to their jobs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Call;
use crate::clock::Timestamp;
use crate::job::{CallId, Columns, JobId, JobState};
use crate::next::Token;
use crate::reading::remaining::Left;
use crate::reading::{Reading, Reason};
use crate::redirect::Redirect;

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
    /// The connection that it came over, where they are counted.
    pub connection: Option<u32>,
    /// What the answer, or its absence, means.
    pub reading: Reading,
    /// What it says of single jobs of a batch, and goes for them instead.
    pub items: Vec<ItemEnd>,
    /// What a refusal says of the token that it carried.
    pub token: Option<Token>,
    /// What the answer tells of how much is left.
    pub remaining: Vec<Left>,
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
    /// That of a call of which nothing is known but what this reading says: it left at its slot.
    pub fn of(call: &Call, reading: Reading) -> Settlement {
        Settlement {
            call: call.id,
            sent_at: call.slot_at,
            left: true,
            status: None,
            connection: None,
            reading,
            items: Vec::new(),
            token: None,
            remaining: Vec::new(),
            redirect: None,
            fields: BTreeMap::new(),
            body: None,
            random: 0.0,
        }
    }

    /// Whether it says nothing but that its jobs are done: nobody else has to know at once.
    pub(crate) fn is_plain_success(&self) -> bool {
        let readings = self.items.iter().map(|item| &item.reading).chain([&self.reading]);
        readings.into_iter().all(|reading| reading.reason.is_success())
            && self.redirect.is_none()
            && self.remaining.is_empty()
    }

    /// What it says of the limits and the partition: a refusal of a single job, where there is one that
    /// is not that job's own fault; else what the whole answer means.
    pub(crate) fn general(&self) -> &Reading {
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
#[non_exhaustive]
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

impl SettleEnd {
    /// The job's state: its end, or `queued` where it goes again.
    pub fn state(self) -> JobState {
        match self {
            SettleEnd::Ended(state) => state,
            SettleEnd::Again(_) | SettleEnd::Late => JobState::Queued,
        }
    }
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
    /// Until when the upstream wants to be left alone, where that is why (store time).
    pub until: Option<Timestamp>,
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
#[non_exhaustive]
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
