//! One upstream's loop: it claims what may go, sends each call on its way, settles what came back, and
//! otherwise waits for whatever can change that.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::call::{End, Lack, Sent, Way};
use super::guard::Guard;
use super::prepare::missing_for_all;
use super::shared::Shared;
use super::transport::Transport;
use super::{Event, RunError};
use crate::clock::Timestamp;
use crate::job::{Columns, JobState};
use crate::quota::{LimitRule, Upstream};
use crate::store::views::MISSING_SECRET;
use crate::store::{Claim, Claimed, Hold, RunnerId, SettleEnd, Settled, Store, StoreError};

/// The least time from a claim to its first slot: what it takes to commit it and hand it over.
const LEAST_LEAD: Duration = Duration::from_millis(10);

/// The lead grows up to this where calls are handed over late. It stays under the half horizon by which
/// a rate's next slots are claimed ahead: else each claim would leave a gap.
const MOST_LEAD: Duration = Duration::from_millis(100);

/// Calls that may be out of a partition that was not answered.
const UNANSWERED: usize = 4;

/// How often a waiting runner looks at its quota file, its secrets and the time.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How long after trouble the store is asked again.
const TROUBLE_INTERVAL: Duration = Duration::from_millis(500);

/// A wait is told from this length on.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// One upstream, served.
pub(super) struct Lane<S, T> {
    store: S,
    shared: Arc<Shared>,
    upstream: Arc<Upstream>,
    transport: Arc<T>,
    guard: Arc<Mutex<Guard>>,
    runner: RunnerId,
    rng: StdRng,
    ended: UnboundedSender<End>,
    ends: UnboundedReceiver<End>,
    /// Came back, not settled yet.
    unsettled: Vec<End>,
    in_flight: usize,
    lead: Duration,
    /// Whether asking the store for calls makes sense now.
    claim_due: bool,
    next_at: Option<Timestamp>,
    news: i64,
    looked_at: Timestamp,
    idle_since: Timestamp,
    told_until: Option<Timestamp>,
    held_for_secret: bool,
    /// Since when the store has not answered.
    trouble_since: Option<Timestamp>,
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
        let guard = Arc::new(Mutex::new(Guard::new(store.timeline())));
        Lane {
            store,
            shared,
            upstream,
            transport,
            guard,
            runner,
            rng,
            ended,
            ends,
            unsettled: Vec::new(),
            in_flight: 0,
            lead: LEAST_LEAD,
            claim_due: true,
            next_at: None,
            news: 0,
            looked_at: now,
            idle_since: now,
            told_until: None,
            held_for_secret: false,
            trouble_since: None,
            is_active: false,
        }
    }

    /// Serves until nothing is left that the run may wait for, or until it is told to leave.
    pub async fn serve(mut self) -> Result<(), RunError> {
        self.try_store(Self::check_secrets).await?;
        loop {
            self.gather();
            self.look_around().await?;
            let leaving = self.shared.is_leaving(self.store.now().wall);
            let room = if leaving || self.held_for_secret { 0 } else { self.room() };
            if !self.unsettled.is_empty() || (self.claim_due && room > 0) {
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
        self.unsettled.push(end);
    }

    /// How many more calls this lane may have in flight.
    fn room(&self) -> usize {
        self.shared.share().saturating_sub(self.in_flight).min(self.shared.count_left())
    }

    fn set_active(&mut self, active: bool) {
        if self.is_active != active {
            self.is_active = active;
            self.shared.change_active(active);
        }
    }

    /// Records what came back and asks for more: both wishes reach the store together, so that they
    /// share a transaction.
    async fn exchange(&mut self, room: usize) -> Result<(), RunError> {
        let ends = std::mem::take(&mut self.unsettled);
        let wanted = if self.claim_due { self.shared.take_count(room) } else { 0 };
        let (mut settlements, mut releases) = (Vec::new(), Vec::new());
        for end in &ends {
            match end {
                End::Sent(sent) => settlements.push(sent.settlement.clone()),
                End::Unsent { release, .. } => releases.push(*release),
            }
        }
        let settle = async {
            match settlements.is_empty() {
                true => Ok(Vec::new()),
                false => self.store.settle(Arc::clone(&self.upstream), settlements).await,
            }
        };
        let release = async {
            match releases.is_empty() {
                true => Ok(()),
                false => self.store.release(Arc::clone(&self.upstream), releases).await,
            }
        };
        let claim = async {
            match wanted {
                0 => Ok(None),
                most => {
                    let (upstream, runner) = (Arc::clone(&self.upstream), self.runner);
                    let (lead, unanswered) = (self.lead(), UNANSWERED);
                    let wish = Claim { upstream, runner, most, lead, unanswered };
                    self.store.claim(wish).await.map(Some)
                }
            }
        };
        let (settled, released, claimed) = tokio::join!(settle, release, claim);
        // Each is taken for itself: one that failed is asked again, the others are done.
        let trouble = [self.keep_unsettled(ends, settled, released).await, {
            let claimed = claimed.map(Option::unwrap_or_default);
            self.take_claimed(wanted, claimed)
        }];
        match trouble.into_iter().find_map(Result::err) {
            Some(error) => self.trouble(error).await,
            None => {
                self.calm();
                Ok(())
            }
        }
    }

    async fn keep_unsettled(
        &mut self,
        ends: Vec<End>,
        settled: Result<Vec<Settled>, StoreError>,
        released: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (sent, unsent): (Vec<End>, Vec<End>) =
            ends.into_iter().partition(|end| matches!(end, End::Sent(_)));
        let settled = match settled {
            Ok(settled) => {
                for (end, settled) in sent.iter().zip(settled) {
                    if let End::Sent(sent) = end {
                        self.tell_settled(sent, &settled);
                    }
                    // A job that simply ended lets no other go where an instant is what is waited
                    // for; whatever else came free is news, and heard as such. The last one out asks
                    // once more, so that what the lane waits for then is known and told.
                    let ended = matches!(settled.end, SettleEnd::Ended(_));
                    self.claim_due |= self.next_at.is_none() || !ended || self.in_flight == 0;
                }
                Ok(())
            }
            Err(error) => {
                self.unsettled.extend(sent);
                Err(error)
            }
        };
        match released {
            Ok(()) => self.tell_released(unsent).await?,
            Err(error) => {
                self.unsettled.extend(unsent);
                return Err(error);
            }
        }
        settled
    }

    fn tell_settled(&mut self, sent: &Sent, settled: &Settled) {
        let upstream = &self.upstream.name;
        let state = match settled.end {
            SettleEnd::Ended(state) => state,
            SettleEnd::Again(_) | SettleEnd::Late => JobState::Queued,
        };
        let settlement = &sent.settlement;
        self.shared.count_end(state, settlement.left);
        self.shared.tell(&Event::Answered {
            upstream: upstream.clone(),
            job: sent.job,
            attempt: sent.attempt,
            url: sent.url.clone(),
            status: settlement.status,
            reason: settlement.reading.reason,
            detail: settlement.reading.detail.clone(),
            took: sent.took,
            state,
        });
        if let Some(block) = &settled.block {
            self.shared.tell(&Event::Blocked {
                upstream: upstream.clone(),
                limit: block.limit.clone(),
                key: block.key.clone(),
                until: self.store.now().to_wall(block.until),
                reason: block.reason,
            });
        }
        if let Some(hold) = &settled.hold {
            self.shared.tell(&Event::Held {
                upstream: upstream.clone(),
                key: Some(hold.key.clone()),
                reason: hold.reason.clone(),
                detail: hold.detail.clone(),
            });
        }
    }

    async fn tell_released(&mut self, unsent: Vec<End>) -> Result<(), StoreError> {
        let is_late = |end: &End| matches!(end, End::Unsent { handed_late: true, .. });
        if unsent.iter().any(is_late) {
            self.lead = (self.lead * 2).min(MOST_LEAD);
        }
        for end in unsent {
            let End::Unsent { release, job, lacks, .. } = end else { continue };
            self.shared.return_count();
            self.claim_due = true;
            let upstream = self.upstream.name.clone();
            self.shared.tell(&Event::Released { upstream, job, why: release.why });
            if let Some(lack) = lacks {
                self.hold_partition(lack).await?;
            }
        }
        Ok(())
    }

    /// Where no slot can be missed, none lies ahead.
    fn lead(&self) -> Duration {
        let is_strict =
            |rule: &LimitRule| matches!(rule, LimitRule::Rate(_) | LimitRule::Rolling(_));
        match self.upstream.limits.iter().any(|limit| is_strict(&limit.rule)) {
            true => self.lead,
            false => Duration::ZERO,
        }
    }

    /// A job needs a secret that is not there: its partition waits, no other does.
    async fn hold_partition(&mut self, lack: Lack) -> Result<(), StoreError> {
        self.hold(lack.partition, lack.detail).await
    }

    async fn hold(&mut self, key: Columns, detail: String) -> Result<(), StoreError> {
        let (upstream, reason) = (self.upstream.name.clone(), MISSING_SECRET.to_owned());
        let hold = Hold {
            upstream: upstream.clone(),
            key: key.clone(),
            reason: reason.clone(),
            detail: detail.clone(),
        };
        self.store.hold(hold).await?;
        let key = Some(key).filter(|key| !key.is_empty());
        self.shared.tell(&Event::Held { upstream, key, reason, detail });
        Ok(())
    }

    fn take_claimed(
        &mut self,
        wanted: usize,
        claimed: Result<Claimed, StoreError>,
    ) -> Result<(), StoreError> {
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                self.shared.give_count(wanted);
                return Err(error);
            }
        };
        if wanted == 0 {
            return Ok(());
        }
        self.shared.give_count(wanted - claimed.calls.len().min(wanted));
        self.claim_due = claimed.calls.len() >= wanted;
        self.next_at = claimed.next_at;
        self.news = claimed.news;
        self.shared.count_unsent(claimed.expired, claimed.failed);
        self.tell_claimed(&claimed);
        if !claimed.calls.is_empty() {
            self.lead = (self.lead - self.lead / 16).max(LEAST_LEAD);
            self.idle_since = self.store.now().store;
        }
        for call in claimed.calls {
            self.start(call);
        }
        self.set_active(self.in_flight > 0);
        Ok(())
    }

    fn start(&mut self, call: crate::store::Call) {
        let way = Way {
            store: self.store.clone(),
            transport: Arc::clone(&self.transport),
            upstream: Arc::clone(&self.upstream),
            secrets: Arc::clone(&self.shared.secrets),
            guard: Arc::clone(&self.guard),
            leave: self.shared.leave.clone(),
            tell: Arc::clone(&self.shared.tell),
        };
        let random = self.rng.random();
        let ended = self.ended.clone();
        self.in_flight += 1;
        tokio::spawn(async move {
            let end = way.go(call, random).await;
            // The lane outlives its calls; where it is gone, the lease runs out.
            let _ = ended.send(end);
        });
    }

    fn tell_claimed(&mut self, claimed: &Claimed) {
        let upstream = &self.upstream.name;
        if let Some(nanos) = claimed.stepped {
            self.shared.tell(&Event::ClockStepped { nanos });
        }
        if claimed.expired > 0 {
            let jobs = claimed.expired;
            self.shared.tell(&Event::Expired { upstream: upstream.clone(), jobs });
        }
        let now = self.store.now();
        let Some(next_at) = self.next_at.filter(|at| at.since(now.store) >= WORTH_TELLING) else {
            return;
        };
        if claimed.calls.is_empty() && self.told_until != Some(next_at) {
            self.told_until = Some(next_at);
            self.shared.tell(&Event::Waiting {
                upstream: upstream.clone(),
                until: now.to_wall(next_at),
                limit: claimed.limit.clone(),
            });
        }
    }

    /// Whether the run may leave this upstream: nothing of it is queued that it would wait for.
    async fn is_finished(&mut self) -> Result<bool, RunError> {
        let options = &self.shared.options;
        if self.shared.count_left() == 0 {
            return Ok(true);
        }
        if options.follow {
            return Ok(false);
        }
        let remaining = match self.store.remaining(self.upstream.name.clone()).await {
            Ok(remaining) => remaining,
            Err(error) => return self.trouble(error).await.map(|()| false),
        };
        let Some(max_wait) = options.max_wait else { return Ok(remaining.waiting == 0) };
        let now = self.store.now().store;
        Ok(remaining.waiting == 0
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
        let look_at = now.store + LOOK_INTERVAL;
        let until = self.shared.options.until.map(|until| now.to_store(until));
        // Without room for a call, neither news nor a permit would change anything.
        let asks = !leaving && self.may_ask();
        let next_at = self.next_at.filter(|_| asks);
        let wake_at = [Some(look_at), until.filter(|at| *at > now.store), next_at];
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
        !self.held_for_secret && self.room() > 0
    }

    /// Every now and then: has the quota file changed, is a missing secret there, is anything overdue?
    async fn look_around(&mut self) -> Result<(), RunError> {
        let now = self.store.now().store;
        if now.since(self.looked_at) < LOOK_INTERVAL {
            return Ok(());
        }
        self.looked_at = now;
        let name = self.upstream.name.clone();
        match self.shared.library.reload(&name) {
            Ok(None) => {}
            Ok(Some(upstream)) => {
                self.upstream = upstream;
                self.claim_due = true;
                self.shared.tell(&Event::QuotaChanged { upstream: name, problem: None });
            }
            Err(error) => {
                let problem = Some(error.to_string());
                self.shared.tell(&Event::QuotaChanged { upstream: name, problem });
            }
        }
        // A wait that nothing ends is looked at again all the same.
        self.claim_due |= self.next_at.is_none();
        self.try_store(Self::check_secrets).await
    }

    /// Holds the upstream where a secret that all its calls need is missing, and lets it go again once
    /// that is there.
    async fn check_secrets(&mut self) -> Result<(), StoreError> {
        let missing = missing_for_all(&self.upstream, &self.shared.secrets);
        if let Some(error) = missing {
            if !self.held_for_secret {
                self.hold(Columns::new(), error.to_string()).await?;
                self.held_for_secret = true;
            }
            return Ok(());
        }
        let was_held = self.held_for_secret;
        self.held_for_secret = false;
        if was_held || self.shared.first_look(&self.upstream.name) {
            let upstream = self.upstream.name.clone();
            if self.store.let_go(upstream.clone(), MISSING_SECRET.to_owned()).await? > 0 {
                self.claim_due = true;
                self.shared.tell(&Event::LetGo { upstream });
            }
        }
        Ok(())
    }

    async fn try_store(
        &mut self,
        work: impl AsyncFn(&mut Self) -> Result<(), StoreError>,
    ) -> Result<(), RunError> {
        match work(self).await {
            Ok(()) => Ok(()),
            Err(error) => self.trouble(error).await,
        }
    }

    /// The store cannot answer. Where that may pass, nothing new is sent until it does.
    async fn trouble(&mut self, error: StoreError) -> Result<(), RunError> {
        let now = self.store.now();
        let is_new = self.trouble_since.is_none();
        let lasted = now.store.since(*self.trouble_since.get_or_insert(now.store));
        if !error.may_pass() || self.shared.has_given_up(now.wall, lasted) {
            return Err(error.into());
        }
        if is_new {
            self.shared.tell(&Event::StoreTrouble { message: error.to_string() });
        }
        self.claim_due = true;
        self.store.timeline().sleep(TROUBLE_INTERVAL).await;
        Ok(())
    }

    fn calm(&mut self) {
        if self.trouble_since.take().is_some() {
            self.shared.tell(&Event::StoreBack);
        }
    }
}
