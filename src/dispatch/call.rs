//! One call's way: it waits for its slot, is marked where it must not be sent twice, and leaves; `told` is what came
//! back of it.

mod told;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::auth::{Given, Owner, Tokens};
use super::guard::Guard;
use super::prepare::{PrepareError, Prepared, needs_token, prepare};
use super::transport::Transport;
use super::{Event, Leave, Tell};
use crate::clock::Timestamp;
use crate::crash;
use crate::job::{Columns, JobId};
use crate::next::Token;
use crate::quota::{LimitRule, StoreFailure, Upstream};
use crate::reading::{Reading, Reason};
use crate::secrets::Secrets;
use crate::store::{Call, ClaimedJob, Release, ReleaseWhy, Settlement, Store};
use told::silence;
pub(crate) use told::unanswered_told;

/// A call that must not be sent twice is marked this long before its slot.
const MARK_AHEAD: Duration = Duration::from_millis(20);

/// How late a call may leave that no rate paces but a calendar counts: its window has an edge.
const UNPACED_SLACK: Duration = Duration::from_secs(1);

/// What a call needs on its way.
pub(crate) struct Way<S, T> {
    pub store: S,
    pub transport: Arc<T>,
    pub upstream: Arc<Upstream>,
    pub secrets: Arc<Secrets>,
    pub tokens: Arc<Tokens>,
    pub guard: Arc<Mutex<Guard>>,
    pub leave: Leave,
    pub tell: Tell,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It was sent, and answered or not.
    Sent(Box<Sent>),
    /// It was not sent.
    Unsent {
        release: Release,
        job: JobId,
        lacks: Option<Lack>,
        /// Its slot had passed before it came here: the claim took longer than its lead.
        handed_late: bool,
    },
}

/// A call that may leave now.
#[derive(Debug)]
pub(crate) struct Ready {
    pub prepared: Prepared,
    pub token: Option<Given>,
}

/// Why a call may not leave.
#[derive(Debug)]
pub(crate) enum Unready {
    /// Not now: it is to be given back.
    Unsent { why: ReleaseWhy, lacks: Option<Lack>, handed_late: bool },
    /// Its request makes no HTTP.
    Bad(PrepareError),
}

/// A call that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub settlement: Settlement,
    pub parts: Vec<SentPart>,
    pub took: Duration,
    /// Whether it may go again, should its end never be recorded.
    pub repeatable: bool,
}

impl Sent {
    pub fn of(call: &Call, settlement: Settlement, took: Duration) -> Sent {
        let part = |job: &ClaimedJob| SentPart {
            job: job.id,
            attempt: job.attempt,
            url: job.url().to_owned(),
        };
        let parts = call.jobs().map(part).collect();
        Sent { settlement, parts, took, repeatable: call.repeatable }
    }
}

/// A job's part in a call that was sent.
#[derive(Debug)]
pub(crate) struct SentPart {
    pub job: JobId,
    pub attempt: u32,
    pub url: String,
}

/// What a request lacks.
#[derive(Debug)]
pub(crate) enum Lack {
    /// What only a person can supply.
    Secret { partition: Columns, detail: String },
    /// What the lane fetches.
    Token(Owner),
}

impl<S: Store, T: Transport> Way<S, T> {
    /// The same way by a changed quota file.
    pub fn of(other: &Way<S, T>, upstream: Arc<Upstream>) -> Way<S, T> {
        Way {
            store: other.store.clone(),
            transport: Arc::clone(&other.transport),
            upstream,
            secrets: Arc::clone(&other.secrets),
            tokens: Arc::clone(&other.tokens),
            guard: Arc::clone(&other.guard),
            leave: other.leave.clone(),
            tell: Arc::clone(&other.tell),
        }
    }

    /// Takes the call to its end. `random` (0 to 1) is what its jitter will be made of.
    pub async fn go(&self, call: Call, random: f64) -> End {
        match self.ready(&call).await {
            Ok(ready) => End::Sent(self.send(call, ready, random).await),
            Err(Unready::Unsent { why, lacks, handed_late }) => {
                unsent(&call, why, lacks, handed_late)
            }
            Err(Unready::Bad(error)) => self.unsendable(&call, &error, random),
        }
    }

    /// Prepares the call, and waits until it may leave.
    pub async fn ready(&self, call: &Call) -> Result<Ready, Unready> {
        let handed_late = self.store.now().store > call.slot_at;
        let unready = |why, lacks| Unready::Unsent { why, lacks, handed_late: false };
        let token = self.token(call);
        // Units and slot go back: whoever waits for a token waits for it in no one's way.
        let token =
            token.map_err(|owner| unready(ReleaseWhy::Unprepared, Some(Lack::Token(owner))))?;
        let value = token.as_ref().map(|token| &*token.value);
        let prepared = match prepare(&self.upstream, call, &self.secrets, value) {
            Ok(prepared) => prepared,
            Err(PrepareError::Secret(error)) => {
                let (partition, detail) = (call.partition.clone(), error.to_string());
                let lack = Lack::Secret { partition, detail };
                return Err(unready(ReleaseWhy::Unprepared, Some(lack)));
            }
            Err(error) => return Err(Unready::Bad(error)),
        };
        self.wait_for_turn(call).await.map_err(|why| missed(why, handed_late))?;
        Ok(Ready { prepared, token })
    }

    /// Waits until a call may leave whose request is its owner's own.
    pub async fn turn(&self, call: &Call) -> Result<(), Unready> {
        let handed_late = self.store.now().store > call.slot_at;
        self.wait_for_turn(call).await.map_err(|why| missed(why, handed_late))
    }

    /// The token that the call carries, where it carries one, or whose is not there.
    fn token(&self, call: &Call) -> Result<Option<Given>, Owner> {
        let Some(auth) = self.upstream.auth.as_ref().filter(|_| needs_token(&self.upstream, call))
        else {
            return Ok(None);
        };
        let owner = Owner::of(&self.upstream, auth, call.job.columns.get("credential"));
        let now = self.store.now().store;
        self.tokens.give(&owner, auth, now, call.slot_at).map(Some).ok_or(owner)
    }

    /// What the answer says of the token that the call carried.
    pub fn judge(&self, token: &Given, reading: &Reading) -> Option<Token> {
        match reading.reason {
            Reason::AuthExpired => return Some(self.tokens.refused(token)),
            reason if reason.is_success() || reason.is_permanent() => self.tokens.proved(token),
            _ => {}
        }
        None
    }

    /// Waits for the slot, and makes sure that the call may still leave.
    async fn wait_for_turn(&self, call: &Call) -> Result<(), ReleaseWhy> {
        let timeline = self.store.timeline();
        if !call.repeatable && !call.marked {
            timeline.sleep_until(call.slot_at - MARK_AHEAD).await;
            // Without the mark a crash could send it twice: it must not leave.
            self.store.mark(vec![call.id]).await.map_err(|_| ReleaseWhy::Forfeited)?;
        }
        timeline.sleep_until(call.slot_at).await;
        let latest = self.latest(call);
        loop {
            let now = timeline.now().store;
            if now > latest {
                return Err(ReleaseWhy::Forfeited);
            }
            if *self.leave.borrow() {
                return Err(ReleaseWhy::Drained);
            }
            if call.deadline_passed(now) {
                return Err(ReleaseWhy::Expired);
            }
            if self.is_blocked(call).await {
                return Err(ReleaseWhy::Blocked);
            }
            let passed = {
                let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
                guard.pass(&self.upstream, &call.partition)
            };
            match passed {
                Ok(()) => return Ok(()),
                Err(wait) if now + wait > latest => return Err(ReleaseWhy::Forfeited),
                Err(wait) => timeline.sleep(wait).await,
            }
        }
    }

    /// Whether a block was written since the call was claimed that stands in its way. What cannot be found out
    /// counts as one, unless `[when_store_fails]` has it otherwise.
    async fn is_blocked(&self, call: &Call) -> bool {
        let blocked = match self.store.block_seq() {
            Ok(seq) if seq == call.block_seq => Ok(false),
            Ok(_) => self.store.is_blocked(call.id).await,
            Err(error) => Err(error),
        };
        match (blocked, self.upstream.when_store_fails) {
            (Ok(blocked), _) => blocked,
            (Err(_), StoreFailure::Closed) => true,
            (Err(error), StoreFailure::Static) => {
                (self.tell)(&Event::StoreFallback {
                    upstream: self.upstream.name.clone(),
                    job: call.job.id,
                    message: error.to_string(),
                });
                false
            }
        }
    }

    /// The last instant at which the call may leave: its slot and the slack of its limits, and never so
    /// late that its lease could run out under it.
    fn latest(&self, call: &Call) -> Timestamp {
        let slack =
            self.upstream.limits.iter().filter_map(|limit| match limit.rule_for(&call.partition) {
                LimitRule::Rate(rate) => Some(rate.slack),
                LimitRule::Rolling(rolling) => Some(rolling.slack),
                LimitRule::Budget(_) => Some(UNPACED_SLACK),
                LimitRule::Concurrency(_) => None,
            });
        let lease = call.expires_at - self.upstream.request.timeout;
        slack.min().map_or(lease, |slack| (call.slot_at + slack).min(lease))
    }

    /// Sends a call that is ready, and reads what comes back.
    pub async fn send(&self, call: Call, ready: Ready, random: f64) -> Box<Sent> {
        let Ready { prepared, token } = ready;
        let timeline = self.store.timeline();
        let sent_at = timeline.now().store;
        (self.tell)(&Event::Sent {
            upstream: self.upstream.name.clone(),
            job: call.job.id,
            attempt: call.job.attempt,
            late: sent_at.since(call.slot_at),
        });
        crash::stop("send");
        let url = prepared.url.clone();
        let answer = self.transport.send(prepared, self.upstream.request.timeout, timeline).await;
        crash::stop("read");
        let took = timeline.now().store.since(sent_at);
        let redactor = self.secrets.redactor();
        let settlement = match answer {
            Ok(received) => self.answered(&call, Some(&url), &received, &redactor),
            Err(silence) => self.broken_off(&call, Some(&url), &silence, &redactor),
        };
        let token = token.and_then(|token| self.judge(&token, &settlement.reading));
        Box::new(Sent::of(&call, Settlement { sent_at, token, random, ..settlement }, took))
    }

    /// The request makes no HTTP once its secrets are filled in: that is the job's own fault.
    fn unsendable(&self, call: &Call, error: &PrepareError, random: f64) -> End {
        let redacted = self.secrets.redactor().redact(&error.to_string()).into_owned();
        let reading = silence(Reason::InvalidRequest, redacted);
        let mut settlement = Settlement::of(call, reading);
        settlement.sent_at = self.store.now().store;
        settlement.left = false;
        settlement.random = random;
        End::Sent(Box::new(Sent::of(call, settlement, Duration::ZERO)))
    }
}

fn missed(why: ReleaseWhy, handed_late: bool) -> Unready {
    Unready::Unsent { why, lacks: None, handed_late }
}

fn unsent(call: &Call, why: ReleaseWhy, lacks: Option<Lack>, handed_late: bool) -> End {
    End::Unsent { release: Release { call: call.id, why }, job: call.job.id, lacks, handed_late }
}

impl Call {
    fn deadline_passed(&self, now: Timestamp) -> bool {
        self.jobs().any(|job| job.deadline_at.is_some_and(|deadline| deadline < now))
    }
}
