//! What a lane's exchanges mean, told as events.

use std::collections::HashMap;

use super::Lane;
use crate::dispatch::call::Sent;
use crate::dispatch::transport::Transport;
use crate::dispatch::{Event, tell};
use crate::store::{Claimed, Settled, Store};

impl<S: Store, T: Transport> Lane<S, T> {
    pub(super) fn tell_settled(&mut self, sent: &Sent, settled: &Settled) {
        self.shared.count_call(sent.settlement.left);
        if sent.settlement.left && sent.settlement.reading.reason.is_refusal() {
            self.shared.count_refused();
        }
        let ends: HashMap<_, _> = settled.jobs().collect();
        for part in &sent.parts {
            self.shared.count_end(tell::state(ends.get(&part.job)));
        }
        for event in tell::settled(&self.upstream.name, self.store.now(), sent, settled) {
            self.shared.tell(&event);
        }
    }

    pub(super) fn tell_claimed(&mut self, claimed: &Claimed) {
        let upstream = &self.upstream.name;
        if claimed.expired > 0 {
            let jobs = claimed.expired;
            self.shared.tell(&Event::Expired { upstream: upstream.clone(), jobs });
        }
        for event in self.waits.claimed(upstream, self.store.now(), claimed) {
            self.shared.tell(&event);
        }
    }
}
