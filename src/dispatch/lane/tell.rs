//! What a lane's exchanges mean, told as events.

use std::collections::HashMap;
use std::time::Duration;

use super::Lane;
use crate::dispatch::Event;
use crate::dispatch::call::Sent;
use crate::dispatch::transport::Transport;
use crate::job::JobState;
use crate::store::{Claimed, SettleEnd, Settled, Store};

/// A wait is told from this length on.
const WORTH_TELLING: Duration = Duration::from_secs(1);

impl<S: Store, T: Transport> Lane<S, T> {
    pub(super) fn tell_settled(&mut self, sent: &Sent, settled: &Settled) {
        self.shared.count_call(sent.settlement.left);
        self.tell_jobs(sent, settled);
        let upstream = &self.upstream.name;
        if let Some(most) = settled.split {
            let (upstream, jobs) = (upstream.clone(), sent.parts.len());
            self.shared.tell(&Event::Split { upstream, jobs, most });
        }
        if let Some(block) = &settled.block {
            self.shared.tell(&Event::Blocked {
                upstream: upstream.clone(),
                limit: block.limit.clone(),
                key: block.key.clone(),
                until: self.store.now().to_wall(block.until),
                reason: block.reason,
            });
        }
        if let Some(hold) = &settled.hold {
            self.shared.tell(&Event::Held {
                upstream: upstream.clone(),
                key: Some(hold.key.clone()),
                reason: hold.reason.clone(),
                detail: hold.detail.clone(),
                until: hold.until.map(|until| self.store.now().to_wall(until)),
            });
        }
    }

    /// One event for each job that the call carried.
    fn tell_jobs(&self, sent: &Sent, settled: &Settled) {
        let settlement = &sent.settlement;
        let ends: HashMap<_, _> = settled.jobs().collect();
        let items: HashMap<_, _> = settlement.items.iter().map(|item| (item.job, item)).collect();
        for part in &sent.parts {
            let state = match ends.get(&part.job) {
                Some(SettleEnd::Ended(state)) => *state,
                Some(SettleEnd::Again(_) | SettleEnd::Late) | None => JobState::Queued,
            };
            self.shared.count_end(state);
            let item = items.get(&part.job);
            let reading = item.map_or(&settlement.reading, |item| &item.reading);
            self.shared.tell(&Event::Answered {
                upstream: self.upstream.name.clone(),
                job: part.job,
                attempt: part.attempt,
                url: part.url.clone(),
                status: item.map_or(settlement.status, |item| item.status),
                reason: reading.reason,
                detail: reading.detail.clone(),
                took: sent.took,
                state,
            });
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
