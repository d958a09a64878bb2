//! What goes from a desk to the store: all of it together, so that it shares a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::seat::Entry;
use super::{Clerk, Ended};
use crate::dispatch::transport::Transport;
use crate::job::JobId;
use crate::store::{Claim, Claimed, Release, Settled, Store, StoreError, Withdrawal};

/// Calls that one claim asks for, at most.
const MOST: usize = 64;

/// What there is to tell the store.
pub(super) struct Due {
    pub entries: Vec<Entry>,
    pub ended: Vec<Ended>,
    pub releases: Vec<Release>,
    pub withdrawals: Vec<Withdrawal>,
    /// Calls to be claimed.
    pub wanted: usize,
}

/// What the store said to it.
pub(super) struct Said {
    pub entered: Entered,
    pub settled: Result<Vec<Settled>, StoreError>,
    pub released: Result<(), StoreError>,
    pub withdrawn: Result<(), StoreError>,
    pub claimed: Result<Option<Claimed>, StoreError>,
}

/// The numbers of the jobs that were entered; and why others were not, which are entered another time.
pub(super) struct Entered {
    pub ids: Vec<Option<JobId>>,
    pub failed: Option<StoreError>,
}

impl<S: Store, T: Transport> Clerk<S, T> {
    /// Tells the store everything there is to tell it, and takes in what it says.
    pub(super) async fn exchange(&mut self) {
        // Once for all who were late together: they were late for the same reason.
        if std::mem::take(&mut self.was_late) {
            self.lead.was_short();
        }
        let due = self.due();
        let wanted = due.wanted;
        let said = self.say(&due).await;
        match self.take_in(due, said) {
            Some(error) => self.trouble(error).await,
            None => {
                self.outage.is_over(&self.house.tell);
                if wanted > 0 {
                    self.look_at_waiting().await;
                }
            }
        }
    }

    fn due(&mut self) -> Due {
        let entries = std::mem::take(&mut self.entries);
        let is_asked_for = self.claim_due || !entries.is_empty();
        let wanted = match !is_asked_for || self.is_over || self.awaits_token() {
            true => 0,
            // What is settled or given back lets others go.
            false => (self.waiting() + entries.len()).min(MOST),
        };
        Due {
            entries,
            ended: std::mem::take(&mut self.ended),
            releases: std::mem::take(&mut self.releases),
            withdrawals: std::mem::take(&mut self.withdrawals),
            wanted,
        }
    }

    async fn say(&self, due: &Due) -> Said {
        let (entered, settled, released, withdrawn, claimed) = tokio::join!(
            self.enter(&due.entries),
            self.settle(&due.ended),
            self.release(&due.releases),
            self.withdraw(&due.withdrawals),
            self.claim(due.wanted),
        );
        Said { entered, settled, released, withdrawn, claimed }
    }

    async fn enter(&self, entries: &[Entry]) -> Entered {
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
                Err(error) => return Entered { ids, failed: Some(error) },
            }
        }
        Entered { ids, failed: None }
    }

    async fn settle(&self, ended: &[Ended]) -> Result<Vec<Settled>, StoreError> {
        if ended.is_empty() {
            return Ok(Vec::new());
        }
        let settlements = ended.iter().map(|end| end.sent.settlement.clone()).collect();
        self.house.store().settle(Arc::clone(&self.upstream), settlements).await
    }

    async fn release(&self, releases: &[Release]) -> Result<(), StoreError> {
        if releases.is_empty() {
            return Ok(());
        }
        self.house.store().release(releases.to_vec()).await
    }

    async fn withdraw(&self, withdrawals: &[Withdrawal]) -> Result<(), StoreError> {
        if withdrawals.is_empty() {
            return Ok(());
        }
        self.house.store().withdraw(self.house.runner(), withdrawals.to_vec()).await
    }

    async fn claim(&self, most: usize) -> Result<Option<Claimed>, StoreError> {
        if most == 0 {
            return Ok(None);
        }
        let wish = Claim::new(Arc::clone(&self.upstream), self.house.runner(), most).owned();
        self.house
            .store()
            .claim(Claim { lead: self.lead.of_claim(&self.upstream), ..wish })
            .await
            .map(Some)
    }
}
