//! What the store said to what a desk told it.

use std::sync::Arc;

use rand::RngExt as _;

use super::exchange::{Due, Entered, Said};
use super::seat::{Entry, Word, gave_up};
use super::{Clerk, Ended, Guest, REST};
use crate::dispatch::tell;
use crate::dispatch::transport::Transport;
use crate::store::{Call, Claimed, Release, ReleaseWhy, SettleEnd, Settled, Store, StoreError};

impl<S: Store, T: Transport> Clerk<S, T> {
    /// Each is taken for itself: what could not be told the store is kept, to be told again. Gives the last reason
    /// why something could not.
    pub(super) fn take_in(&mut self, due: Due, said: Said) -> Option<StoreError> {
        let mut trouble = self.take_entered(due.entries, said.entered);
        match said.settled {
            Ok(all) => {
                due.ended.into_iter().zip(all).for_each(|(end, done)| self.tell_settled(end, done));
            }
            Err(error) => {
                self.ended.extend(due.ended);
                trouble = Some(error);
            }
        }
        if let Err(error) = said.released {
            self.releases.extend(due.releases);
            trouble = Some(error);
        }
        if let Err(error) = said.withdrawn {
            self.withdrawals.extend(due.withdrawals);
            trouble = Some(error);
        }
        match said.claimed {
            Ok(Some(claimed)) => self.take_claimed(claimed, due.wanted),
            Ok(None) => {}
            Err(error) => {
                self.claim_due = true;
                trouble = Some(error);
            }
        }
        trouble
    }

    /// Those who came in have jobs now. Whoever's job is not entered comes in again.
    fn take_entered(&mut self, entries: Vec<Entry>, entered: Entered) -> Option<StoreError> {
        for (entry, id) in entries.into_iter().zip(entered.ids) {
            let Some(id) = id else {
                self.entries.push(entry);
                continue;
            };
            let Entry { ticket, words, .. } = entry;
            let guest = Guest { job: Some(id), call: None, words, lacks: None, told: None };
            self.guests.insert(ticket, guest);
            self.tickets.insert(id, ticket);
        }
        entered.failed
    }

    /// Tells what a settle did.
    fn tell_settled(&mut self, end: Ended, settled: Settled) {
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
            false => self.lead.ease(),
        }
        for event in self.waits.claimed(&self.upstream.name, self.house.store().now(), &claimed) {
            (self.house.tell)(&event);
        }
        for question in claimed.questions {
            let way = Arc::clone(&self.way.borrow());
            tokio::spawn(async move { way.ask(question).await });
        }
        for call in claimed.calls {
            self.hand_over(call);
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
        let _ = guest.words.send(Word::Granted(Box::new(call), self.rng.random()));
    }
}
