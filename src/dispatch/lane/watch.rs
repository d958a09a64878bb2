//! What a lane looks at every now and then, and what it does while the store cannot answer.

use std::sync::Arc;

use super::{LOOK_INTERVAL, Lane};
use crate::dispatch::call::Way;
use crate::dispatch::prepare::missing_for_all;
use crate::dispatch::reload::{Reloaded, reload};
use crate::dispatch::transport::Transport;
use crate::dispatch::{Event, RunError};
use crate::job::Columns;
use crate::store::views::{MISSING_SECRET, NO_TOKEN};
use crate::store::{Hold, Store, StoreError};

impl<S: Store, T: Transport> Lane<S, T> {
    /// Every now and then: has the quota file changed, is a missing secret there, is anything overdue?
    pub(super) async fn look_around(&mut self) -> Result<(), RunError> {
        let now = self.store.now().store;
        if now.since(self.looked_at) < LOOK_INTERVAL {
            return Ok(());
        }
        self.looked_at = now;
        let shared = &self.shared;
        let name = &self.upstream.name;
        if let Some(Reloaded { upstream, is_other_way }) =
            reload(&shared.library, name, &shared.tokens, &shared.tell)
        {
            self.way = Arc::new(Way::of(&self.way, Arc::clone(&upstream)));
            self.upstream = upstream;
            self.claim_due = true;
            if is_other_way {
                self.try_store(Self::let_tokens_go).await?;
            }
        }
        // A wait that nothing ends is looked at again all the same.
        self.claim_due |= self.next_at.is_none();
        self.try_store(Self::check_secrets).await
    }

    /// Holds the upstream where a secret that all its calls need is missing, and lets it go again once
    /// that is there.
    pub(super) async fn check_secrets(&mut self) -> Result<(), StoreError> {
        let missing = missing_for_all(&self.upstream, &self.shared.secrets);
        if let Some(error) = missing {
            if !self.held_for_secret {
                self.hold(Columns::new(), MISSING_SECRET, error.to_string()).await?;
                self.held_for_secret = true;
            }
            return Ok(());
        }
        let was_held = self.held_for_secret;
        self.held_for_secret = false;
        let is_first = self.shared.first_look(&self.upstream.name);
        if is_first {
            self.let_tokens_go().await?;
        }
        if was_held || is_first {
            let upstream = self.upstream.name.clone();
            if self.store.let_go(upstream.clone(), MISSING_SECRET.to_owned()).await? > 0 {
                self.claim_due = true;
                self.shared.tell(&Event::LetGo { upstream });
            }
        }
        Ok(())
    }

    /// Whether a token can be fetched by now is seen when the first call needs it.
    async fn let_tokens_go(&mut self) -> Result<(), StoreError> {
        let upstream = self.upstream.name.clone();
        self.store.let_go(upstream, NO_TOKEN.to_owned()).await.map(drop)
    }

    pub(super) async fn hold(
        &mut self,
        key: Columns,
        reason: &str,
        detail: String,
    ) -> Result<(), StoreError> {
        let (upstream, reason) = (self.upstream.name.clone(), reason.to_owned());
        let hold = Hold {
            upstream: upstream.clone(),
            key: key.clone(),
            reason: reason.clone(),
            detail: detail.clone(),
            until: None,
        };
        self.store.hold(hold).await?;
        let key = Some(key).filter(|key| !key.is_empty());
        self.shared.tell(&Event::Held { upstream, key, reason, detail, until: None });
        Ok(())
    }

    pub(super) async fn try_store(
        &mut self,
        work: impl AsyncFn(&mut Self) -> Result<(), StoreError>,
    ) -> Result<(), RunError> {
        match work(self).await {
            Ok(()) => Ok(()),
            Err(error) => self.trouble(error).await,
        }
    }

    /// The store cannot answer. Where that may pass, nothing new is sent until it does.
    pub(super) async fn trouble(&mut self, error: StoreError) -> Result<(), RunError> {
        let now = self.store.now();
        let lasted = self.outage.lasts(now.store);
        if !error.may_pass() || self.shared.has_given_up(now.wall, lasted) {
            return Err(error.into());
        }
        self.claim_due = true;
        self.outage.sit_out(&error, self.store.timeline(), &self.shared.tell).await;
        Ok(())
    }
}
