//! One call's way: it waits for its slot, is marked where it must not be sent twice, leaves, is read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::auth::{Given, Owner, Tokens};
use super::guard::Guard;
use super::prepare::{PrepareError, Prepared, needs_token, prepare};
use super::transport::{NoAnswer, Received, Transport};
use super::{Event, Leave, Tell};
use crate::clock::Timestamp;
use crate::crash;
use crate::job::{Columns, JobId};
use crate::next::Token;
use crate::quota::{KeepBody, LimitRule, Upstream};
use crate::reading::items::read_items;
use crate::reading::remaining::remaining;
use crate::reading::{Answer, Reading, Reason, read_for};
use crate::redirect::{self, Redirect, Redirected};
use crate::secrets::{Redactor, Secrets};
use crate::store::{Call, ClaimedJob, ItemEnd, KeptBody, Release, ReleaseWhy, Settlement, Store};

/// A call that must not be sent twice is marked this long before its slot.
const MARK_AHEAD: Duration = Duration::from_millis(20);

/// How late a call may leave that no rate paces but a calendar counts: its window has an edge.
const UNPACED_SLACK: Duration = Duration::from_secs(1);

/// Of a body that was cut so much of the end is not kept: half of a secret would not be found in it.
const CUT_EDGE: usize = 16 * 1024;

/// Half of a JSON text is none.
const TOO_LONG: &str = "; the answer is too long to be read to its end, so no fields were taken";

const HTTPS: &str = "https:";

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
}

impl Sent {
    pub fn of(call: &Call, settlement: Settlement, took: Duration) -> Sent {
        let part = |job: &ClaimedJob| SentPart {
            job: job.id,
            attempt: job.attempt,
            url: job.url().to_owned(),
        };
        Sent { settlement, parts: call.jobs().map(part).collect(), took }
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
            let seq = self.store.block_seq().map_err(|_| ReleaseWhy::Blocked)?;
            // What cannot be found out counts as blocked.
            if seq != call.block_seq && self.store.is_blocked(call.id).await.unwrap_or(true) {
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
        let mut settlement = settlement(call, reading);
        settlement.sent_at = self.store.now().store;
        settlement.left = false;
        settlement.random = random;
        End::Sent(Box::new(Sent::of(call, settlement, Duration::ZERO)))
    }

    /// A refusal that broke off is one: what its head says counts. Of anything else nothing is known.
    pub fn broken_off(
        &self,
        call: &Call,
        url: Option<&Url>,
        silence_of: &NoAnswer,
        redactor: &Redactor,
    ) -> Settlement {
        let told = silence_of.part.as_deref().map(|part| self.answered(call, url, part, redactor));
        let is_refusal = |told: &Settlement| {
            let reason = told.reading.reason;
            !(reason.is_success() || reason.is_permanent()) && told.redirect.is_none()
        };
        match told.filter(is_refusal) {
            Some(mut told) => {
                let broke = redactor.redact(&silence_of.detail);
                told.reading.detail.push_str(&format!(" (it broke off: {broke})"));
                told
            }
            None => unanswered(call, silence_of, redactor),
        }
    }

    /// What an answer to the call means; `url`: the address that it came from, where redirects are followed.
    pub fn answered(
        &self,
        call: &Call,
        url: Option<&Url>,
        received: &Received,
        redactor: &Redactor,
    ) -> Settlement {
        let answer = Answer {
            method: call.job.method(),
            url: call.job.url(),
            received_at: received.received_at,
            status: received.status,
            headers: &received.headers,
            body: &received.body,
        };
        let read = |answer: &Answer<'_>| read_for(&call.partition, Some(&self.upstream), answer);
        let mut reading = read(&answer);
        // Another host's figures are of another quota.
        let away = call.job.redirect.as_ref().is_some_and(|redirect| redirect.away);
        let told = (!away).then(|| remaining(&self.upstream, &call.partition, &answer));
        let body = redactor.redact_bytes(&received.body);
        if let Cow::Owned(body) = &body {
            // The detail is cut: half of a secret would not be found in it any more.
            let shown = Answer { body, ..answer };
            reading.detail = read(&shown).detail;
        }
        if let Some(connection) = received.connection
            && reading.reason == Reason::RateLimited
        {
            self.transport.refused(connection);
        }
        // Whoever holds a permit follows it, or not.
        let followed = url.filter(|_| !call.once);
        let redirect =
            followed.and_then(|url| follow(call, url, &mut reading, received.status, redactor));
        reading.detail = redactor.redact(&reading.detail).into_owned();
        if received.cut && reading.reason.is_success() && !self.upstream.results.is_empty() {
            reading.detail.push_str(TOO_LONG);
        }
        let items = self.items(call, &answer, &reading, redactor);
        let body = self.kept(&reading, &items, body, received.cut);
        let fields = match self.upstream.results.is_empty() {
            true => BTreeMap::new(),
            false => serde_json::from_slice(&received.body)
                .map_or_else(|_| BTreeMap::new(), |body| self.fields(&body, redactor)),
        };
        let (status, connection) = (Some(received.status), received.connection);
        Settlement {
            status,
            connection,
            items,
            remaining: told.unwrap_or_default(),
            redirect,
            fields,
            body,
            ..settlement(call, reading)
        }
    }

    /// What the answer says of each job of a batch.
    fn items(
        &self,
        call: &Call,
        answer: &Answer<'_>,
        whole: &Reading,
        redactor: &Redactor,
    ) -> Vec<ItemEnd> {
        let jobs: Vec<_> = call.jobs().collect();
        let columns: Vec<_> = jobs.iter().map(|job| &job.columns).collect();
        let said = read_items(&call.partition, &self.upstream, answer, whole, &columns).into_iter();
        said.filter_map(|mut said| {
            said.reading.detail = redactor.redact(&said.reading.detail).into_owned();
            Some(ItemEnd {
                job: jobs.get(said.job)?.id,
                status: Some(said.status),
                fields: self.fields(&said.item, redactor),
                reading: said.reading,
            })
        })
        .collect()
    }

    fn kept(
        &self,
        reading: &Reading,
        items: &[ItemEnd],
        body: Cow<'_, [u8]>,
        cut: bool,
    ) -> Option<KeptBody> {
        let keep = &self.upstream.keep;
        let mut reasons = items.iter().map(|item| item.reading.reason).chain([reading.reason]);
        let wanted = match keep.body {
            KeepBody::All => true,
            KeepBody::Refusals => !reasons.all(Reason::is_success),
            KeepBody::None => false,
        };
        if !wanted {
            return None;
        }
        let whole = if cut { body.len().saturating_sub(CUT_EDGE) } else { body.len() };
        let cut = cut || whole > keep.max_bytes;
        let mut bytes = body.into_owned();
        bytes.truncate(whole.min(keep.max_bytes));
        Some(KeptBody { bytes, cut })
    }

    /// The `[results]` fields that the answer, or an item of it, has.
    fn fields(&self, body: &Value, redactor: &Redactor) -> BTreeMap<String, Value> {
        let taken = |(name, pointer): (&String, &String)| {
            let value = body.pointer(pointer)?.to_string();
            let value = serde_json::from_str(&redactor.redact(&value)).ok()?;
            Some((name.clone(), value))
        };
        self.upstream.results.iter().filter_map(taken).collect()
    }
}

fn missed(why: ReleaseWhy, handed_late: bool) -> Unready {
    Unready::Unsent { why, lacks: None, handed_late }
}

fn unsent(call: &Call, why: ReleaseWhy, lacks: Option<Lack>, handed_late: bool) -> End {
    End::Unsent { release: Release { call: call.id, why }, job: call.job.id, lacks, handed_late }
}

/// What the lack of an answer means.
pub(crate) fn unanswered_told(call: &Call, left: bool, detail: String) -> Settlement {
    Settlement { left, ..settlement(call, silence(Reason::Transient, detail)) }
}

fn unanswered(call: &Call, silence_of: &NoAnswer, redactor: &Redactor) -> Settlement {
    let detail = redactor.redact(&silence_of.detail).into_owned();
    unanswered_told(call, silence_of.left, detail)
}

/// Where an answer that is a redirect sends the job on. The reading then says so, or why not.
fn follow(
    call: &Call,
    url: &Url,
    reading: &mut Reading,
    status: u16,
    redactor: &Redactor,
) -> Option<Redirect> {
    let location = reading.location.as_deref()?;
    let own = call.job.request.url.get(..HTTPS.len());
    let redirected = Redirected {
        status,
        method: call.job.method(),
        url,
        body: call.job.body(),
        repeatable: call.repeatable,
        is_secure: own.is_some_and(|scheme| scheme.eq_ignore_ascii_case(HTTPS)),
        by: call.job.redirect.as_ref(),
    };
    let hide = |text: &str| redactor.redact(text).into_owned();
    let followed = redirect::follow(&redirected, location, &hide);
    let (reason, detail) = match &followed {
        Ok(redirect) => (Reason::Ok, redirect.told()),
        Err(end) => (end.reason(), end.to_string()),
    };
    reading.reason = reason;
    reading.retryable = reason.is_retryable();
    reading.detail = detail;
    followed.ok()
}

/// What the lack of an answer means.
fn silence(reason: Reason, detail: String) -> Reading {
    Reading::plain(reason, "no answer", detail)
}

/// The settlement of a call that this is read of, and nothing else is known.
pub(crate) fn settlement(call: &Call, reading: Reading) -> Settlement {
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

impl Call {
    fn deadline_passed(&self, now: Timestamp) -> bool {
        self.jobs().any(|job| job.deadline_at.is_some_and(|deadline| deadline < now))
    }
}
