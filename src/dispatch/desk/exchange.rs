//! What goes from a desk to the store, and comes from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::seat::{Entry, Leaving, Ticket, Word, gave_up};
use super::{Clerk, Ended, Guest, PATIENCE, REST, TROUBLE_INTERVAL};
use crate::clock::Timestamp;
use crate::dispatch::auth::Need;
use crate::dispatch::call::Lack;
use crate::dispatch::question::Asker;
use crate::dispatch::transport::Transport;
use crate::dispatch::{Event, tell};
use crate::job::JobId;
use crate::quota::LimitRule;
use crate::store::{
    Call, Claim, Claimed, Release, ReleaseWhy, SettleEnd, Settled, Store, StoreError, Withdrawal,
};

/// Calls that one claim asks for, at most.
const MOST: usize = 64;

/// A wait is told from this length on.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// The first lead that a call handed over late leads to, and the longest.
const LEADS: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(100));

impl<S: Store, T: Transport> Clerk<S, T> {
    /// Everything there is to tell the store reaches it together, so that it shares a transaction.
    pub(super) async fn exchange(&mut self) {
        // Once for all who were late together: they were late for the same reason.
        if std::mem::take(&mut self.was_late) {
            self.lead = (self.lead * 2).clamp(LEADS.0, LEADS.1);
        }
        let entries = std::mem::take(&mut self.entries);
        let ended = std::mem::take(&mut self.ended);
        let releases = std::mem::take(&mut self.releases);
        let withdrawals = std::mem::take(&mut self.withdrawals);
        let wanted = match self.is_over || self.awaits_token() {
            true => 0,
            // What is settled or given back lets others go.
            false => (self.waiting() + entries.len()).min(MOST),
        };
        let wanted = if self.claim_due || !entries.is_empty() { wanted } else { 0 };
        let store = self.house.store().clone();
        let (entered, settled, released, withdrawn, claimed) = tokio::join!(
            self.enter(&entries),
            self.settle(&ended),
            async {
                match releases.is_empty() {
                    true => Ok(()),
                    false => store.release(Arc::clone(&self.upstream), releases.clone()).await,
                }
            },
            async {
                match withdrawals.is_empty() {
                    true => Ok(()),
                    false => store.withdraw(self.house.runner(), withdrawals.clone()).await,
                }
            },
            self.claim(wanted),
        );
        let mut trouble = self.take_entered(entries, entered);
        match settled {
            Ok(all) => {
                ended.into_iter().zip(all).for_each(|(end, settled)| self.tell(end, settled))
            }
            Err(error) => self.keep(&mut trouble, error, |clerk| clerk.ended.extend(ended)),
        }
        if let Err(error) = released {
            self.keep(&mut trouble, error, |clerk| clerk.releases.extend(releases));
        }
        if let Err(error) = withdrawn {
            self.keep(&mut trouble, error, |clerk| clerk.withdrawals.extend(withdrawals));
        }
        match claimed {
            Ok(Some(claimed)) => self.take_claimed(claimed, wanted),
            Ok(None) => {}
            Err(error) => self.keep(&mut trouble, error, |clerk| clerk.claim_due = true),
        }
        match trouble {
            Some(error) => self.trouble(error).await,
            None => {
                self.calm();
                if wanted > 0 {
                    self.look_at_waiting().await;
                }
            }
        }
    }

    /// What could not be told the store is kept, to be told again.
    fn keep(
        &mut self,
        trouble: &mut Option<StoreError>,
        error: StoreError,
        keep: impl FnOnce(&mut Self),
    ) {
        *trouble = Some(error);
        keep(self);
    }

    /// The numbers of the jobs that were entered; and why others were not, which are entered another time.
    async fn enter(&self, entries: &[Entry]) -> (Vec<Option<JobId>>, Option<StoreError>) {
        let mut loads: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, entry) in entries.iter().enumerate() {
            loads.entry(&entry.load).or_default().push(place);
        }
        let mut ids = vec![None; entries.len()];
        for (load, places) in loads {
            let jobs = places.iter().filter_map(|place| entries.get(*place));
            let jobs = jobs.map(|entry| entry.job.clone()).collect();
            let (upstream, load) = (Arc::clone(&self.upstream), load.to_owned());
            match self.house.store().enter(upstream, self.house.runner(), load, jobs).await {
                Ok(added) => {
                    for (place, id) in places.into_iter().zip(added) {
                        ids.get_mut(place).into_iter().for_each(|slot| *slot = Some(id));
                    }
                }
                Err(error) => return (ids, Some(error)),
            }
        }
        (ids, None)
    }

    fn take_entered(
        &mut self,
        entries: Vec<Entry>,
        (ids, failed): (Vec<Option<JobId>>, Option<StoreError>),
    ) -> Option<StoreError> {
        let (mut entered, mut numbers) = (Vec::new(), Vec::new());
        for (entry, id) in entries.into_iter().zip(ids) {
            match id {
                Some(id) => {
                    entered.push(entry);
                    numbers.push(id);
                }
                None => self.entries.push(entry),
            }
        }
        self.seated(entered, numbers);
        failed
    }

    async fn settle(&self, ended: &[Ended]) -> Result<Vec<Settled>, StoreError> {
        if ended.is_empty() {
            return Ok(Vec::new());
        }
        let settlements = ended.iter().map(|end| end.sent.settlement.clone()).collect();
        self.house.store().settle(Arc::clone(&self.upstream), settlements).await
    }

    async fn claim(&self, most: usize) -> Result<Option<Claimed>, StoreError> {
        if most == 0 {
            return Ok(None);
        }
        let wish = Claim::new(Arc::clone(&self.upstream), self.house.runner(), most).owned();
        self.house.store().claim(Claim { lead: self.lead(), ..wish }).await.map(Some)
    }

    /// Where no slot can be missed, none lies ahead.
    fn lead(&self) -> Duration {
        let is_strict =
            |rule: &LimitRule| matches!(rule, LimitRule::Rate(_) | LimitRule::Rolling(_));
        let strict = self.upstream.limits.iter().any(|limit| is_strict(&limit.rule));
        if strict { self.lead } else { Duration::ZERO }
    }

    /// Those who came in have jobs now. Who left meanwhile leaves with his.
    fn seated(&mut self, entries: Vec<Entry>, ids: Vec<JobId>) {
        for (entry, id) in entries.into_iter().zip(ids) {
            let Entry { ticket, words, .. } = entry;
            let guest = Guest { job: Some(id), call: None, words, lacks: None, told: None };
            self.guests.insert(ticket, guest);
            self.tickets.insert(id, ticket);
        }
    }

    /// A call that cannot leave goes back, and its job waits for another turn.
    pub(super) fn again(
        &mut self,
        ticket: Ticket,
        why: ReleaseWhy,
        lacks: Option<Lack>,
        late: bool,
    ) {
        self.was_late |= late;
        let now = self.house.store().now().store;
        let Some(guest) = self.guests.get_mut(&ticket) else { return };
        let Some(call) = guest.call.take() else { return };
        self.releases.push(Release { call, why });
        self.claim_due = true;
        if let Some(job) = guest.job {
            let upstream = self.upstream.name.clone();
            (self.house.tell)(&Event::Released { upstream, job, why });
        }
        let Some(Lack::Token(owner)) = lacks else { return };
        match self.house.tokens.trouble(&owner, now) {
            Some(trouble) => drop(guest.words.send(Word::NoToken(trouble))),
            None => guest.lacks = Some(owner),
        }
    }

    pub(super) fn leave(&mut self, ticket: Ticket, leaving: Leaving) {
        let Some(guest) = self.guests.remove(&ticket) else {
            // Its job is not entered yet.
            return self.entries.retain(|entry| entry.ticket != ticket);
        };
        if let Some(call) = guest.call {
            self.releases.push(Release { call, why: ReleaseWhy::Drained });
        }
        let Some(job) = guest.job else { return };
        self.tickets.remove(&job);
        let Leaving { state, reason, detail, waited } = leaving;
        self.withdrawals.push(Withdrawal {
            job,
            state,
            reason: reason.to_owned(),
            detail,
            could_go_at: waited.as_ref().and_then(|wait| wait.until),
            limit: waited.and_then(|wait| wait.limit),
        });
    }

    /// Tells what a settle did.
    fn tell(&mut self, end: Ended, settled: Settled) {
        let Ended { reply, ticket, sent, .. } = end;
        let now = self.house.store().now();
        for event in tell::settled(&self.upstream.name, now, &sent, &settled) {
            (self.house.tell)(&event);
        }
        match settled.end {
            SettleEnd::Again(_) => {
                let guest = self.guests.get_mut(&ticket);
                let is_gone = guest.is_some_and(|guest| {
                    (guest.call, guest.told) = (None, None);
                    guest.words.is_closed()
                });
                if is_gone {
                    self.leave(ticket, gave_up());
                }
                self.claim_due = true;
            }
            SettleEnd::Ended(_) | SettleEnd::Late => {
                let gone = self.guests.remove(&ticket).and_then(|guest| guest.job);
                gone.map(|job| self.tickets.remove(&job));
            }
        }
        // A place that came free is for whoever waits here, too.
        self.claim_due |= self.next_at.is_none();
        let _ = reply.send(Ok(settled));
    }

    fn take_claimed(&mut self, claimed: Claimed, wanted: usize) {
        self.claim_due = claimed.calls.len() >= wanted && self.waiting() > wanted;
        (self.next_at, self.news) = (claimed.next_at, claimed.news);
        match claimed.calls.is_empty() {
            true => self.rest_until = self.house.store().now().store + REST,
            false => self.lead -= self.lead / 4,
        }
        self.tell_wait(&claimed);
        if let Some(nanos) = claimed.stepped {
            (self.house.tell)(&Event::ClockStepped { nanos });
        }
        for question in claimed.questions {
            let way = Arc::clone(&self.way.borrow());
            let asker = Asker {
                store: way.store.clone(),
                transport: Arc::clone(&way.transport),
                upstream: Arc::clone(&self.upstream),
                secrets: Arc::clone(&way.secrets),
                tokens: Arc::clone(&way.tokens),
                tell: Arc::clone(&way.tell),
            };
            tokio::spawn(asker.ask(question));
        }
        for call in claimed.calls {
            self.hand_over(call);
        }
    }

    /// Tells that nothing goes for a while, once.
    fn tell_wait(&mut self, claimed: &Claimed) {
        let now = self.house.store().now();
        let is_long = |at: &Timestamp| at.since(now.store) >= WORTH_TELLING;
        let Some(next_at) = claimed.next_at.filter(is_long) else { return };
        if claimed.calls.is_empty() && self.told_until.replace(next_at) != Some(next_at) {
            let (upstream, limit) = (self.upstream.name.clone(), claimed.limit.clone());
            (self.house.tell)(&Event::Waiting { upstream, until: now.to_wall(next_at), limit });
        }
    }

    /// Hands a call to whom it is for. Whoever has left, or does so now, gives it back.
    fn hand_over(&mut self, call: Call) {
        let ticket = self.tickets.get(&call.job.id);
        let Some(guest) = ticket.and_then(|ticket| self.guests.get_mut(ticket)) else {
            self.releases.push(Release { call: call.id, why: ReleaseWhy::Drained });
            return;
        };
        (guest.call, guest.lacks) = (Some(call.id), None);
        // A seat that is gone has said so, or is about to.
        let _ = guest.words.send(Word::Granted(Box::new(call)));
    }

    /// Takes in what was fetched, and fetches what is needed.
    pub(super) fn look_after_tokens(&mut self) {
        use rand::RngExt as _;
        let rng = &mut self.rng;
        for need in self.fetcher.take(self.house.store().now(), || rng.random()) {
            self.claim_due = true;
            if let Need::Trouble { trouble, has_token: false } = need {
                let lacking =
                    self.guests.values().filter(|g| g.lacks.as_ref() == Some(&trouble.owner));
                for guest in lacking {
                    let _ = guest.words.send(Word::NoToken(trouble.clone()));
                }
            }
        }
        self.fetcher.fetch(&self.upstream, self.house.store().timeline());
    }

    /// The store cannot answer. Where that may pass, it is asked again; else all are told.
    async fn trouble(&mut self, error: StoreError) {
        let now = self.house.store().now().store;
        let is_new = self.trouble_since.is_none();
        let lasted = now.since(*self.trouble_since.get_or_insert(now));
        if error.may_pass() && !(self.is_over && lasted >= PATIENCE) {
            if is_new {
                (self.house.tell)(&Event::StoreTrouble { message: error.to_string() });
            }
            self.house.store().timeline().sleep(TROUBLE_INTERVAL).await;
            return;
        }
        let error = Arc::new(error);
        for guest in std::mem::take(&mut self.guests).into_values() {
            let _ = guest.words.send(Word::Failed(Arc::clone(&error)));
        }
        for entry in std::mem::take(&mut self.entries) {
            let _ = entry.words.send(Word::Failed(Arc::clone(&error)));
        }
        for end in std::mem::take(&mut self.ended) {
            let _ = end.reply.send(Err(Arc::clone(&error)));
        }
        self.tickets.clear();
        self.releases.clear();
        self.withdrawals.clear();
        self.claim_due = false;
    }

    fn calm(&mut self) {
        if self.trouble_since.take().is_some() {
            (self.house.tell)(&Event::StoreBack);
        }
    }
}
