//! A queued job's place in the line of its partition, and about when its turn comes.

use super::finish::{Demand, Finish, finish};
use crate::clock::Timestamp;
use crate::quota::{Cost, Limit, LimitRule, Upstream};
use crate::store::views::{Ahead, JobView, LimitView, Turn, UpstreamView};

/// `312 jobs go before it`; `None`: it is the next one.
///
/// ```
/// use paceline::report::turn::before;
/// use paceline::store::views::Ahead;
///
/// assert_eq!(before(Ahead { jobs: 312, more: false }).unwrap(), "312 jobs go before it");
/// assert_eq!(before(Ahead { jobs: 10_000, more: true }).unwrap(), "10000 jobs or more go before it");
/// assert_eq!(before(Ahead { jobs: 0, more: false }), None);
/// ```
pub fn before(ahead: Ahead) -> Option<String> {
    match ahead {
        Ahead { jobs: 0, more: false } => None,
        Ahead { jobs: 1, more: false } => Some("1 job goes before it".to_owned()),
        Ahead { jobs, more: false } => Some(format!("{jobs} jobs go before it")),
        Ahead { jobs, more: true } => Some(format!("{jobs} jobs or more go before it")),
    }
}

/// About when its turn comes (wall time), by the declared limits alone; `None`: it has no line before it, or
/// the units that the line takes are not known.
pub fn turn<'u>(
    upstream: &'u Upstream,
    view: &UpstreamView,
    job: &JobView,
    now: Timestamp,
) -> Option<Finish<'u>> {
    let ahead = job.ahead.filter(|ahead| ahead.jobs > 0)?;
    if job.waiting.as_ref().is_some_and(|wait| wait.turn == Turn::Held) {
        return None;
    }
    let demand = |limit: &'u Limit| {
        let own = |shown: &&LimitView| {
            let is_its = |(name, value): (&String, &String)| job.partition.get(name) == Some(value);
            shown.name == limit.name && shown.key.iter().all(is_its)
        };
        let units = units(upstream, limit, ahead.jobs + 1)?;
        Some(of_limit(limit, limit.rule_for(&job.partition), view.limits.iter().find(own), units))
    };
    let demands: Vec<Demand<'u>> = upstream.limits.iter().map(demand).collect::<Option<_>>()?;
    let found = finish(&demands, now);
    Some(Finish { at: found.at.max(job.due_at), ..found })
}

/// What so many jobs take of a limit; `None`: each takes its own.
fn units(upstream: &Upstream, limit: &Limit, jobs: u64) -> Option<u64> {
    match (&limit.cost, &upstream.batch) {
        (Cost::Column(_), _) => None,
        (Cost::Calls, Some(batch)) => Some(jobs.div_ceil(batch.max_items as u64)),
        _ => Some(jobs),
    }
}

fn of_limit<'u>(
    limit: &'u Limit,
    rule: &'u LimitRule,
    shown: Option<&LimitView>,
    units: u64,
) -> Demand<'u> {
    let blocked = shown.and_then(|shown| shown.blocked_until);
    let next_at = match rule {
        LimitRule::Rate(_) => blocked.max(shown.and_then(|shown| shown.next_at)),
        _ => blocked,
    };
    // What is left of a window that a refusal closed is not granted.
    let counted = shown.filter(|_| blocked.is_none());
    let left = counted.and_then(|shown| {
        let ours = shown.amount.saturating_sub(shown.reserve).saturating_sub(shown.spent?);
        Some(shown.remaining.map_or(ours, |told| told.min(ours)))
    });
    Demand { limit: &limit.name, rule, units, left, next_at }
}
