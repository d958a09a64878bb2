//! What people do: hold, resume, retry, cancel, resolve, set, prune, spend.

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, named_params, params_from_iter};

use super::dedupe::Key;
use super::instances::{Instances, to_json};
use super::usage::stored;
use super::writer::Txn;
use super::{dedupe, places, queries, sweep};
use crate::clock::Timestamp;
use crate::job::{Columns, JobId, JobState};
use crate::quota::decide::Usage;
use crate::quota::rolling::Entries;
use crate::quota::{Limit, LimitRule, Upstream};
use crate::store::{Act, Filter, Hold, Resolution, StoreError};

pub(super) fn hold(txn: &Txn<'_>, hold: &Hold) -> rusqlite::Result<u64> {
    let id = places::upstream_id(txn.conn, &hold.upstream)?;
    let partitions = places::matching(txn.conn, id, &hold.key)?;
    let now = txn.now.store.as_nanos();
    if let Some(until) = hold.until {
        partitions.iter().try_for_each(|(partition, columns)| {
            pause(txn, id, *partition, columns, (hold, until))
        })?;
    } else if hold.key.is_empty() {
        let mut set = txn.conn.prepare_cached(queries::UPSTREAM_HOLD)?;
        set.execute(named_params! {
            ":id": id, ":now": now, ":reason": hold.reason, ":detail": hold.detail,
        })?;
    } else {
        let mut set = txn.conn.prepare_cached(queries::PARTITION_HOLD)?;
        for partition in partitions.keys() {
            set.execute(named_params! {
                ":id": partition, ":now": now, ":reason": hold.reason, ":detail": hold.detail,
                ":until": None::<i64>,
            })?;
        }
    }
    places::bump_block_seq(txn.conn)?;
    Ok(partitions.values().collect::<BTreeSet<_>>().len() as u64)
}

/// Closes a partition's own gate until an instant.
fn pause(
    txn: &Txn<'_>,
    upstream_id: i64,
    partition: i64,
    columns: &Columns,
    (hold, until): (&Hold, Timestamp),
) -> rusqlite::Result<()> {
    let mut close = txn.conn.prepare_cached(queries::GATE_PAUSE)?;
    let gate: Option<i64> = close
        .query_row(
            named_params! {
                ":upstream": upstream_id, ":key": to_json(columns), ":until": until.as_nanos(),
                ":now": txn.now.store.as_nanos(), ":reason": hold.reason, ":detail": hold.detail,
            },
            |row| row.get(0),
        )
        .optional()?;
    // What the upstream itself closed for longer stays as it is.
    let Some(gate) = gate else { return Ok(()) };
    let mut set = txn.conn.prepare_cached(queries::PARTITION_GATE)?;
    set.execute(named_params! { ":id": partition, ":gate": gate })?;
    if places::has_waiters(txn.conn, gate)? {
        places::wake_at(txn, gate, Some(until))?;
    }
    Ok(())
}

/// Opens what was held. Each partition is left half open, so that one probe goes before the rest, and
/// with one refusal counted, so that a second of the kind holds it again at once.
/// Where a reason is given, only what is held for it.
pub(super) fn resume(
    txn: &Txn<'_>,
    upstream: &str,
    key: &Columns,
    reason: Option<&str>,
) -> rusqlite::Result<u64> {
    let Some(row) = places::upstream(txn.conn, upstream)? else { return Ok(0) };
    let mut resumed = 0;
    let fits = |held: &places::HeldRow| reason.is_none_or(|reason| held.reason == reason);
    if key.is_empty() && row.held.as_ref().is_some_and(fits) {
        txn.conn.prepare_cached(queries::UPSTREAM_RESUME)?.execute([row.id])?;
        resumed += 1;
    }
    let now = txn.now.store.as_nanos();
    let mut keys = BTreeSet::new();
    if let Some(reason) = reason {
        resumed += unpause(txn, row.id, reason)?;
    }
    for (partition, columns) in places::matching(txn.conn, row.id, key)? {
        let mut query = txn.conn.prepare_cached(queries::PARTITION_RESUME)?;
        if query.execute(named_params! { ":id": partition, ":reason": reason })? == 0 {
            continue;
        }
        // All lines of a key are one partition to people.
        resumed += u64::from(keys.insert(columns.clone()));
        let mut open = txn.conn.prepare_cached(queries::GATE_HALF_OPEN)?;
        let gate: i64 = open.query_row(
            named_params! { ":upstream": row.id, ":key": to_json(&columns), ":now": now },
            |row| row.get(0),
        )?;
        let mut set = txn.conn.prepare_cached(queries::PARTITION_GATE)?;
        set.execute(named_params! { ":id": partition, ":gate": gate })?;
        places::refresh(txn, partition)?;
    }
    places::bump_news(txn.conn)?;
    Ok(resumed)
}

/// Opens the gates that were closed for this reason until a later instant.
fn unpause(txn: &Txn<'_>, upstream_id: i64, reason: &str) -> rusqlite::Result<u64> {
    let mut open = txn.conn.prepare_cached(queries::GATES_UNPAUSE)?;
    let now = txn.now.store.as_nanos();
    let params = named_params! { ":upstream": upstream_id, ":reason": reason, ":now": now };
    let gates = open.query_map(params, |row| row.get(0))?;
    let gates = gates.collect::<rusqlite::Result<Vec<i64>>>()?;
    gates.iter().try_for_each(|gate| places::wake_now(txn, *gate))?;
    Ok(gates.len() as u64)
}

/// The states that an act changes.
fn acts_on(act: &Act) -> &'static [JobState] {
    match act {
        Act::Cancel | Act::Set { .. } => &[JobState::Queued],
        Act::Resolve(_) => &[JobState::Unsure],
        Act::Retry => &[
            JobState::Done,
            JobState::Failed,
            JobState::Expired,
            JobState::Cancelled,
            JobState::Unsure,
        ],
        Act::Prune => &[JobState::Done, JobState::Failed, JobState::Expired, JobState::Cancelled],
    }
}

/// Whether it queues jobs again, which may be done in steps.
pub(super) fn queues_again(act: &Act) -> bool {
    matches!(act, Act::Retry | Act::Resolve(Resolution::Queued))
}

/// The filter's condition with its values, narrowed to what the act changes; `None`: nothing.
fn narrowed(filter: &Filter, act: &Act) -> Option<(String, Vec<Value>)> {
    let allowed = acts_on(act);
    let wanted: Vec<JobState> = match filter.states.is_empty() {
        true => allowed.to_vec(),
        false => filter.states.iter().copied().filter(|state| allowed.contains(state)).collect(),
    };
    if wanted.is_empty() {
        return None;
    }
    let (mut condition, values) = queries::job_filter(&Filter { states: wanted, ..filter.clone() });
    if queues_again(act) {
        condition = format!("{condition} AND {}", queries::NOT_OWNED);
    }
    Some((condition, values))
}

pub(super) fn count(conn: &Connection, filter: &Filter, act: &Act) -> rusqlite::Result<u64> {
    let Some((condition, values)) = narrowed(filter, act) else { return Ok(0) };
    let sql = queries::job_count(&condition);
    let count: i64 = conn.query_row(&sql, params_from_iter(values), |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Acts on all that fit, at once.
pub(super) fn act(txn: &Txn<'_>, filter: &Filter, act: &Act) -> rusqlite::Result<u64> {
    let Some((condition, mut values)) = narrowed(filter, act) else { return Ok(0) };
    let Some((sql, mut args)) = change(txn, act)? else {
        return queue_again(txn, filter, act).map(|step| step.queued);
    };
    let conn = txn.conn;
    let partitions = match act {
        Act::Prune | Act::Cancel => Vec::new(),
        _ => touched(conn, &condition, &values)?,
    };
    args.append(&mut values);
    args.push(Value::from(filter.limit.map_or(-1, stored)));
    let changed = conn.execute(&queries::act_where(&sql, &condition), params_from_iter(args))?;
    for partition in partitions {
        if matches!(act, Act::Set { .. }) {
            sweep::expire_undue(txn, partition)?;
        }
        places::refresh(txn, partition)?;
    }
    places::bump_news(conn)?;
    Ok(changed as u64)
}

/// What an act makes of each job, with the values before those of the condition; `None` where it queues them again.
fn change(txn: &Txn<'_>, act: &Act) -> rusqlite::Result<Option<(String, Vec<Value>)>> {
    let now = Value::from(txn.now.store.as_nanos());
    Ok(Some(match act {
        Act::Retry | Act::Resolve(Resolution::Queued) => return Ok(None),
        Act::Cancel => (queries::act_end("cancelled", "cancelled"), vec![now]),
        Act::Resolve(Resolution::Done) => (queries::act_end("done", "resolved"), vec![now]),
        Act::Resolve(Resolution::Failed) => (queries::act_end("failed", "resolved"), vec![now]),
        Act::Set { priority, deadline_at, due_at } => queries::act_set(
            *priority,
            deadline_at.map(|at| at.map(Timestamp::as_nanos)),
            due_at.map(Timestamp::as_nanos),
        ),
        Act::Prune => {
            txn.conn.execute(queries::STORE_SET_JOB_SEQ, [])?;
            (queries::PRUNE.to_owned(), Vec::new())
        }
    }))
}

/// A step of queueing many jobs again.
pub(super) struct Step {
    pub queued: u64,
    pub looked_at: u64,
    /// The last job that was looked at; `None`: there was none.
    pub last: Option<JobId>,
}

/// Queues jobs again, each at its own address, as many as the filter lets it look at. A job whose like is
/// active by now stays as it is.
pub(super) fn queue_again(txn: &Txn<'_>, filter: &Filter, act: &Act) -> rusqlite::Result<Step> {
    let mut step = Step { queued: 0, looked_at: 0, last: None };
    let Some((condition, mut values)) = narrowed(filter, act) else { return Ok(step) };
    values.push(Value::from(filter.limit.map_or(-1, stored)));
    let conn = txn.conn;
    let mut query = conn.prepare(&queries::jobs_to_queue(&condition))?;
    let jobs = query.query_map(params_from_iter(values), |row| {
        Ok((JobId(row.get(0)?), row.get(1)?, row.get(2)?))
    })?;
    let mut partitions = BTreeSet::new();
    for (job, key, partition) in jobs.collect::<rusqlite::Result<Vec<_>>>()? {
        (step.looked_at, step.last) = (step.looked_at + 1, Some(job));
        if queue_one_again(txn, job, key)? {
            step.queued += 1;
            partitions.insert(partition);
        }
    }
    for partition in partitions {
        places::refresh(txn, partition)?;
    }
    places::bump_news(conn)?;
    Ok(step)
}

fn queue_one_again(txn: &Txn<'_>, job: JobId, key: Option<Key>) -> rusqlite::Result<bool> {
    let conn = txn.conn;
    if let Some(key) = &key {
        let holder = dedupe::holder(conn, key)?;
        if holder.is_some_and(|other| other.is_active && other.job != job) {
            return Ok(false);
        }
        dedupe::take(conn, key, job, holder)?;
    }
    conn.prepare_cached(queries::REDIRECT_FORGET)?.execute([job.0])?;
    let mut queue = conn.prepare_cached(queries::JOB_QUEUE_AGAIN)?;
    queue.execute(named_params! { ":id": job.0, ":now": txn.now.store.as_nanos() })?;
    Ok(true)
}

fn touched(conn: &Connection, condition: &str, values: &[Value]) -> rusqlite::Result<Vec<i64>> {
    let mut query = conn.prepare(&queries::job_partitions(condition))?;
    let rows = query.query_map(params_from_iter(values), |row| row.get(0))?;
    rows.collect()
}

/// Whether units can be recorded on that limit under that key.
pub(super) fn check_spend(
    upstream: &Upstream,
    limit: &str,
    key: &Columns,
) -> Result<(), StoreError> {
    let counts = |l: &&Limit| matches!(l.rule, LimitRule::Budget(_) | LimitRule::Rolling(_));
    let Some(declared) = upstream.limit(limit).filter(counts) else {
        let known = upstream.limits.iter().filter(counts).map(|l| l.name.clone()).collect();
        let (upstream, limit) = (upstream.name.clone(), limit.to_owned());
        return Err(StoreError::NoSuchLimit { upstream, limit, known });
    };
    let complete = declared.key.iter().all(|name| key.contains_key(name));
    if complete && key.len() == declared.key.len() {
        return Ok(());
    }
    Err(StoreError::WrongKey { limit: limit.to_owned(), expected: declared.key.clone() })
}

pub(super) fn spend(
    txn: &Txn<'_>,
    upstream: &Upstream,
    limit: &str,
    key: &Columns,
    units: i64,
) -> rusqlite::Result<()> {
    let Some(position) = upstream.limits.iter().position(|declared| declared.name == limit) else {
        return Ok(());
    };
    let upstream_id = places::upstream_id(txn.conn, &upstream.name)?;
    let mut instances = Instances::new(txn.conn, txn.now, upstream_id, upstream);
    let index = instances.of_limit(position, key)?;
    instances.row(index)?;
    let more = u64::try_from(units).unwrap_or(0);
    let fewer = units.unsigned_abs() - more;
    let rule = upstream.limits.get(position).map(|declared| declared.rule_for(key));
    match (rule, instances.usage_mut(index)) {
        (Some(LimitRule::Budget(budget)), Some(Usage::Budget(windows))) => {
            for start in budget.windows_at(txn.now, txn.now.store) {
                let window = windows.0.entry(start).or_default();
                window.spent = window.spent.saturating_add(more).saturating_sub(fewer);
            }
        }
        (Some(LimitRule::Rolling(rolling)), Some(Usage::Rolling(entries))) => {
            take_back(entries, fewer);
            rolling.charge(entries, txn.now.store, txn.now.store, more);
        }
        _ => {}
    }
    instances.save()?;
    places::reconsider(txn, upstream_id)
}

/// Takes units out again, the latest first.
fn take_back(entries: &mut Entries, mut fewer: u64) {
    for (_, taken) in entries.0.iter_mut().rev() {
        let back = fewer.min(*taken);
        *taken -= back;
        fewer -= back;
    }
    // A first entry of no units is a mark: what came before it has expired.
    let mut is_first = true;
    entries.0.retain(|(_, taken)| std::mem::take(&mut is_first) || *taken > 0);
}
