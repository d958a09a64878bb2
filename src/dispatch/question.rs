//! The upstream is asked what is left. Whatever comes of it, nobody waits for long: our own count stands.

use std::sync::Arc;

use serde_json::Value;

use super::Event;
use super::auth::{Given, Owner};
use super::call::Way;
use super::prepare::prepare_question;
use super::transport::{Received, Transport};
use crate::quota::QuotaCall;
use crate::reading::remaining::whole;
use crate::reading::{Answer, read};
use crate::store::{QUOTA_PATIENCE, QuotaAnswer, QuotaQuestion, Store};

impl<S: Store, T: Transport> Way<S, T> {
    /// Asks at the slot, tells what came, and has the store take note of it.
    pub async fn ask(&self, question: QuotaQuestion) {
        let Some(quota) = self.upstream.quota_call.clone() else { return };
        let remaining = self.answer(&quota, &question).await;
        let answer = QuotaAnswer {
            partition: question.partition.clone(),
            slot_at: question.slot_at,
            mark: question.mark,
            remaining: remaining.as_ref().ok().copied(),
        };
        let remaining = remaining.map_err(|why| self.secrets.redactor().redact(&why).into_owned());
        (self.tell)(&Event::QuotaTold {
            upstream: self.upstream.name.clone(),
            limit: quota.limit,
            key: question.partition,
            remaining,
        });
        // Where the store cannot take it, the wait for it ends by itself, and it is asked again in time.
        let _ = self.store.quota_told(Arc::clone(&self.upstream), answer).await;
    }

    async fn answer(&self, quota: &QuotaCall, question: &QuotaQuestion) -> Result<u64, String> {
        let token = self.token_of(question);
        let token = token.as_ref().map(|token| &*token.value);
        let prepared =
            prepare_question(&self.upstream, quota, &question.partition, &self.secrets, token);
        let prepared = prepared.map_err(|error| error.to_string())?;
        let timeline = self.store.timeline();
        timeline.sleep_until(question.slot_at).await;
        let timeout = self.upstream.request.timeout.min(QUOTA_PATIENCE);
        let received = self.transport.send(prepared, timeout, timeline).await;
        let received = received.map_err(|silence| silence.detail)?;
        self.figure(quota, &received)
    }

    /// The token of the partition's credential, where the upstream has any.
    fn token_of(&self, question: &QuotaQuestion) -> Option<Given> {
        let auth = self.upstream.auth.as_ref()?;
        let owner = Owner::of(&self.upstream, auth, question.partition.get("credential"));
        let now = self.store.now().store;
        self.tokens.give(&owner, auth, now, question.slot_at)
    }

    /// The figure of a success; else what the answer says.
    fn figure(&self, quota: &QuotaCall, received: &Received) -> Result<u64, String> {
        let reading = read(
            Some(&self.upstream),
            &Answer {
                method: &quota.method,
                url: &quota.url,
                received_at: received.received_at,
                status: received.status,
                headers: &received.headers,
                body: &received.body,
            },
        );
        if !reading.reason.is_success() {
            return Err(format!("{}: {}", reading.reason, reading.detail));
        }
        let body: Option<Value> = serde_json::from_slice(&received.body).ok();
        let figure = body.as_ref().and_then(|body| body.pointer(&quota.remaining)).and_then(whole);
        figure.ok_or_else(|| format!("the answer has no number at {}", quota.remaining))
    }
}
