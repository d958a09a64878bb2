//! What a settled call and a claim mean, as events.

use std::collections::HashMap;
use std::time::Duration;

use super::Event;
use super::call::Sent;
use crate::clock::{Now, Timestamp};
use crate::job::JobState;
use crate::store::{Claimed, SettleEnd, Settled};

/// The state that a settle left a job in; `queued` where it says nothing of it.
pub(super) fn state(end: Option<&SettleEnd>) -> JobState {
    end.map_or(JobState::Queued, |end| end.state())
}

/// One event for each job that the call carried, and one for whatever it split, closed or held.
pub(super) fn settled(upstream: &str, now: Now, sent: &Sent, settled: &Settled) -> Vec<Event> {
    let mut events = answered(upstream, sent, settled);
    let upstream = || upstream.to_owned();
    if let Some(most) = settled.split {
        events.push(Event::Split { upstream: upstream(), jobs: sent.parts.len(), most });
    }
    if let Some(block) = &settled.block {
        events.push(Event::Blocked {
            upstream: upstream(),
            limit: block.limit.clone(),
            key: block.key.clone(),
            until: now.to_wall(block.until),
            reason: block.reason,
        });
    }
    if let Some(hold) = &settled.hold {
        events.push(Event::Held {
            upstream: upstream(),
            key: Some(hold.key.clone()),
            reason: hold.reason.clone(),
            detail: hold.detail.clone(),
            until: hold.until.map(|until| now.to_wall(until)),
        });
    }
    events
}

fn answered(upstream: &str, sent: &Sent, settled: &Settled) -> Vec<Event> {
    let settlement = &sent.settlement;
    let ends: HashMap<_, _> = settled.jobs().collect();
    let items: HashMap<_, _> = settlement.items.iter().map(|item| (item.job, item)).collect();
    let answered = sent.parts.iter().map(|part| {
        let item = items.get(&part.job);
        let reading = item.map_or(&settlement.reading, |item| &item.reading);
        Event::Answered {
            upstream: upstream.to_owned(),
            job: part.job,
            attempt: part.attempt,
            url: part.url.clone(),
            status: item.map_or(settlement.status, |item| item.status),
            reason: reading.reason,
            detail: reading.detail.clone(),
            took: sent.took,
            state: state(ends.get(&part.job)),
        }
    });
    answered.collect()
}

/// A wait is told from this length on.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Until when nothing goes, as it was told last.
#[derive(Debug, Default)]
pub(super) struct Waits {
    told_until: Option<Timestamp>,
}

impl Waits {
    /// That the clock was set, and that nothing goes for a while: each once.
    pub fn claimed(
        &mut self,
        upstream: &str,
        now: Now,
        claimed: &Claimed,
    ) -> impl Iterator<Item = Event> + use<> {
        let stepped = claimed.stepped.map(|nanos| Event::ClockStepped { nanos });
        stepped.into_iter().chain(self.waiting(upstream, now, claimed))
    }

    fn waiting(&mut self, upstream: &str, now: Now, claimed: &Claimed) -> Option<Event> {
        let is_long = |at: &Timestamp| at.since(now.store) >= WORTH_TELLING;
        let next_at = claimed.next_at.filter(is_long)?;
        let is_new = claimed.calls.is_empty() && self.told_until.replace(next_at) != Some(next_at);
        is_new.then(|| Event::Waiting {
            upstream: upstream.to_owned(),
            until: now.to_wall(next_at),
            limit: claimed.limit.clone(),
        })
    }
}
