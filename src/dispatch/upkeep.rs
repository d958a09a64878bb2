//! What a run does by the way: jobs that `[keep]` no longer keeps are removed, and the room that they took
//! is given back. Each step is so short that no slot is missed for it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::events::Event;
use super::shared::Shared;
use crate::clock::Timestamp;
use crate::quota::library::Library;
use crate::store::retention::{Pass, too_old};
use crate::store::{Store, StoreError};

/// From one pass to the next.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Jobs that are removed in one step.
const JOBS: u64 = 200;

/// Bytes that are given back in one step.
const ROOM: u64 = 1 << 20;

/// So long at most at the end of a run; the rest waits for the next one.
const AT_END: Duration = Duration::from_secs(2);

/// What is to be done next.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    stage: Stage,
    pruned: u64,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Begin,
    Prune(Box<Pass>),
    Tidy,
    GiveBack,
    /// Until then (store time).
    Rest(Timestamp),
}

impl Upkeep {
    /// Does one step for these upstreams. Tells whether it could be done: whatever the store says of this
    /// it says to the lanes too, which tell it, and the next step is the same.
    pub async fn step(
        &mut self,
        store: &impl Store,
        shared: &Shared,
        upstreams: &BTreeSet<String>,
    ) -> bool {
        let step = self.one(store, &shared.library, upstreams).await;
        if let Ok(Some(jobs)) = step {
            shared.tell(&Event::Pruned { jobs });
        }
        step.is_ok()
    }

    /// Goes on for a while at the end of a run: one from cron may be over before a step came.
    pub async fn at_end(
        &mut self,
        store: &impl Store,
        shared: &Shared,
        upstreams: &BTreeSet<String>,
    ) {
        let until = store.now().store + AT_END;
        loop {
            let now = store.now().store;
            let over = now >= until || self.rests(now) || *shared.leave.borrow();
            if over || !self.step(store, shared, upstreams).await {
                return;
            }
        }
    }

    /// Whether nothing is to be done for now.
    fn rests(&self, now: Timestamp) -> bool {
        matches!(self.stage, Stage::Rest(until) if now < until)
    }

    /// At the end of a pass it tells how many jobs were removed, where any were. An upstream whose quota
    /// file cannot be read keeps all: nobody knows for how long.
    async fn one(
        &mut self,
        store: &impl Store,
        library: &Library,
        upstreams: &BTreeSet<String>,
    ) -> Result<Option<u64>, StoreError> {
        let now = store.now().store;
        if self.rests(now) {
            return Ok(None);
        }
        match &mut self.stage {
            Stage::Begin | Stage::Rest(_) => {
                let declared = upstreams.iter().filter_map(|name| library.get(name).ok());
                let filters = declared.flat_map(|up| too_old(&up.name, &up.keep, now)).collect();
                self.stage = Stage::Prune(Box::new(Pass::new(filters, JOBS)));
            }
            Stage::Prune(pass) => match pass.step(store).await? {
                Some(pruned) => self.pruned += pruned,
                None => self.stage = Stage::Tidy,
            },
            Stage::Tidy => {
                store.tidy().await?;
                // Free room is used again: only where some came free is it worth the work.
                self.stage = if self.pruned > 0 { Stage::GiveBack } else { rest(now) };
            }
            Stage::GiveBack => {
                if store.give_back(ROOM).await? == 0 {
                    self.stage = rest(now);
                    return Ok(Some(std::mem::take(&mut self.pruned)));
                }
            }
        }
        Ok(None)
    }
}

fn rest(now: Timestamp) -> Stage {
    Stage::Rest(now + INTERVAL)
}
