//! The sweep: leases that ran out, processes that died, deadlines that passed.

use rusqlite::named_params;

use super::runners::RunnerLocks;
use super::writer::Txn;
use super::{places, queries, restored, runners, settle};
use crate::clock::Timestamp;
use crate::job::{CallId, JobId};
use crate::store::{RunnerId, Serves, Swept};

/// Jobs that one look for deadlines ends.
const EXPIRES: i64 = 10_000;

/// Enters a process, and finds what dead ones left.
pub(super) fn register(
    txn: &Txn<'_>,
    runner: RunnerId,
    serves: &Serves,
    locks: &RunnerLocks,
) -> rusqlite::Result<Swept> {
    let mut swept = Swept { restored: restored::adopt(txn)?, ..Swept::default() };
    swept.unsure += swept.restored.map_or(0, |restored| restored.unsure);
    // The new number's lock was free, so one that is entered by it is dead: the file was copied, say.
    dead(txn, runner, &mut swept)?;
    runners::register(txn, runner, serves)?;
    sweep_into(txn, locks, &mut swept)?;
    Ok(swept)
}

pub(super) fn sweep(txn: &Txn<'_>, locks: &RunnerLocks) -> rusqlite::Result<Swept> {
    let mut swept = Swept::default();
    sweep_into(txn, locks, &mut swept)?;
    Ok(swept)
}

/// A process is dead: its leases end, and it is struck out.
pub(super) fn dead(txn: &Txn<'_>, runner: RunnerId, swept: &mut Swept) -> rusqlite::Result<()> {
    lose(txn, queries::CALLS_OF_RUNNER, runner.0, swept)?;
    leave_no_orphans(txn, runner)?;
    txn.conn.prepare_cached(queries::RETIRE)?.execute(named_params! { ":id": runner.0 })?;
    Ok(())
}

/// The jobs that only the runner would have sent end with it.
pub(super) fn leave_no_orphans(txn: &Txn<'_>, runner: RunnerId) -> rusqlite::Result<()> {
    let mut orphans = txn.conn.prepare_cached(queries::OWNED_ORPHANS)?;
    let params = named_params! { ":owner": runner.0, ":now": txn.now.store.as_nanos() };
    let rows = orphans.query_map(params, |row| row.get(0))?;
    let mut partitions = rows.collect::<rusqlite::Result<Vec<i64>>>()?;
    partitions.sort_unstable();
    partitions.dedup();
    partitions.into_iter().try_for_each(|partition| places::refresh(txn, partition))
}

fn sweep_into(txn: &Txn<'_>, locks: &RunnerLocks, swept: &mut Swept) -> rusqlite::Result<()> {
    let mut query = txn.conn.prepare_cached(queries::RUNNERS)?;
    let runners = query.query_map([], |row| row.get::<_, i64>(0))?;
    for id in runners.collect::<rusqlite::Result<Vec<_>>>()? {
        if !locks.is_alive(RunnerId(id)) {
            dead(txn, RunnerId(id), swept)?;
            locks.bury(RunnerId(id));
        }
    }
    lose(txn, queries::CALLS_EXPIRED, txn.now.store.as_nanos(), swept)?;
    let mut query = txn.conn.prepare_cached(queries::UPSTREAM_IDS)?;
    let upstreams = query.query_map([], |row| row.get::<_, i64>(0))?;
    for upstream in upstreams.collect::<rusqlite::Result<Vec<_>>>()? {
        swept.expired += expire_due(txn, upstream)?;
    }
    Ok(())
}

/// Ends the leases that `query` finds. What was spent stays spent.
fn lose(txn: &Txn<'_>, query: &str, arg: i64, swept: &mut Swept) -> rusqlite::Result<()> {
    let mut query = txn.conn.prepare_cached(query)?;
    let lost = query.query_map([arg], |row| {
        Ok(Lost {
            call: CallId(row.get("id")?),
            partition: row.get("partition_id")?,
            slot_at: row.get("slot_at")?,
            // Unmarked and not repeatable: it cannot have left.
            may_have_left: row.get::<_, bool>("repeatable")? || row.get::<_, bool>("marked")?,
            // What its owner alone would send again is sent by nobody.
            goes_again: row.get::<_, bool>("repeatable")? && !row.get::<_, bool>("is_owned")?,
        })
    })?;
    for lost in lost.collect::<rusqlite::Result<Vec<_>>>()? {
        lose_call(txn, &lost, swept)?;
    }
    Ok(())
}

struct Lost {
    call: CallId,
    partition: i64,
    slot_at: i64,
    may_have_left: bool,
    goes_again: bool,
}

fn lose_call(txn: &Txn<'_>, lost: &Lost, swept: &mut Swept) -> rusqlite::Result<()> {
    let conn = txn.conn;
    if lost.may_have_left {
        conn.prepare_cached(queries::ATTEMPTS_LOSE)?
            .execute(named_params! { ":call": lost.call.0, ":sent": lost.slot_at })?;
        let mut count = conn.prepare_cached(queries::JOBS_COUNT_ATTEMPT)?;
        count.execute([lost.call.0])?;
    }
    if lost.may_have_left && !lost.goes_again {
        let mut unsure = conn.prepare_cached(queries::JOBS_UNSURE)?;
        let now = txn.now.store.as_nanos();
        let jobs = unsure.execute(named_params! { ":call": lost.call.0, ":now": now })?;
        swept.unsure += jobs as u64;
    } else {
        let mut jobs = conn.prepare_cached(queries::JOBS_OF_CALL)?;
        let jobs: u32 = jobs.query_row([lost.call.0], |row| row.get(0))?;
        swept.returned += u64::from(jobs);
    }
    settle::unprobe(txn, lost.call)?;
    settle::remaining::lost(conn, lost.call)?;
    for instance in settle::remove_call(txn, lost.call)? {
        places::wake_now(txn, instance)?;
    }
    // Should the process live after all, it looks before it sends, and finds its lease gone.
    places::bump_block_seq(conn)?;
    places::bump_news(conn)?;
    places::refresh_unanswered(txn, lost.partition)
}

/// What keeps jobs from going in time.
#[derive(Clone, Copy)]
pub(super) struct Late<'a> {
    /// When they could go.
    pub could_go_at: Timestamp,
    /// The limit that says so; `None`: a refusal, or a slot.
    pub limit: Option<&'a str>,
}

impl Late<'_> {
    /// "it could have gone at ... for the limit `daily`, which is past its deadline"
    pub fn told(&self, txn: &Txn<'_>) -> String {
        let at = txn.now.to_wall(self.could_go_at).to_rfc3339_seconds();
        let limit = self.limit.map(|limit| format!(" for the limit `{limit}`"));
        let limit = limit.unwrap_or_default();
        format!("it could have gone at {at}{limit}, which is past its deadline")
    }
}

/// Ends the upstream's queued jobs whose deadline has passed.
pub(super) fn expire_due(txn: &Txn<'_>, upstream: i64) -> rusqlite::Result<u64> {
    let mut expire = txn.conn.prepare_cached(queries::EXPIRE_DUE)?;
    let now = txn.now.store.as_nanos();
    let expired =
        expire.execute(named_params! { ":of": upstream, ":now": now, ":most": EXPIRES })?;
    Ok(expired as u64)
}

/// Ends the upstream's queued jobs that are too late by then.
pub(super) fn expire_upstream(
    txn: &Txn<'_>,
    upstream: i64,
    late: Late<'_>,
) -> rusqlite::Result<u64> {
    expire(txn, queries::EXPIRE_UPSTREAM, upstream, late)
}

/// Ends the partition's queued jobs that are too late by then.
pub(super) fn expire_partition(
    txn: &Txn<'_>,
    partition: i64,
    late: Late<'_>,
) -> rusqlite::Result<u64> {
    expire(txn, queries::EXPIRE_PARTITION, partition, late)
}

fn expire(txn: &Txn<'_>, query: &str, of: i64, late: Late<'_>) -> rusqlite::Result<u64> {
    let mut expire = txn.conn.prepare_cached(query)?;
    let could_go = late.could_go_at.as_nanos();
    let expired = expire.execute(named_params! {
        ":of": of, ":before": could_go, ":now": txn.now.store.as_nanos(),
        ":detail": late.told(txn), ":most": EXPIRES,
        ":could_go": could_go, ":limit": late.limit,
    })?;
    Ok(expired as u64)
}

/// Ends the partition's jobs that a person set to be due after their deadline.
pub(super) fn expire_undue(txn: &Txn<'_>, partition: i64) -> rusqlite::Result<()> {
    let mut expire = txn.conn.prepare_cached(queries::EXPIRE_UNDUE)?;
    let now = txn.now.store.as_nanos();
    expire.execute(named_params! { ":partition": partition, ":now": now }).map(drop)
}

/// Ends one job that is too late by then.
pub(super) fn expire_job(txn: &Txn<'_>, job: JobId, late: Late<'_>) -> rusqlite::Result<()> {
    let could_go = Some(late.could_go_at.as_nanos());
    end(txn, job, "expired", "deadline", &late.told(txn), (could_go, late.limit))
}

/// Ends a job that takes more units than the limit can ever grant.
pub(super) fn fail_oversized(txn: &Txn<'_>, job: JobId, limit: &str) -> rusqlite::Result<()> {
    let detail = format!("it takes more units than the limit `{limit}` can ever grant");
    end(txn, job, "failed", "never_fits", &detail, (None, Some(limit)))
}

/// Ends a job whose body alone is larger than a batch may be.
pub(super) fn fail_too_large(txn: &Txn<'_>, job: JobId) -> rusqlite::Result<()> {
    let detail = "its body alone is larger than `max_bytes` of [batch]";
    end(txn, job, "failed", "too_large", detail, (None, None))
}

fn end(
    txn: &Txn<'_>,
    job: JobId,
    state: &str,
    reason: &str,
    detail: &str,
    (could_go, limit): (Option<i64>, Option<&str>),
) -> rusqlite::Result<()> {
    let mut end = txn.conn.prepare_cached(queries::JOB_END_UNSENT)?;
    end.execute(named_params! {
        ":id": job.0, ":state": state, ":reason": reason, ":detail": detail,
        ":now": txn.now.store.as_nanos(), ":could_go": could_go, ":limit": limit,
    })?;
    Ok(())
}
