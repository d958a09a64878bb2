//! A call on its way: from the moment its turn has come it counts as sent, whoever still waits for it.

use std::sync::Arc;

use super::typed::Typed;
use super::{Error, OurErrand, OurGranted};
use crate::clock::Timestamp;
use crate::dispatch::call::{Ready, Sent, unanswered_told};
use crate::dispatch::transport::Spool;
use crate::job::JobId;
use crate::store::{Call, Settled, Settlement, Store as _};

/// Of one whose answer nobody waited for.
const LEFT: &str = "whoever waited for its answer went away: it may have been sent";

/// Dropped before it is settled, it ends as one that got no answer.
pub(super) struct Flight<'e> {
    errand: &'e mut OurErrand,
    granted: OurGranted,
    sent_at: Timestamp,
    is_over: bool,
}

impl<'e> Flight<'e> {
    pub fn begin(errand: &'e mut OurErrand, granted: OurGranted) -> Flight<'e> {
        let sent_at = granted.way.store.now().store;
        Flight { errand, granted, sent_at, is_over: false }
    }

    fn call(&self) -> &Call {
        &self.granted.call
    }

    pub fn job(&self) -> JobId {
        self.call().job.id
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.call().job.attempt
    }

    /// Sends it with that body, where one is given, and those headers, and reads what comes back.
    pub async fn send(
        &mut self,
        body: Option<&[u8]>,
        typed: &Typed,
        spool: Arc<dyn Spool>,
    ) -> Box<Sent> {
        let (way, call) = (Arc::clone(&self.granted.way), self.granted.call.clone());
        let Some(Ready { mut prepared, token }) = self.granted.ready.take() else {
            let settlement = unanswered_told(&call, false, "it was not prepared".to_owned());
            return Box::new(Sent::of(&call, settlement, std::time::Duration::ZERO));
        };
        let bodyless = call.job.redirect.as_ref().is_some_and(|redirect| redirect.as_get);
        if let Some(body) = body.filter(|_| !bodyless) {
            prepared.set_body(body.to_vec());
        }
        typed.fill(&mut prepared.headers);
        prepared.spool = Some(spool);
        way.send(call, Ready { prepared, token }, self.granted.random).await
    }

    /// Ends it. Its job may go again.
    pub async fn settle(mut self, sent: Box<Sent>) -> Result<Settled, Error> {
        self.is_over = true;
        let settled = self.errand.seat.settle(sent, true).await.map_err(|_| Error::Closed)?;
        settled.map_err(Error::Store)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let settlement = unanswered_told(self.call(), true, LEFT.to_owned());
            let now = self.granted.way.store.now().store;
            let settlement =
                Settlement { sent_at: self.sent_at, random: self.granted.random, ..settlement };
            let sent = Sent::of(self.call(), settlement, now.since(self.sent_at));
            drop(self.errand.seat.settle(Box::new(sent), false));
        }
    }
}
