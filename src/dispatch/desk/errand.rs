//! One job's way to its turn, and what keeps it from it.

use std::sync::Arc;
use std::time::Duration;

use super::Desk;
use super::seat::{Leaving, Seat, Word};
use crate::clock::Timestamp;
use crate::dispatch::Event;
use crate::dispatch::auth::Trouble;
use crate::dispatch::call::{Lack, Ready, Unready, Way};
use crate::dispatch::prepare::PrepareError;
#[cfg(feature = "gateway")]
use crate::dispatch::transport::NoAnswer;
use crate::dispatch::transport::{Received, Transport};
use crate::job::JobState;
use crate::store::sqlite::{HeldLock, SqliteStore};
use crate::store::views::{JobView, Turn, WaitView};
use crate::store::{Call, ClaimedJob, OwnedJob, ReleaseWhy, Settlement, Store, StoreError};

/// Whoever does not want to wait still waits until others, whose turn it is, had it.
const COURTESY: Duration = Duration::from_millis(150);

/// ... and until the store has said anything at all: it may be busy, or its disk slow.
const HEARING: Duration = Duration::from_secs(3);

/// Why a job gets no turn.
#[derive(Debug)]
pub(crate) enum NoTurn {
    /// Not within the time that it may wait.
    NotNow(Option<WaitView>),
    /// A person is needed.
    Held(WaitView),
    /// The job ended: expired, cancelled, or never to fit.
    Ended(Box<JobView>),
    /// The request makes no HTTP.
    Unprepared(PrepareError),
    /// A secret is not there.
    NoSecret(String),
    /// There is no token: why, and when one is fetched again (store time), where that may help.
    NoToken(String, Option<Timestamp>),
    /// The store cannot do its work.
    Store(Arc<StoreError>),
    /// The store has not said anything within the time that it may wait.
    Silent,
    /// The desk is closed.
    Closed,
}

/// It is the job's turn: it is to leave now.
pub(crate) struct Granted<S, T> {
    pub call: Call,
    /// What is sent; `None`: the owner sends something of its own.
    pub ready: Option<Ready>,
    pub way: Arc<Way<S, T>>,
    /// What jitter will be made of (0 to 1).
    pub random: f64,
}

impl<S: Store, T: Transport> Granted<S, T> {
    /// Tells that it leaves.
    pub fn tell_sent(&self, at: Timestamp) {
        let ClaimedJob { id, attempt, .. } = &self.call.job;
        (self.way.tell)(&Event::Sent {
            upstream: self.way.upstream.name.clone(),
            job: *id,
            attempt: *attempt,
            late: at.since(self.call.slot_at),
        });
    }

    /// What an answer means that came outside of our transport.
    pub fn read(&self, received: &Received) -> Settlement {
        let redactor = self.way.secrets.redactor();
        self.judged(self.way.answered(&self.call, None, received, &redactor))
    }

    /// What it means that none came, or half of one.
    #[cfg(feature = "gateway")]
    pub fn read_part(&self, none: &NoAnswer) -> Settlement {
        let redactor = self.way.secrets.redactor();
        self.judged(self.way.broken_off(&self.call, None, none, &redactor))
    }

    /// With what it says of the token that the call carried.
    fn judged(&self, settlement: Settlement) -> Settlement {
        let token = self.ready.as_ref().and_then(|ready| ready.token.as_ref());
        let token = token.and_then(|token| self.way.judge(token, &settlement.reading));
        Settlement { token, ..settlement }
    }
}

/// A job at a desk. Dropped, it is withdrawn.
pub(crate) struct Errand<S, T> {
    desk: Desk<S, T>,
    pub seat: Seat,
    /// Whether the quota file's own request is made for it.
    prepares: bool,
    /// It waits no longer than this, refusals included.
    give_up_at: Option<Timestamp>,
    began_at: Timestamp,
    waits: Option<WaitView>,
    /// When the first word came: whoever hears none has a store that does not answer.
    heard_at: Option<Timestamp>,
}

impl<T: Transport> Errand<SqliteStore, T> {
    /// A handle on this process's lock that child processes inherit.
    pub fn lifeline(&self) -> std::io::Result<HeldLock> {
        self.desk.way().store.share_lock(self.desk.runner)
    }
}

impl<S: Store, T: Transport> Errand<S, T> {
    /// Takes the job to the desk.
    pub fn begin(
        desk: &Desk<S, T>,
        job: OwnedJob,
        load: String,
        max_wait: Option<Duration>,
        prepares: bool,
    ) -> Errand<S, T> {
        let began_at = desk.way().store.now().store;
        let seat = Seat::take(&desk.notes, job, load);
        let give_up_at = max_wait.map(|span| began_at + span);
        Errand {
            desk: desk.clone(),
            seat,
            prepares,
            give_up_at,
            began_at,
            waits: None,
            heard_at: None,
        }
    }

    /// Waits for the next turn. Dropping the future loses nothing: the errand is as it was, or gone.
    pub async fn turn(&mut self) -> Result<Granted<S, T>, NoTurn> {
        loop {
            let way = self.desk.way();
            let timeline = way.store.timeline();
            let unheard = self.began_at + HEARING;
            let at_least = self.heard_at.map_or(unheard, |heard_at| heard_at + COURTESY);
            let patience = self.give_up_at.map(|at| at.max(at_least));
            let gives_up = patience.unwrap_or(Timestamp::MAX);
            let word = tokio::select! {
                biased;
                word = self.seat.word() => word,
                () = timeline.sleep_until(gives_up), if patience.is_some() => {
                    return Err(self.not_now());
                }
            };
            self.heard_at = self.heard_at.or_else(|| Some(way.store.now().store));
            match word {
                Some(Word::Granted(call, random)) => {
                    if let Some(granted) = self.granted(*call, random).await? {
                        return Ok(granted);
                    }
                }
                Some(Word::Waits(waits)) => self.waits(waits)?,
                Some(word) => return Err(self.over(word)),
                None => return Err(NoTurn::Closed),
            }
        }
    }

    async fn granted(&mut self, call: Call, random: f64) -> Result<Option<Granted<S, T>>, NoTurn> {
        let way = self.desk.way();
        let ready = match self.prepares {
            true => way.ready(&call).await.map(Some),
            false => way.turn(&call).await.map(|()| None),
        };
        match ready {
            Ok(ready) => Ok(Some(Granted { call, ready, way, random })),
            Err(Unready::Unsent { lacks: Some(Lack::Secret { detail, .. }), .. }) => {
                self.leave(JobState::Failed, "missing_secret", detail.clone(), None);
                Err(NoTurn::NoSecret(detail))
            }
            Err(Unready::Unsent { why, lacks, handed_late }) => {
                let late = handed_late && why == ReleaseWhy::Forfeited;
                self.seat.again(why, lacks, late);
                Ok(None)
            }
            Err(Unready::Bad(error)) => {
                self.leave(JobState::Failed, "invalid_request", error.to_string(), None);
                Err(NoTurn::Unprepared(error))
            }
        }
    }

    /// What it waits for is longer than it may, or lasts until a person acts.
    fn waits(&mut self, waits: Option<WaitView>) -> Result<(), NoTurn> {
        self.waits = waits;
        let Some(wait) = &self.waits else { return Ok(()) };
        if wait.turn == Turn::Held {
            let detail = format!("it would have waited for a person: {}", wait.detail);
            let held = wait.clone();
            self.leave(JobState::Cancelled, "held", detail, Some(held.clone()));
            return Err(NoTurn::Held(held));
        }
        let now = self.desk.way().store.now();
        let until = wait.until.map(|until| now.to_store(until));
        match (until, self.give_up_at) {
            (Some(until), Some(give_up_at)) if until > give_up_at => Err(self.not_now()),
            _ => Ok(()),
        }
    }

    fn not_now(&mut self) -> NoTurn {
        let detail = "it could not go as soon as whoever waited for it wanted".to_owned();
        let waits = self.waits.clone();
        self.leave(JobState::Cancelled, "not_now", detail, waits.clone());
        if self.heard_at.is_some() { NoTurn::NotNow(waits) } else { NoTurn::Silent }
    }

    fn leave(
        &mut self,
        state: JobState,
        reason: &'static str,
        detail: String,
        waited: Option<WaitView>,
    ) {
        self.seat.leave(Leaving { state, reason, detail, waited });
    }

    fn over(&mut self, word: Word) -> NoTurn {
        match word {
            Word::Ended(view) => {
                self.seat.done();
                NoTurn::Ended(view)
            }
            Word::NoToken(Trouble { until, detail, .. }) => {
                self.leave(JobState::Cancelled, "no_token", detail.clone(), None);
                NoTurn::NoToken(detail, until)
            }
            Word::Failed(error) => NoTurn::Store(error),
            Word::Granted(..) | Word::Waits(_) => NoTurn::Closed,
        }
    }
}
