//! What a settled call means, as events.

use std::collections::HashMap;

use super::Event;
use super::call::Sent;
use crate::clock::Now;
use crate::job::JobState;
use crate::store::{SettleEnd, Settled};

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
