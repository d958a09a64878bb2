//! A wish for calls, and what it comes to: leased calls with their jobs, questions to the upstream.

use std::sync::Arc;
use std::time::Duration;

use super::RunnerId;
use crate::clock::Timestamp;
use crate::job::{CallId, Columns, JobId, Request};
use crate::quota::Upstream;
use crate::redirect::Redirect;

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
    pub lead: Duration,
    /// Of a partition that was not answered, never or not the last time, at most this many are out at a
    /// time: should the upstream refuse whatever comes, or be silent, no more than these find out. At
    /// least 1.
    pub unanswered: usize,
    /// Whether it is for jobs that the runner owns, and for no others; else for the queue's.
    pub owned: bool,
}

impl Claim {
    /// A wish for at most `most` calls, from now on, however many of a partition.
    pub fn new(upstream: Arc<Upstream>, runner: RunnerId, most: usize) -> Claim {
        let (lead, unanswered) = (Duration::ZERO, usize::MAX);
        Claim { upstream, runner, most, lead, unanswered, owned: false }
    }

    /// The same wish for jobs that the runner owns.
    #[must_use]
    pub fn owned(self) -> Claim {
        Claim { owned: true, ..self }
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
    /// Where the upstream is to be asked what is left, by whoever claimed.
    pub questions: Vec<QuotaQuestion>,
    /// Jobs that expired on the way.
    pub expired: u64,
    /// Jobs that failed on the way: their cost can never fit.
    pub failed: u64,
    /// What [`Store::changed`](super::Store::changed) tells changes from.
    pub news: i64,
    /// The machine's wall clock was found stepped by this many nanoseconds since last time.
    pub stepped: Option<i64>,
}

/// The upstream is to be asked what is left of the limit of its `[quota_call]`. It costs no job an
/// attempt, and that limit nothing; of all others its permit is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaQuestion {
    /// The columns of a partition that counts there.
    pub partition: Columns,
    /// The instant reserved for it (store time).
    pub slot_at: Timestamp,
    /// What the store tells by it which answers came since.
    pub mark: u64,
}

/// Nobody goes while a [`QuotaQuestion`] is out, but no longer than this.
pub(crate) const QUOTA_PATIENCE: Duration = Duration::from_secs(10);

/// How a [`QuotaQuestion`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaAnswer {
    /// As in the question.
    pub partition: Columns,
    /// As in the question.
    pub slot_at: Timestamp,
    /// As in the question.
    pub mark: u64,
    /// Units left; `None`: there was no answer, or none that tells.
    pub remaining: Option<u64>,
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
    /// Whether it is marked from its claim on: nobody but its owner sends its job, so that no one could
    /// send it twice.
    pub marked: bool,
    /// Whether its job ends with it, and its lease with its owner.
    pub once: bool,
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
