//! Who waits at a desk. Dropping a seat withdraws its job, and gives back a call that was not sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::dispatch::auth::Trouble;
use crate::dispatch::call::{Lack, Sent};
use crate::job::JobState;
use crate::store::views::{JobView, WaitView};
use crate::store::{Call, OwnedJob, ReleaseWhy, Settled, StoreError};

/// Tells seats apart, also before their jobs have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(u64);

static TICKETS: AtomicU64 = AtomicU64::new(0);

/// What is told to a desk.
pub(super) enum Note {
    Enter(Box<Entry>),
    /// The call that was handed over cannot leave: another turn is waited for.
    Again {
        ticket: Ticket,
        why: ReleaseWhy,
        lacks: Option<Lack>,
        late: bool,
    },
    /// Nobody waits any more.
    Leave {
        ticket: Ticket,
        leaving: Leaving,
    },
    /// The call has ended.
    Settle {
        ticket: Ticket,
        sent: Box<Sent>,
        reply: oneshot::Sender<Result<Settled, Arc<StoreError>>>,
    },
    Close(oneshot::Sender<()>),
}

/// A job that comes in.
pub(super) struct Entry {
    pub ticket: Ticket,
    pub job: OwnedJob,
    pub load: String,
    pub words: UnboundedSender<Word>,
}

/// How a job ends that nobody waits for any more.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    pub state: JobState,
    pub reason: &'static str,
    pub detail: String,
    pub waited: Option<WaitView>,
}

/// Whoever waited went away.
pub(crate) fn gave_up() -> Leaving {
    let detail = "whoever waited for it gave up".to_owned();
    Leaving { state: JobState::Cancelled, reason: "gave_up", detail, waited: None }
}

/// What a desk tells.
#[derive(Debug)]
pub(super) enum Word {
    /// It is its turn; and what the jitter of its next one will be made of.
    Granted(Box<Call>, f64),
    /// It waits, for this; `None`: for others' turn.
    Waits(Option<WaitView>),
    /// Its job ended without a call.
    Ended(Box<JobView>),
    /// Its token cannot be had.
    NoToken(Trouble),
    /// The store cannot do its work.
    Failed(Arc<StoreError>),
}

/// A place at a desk.
#[derive(Debug)]
pub(crate) struct Seat {
    ticket: Ticket,
    notes: UnboundedSender<Note>,
    words: UnboundedReceiver<Word>,
    is_over: bool,
}

impl Seat {
    /// Takes a seat for a job.
    pub(super) fn take(notes: &UnboundedSender<Note>, job: OwnedJob, load: String) -> Seat {
        let ticket = Ticket(TICKETS.fetch_add(1, Ordering::Relaxed));
        let (tell, words) = unbounded_channel();
        let entry = Entry { ticket, job, load, words: tell };
        // Where the desk has ended, no word ever comes: the seat then says so.
        let _ = notes.send(Note::Enter(Box::new(entry)));
        Seat { ticket, notes: notes.clone(), words, is_over: false }
    }

    /// The next word; `None`: the desk is closed.
    pub(super) async fn word(&mut self) -> Option<Word> {
        self.words.recv().await
    }

    /// Gives the call back, and waits for another turn.
    pub(super) fn again(&self, why: ReleaseWhy, lacks: Option<Lack>, late: bool) {
        let _ = self.notes.send(Note::Again { ticket: self.ticket, why, lacks, late });
    }

    /// Leaves for good: what was not sent goes back, and the job ends so.
    pub fn leave(&mut self, leaving: Leaving) {
        if !std::mem::replace(&mut self.is_over, true) {
            let _ = self.notes.send(Note::Leave { ticket: self.ticket, leaving });
        }
    }

    /// Ends the call, whether the answer is awaited or not. `lasts`: the job may go again.
    pub fn settle(
        &mut self,
        sent: Box<Sent>,
        lasts: bool,
    ) -> oneshot::Receiver<Result<Settled, Arc<StoreError>>> {
        self.is_over |= !lasts;
        let (reply, settled) = oneshot::channel();
        let _ = self.notes.send(Note::Settle { ticket: self.ticket, sent, reply });
        settled
    }

    /// The job has ended: there is nothing to withdraw.
    pub fn done(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave(gave_up());
    }
}
