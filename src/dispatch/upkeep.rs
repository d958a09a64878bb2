//! What a run does by the way: jobs that `[keep]` no longer keeps are removed, and the room that they took
//! is given back. Each step is so short that no slot is missed for it.

use std::time::Duration;

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
    /// Whether nothing is to be done for now.
    pub fn rests(&self, now: Timestamp) -> bool {
        matches!(self.stage, Stage::Rest(until) if now < until)
    }

    /// Does one step for these upstreams. At the end of a pass it tells how many jobs were removed, where
    /// any were. One whose quota file cannot be read keeps all: nobody knows for how long.
    pub async fn step<'n>(
        &mut self,
        store: &impl Store,
        library: &Library,
        upstreams: impl Iterator<Item = &'n String>,
    ) -> Result<Option<u64>, StoreError> {
        let now = store.now().store;
        if self.rests(now) {
            return Ok(None);
        }
        match &mut self.stage {
            Stage::Begin | Stage::Rest(_) => {
                let declared = upstreams.filter_map(|name| library.get(name).ok());
                let filters = declared.flat_map(|up| too_old(&up.name, &up.keep, now)).collect();
                self.stage = Stage::Prune(Box::new(Pass::new(filters, JOBS)));
            }
            Stage::Prune(pass) => match pass.step(store).await? {
                Some(pruned) => self.pruned += pruned,
                None => self.stage = Stage::Tidy,
            },
            Stage::Tidy => {
                store.tidy().await?;
                // Room that is free is used again: only where much came free is it worth the work.
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
