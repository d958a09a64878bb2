//! The tokens that calls of the upstream need: fetched by the lane alone, so that nobody fetches twice.

use rand::RngExt as _;
use std::collections::BTreeSet;

use super::Lane;
use crate::dispatch::Event;
use crate::dispatch::auth::{Need, Owner, Trouble};
use crate::dispatch::transport::Transport;
use crate::job::Columns;
use crate::store::views::NO_TOKEN;
use crate::store::{Hold, Store, StoreError};

impl<S: Store, T: Transport> Lane<S, T> {
    /// Whether a token is on its way that a call needs: until it is there, nothing is claimed.
    pub(super) fn awaits_token(&self) -> bool {
        self.shared.tokens.awaits(&self.upstream.name)
    }

    /// Takes in what was fetched, and fetches what is needed.
    pub(super) async fn look_after_tokens(&mut self) -> Result<(), StoreError> {
        let rng = &mut self.rng;
        for need in self.fetcher.take(self.store.now(), || rng.random()) {
            self.claim_due = true;
            match need {
                Need::None { was_in_trouble: true } => self.go_on().await?,
                Need::Trouble { trouble, has_token } => {
                    self.tell_trouble(&trouble);
                    if !has_token {
                        self.stop(trouble).await?;
                    }
                }
                Need::None { .. } => {}
            }
        }
        self.fetcher.fetch(&self.upstream, self.store.timeline());
        Ok(())
    }

    /// Calls came back that found no token. Where it is known that none comes, they wait in the store.
    pub(super) async fn await_tokens(&mut self, owners: BTreeSet<Owner>) -> Result<(), StoreError> {
        for owner in owners {
            let now = self.store.now().store;
            if let Some(trouble) = self.shared.tokens.trouble(&owner, now) {
                self.stop(trouble).await?;
            }
        }
        Ok(())
    }

    /// Nothing of the owner goes until its token is tried again, or a person has done something.
    async fn stop(&mut self, trouble: Trouble) -> Result<(), StoreError> {
        let Trouble { owner, until, detail } = trouble;
        let key: Columns =
            owner.credential.into_iter().map(|name| ("credential".to_owned(), name)).collect();
        if until.is_none() {
            return self.hold(key, NO_TOKEN, detail).await;
        }
        let (upstream, reason) = (owner.upstream, NO_TOKEN.to_owned());
        self.store.hold(Hold { upstream, key, reason, detail, until }).await.map(drop)
    }

    fn tell_trouble(&self, trouble: &Trouble) {
        // A hold is told as one.
        if trouble.until.is_some() {
            let Owner { upstream, credential } = trouble.owner.clone();
            let detail = trouble.detail.clone();
            self.shared.tell(&Event::NoToken { upstream, credential, detail });
        }
    }

    async fn go_on(&mut self) -> Result<(), StoreError> {
        let upstream = self.upstream.name.clone();
        if self.store.let_go(upstream.clone(), NO_TOKEN.to_owned()).await? > 0 {
            self.shared.tell(&Event::LetGo { upstream });
        }
        Ok(())
    }
}
