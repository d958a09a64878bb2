//! Those who have jobs at a desk: they wait for another turn, leave, or are told that there is none.

use std::sync::Arc;

use super::seat::{Leaving, Ticket, Word};
use super::{Clerk, House};
use crate::dispatch::Event;
use crate::dispatch::auth::Need;
use crate::dispatch::call::Lack;
use crate::dispatch::outage::PATIENCE;
use crate::dispatch::transport::Transport;
use crate::store::{Release, ReleaseWhy, Store, StoreError, Withdrawal};

impl<S: Store, T: Transport> Clerk<S, T> {
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
    pub(super) async fn trouble(&mut self, error: StoreError) {
        let now = self.house.store().now().store;
        let lasted = self.outage.lasts(now);
        if error.may_pass() && !(self.is_over && lasted >= PATIENCE) {
            let House { enrolled, tell, .. } = &self.house;
            return self.outage.sit_out(&error, enrolled.store.timeline(), tell).await;
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
}
