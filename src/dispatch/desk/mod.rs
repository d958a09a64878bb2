//! Where a process waits with jobs of its own: `call`, `exec`, a gateway, the library. One desk an upstream
//! enters them into the store, claims for all who wait, hands each its call, and settles what came back.
//!
//! | file | noun |
//! | --- | --- |
//! | `seat` | who waits: drop it, and its job is withdrawn |
//! | `errand` | one job's way to its turn |
//! | `exchange` | what goes to the store together |
//! | `answers` | what it said to that |
//! | `guests` | those who have jobs here |
//! | `look` | what those who still wait are told |

mod answers;
mod errand;
mod exchange;
mod guests;
mod look;
mod seat;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::auth::{Fetcher, Owner, Tokens};
use super::call::{Sent, Way};
use super::guard::Guard;
use super::lead::Lead;
use super::outage::Outage;
use super::tell::Waits;
use super::transport::Transport;
use super::{Leave, Tell, seed};
use crate::clock::Timestamp;
use crate::job::{CallId, JobId};
use crate::quota::Upstream;
use crate::quota::library::Library;
use crate::secrets::Secrets;
use crate::store::views::WaitView;
use crate::store::{Release, RunnerId, Serves, Settled, Store, StoreError, Withdrawal};
pub(crate) use errand::{Errand, Granted, NoTurn};
use look::Look;
pub(crate) use seat::gave_up;
use seat::{Entry, Note, Ticket, Word};

/// How often the quota file, and what died, is looked at while somebody waits.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// After a claim that brought nothing, news is not listened to for so long.
const REST: Duration = Duration::from_millis(5);

/// A process that owns jobs, as the store knows it. Whose desks have all ended has left the store.
#[derive(Debug)]
pub(crate) struct Enrolled<S> {
    store: S,
    runner: RunnerId,
}

impl<S: Store> Enrolled<S> {
    pub async fn new(store: S) -> Result<Enrolled<S>, StoreError> {
        let (runner, _) = store.register(Serves::Itself).await?;
        Ok(Enrolled { store, runner })
    }
}

/// What the desks of one process share.
#[derive(Clone)]
pub(crate) struct House<S> {
    pub enrolled: Arc<Enrolled<S>>,
    pub library: Arc<Library>,
    pub secrets: Arc<Secrets>,
    pub tokens: Arc<Tokens>,
    pub tell: Tell,
}

impl<S> House<S> {
    fn store(&self) -> &S {
        &self.enrolled.store
    }

    fn runner(&self) -> RunnerId {
        self.enrolled.runner
    }
}

/// The way to a desk. Once all are dropped it gives back what is left, and ends.
pub(crate) struct Desk<S, T> {
    runner: RunnerId,
    notes: UnboundedSender<Note>,
    way: watch::Receiver<Arc<Way<S, T>>>,
}

impl<S, T> Clone for Desk<S, T> {
    fn clone(&self) -> Self {
        Desk { runner: self.runner, notes: self.notes.clone(), way: self.way.clone() }
    }
}

/// Somebody who has a job here.
struct Guest {
    job: Option<JobId>,
    /// The call that was handed over.
    call: Option<CallId>,
    words: UnboundedSender<Word>,
    /// Whose token its last call lacked.
    lacks: Option<Owner>,
    /// What it was told last of why it waits.
    told: Option<Option<WaitView>>,
}

/// A call that ended, and who wants to know what that did.
struct Ended {
    sent: Box<Sent>,
    reply: oneshot::Sender<Result<Settled, Arc<StoreError>>>,
    ticket: Ticket,
}

/// The desk at work.
pub(super) struct Clerk<S, T> {
    house: House<S>,
    upstream: Arc<Upstream>,
    way: watch::Sender<Arc<Way<S, T>>>,
    notes: UnboundedReceiver<Note>,
    guests: BTreeMap<Ticket, Guest>,
    tickets: HashMap<JobId, Ticket>,
    entries: Vec<Entry>,
    ended: Vec<Ended>,
    releases: Vec<Release>,
    withdrawals: Vec<Withdrawal>,
    fetcher: Fetcher,
    rng: StdRng,
    lead: Lead,
    /// Calls were handed over too late since the last exchange.
    was_late: bool,
    claim_due: bool,
    next_at: Option<Timestamp>,
    news: i64,
    /// Until when news is not listened to: a busy store tells some all the time.
    rest_until: Timestamp,
    look: Look,
    look_at: Timestamp,
    outage: Outage,
    waits: Waits,
    closing: Option<oneshot::Sender<()>>,
    is_over: bool,
}

impl<S: Store, T: Transport> Desk<S, T> {
    /// Opens the desk of an upstream. Must be called inside a runtime.
    pub fn open(house: House<S>, upstream: Arc<Upstream>, transport: Arc<T>, leave: Leave) -> Self {
        let (notes, heard) = unbounded_channel();
        let guard = Arc::new(Mutex::new(Guard::new(house.store().timeline())));
        let way = Way {
            store: house.store().clone(),
            transport,
            upstream: Arc::clone(&upstream),
            secrets: Arc::clone(&house.secrets),
            tokens: Arc::clone(&house.tokens),
            guard,
            leave,
            tell: Arc::clone(&house.tell),
        };
        let (sender, way) = watch::channel(Arc::new(way));
        let fetcher = Fetcher::new(Arc::clone(&house.tokens), Arc::clone(&house.secrets));
        let look_at = house.store().now().store + LOOK_INTERVAL;
        let clerk = Clerk {
            house,
            upstream,
            way: sender,
            notes: heard,
            guests: BTreeMap::new(),
            tickets: HashMap::new(),
            entries: Vec::new(),
            ended: Vec::new(),
            releases: Vec::new(),
            withdrawals: Vec::new(),
            fetcher,
            rng: StdRng::seed_from_u64(seed()),
            lead: Lead::of_desk(),
            was_late: false,
            claim_due: false,
            next_at: None,
            news: 0,
            rest_until: Timestamp::EPOCH,
            look: Look::default(),
            look_at,
            outage: Outage::default(),
            waits: Waits::default(),
            closing: None,
            is_over: false,
        };
        let runner = clerk.house.runner();
        tokio::spawn(clerk.serve());
        Desk { runner, notes, way }
    }

    /// What a call needs on its way, by the quota file as it is now.
    pub fn way(&self) -> Arc<Way<S, T>> {
        Arc::clone(&self.way.borrow())
    }

    /// Whether anybody is there to be told.
    pub fn is_open(&self) -> bool {
        !self.notes.is_closed()
    }

    /// Withdraws all who wait, gives back what was not sent, and ends the desk.
    pub async fn close(&self) {
        let (done, is_done) = oneshot::channel();
        // A desk that has ended is closed.
        if self.notes.send(Note::Close(done)).is_ok() {
            let _ = is_done.await;
        }
    }
}

impl<S: Store, T: Transport> Clerk<S, T> {
    async fn serve(mut self) {
        while !self.is_over || self.has_work() {
            self.gather();
            self.look_after_tokens();
            if self.has_work() || self.may_claim() {
                self.exchange().await;
            } else if self.is_over {
                break;
            } else {
                self.wait().await;
            }
        }
        // The last one out takes the process from the store. Where that fails it is swept as a dead one.
        if let Some(last) = Arc::into_inner(self.house.enrolled) {
            let _ = last.store.retire(last.runner).await;
        }
        self.closing.map(|done| done.send(()));
    }

    fn gather(&mut self) {
        loop {
            match self.notes.try_recv() {
                Ok(note) => self.take(note),
                Err(tokio::sync::mpsc::error::TryRecvError::Empty) => return,
                Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => return self.end(),
            }
        }
    }

    /// Nobody can come any more: whoever still waits leaves.
    fn end(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.entries.clear();
        let all: Vec<Ticket> = self.guests.keys().copied().collect();
        for ticket in all {
            self.leave(ticket, seat::gave_up());
        }
    }

    fn has_work(&self) -> bool {
        !self.entries.is_empty()
            || !self.ended.is_empty()
            || !self.releases.is_empty()
            || !self.withdrawals.is_empty()
    }

    fn may_claim(&self) -> bool {
        self.claim_due && !self.is_over && !self.awaits_token() && self.waiting() > 0
    }

    fn awaits_token(&self) -> bool {
        self.house.tokens.awaits(&self.upstream.name)
    }

    /// How many wait for a call.
    fn waiting(&self) -> usize {
        self.guests.values().filter(|guest| guest.call.is_none() && guest.job.is_some()).count()
    }

    /// Waits for whatever comes first: a note, the next permit, news, a token, the time to look around.
    async fn wait(&mut self) {
        let timeline = self.house.store().timeline().clone();
        let waits = self.waiting() > 0;
        let retry_at = self.house.tokens.retry_at(&self.upstream.name);
        let wake_at = [waits.then_some(self.look_at), self.next_at.filter(|_| waits), retry_at];
        let wake_at = wake_at.into_iter().flatten().min().unwrap_or(Timestamp::MAX);
        let store = self.house.store();
        let news = async {
            timeline.sleep_until(self.rest_until).await;
            store.changed(self.news).await;
        };
        tokio::select! {
            note = self.notes.recv() => match note {
                Some(note) => self.take(note),
                None => self.end(),
            },
            () = self.fetcher.next() => {}
            () = timeline.sleep_until(wake_at), if wake_at < Timestamp::MAX => {}
            () = news, if waits => self.claim_due = true,
        }
        let now = timeline.now().store;
        if self.next_at.is_some_and(|at| at <= now) {
            self.next_at = None;
            self.claim_due = true;
        }
        // One whose callers never wait takes a changed quota file up too.
        if self.look_at <= now {
            self.look_around(now).await;
        }
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Enter(entry) => self.entries.push(*entry),
            Note::Again { ticket, why, lacks, late } => self.again(ticket, why, lacks, late),
            Note::Leave { ticket, leaving } => self.leave(ticket, leaving),
            Note::Settle { ticket, sent, reply } => {
                self.ended.push(Ended { sent, reply, ticket });
            }
            Note::Close(done) => {
                self.closing = Some(done);
                self.end();
            }
        }
    }
}
