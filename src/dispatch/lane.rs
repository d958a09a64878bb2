//! One upstream's loop: it claims what may go, sends each call on its way, settles what came back, and
//! otherwise waits for whatever can change that.
//!
//! | file | noun |
//! | --- | --- |
//! | `exchange` | what goes to the store and comes from it |
//! | `tokens` | tokens that calls of it need |
//! | `tell` | what that means, as events |
//! | `watch` | quota file, secrets, a store in trouble |

mod exchange;
mod tell;
mod tokens;
mod watch;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::RunError;
use super::auth::Fetcher;
use super::call::{End, Way};
use super::guard::Guard;
use super::lead::Lead;
use super::outage::Outage;
use super::shared::Shared;
use super::tell::Waits;
use super::transport::Transport;
use crate::clock::Timestamp;
use crate::quota::{Limit, LimitRule, Upstream};
use crate::store::{RunnerId, Store};

/// What succeeds at a pace is recorded so much later at most: each commit costs as much as some calls. What was
/// not recorded when its process dies goes again.
const LINGER: Duration = Duration::from_millis(10);

/// How often a waiting runner looks at its quota file, its secrets and the time.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How often a runner that has nothing left to do looks whether the others have.
const OTHERS_INTERVAL: Duration = Duration::from_millis(100);

/// One upstream, served.
pub(super) struct Lane<S, T> {
    store: S,
    shared: Arc<Shared>,
    upstream: Arc<Upstream>,
    way: Arc<Way<S, T>>,
    runner: RunnerId,
    rng: StdRng,
    ended: UnboundedSender<End>,
    ends: UnboundedReceiver<End>,
    /// Came back, not settled yet; and since when the first of them is there.
    unsettled: Vec<End>,
    unsettled_since: Timestamp,
    in_flight: usize,
    lead: Lead,
    /// Whether asking the store for calls makes sense now.
    claim_due: bool,
    next_at: Option<Timestamp>,
    news: i64,
    looked_at: Timestamp,
    idle_since: Timestamp,
    waits: Waits,
    /// Only calls of other processes are out.
    awaits_others: bool,
    held_for_secret: bool,
    fetcher: Fetcher,
    /// Shared with each question that is out: what is left is being asked.
    asking: Arc<()>,
    outage: Outage,
    is_active: bool,
}

impl<S: Store, T: Transport> Lane<S, T> {
    pub fn new(
        store: S,
        shared: Arc<Shared>,
        upstream: Arc<Upstream>,
        transport: Arc<T>,
        runner: RunnerId,
        rng: StdRng,
    ) -> Self {
        let (ended, ends) = unbounded_channel();
        let now = store.now().store;
        // Those of an earlier lane went with it.
        shared.tokens.give_up(&upstream.name);
        let guard = Arc::new(Mutex::new(Guard::new(store.timeline())));
        let fetcher = Fetcher::new(Arc::clone(&shared.tokens), Arc::clone(&shared.secrets));
        let way = Way {
            store: store.clone(),
            transport,
            upstream: Arc::clone(&upstream),
            secrets: Arc::clone(&shared.secrets),
            tokens: Arc::clone(&shared.tokens),
            guard,
            leave: shared.leave.clone(),
            tell: Arc::clone(&shared.tell),
        };
        Lane {
            store,
            shared,
            upstream,
            way: Arc::new(way),
            runner,
            rng,
            ended,
            ends,
            unsettled: Vec::new(),
            unsettled_since: now,
            in_flight: 0,
            lead: Lead::of_lane(),
            claim_due: true,
            next_at: None,
            news: 0,
            looked_at: now,
            idle_since: now,
            waits: Waits::default(),
            awaits_others: false,
            held_for_secret: false,
            fetcher,
            asking: Arc::default(),
            outage: Outage::default(),
            is_active: false,
        }
    }

    /// Serves until nothing is left that the run may wait for, or until it is told to leave.
    pub async fn serve(mut self) -> Result<(), RunError> {
        self.try_store(Self::check_secrets).await?;
        loop {
            self.gather();
            self.look_around().await?;
            self.try_store(Self::look_after_tokens).await?;
            let leaving = self.shared.is_leaving(self.store.now().wall);
            let room = if leaving || !self.may_claim() { 0 } else { self.room() };
            if self.has_to_settle(leaving) || (self.claim_due && room > 0) {
                self.exchange(room).await?;
                continue;
            }
            if self.in_flight == 0 && (leaving || self.is_finished().await?) {
                self.set_active(false);
                return Ok(());
            }
            self.wait(leaving).await;
        }
    }

    /// Takes in what has come back.
    fn gather(&mut self) {
        while let Ok(end) = self.ends.try_recv() {
            self.take_in(end);
        }
    }

    fn take_in(&mut self, end: End) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.unsettled.is_empty() {
            self.unsettled_since = self.store.now().store;
        }
        self.unsettled.push(end);
    }

    /// Whether what came back is to be recorded now. Successes for which nobody waits may wait for those that
    /// follow within [`LINGER`].
    fn has_to_settle(&self, leaving: bool) -> bool {
        let may_wait = |end: &End| match end {
            End::Sent(sent) => sent.repeatable && sent.settlement.is_plain_success(),
            End::Unsent { .. } => false,
        };
        let is_place = |limit: &Limit| matches!(limit.rule, LimitRule::Concurrency(_));
        let may_linger = self.in_flight > 0
            && !leaving
            // Else what waits for no instant could go as soon as this one has ended.
            && self.next_at.is_some()
            && !self.upstream.limits.iter().any(is_place)
            && self.unsettled.iter().all(may_wait);
        let is_over = || self.store.now().store.since(self.unsettled_since) >= LINGER;
        !self.unsettled.is_empty() && (!may_linger || is_over())
    }

    /// How many more calls this lane may have in flight.
    fn room(&self) -> usize {
        let connections = self.upstream.request.connections.unwrap_or(usize::MAX);
        let most = self.shared.share().min(connections);
        most.saturating_sub(self.in_flight).min(self.shared.count_left())
    }

    fn set_active(&mut self, active: bool) {
        if self.is_active != active {
            self.is_active = active;
            self.shared.change_active(active);
        }
    }

    /// Whether the run may leave this upstream: nothing of it is queued that it would wait for.
    async fn is_finished(&mut self) -> Result<bool, RunError> {
        if self.awaits_token() {
            return Ok(false);
        }
        let options = &self.shared.options;
        if self.shared.count_left() == 0 {
            return Ok(true);
        }
        // Whoever waits for an answer goes once it is there, or soon.
        if options.follow || Arc::strong_count(&self.asking) > 1 {
            return Ok(false);
        }
        let remaining = match self.store.remaining(self.upstream.name.clone()).await {
            Ok(remaining) => remaining,
            Err(error) => return self.trouble(error).await.map(|()| false),
        };
        // What another process has out may come back to be sent again.
        self.awaits_others = remaining.running > 0;
        let is_done = remaining.waiting + remaining.running == 0;
        let Some(max_wait) = options.max_wait else { return Ok(is_done) };
        let now = self.store.now().store;
        Ok(is_done
            || match self.next_at {
                Some(next_at) => next_at.since(now) > max_wait,
                None => now.since(self.idle_since) >= max_wait,
            })
    }

    /// Waits for whatever comes first: a call that ends, the next permit, news, the time to look around,
    /// the word to leave.
    async fn wait(&mut self, leaving: bool) {
        let timeline = self.store.timeline().clone();
        let now = timeline.now();
        let look = if self.awaits_others { OTHERS_INTERVAL } else { LOOK_INTERVAL };
        let look_at = now.store + look;
        let until = self.shared.options.until.map(|until| now.to_store(until));
        // Without room for a call, neither news nor a permit would change anything.
        let asks = !leaving && self.may_ask();
        let next_at = self.next_at.filter(|_| asks);
        let retry_at = self.shared.tokens.retry_at(&self.upstream.name).filter(|_| !leaving);
        let linger = (!self.unsettled.is_empty()).then_some(self.unsettled_since + LINGER);
        let until = until.filter(|at| *at > now.store);
        let wake_at = [Some(look_at), until, next_at, retry_at, linger];
        let wake_at = wake_at.into_iter().flatten().min().unwrap_or(look_at);
        let max_wait = self.shared.options.max_wait.map(|span| self.idle_since + span);
        let wake_at = max_wait.filter(|at| *at > now.store).map_or(wake_at, |at| at.min(wake_at));
        let mut leave = self.shared.leave.clone();
        tokio::select! {
            end = self.ends.recv() => {
                if let Some(end) = end {
                    self.take_in(end);
                }
            }
            () = self.fetcher.next() => {}
            () = timeline.sleep_until(wake_at) => {}
            () = self.store.changed(self.news), if asks => self.claim_due = true,
            left = leave.changed(), if !leaving => {
                // Whoever could tell it to leave is gone: it is never told again.
                if left.is_err() {
                    timeline.sleep(LOOK_INTERVAL).await;
                }
            }
        }
        let now = timeline.now().store;
        if self.next_at.is_some_and(|at| at <= now) {
            self.next_at = None;
            self.claim_due = true;
        }
    }

    fn may_ask(&self) -> bool {
        self.may_claim() && self.room() > 0
    }

    fn may_claim(&self) -> bool {
        !self.held_for_secret && !self.awaits_token()
    }
}
