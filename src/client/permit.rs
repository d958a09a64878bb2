//! A permit held: the right to send one call now, completed by what came of it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::oneshot;

use super::{Error, OurErrand, OurGranted};
use crate::clock::Timestamp;
use crate::dispatch::call::{Sent, unanswered_told};
use crate::dispatch::desk::gave_up;
#[cfg(feature = "gateway")]
use crate::dispatch::transport::NoAnswer;
use crate::dispatch::transport::Received;
use crate::job::{Columns, JobId, JobState};
use crate::quota::Upstream;
use crate::reading::{Reading, Reason};
use crate::store::sqlite::HeldLock;
use crate::store::{Settled, Settlement, Store as _, StoreError};

/// Of an answer whose end is not read, what is said of a permit that was dropped.
const DROPPED: &str = "its permit was dropped before it was completed: it may have been sent";

/// The right to send one call of an upstream, now. Its slot has come, its units are spent, its attempt is
/// on record. Complete it by what came of the call, or [cancel](Permit::cancel) it unsent.
///
/// Dropped, it counts as sent: its units stay spent, and its job ends as `unsure`, or as `failed` where
/// its method may be sent twice without harm. It lasts as long as the process: nothing need be renewed.
#[must_use = "a permit that is dropped counts as sent"]
pub struct Permit {
    errand: OurErrand,
    granted: OurGranted,
    sent_at: Timestamp,
    is_over: bool,
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit")
            .field("upstream", &self.granted.way.upstream.name)
            .field("job", &self.job())
            .finish_non_exhaustive()
    }
}

/// What a completed permit came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Its job.
    pub job: JobId,
    /// How that ended: done, failed or unsure; or queued, where its answer came too late to count.
    pub state: JobState,
    /// What the answer means.
    pub reason: Reason,
    /// The limit that it concerns, where it names one.
    pub limit: Option<String>,
    /// The answer in a sentence, and what a person must do, where one must.
    pub detail: String,
    /// Whether the same call can succeed by waiting alone.
    pub retryable: bool,
    /// When the upstream, or our own backoff, lets calls of this partition go again (wall time).
    pub retry_at: Option<Timestamp>,
    /// The partition stopped until a person acts: why.
    pub held: Option<String>,
}

/// A handle that child processes inherit: see [`Permit::lifeline`]. Drop it once they are started.
#[derive(Debug)]
pub struct Lifeline(#[allow(dead_code, reason = "it is held, no more")] HeldLock);

/// A refusal that is no HTTP answer.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// Why; `rate_limited` where it is not said.
    pub reason: Option<Reason>,
    /// When to come back (wall time), where the upstream says so.
    pub retry_at: Option<Timestamp>,
    /// The limit that it concerns; `None`: the partition.
    pub limit: Option<String>,
    /// What was said.
    pub detail: String,
    /// A status, for the record.
    pub status: Option<u16>,
}

impl Permit {
    pub(super) fn new(errand: OurErrand, granted: OurGranted) -> Permit {
        let sent_at = granted.way.store.now().store;
        granted.tell_sent(sent_at);
        Permit { errand, granted, sent_at, is_over: false }
    }

    /// Its job, as `show` and `log` know it.
    pub fn job(&self) -> JobId {
        self.granted.call.job.id
    }

    /// The upstream, as its quota file stood when the permit was given.
    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.granted.way.upstream
    }

    /// The columns of its partition.
    pub fn partition(&self) -> &Columns {
        &self.granted.call.partition
    }

    /// How long the upstream's calls may take.
    pub fn timeout(&self) -> Duration {
        self.upstream().request.timeout
    }

    /// The quota file's own header fields, secrets and token filled in; none unless they were
    /// [asked for](super::Acquire::with_headers). They are marked as sensitive.
    pub fn headers(&self) -> HeaderMap {
        let prepared = self.granted.ready.as_ref().map(|ready| ready.prepared.headers.clone());
        prepared.unwrap_or_default()
    }

    /// The call was answered: reads the answer as everywhere, and does what follows from it. `body` is
    /// what was read of the body, `cut` whether there was more.
    ///
    /// # Errors
    ///
    /// The store cannot take it.
    pub async fn answered(
        mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        cut: bool,
    ) -> Result<Verdict, Error> {
        let settlement = self.read(status, headers, body, cut);
        self.complete(settlement).await
    }

    /// As [`Permit::answered`], without waiting for it to be recorded: for where nothing can be awaited,
    /// as at the end of a body that is read as a stream.
    pub fn answered_by(
        mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        cut: bool,
    ) {
        let settlement = self.read(status, headers, body, cut);
        drop(self.end(settlement));
    }

    fn read(
        &self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        cut: bool,
    ) -> Settlement {
        self.granted.read(&Received {
            status,
            headers: headers.to_vec(),
            body: body.to_vec(),
            cut,
            received_at: self.granted.way.store.now().wall,
            connection: None,
        })
    }

    /// What a child process that is started while it is there inherits: as long as that lives, the permit's
    /// place stays taken, even if this process is killed.
    ///
    /// # Errors
    ///
    /// The system has no more handles.
    pub fn lifeline(&self) -> std::io::Result<Lifeline> {
        self.errand.lifeline().map(Lifeline)
    }

    /// The address of the call, secrets filled in; none unless the quota file's headers were asked for.
    #[cfg(feature = "gateway")]
    pub(crate) fn url(&self) -> Option<&url::Url> {
        self.granted.ready.as_ref().map(|ready| &ready.prepared.url)
    }

    /// As [`Permit::answered`], with all that is known of an answer.
    #[cfg(feature = "gateway")]
    pub(crate) async fn received(mut self, received: &Received) -> Result<Verdict, Error> {
        let settlement = self.granted.read(received);
        self.complete(settlement).await
    }

    /// As [`Permit::unanswered`], with what came before the answer broke off.
    #[cfg(feature = "gateway")]
    pub(crate) async fn broken_off(mut self, none: &NoAnswer) -> Result<Verdict, Error> {
        let settlement = self.granted.read_part(none);
        self.complete(settlement).await
    }

    /// It was done, as far as its owner can tell.
    ///
    /// # Errors
    ///
    /// The store cannot take it.
    pub async fn done(self, status: u16) -> Result<Verdict, Error> {
        self.told(Reason::Ok, status, format!("status {status}")).await
    }

    /// It failed for a reason of its own: no other call waits for that.
    ///
    /// # Errors
    ///
    /// The store cannot take it.
    pub async fn failed(self, status: u16, detail: impl Into<String>) -> Result<Verdict, Error> {
        self.told(Reason::Unknown, status, detail.into()).await
    }

    async fn told(mut self, reason: Reason, status: u16, detail: String) -> Result<Verdict, Error> {
        let reading = Reading::plain(reason, "its owner", detail);
        let settlement = Settlement::of(&self.granted.call, reading);
        self.complete(Settlement { status: Some(status), ..settlement }).await
    }

    /// It was refused: whoever shares the limit, or the partition, waits.
    ///
    /// # Errors
    ///
    /// The store cannot take it.
    pub async fn refused(mut self, refusal: Refusal) -> Result<Verdict, Error> {
        let Refusal { reason, retry_at, limit, detail, status } = refusal;
        let reason = reason.unwrap_or(Reason::RateLimited);
        let reading = Reading { retry_at, limit, ..Reading::plain(reason, "its owner", detail) };
        let settlement = Settlement::of(&self.granted.call, reading);
        self.complete(Settlement { status: status.or(Some(429)), ..settlement }).await
    }

    /// There was no answer. `left`: whether any of it may have reached the upstream; where none did, its
    /// units go back.
    ///
    /// # Errors
    ///
    /// The store cannot take it.
    pub async fn unanswered(
        mut self,
        left: bool,
        detail: impl Into<String>,
    ) -> Result<Verdict, Error> {
        let settlement = unanswered_told(&self.granted.call, left, detail.into());
        self.complete(settlement).await
    }

    /// Gives it back unsent: slot, units and place.
    pub fn cancel(mut self) {
        self.is_over = true;
        self.errand.seat.leave(gave_up());
    }

    async fn complete(&mut self, settlement: Settlement) -> Result<Verdict, Error> {
        let now = self.granted.way.store.now();
        let reading = settlement.reading.clone();
        let settled = self.end(settlement).await.map_err(|_| Error::Closed)?;
        let settled = settled.map_err(Error::Store)?;
        let block = settled.block.as_ref().map(|block| now.to_wall(block.until));
        Ok(Verdict {
            job: self.job(),
            state: settled.end.state(),
            reason: reading.reason,
            limit: settled.block.as_ref().and_then(|b| b.limit.clone()).or(reading.limit),
            detail: settled.hold.as_ref().map_or(reading.detail, |hold| hold.detail.clone()),
            retryable: reading.retryable,
            retry_at: block.max(reading.retry_at),
            held: settled.hold.map(|hold| hold.reason),
        })
    }

    fn end(
        &mut self,
        settlement: Settlement,
    ) -> oneshot::Receiver<Result<Settled, Arc<StoreError>>> {
        self.is_over = true;
        let took = self.granted.way.store.now().store.since(self.sent_at);
        let random = self.granted.random;
        let settlement = Settlement { sent_at: self.sent_at, random, ..settlement };
        let sent = Sent::of(&self.granted.call, settlement, took);
        self.errand.seat.settle(Box::new(sent), false)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_over {
            let settlement = unanswered_told(&self.granted.call, true, DROPPED.to_owned());
            drop(self.end(settlement));
        }
    }
}
