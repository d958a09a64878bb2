//! What happens while a runner is at work: the one documented list. Logs, progress bars and metrics
//! only listen.
//!
//! | event | when |
//! | --- | --- |
//! | [`Event::Started`] | a runner entered the store; what it found of dead ones |
//! | [`Event::Sent`] | a call has left |
//! | [`Event::Answered`] | a call was answered, or ended without an answer, and was settled; for each of its jobs |
//! | [`Event::Released`] | a call was given back unsent |
//! | [`Event::Split`] | a batch was refused for what is in it; its jobs go again, fewer at a time |
//! | [`Event::Blocked`] | a refusal closed a limit instance or a partition |
//! | [`Event::Held`] | a partition or an upstream stopped until a person acts |
//! | [`Event::LetGo`] | an upstream that lacked a secret or a token has it |
//! | [`Event::NoToken`] | a token could not be fetched, and is tried again by itself |
//! | [`Event::Expired`] | deadlines passed, or no permit could come before them |
//! | [`Event::Waiting`] | nothing of an upstream can go before an instant |
//! | [`Event::QuotaTold`] | the upstream was asked what is left, and answered or did not |
//! | [`Event::QuotaChanged`] | a quota file was taken up anew, or an invalid one was not |
//! | [`Event::Unserved`] | an upstream has jobs, and its quota file is wrong or gone |
//! | [`Event::ClockStepped`] | somebody set the wall clock |
//! | [`Event::StoreTrouble`] | the store could not answer; nothing new is sent until it does |
//! | [`Event::StoreBack`] | the store answers again |
//! | [`Event::StoreFallback`] | the store could not say whether a call may leave, and it leaves (`policy = "static"`) |
//! | [`Event::Pruned`] | jobs that `[keep]` no longer keeps were removed |
//! | [`Event::Draining`] | the runner leaves: nothing new is sent, what is in flight is awaited |

use std::time::Duration;

use crate::clock::Timestamp;
use crate::job::{Columns, JobId, JobState};
use crate::reading::Reason;
use crate::store::{ReleaseWhy, Swept};

/// Something that happened. Instants are wall time. No event carries a header value, a token or a body.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A runner entered the store.
    Started {
        /// What was found of dead runners, run-out leases and passed deadlines.
        swept: Swept,
    },
    /// A call has left.
    Sent {
        /// The upstream.
        upstream: String,
        /// The job.
        job: JobId,
        /// The attempt's number, from 1.
        attempt: u32,
        /// How long after its slot.
        late: Duration,
    },
    /// A call ended and was settled.
    Answered {
        /// The upstream.
        upstream: String,
        /// The job.
        job: JobId,
        /// The attempt's number, from 1.
        attempt: u32,
        /// The address, with placeholders for secrets.
        url: String,
        /// The answer's status; `None`: there was no answer.
        status: Option<u16>,
        /// What it meant.
        reason: Reason,
        /// The answer in a sentence.
        detail: String,
        /// From sending to the last byte.
        took: Duration,
        /// What became of the job: its end, or `queued` where it goes again.
        state: JobState,
    },
    /// A call was given back unsent.
    Released {
        /// The upstream.
        upstream: String,
        /// The job.
        job: JobId,
        /// Why.
        why: ReleaseWhy,
    },
    /// A batch was refused, and none of its jobs fails for that.
    Split {
        /// The upstream.
        upstream: String,
        /// The jobs that it carried.
        jobs: usize,
        /// The jobs that the next ones carry, at most.
        most: usize,
    },
    /// A refusal closed something.
    Blocked {
        /// The upstream.
        upstream: String,
        /// The limit; `None`: the partition.
        limit: Option<String>,
        /// The columns of the instance or partition.
        key: Columns,
        /// Until when.
        until: Timestamp,
        /// Why.
        reason: Reason,
    },
    /// Something stopped until a person acts.
    Held {
        /// The upstream.
        upstream: String,
        /// The partition's columns; `None`: the whole upstream.
        key: Option<Columns>,
        /// Why, in one word.
        reason: String,
        /// Why, and what a person must do.
        detail: String,
        /// Until when the upstream wants to be left alone, where that is why.
        until: Option<Timestamp>,
    },
    /// An upstream that lacked a secret or a token has it.
    LetGo {
        /// The upstream.
        upstream: String,
    },
    /// A token could not be fetched, and is tried again by itself.
    NoToken {
        /// The upstream.
        upstream: String,
        /// Whose token it is; `None`: that of all credentials.
        credential: Option<String>,
        /// What happened, and when it is tried again.
        detail: String,
    },
    /// Jobs ended because they would be too late.
    Expired {
        /// The upstream.
        upstream: String,
        /// How many.
        jobs: u64,
    },
    /// Nothing of an upstream can go before an instant.
    Waiting {
        /// The upstream.
        upstream: String,
        /// Until when.
        until: Timestamp,
        /// The limit that binds, where one does.
        limit: Option<String>,
    },
    /// The upstream was asked what is left (`[quota_call]`).
    QuotaTold {
        /// The upstream.
        upstream: String,
        /// The limit that was asked about.
        limit: String,
        /// A partition that counts there.
        key: Columns,
        /// Units left, or why that is not known. It holds nothing up.
        remaining: Result<u64, String>,
    },
    /// A quota file changed.
    QuotaChanged {
        /// The upstream.
        upstream: String,
        /// `None`: it was taken up; else why the last good one stays in force.
        problem: Option<String>,
    },
    /// An upstream has jobs, and no quota file that could be used. It is served once it has.
    Unserved {
        /// The upstream.
        upstream: String,
        /// What is wrong.
        problem: String,
    },
    /// Somebody set the wall clock.
    ClockStepped {
        /// By how many nanoseconds, forwards or back.
        nanos: i64,
    },
    /// The store could not answer.
    StoreTrouble {
        /// What it said.
        message: String,
    },
    /// The store answers again.
    StoreBack,
    /// The store could not say whether a claimed call was closed since, and it leaves all the same, as
    /// `[when_store_fails]` has it.
    StoreFallback {
        /// The upstream.
        upstream: String,
        /// The job.
        job: JobId,
        /// What the store said.
        message: String,
    },
    /// Jobs past the age that `[keep]` declares were removed.
    Pruned {
        /// How many.
        jobs: u64,
    },
    /// The runner leaves.
    Draining {
        /// Calls that have left and are awaited.
        in_flight: usize,
    },
}
