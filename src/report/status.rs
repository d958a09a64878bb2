//! `status` as JSON.

use serde_json::{Value, json};

use super::{columns, instant, tally, why};
use crate::clock::Timestamp;
use crate::job::JobState;
use crate::store::views::{LimitView, Tally, Turn, UpstreamView};

/// An upstream that has jobs: as it stands, or why that cannot be told.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its view, or what is wrong with its quota file.
    pub view: Result<UpstreamView, String>,
    /// Its jobs.
    pub jobs: Tally,
}

/// `status --json`.
pub fn status(store: &str, jobs: &Tally, upstreams: &[Known]) -> Value {
    json!({
        "store": store,
        "jobs": tally(jobs),
        "next_at": instant(next_at(upstreams)),
        "upstreams": upstreams.iter().map(upstream).collect::<Vec<_>>(),
    })
}

/// The jobs of these upstreams together.
pub fn sum(upstreams: &[Known]) -> Tally {
    let mut sum: Tally = JobState::ALL.into_iter().map(|state| (state, 0)).collect();
    for known in upstreams {
        for (state, jobs) in &known.jobs {
            *sum.entry(*state).or_default() += jobs;
        }
    }
    sum
}

/// When the first of them can go next.
pub fn next_at(upstreams: &[Known]) -> Option<Timestamp> {
    upstreams.iter().filter_map(|known| known.view.as_ref().ok()?.next_at).min()
}

/// Whether all that waits of it waits for a person: what its limits grant next is of no use then.
pub fn is_all_held(view: &UpstreamView) -> bool {
    is_held(view) && view.next_at.is_none()
}

/// Whether a person is needed for any of it.
pub(crate) fn is_held(view: &UpstreamView) -> bool {
    view.held.is_some() || view.partitions.iter().any(|partition| partition.wait.turn == Turn::Held)
}

/// One entry of `upstreams`.
pub fn upstream(known: &Known) -> Value {
    match &known.view {
        Ok(view) => json!({
            "name": known.name, "held": is_held(view), "jobs": tally(&view.jobs),
            "held_reason": view.held.as_ref().map(|held| held.reason.clone()),
            "held_detail": view.held.as_ref().map(|held| held.detail.clone()),
            "next_at": instant(view.next_at),
            "limits": view.limits.iter().map(limit).collect::<Vec<_>>(),
            "partitions": view.partitions.iter().map(why::partition).collect::<Vec<_>>(),
            "omitted": view.omitted,
        }),
        Err(problem) => json!({
            "name": known.name, "held": false, "jobs": tally(&known.jobs), "limits": [],
            "partitions": [], "problem": problem,
        }),
    }
}

/// One entry of `limits`.
pub fn limit(limit: &LimitView) -> Value {
    json!({
        "name": limit.name, "kind": limit.kind, "key": columns(&limit.key),
        "spent": limit.spent, "amount": limit.amount, "remaining": limit.remaining,
        "resets_at": instant(limit.resets_at), "next_at": instant(limit.next_at),
        "time_zone": limit.zone.map(|zone| zone.name()),
        "blocked_until": instant(limit.blocked_until), "reason": limit.reason,
        "detail": limit.detail, "effective_rate": limit.effective_rate,
        "slowed": limit.slowed, "full_at": instant(limit.full_at),
        "declared_rate": limit.declared_rate, "restored": limit.restored,
    })
}

/// Jobs that are still to be sent or answered.
pub fn open(jobs: &Tally) -> u64 {
    let of = |state| jobs.get(&state).copied().unwrap_or(0);
    of(JobState::Queued) + of(JobState::Running)
}
