//! What holds a job or a partition back.

use serde_json::{Value, json};

use super::{columns, instant};
use crate::job::JobState;
use crate::store::views::{JobView, PartitionView, Turn, WaitView};

/// `waiting` of a job: null where nothing holds it back.
pub fn waiting(wait: Option<&WaitView>) -> Value {
    let Some(wait) = wait else { return Value::Null };
    json!({
        "limit": wait.limit, "until": instant(wait.until), "reason": wait.reason,
        "detail": wait.detail, "turn": wait.turn.name(),
    })
}

/// `why JOB --json`.
///
/// A job that is not held back by anything tells its last reason; one that expired, what would have
/// let it go and when.
pub fn job(job: &JobView) -> Value {
    let wait = job.waiting.as_ref();
    json!({
        "id": job.id, "upstream": job.upstream, "state": job.state, "turn": turn(job),
        "limit": wait.map_or_else(|| job.limit.clone(), |wait| wait.limit.clone()),
        "until": instant(wait.map_or(job.could_go_at, |wait| wait.until)),
        "reason": wait.map(|wait| wait.reason.clone()).or_else(|| job.reason.clone()),
        "detail": wait.map(|wait| wait.detail.clone()).or_else(|| job.detail.clone()),
        "key": columns(&job.partition),
    })
}

/// A queued job's turn; `None`: it is not queued.
pub fn turn(job: &JobView) -> Option<&'static str> {
    let queued = job.state == JobState::Queued;
    queued.then(|| job.waiting.as_ref().map_or(Turn::Ready, |wait| wait.turn).name())
}

/// An entry of `why UPSTREAM --json`, and of `partitions` in `status --json`.
pub fn partition(partition: &PartitionView) -> Value {
    let wait = &partition.wait;
    json!({
        "key": columns(&partition.key), "state": state(wait), "turn": wait.turn.name(),
        "limit": wait.limit, "until": instant(wait.until), "reason": wait.reason,
        "detail": wait.detail, "jobs": partition.jobs,
    })
}

/// `held` where a person is needed, else `blocked`.
pub fn state(wait: &WaitView) -> &'static str {
    if wait.turn == Turn::Held { "held" } else { "blocked" }
}

/// A key for people: `siteUrl=https://www.example.com/`, or nothing.
pub fn key(key: &crate::job::Columns) -> String {
    let pairs: Vec<_> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}
