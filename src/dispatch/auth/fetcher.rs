//! Fetches tokens that calls of one upstream need: one fetcher an upstream, so that nobody fetches twice.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Failure, Fetched, Need, Owner, Tokens, fetch};
use crate::clock::{Now, Timeline, Timestamp};
use crate::quota::Upstream;
use crate::secrets::Secrets;

/// A fetch that ended.
#[derive(Debug)]
struct Arrived {
    owner: Owner,
    asked_at: Timestamp,
    fetched: Result<Fetched, Failure>,
}

/// What is on its way for one upstream. It goes with the fetcher.
#[derive(Debug)]
pub(in crate::dispatch) struct Fetcher {
    tokens: Arc<Tokens>,
    secrets: Arc<Secrets>,
    fetches: JoinSet<Arrived>,
    /// Came, and are not dealt with yet.
    arrived: Vec<Arrived>,
}

impl Fetcher {
    pub fn new(tokens: Arc<Tokens>, secrets: Arc<Secrets>) -> Fetcher {
        Fetcher { tokens, secrets, fetches: JoinSet::new(), arrived: Vec::new() }
    }

    /// Fetches what is needed.
    pub fn fetch(&mut self, upstream: &Arc<Upstream>, timeline: &Timeline) {
        for (owner, auth) in self.tokens.start(&upstream.name, timeline.now().store) {
            let (upstream, timeline) = (Arc::clone(upstream), timeline.clone());
            let secrets = Arc::clone(&self.secrets);
            self.fetches.spawn(async move {
                let asked_at = timeline.now().store;
                let fetched = fetch(&auth, &upstream, &owner, &secrets, &timeline).await;
                Arrived { owner, asked_at, fetched }
            });
        }
    }

    /// Waits until one has come; for ever, where none is on its way.
    pub async fn next(&mut self) {
        match self.fetches.join_next().await {
            Some(arrived) => self.arrived.extend(arrived.ok()),
            None => std::future::pending().await,
        }
    }

    /// What those that came mean; `random` makes jitter.
    pub fn take(&mut self, now: Now, mut random: impl FnMut() -> f64) -> Vec<Need> {
        while let Some(ended) = self.fetches.try_join_next() {
            self.arrived.extend(ended.ok());
        }
        let mut needs = Vec::new();
        while let Some(Arrived { owner, asked_at, fetched }) = self.arrived.pop() {
            needs.extend(self.tokens.take(&owner, asked_at, now, fetched, random()));
        }
        needs
    }
}
