//! What those who still wait are told: why, until when, and that it is over where it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::seat::Word;
use super::{Clerk, House, LOOK_INTERVAL};
use crate::clock::Timestamp;
use crate::dispatch::prepare::missing_for_all;
use crate::dispatch::reload::{Reloaded, reload};
use crate::dispatch::transport::Transport;
use crate::dispatch::{Event, call::Way};
use crate::job::JobId;
use crate::store::views::{JobView, MISSING_SECRET, Turn};
use crate::store::{Filter, Store};

/// While more wait than this, they are looked at only every so often.
const FEW: usize = 32;

const PAUSE: Duration = Duration::from_millis(100);

/// When those who wait were looked at last.
#[derive(Debug, Default)]
pub(super) struct Look {
    at: Option<Timestamp>,
    /// A hold for a secret that is there was let go: once is enough.
    let_go: bool,
}

impl<S: Store, T: Transport> Clerk<S, T> {
    /// After a claim: what those who got no call wait for.
    pub(super) async fn look_at_waiting(&mut self) {
        let waiting = self.guests.values().filter(|guest| guest.call.is_none());
        let ids: Vec<JobId> = waiting.filter_map(|guest| guest.job).collect();
        let now = self.house.store().now().store;
        let is_fresh = self.look.at.is_some_and(|at| now.since(at) < PAUSE);
        if ids.is_empty() || (ids.len() > FEW && is_fresh) {
            return;
        }
        self.look.at = Some(now);
        // Where the store cannot answer just now, the next look will tell.
        let Ok(views) = self.views(ids).await else { return };
        self.let_secret_go(&views).await;
        for view in views {
            self.told(view);
        }
    }

    async fn views(&self, ids: Vec<JobId>) -> Result<Vec<JobView>, crate::store::StoreError> {
        let filter = Filter { ids, ..Filter::default() };
        let declared = BTreeMap::from([(self.upstream.name.clone(), Arc::clone(&self.upstream))]);
        self.house.store().jobs(filter, declared).await
    }

    /// Tells one that waits what is new.
    fn told(&mut self, view: JobView) {
        let Some(ticket) = self.tickets.get(&view.id).copied() else { return };
        if view.state.is_final() {
            self.tickets.remove(&view.id);
            if let Some(guest) = self.guests.remove(&ticket) {
                let _ = guest.words.send(Word::Ended(Box::new(view)));
            }
            return;
        }
        let Some(guest) = self.guests.get_mut(&ticket) else { return };
        if guest.told.as_ref() != Some(&view.waiting) {
            guest.told = Some(view.waiting.clone());
            let _ = guest.words.send(Word::Waits(view.waiting));
        }
    }

    /// What another process holds for a secret that this one has goes on.
    async fn let_secret_go(&mut self, views: &[JobView]) {
        let holds = |view: &JobView| {
            let held = view.waiting.as_ref().filter(|wait| wait.turn == Turn::Held);
            held.is_some_and(|wait| wait.reason == MISSING_SECRET)
        };
        let is_there = missing_for_all(&self.upstream, &self.house.secrets).is_none();
        if self.look.let_go || !is_there || !views.iter().any(holds) {
            return;
        }
        self.look.let_go = true;
        let upstream = self.upstream.name.clone();
        let let_go = self.house.store().let_go(upstream.clone(), MISSING_SECRET.to_owned()).await;
        if let_go.is_ok_and(|count| count > 0) {
            self.claim_due = true;
            (self.house.tell)(&Event::LetGo { upstream });
        }
    }

    /// Every now and then: has the quota file changed, did a process die, is anything overdue?
    pub(super) async fn look_around(&mut self, now: Timestamp) {
        self.look_at = now + LOOK_INTERVAL;
        self.claim_due |= self.next_at.is_none();
        if let Ok(swept) = self.house.store().sweep().await {
            self.claim_due |= swept.returned + swept.unsure + swept.expired > 0;
        }
        let House { library, tokens, tell, .. } = &self.house;
        if let Some(Reloaded { upstream, .. }) = reload(library, &self.upstream.name, tokens, tell)
        {
            self.upstream = Arc::clone(&upstream);
            self.way.send_modify(|way| *way = Arc::new(Way::of(way, upstream)));
            self.claim_due = true;
        }
    }
}
