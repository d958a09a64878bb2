//! What a lane's exchanges mean, told as events.

use std::collections::HashMap;
use std::time::Duration;

use super::Lane;
use crate::dispatch::call::Sent;
use crate::dispatch::transport::Transport;
use crate::dispatch::{Event, tell};
use crate::store::{Claimed, Settled, Store};

/// A wait is told from this length on.
const WORTH_TELLING: Duration = Duration::from_secs(1);

impl<S: Store, T: Transport> Lane<S, T> {
    pub(super) fn tell_settled(&mut self, sent: &Sent, settled: &Settled) {
        self.shared.count_call(sent.settlement.left);
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
        if let Some(nanos) = claimed.stepped {
            self.shared.tell(&Event::ClockStepped { nanos });
        }
        if claimed.expired > 0 {
            let jobs = claimed.expired;
            self.shared.tell(&Event::Expired { upstream: upstream.clone(), jobs });
        }
        let now = self.store.now();
        let Some(next_at) = self.next_at.filter(|at| at.since(now.store) >= WORTH_TELLING) else {
            return;
        };
        if claimed.calls.is_empty() && self.told_until != Some(next_at) {
            self.told_until = Some(next_at);
            self.shared.tell(&Event::Waiting {
                upstream: upstream.clone(),
                until: now.to_wall(next_at),
                limit: claimed.limit.clone(),
            });
        }
    }
}
