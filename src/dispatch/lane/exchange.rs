//! What goes to the store and comes from it: calls that ended are settled, others are claimed and started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::RngExt;

use super::Lane;
use crate::dispatch::call::{End, Lack};
use crate::dispatch::transport::Transport;
use crate::dispatch::{Event, RunError};
use crate::store::views::MISSING_SECRET;
use crate::store::{Call, Claim, Claimed, QuotaQuestion, SettleEnd, Settled, Store, StoreError};

/// Calls that may be out of a partition that was not answered.
const UNANSWERED: usize = 4;

impl<S: Store, T: Transport> Lane<S, T> {
    /// Records what came back and asks for more: both wishes reach the store together, so that they
    /// share a transaction.
    pub(super) async fn exchange(&mut self, room: usize) -> Result<(), RunError> {
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
                false => self.store.release(releases).await,
            }
        };
        let claim = async {
            match wanted {
                0 => Ok(None),
                most => {
                    let (upstream, runner) = (Arc::clone(&self.upstream), self.runner);
                    let (lead, unanswered) = (self.lead.of_claim(&upstream), UNANSWERED);
                    let wish = Claim { upstream, runner, most, lead, unanswered, owned: false };
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
                self.outage.is_over(&self.shared.tell);
                Ok(())
            }
        }
    }

    pub(super) async fn keep_unsettled(
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
                    let ended = settled.jobs().all(|(_, end)| matches!(end, SettleEnd::Ended(_)));
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
            Ok(()) => self.take_released(unsent).await?,
            Err(error) => {
                self.unsettled.extend(unsent);
                return Err(error);
            }
        }
        settled
    }

    pub(super) async fn take_released(&mut self, unsent: Vec<End>) -> Result<(), StoreError> {
        let is_late = |end: &End| matches!(end, End::Unsent { handed_late: true, .. });
        if unsent.iter().any(is_late) {
            self.lead.was_short();
        }
        let (mut without_secret, mut without_token) = (BTreeMap::new(), BTreeSet::new());
        for end in unsent {
            let End::Unsent { release, job, lacks, .. } = end else { continue };
            self.shared.return_count();
            self.claim_due = true;
            let upstream = self.upstream.name.clone();
            self.shared.tell(&Event::Released { upstream, job, why: release.why });
            match lacks {
                Some(Lack::Secret { partition, detail }) => {
                    without_secret.insert(partition, detail);
                }
                Some(Lack::Token(owner)) => drop(without_token.insert(owner)),
                None => {}
            }
        }
        // A job needs a secret that is not there: its partition waits, no other does.
        for (partition, detail) in without_secret {
            self.hold(partition, MISSING_SECRET, detail).await?;
        }
        self.await_tokens(without_token).await
    }

    pub(super) fn take_claimed(
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
            self.lead.ease();
            self.idle_since = self.store.now().store;
        }
        for question in claimed.questions {
            self.ask(question);
        }
        for call in claimed.calls {
            self.start(call);
        }
        self.set_active(self.in_flight > 0);
        Ok(())
    }

    /// What it comes to is the store's: a lane that has to leave does not wait for it.
    fn ask(&self, question: QuotaQuestion) {
        let (way, asking) = (Arc::clone(&self.way), Arc::clone(&self.asking));
        tokio::spawn(async move {
            way.ask(question).await;
            drop(asking);
        });
    }

    pub(super) fn start(&mut self, call: Call) {
        let way = Arc::clone(&self.way);
        let random = self.rng.random();
        let ended = self.ended.clone();
        self.in_flight += 1;
        tokio::spawn(async move {
            let end = way.go(call, random).await;
            // The lane outlives its calls; where it is gone, the lease runs out.
            let _ = ended.send(end);
        });
    }
}
