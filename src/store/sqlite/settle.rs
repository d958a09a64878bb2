//! The settle: ends a call, moves its job, opens or closes what the answer concerns.

use rusqlite::{OptionalExtension, named_params};

use super::instances::{Block, Index, Instances, TakenFrom, from_json, give_back_all, key_of};
use super::writer::Txn;
use super::{places, queries};
use crate::clock::Timestamp;
use crate::job::{CallId, Columns, JobId, JobState};
use crate::next::{Facts, JobNext, Next, next};
use crate::quota::budget::Counts;
use crate::quota::decide::Taken;
use crate::quota::{LimitRule, Upstream};
use crate::reading::Reason;
use crate::store::{Blocked, Held, SettleEnd, Settled, Settlement};

pub(super) fn mark(txn: &Txn<'_>, calls: &[CallId]) -> rusqlite::Result<()> {
    let mut mark = txn.conn.prepare_cached(queries::CALL_MARK)?;
    for call in calls {
        mark.execute([call.0])?;
    }
    Ok(())
}

pub(super) fn settle(
    txn: &Txn<'_>,
    upstream: &Upstream,
    settlement: &Settlement,
) -> rusqlite::Result<Settled> {
    keep_body(txn, settlement)?;
    match leased(txn, settlement.call)? {
        Some(leased) => Settle::new(txn, upstream, settlement, leased)?.run(),
        None => late(txn, settlement),
    }
}

/// A call that is still leased, with its job.
struct Leased {
    job: JobId,
    n: u32,
    partition: i64,
    partition_key: String,
    repeatable: bool,
    taken: Vec<TakenFrom>,
    failures: u32,
    refused_hard: bool,
    deadline_at: Option<Timestamp>,
    hard_refusals: u32,
}

fn leased(txn: &Txn<'_>, call: CallId) -> rusqlite::Result<Option<Leased>> {
    let mut query = txn.conn.prepare_cached(queries::LEASED)?;
    query
        .query_row([call.0], |row| {
            let taken: String = row.get("taken")?;
            Ok(Leased {
                job: JobId(row.get("job_id")?),
                n: row.get("n")?,
                partition: row.get("partition_id")?,
                partition_key: row.get("key")?,
                repeatable: row.get("repeatable")?,
                taken: serde_json::from_str(&taken).unwrap_or_default(),
                failures: row.get("failures")?,
                refused_hard: row.get("refused_hard")?,
                deadline_at: row.get::<_, Option<i64>>("deadline_at")?.map(Timestamp::from_nanos),
                hard_refusals: row.get("hard_refusals")?,
            })
        })
        .optional()
}

/// One settle at work.
struct Settle<'t> {
    txn: &'t Txn<'t>,
    upstream: &'t Upstream,
    settlement: &'t Settlement,
    leased: Leased,
    columns: Columns,
    instances: Instances<'t>,
    /// The limit that the reading names, where it is declared; else it concerns the partition.
    limit: Option<usize>,
    index: Index,
}

impl<'t> Settle<'t> {
    fn new(
        txn: &'t Txn<'t>,
        upstream: &'t Upstream,
        settlement: &'t Settlement,
        leased: Leased,
    ) -> rusqlite::Result<Self> {
        let id = places::upstream_id(txn.conn, &upstream.name)?;
        let mut instances = Instances::new(txn.conn, txn.now, id, upstream);
        let columns = from_json(&leased.partition_key);
        let named = settlement.reading.limit.as_deref();
        let limit = named.and_then(|name| upstream.limits.iter().position(|l| l.name == name));
        let index = match limit {
            Some(limit) => instances.of_limit(limit, &columns)?,
            None => instances.own_gate(&columns)?,
        };
        Ok(Settle { txn, upstream, settlement, leased, columns, instances, limit, index })
    }

    fn run(mut self) -> rusqlite::Result<Settled> {
        let block = self.instances.get(self.index).map(|i| i.block.clone()).unwrap_or_default();
        let next = next(&self.settlement.reading, &self.facts(&block));
        self.end_call(&next)?;
        let end = self.move_job(&next)?;
        let mut settled = Settled {
            call: self.settlement.call,
            job: Some(self.leased.job),
            end,
            block: None,
            hold: None,
        };
        if next.is_open() {
            self.open()?;
        } else {
            settled.block = self.close(&next, block)?;
            settled.hold = self.hold(&next)?;
        }
        places::refresh(self.txn, self.leased.partition)?;
        Ok(settled)
    }

    fn facts(&self, block: &Block) -> Facts<'t> {
        let reason = self.settlement.reading.reason.name();
        let same = block.reason.as_deref() == Some(reason);
        Facts {
            now: self.txn.now,
            policy: &self.upstream.retry,
            repeatable: self.leased.repeatable,
            left: self.settlement.left,
            deadline_at: self.leased.deadline_at,
            failures: self.leased.failures,
            job_refused_hard: self.leased.refused_hard,
            hard_refusals: self.leased.hard_refusals,
            refusals: block.refusals,
            reason_since: block.since.filter(|_| same),
            random: self.settlement.random,
        }
    }

    /// Removes the call, records its attempt, and gives back what it did not use.
    fn end_call(&self, next: &Next) -> rusqlite::Result<()> {
        let conn = self.txn.conn;
        if !self.settlement.left {
            give_back_all(conn, &self.leased.taken)?;
        } else if !next.is_open() {
            give_back_all(conn, &self.refundable())?;
        }
        remove_call(self.txn, self.settlement.call)?;
        let mut add = conn.prepare_cached(queries::ATTEMPT_ADD)?;
        let reading = &self.settlement.reading;
        add.execute(named_params! {
            ":job": self.leased.job.0, ":n": self.leased.n, ":call": self.settlement.call.0,
            ":sent": self.settlement.sent_at.as_nanos(), ":ended": self.txn.now.store.as_nanos(),
            ":status": self.settlement.status, ":reason": next.reason.name(),
            ":source": reading.source, ":limit": reading.limit,
            ":hint": hint_at(self.txn, reading.retry_at), ":detail": reading.detail,
        })?;
        Ok(())
    }

    /// What goes back after a refusal: units of budgets that count only accepted calls.
    fn refundable(&self) -> Vec<TakenFrom> {
        let accepted = |rule: &LimitRule| match rule {
            LimitRule::Budget(budget) => budget.counts == Counts::Accepted,
            LimitRule::Rolling(rolling) => rolling.counts == Counts::Accepted,
            _ => false,
        };
        let limits = &self.upstream.limits;
        if !limits.iter().any(|limit| accepted(&limit.rule)) {
            return Vec::new();
        }
        let names: Vec<_> = limits
            .iter()
            .filter(|limit| accepted(limit.rule_for(&self.columns)))
            .map(|limit| limit.name.as_str())
            .collect();
        let of = |instance: i64| -> rusqlite::Result<String> {
            let mut query = self.txn.conn.prepare_cached(queries::INSTANCE_NAME)?;
            query.query_row([instance], |row| row.get(0))
        };
        let refunds = |taken: &&TakenFrom| {
            matches!(taken.what, Taken::Budget { .. } | Taken::Rolling { .. })
                && of(taken.instance).is_ok_and(|name| names.contains(&name.as_str()))
        };
        self.leased.taken.iter().filter(refunds).cloned().collect()
    }

    fn move_job(&self, next: &Next) -> rusqlite::Result<SettleEnd> {
        let reading = &self.settlement.reading;
        let state = match next.job {
            JobNext::Again { due_at, failure } => {
                let mut again = self.txn.conn.prepare_cached(queries::JOB_AGAIN)?;
                again.execute(named_params! {
                    ":id": self.leased.job.0, ":n": self.leased.n, ":due": due_at.as_nanos(),
                    ":failures": self.leased.failures + u32::from(failure),
                    ":hard": next.refused_hard, ":status": self.settlement.status,
                    ":reason": next.reason.name(), ":detail": reading.detail,
                })?;
                return Ok(SettleEnd::Again(due_at));
            }
            JobNext::Done => JobState::Done,
            JobNext::Failed => JobState::Failed,
            JobNext::Unsure => JobState::Unsure,
            JobNext::Expired { .. } => JobState::Expired,
        };
        let detail = match next.job {
            JobNext::Expired { could_go_at } => too_late(self.txn, could_go_at, &reading.detail),
            _ => reading.detail.clone(),
        };
        let (job, n) = (self.leased.job, self.leased.n);
        end_job(self.txn, job, n, state, self.settlement, next.reason, &detail)?;
        Ok(SettleEnd::Ended(state))
    }

    /// The upstream answered as if nothing stood in the way: what this call probed opens again.
    fn open(&mut self) -> rusqlite::Result<()> {
        let call = self.settlement.call;
        let mut query = self.txn.conn.prepare_cached(queries::INSTANCES_PROBED)?;
        let probed = query.query_map([call.0], |row| row.get::<_, i64>(0))?;
        for instance in probed.collect::<rusqlite::Result<Vec<_>>>()? {
            // No answer says nothing about the block: another probe goes.
            let query = match self.settlement.status {
                Some(_) => queries::INSTANCE_OPEN,
                None => queries::INSTANCE_UNPROBE,
            };
            self.txn.conn.prepare_cached(query)?.execute([instance])?;
            places::wake_now(self.txn, instance)?;
        }
        if self.leased.hard_refusals > 0 && self.settlement.status.is_some() {
            let mut calm = self.txn.conn.prepare_cached(queries::PARTITION_HARD)?;
            calm.execute(named_params! { ":id": self.leased.partition, ":count": 0 })?;
        }
        Ok(())
    }

    /// Closes what the refusal concerns. Refusals in a row count only calls sent after the last block:
    /// those that were under way when it began say nothing new.
    fn close(&mut self, next: &Next, block: Block) -> rusqlite::Result<Option<Blocked>> {
        self.unprobe()?;
        let Some(until) = next.block else { return Ok(None) };
        let reading = &self.settlement.reading;
        let news = block.at.is_none_or(|at| self.settlement.sent_at > at);
        let standing = block.until.filter(|until| *until > self.txn.now.store);
        if !news && reading.retry_at.is_none() && standing.is_some() {
            return Ok(None);
        }
        let same = block.reason.as_deref() == Some(next.reason.name());
        let block = Block {
            at: if news { Some(self.txn.now.store) } else { block.at },
            until: Some(standing.map_or(until, |standing| standing.max(until))),
            reason: Some(next.reason.name().to_owned()),
            detail: Some(reading.detail.clone()),
            since: block.since.filter(|_| same).or(Some(self.txn.now.store)),
            refusals: block.refusals + u32::from(news),
            probe: None,
        };
        self.write_block(self.index, &block)?;
        let mut limit = self.limit;
        if limit.is_none() {
            let gate = self.instances.row(self.index)?;
            let mut set = self.txn.conn.prepare_cached(queries::PARTITION_GATE)?;
            set.execute(named_params! { ":id": self.leased.partition, ":gate": gate })?;
            limit = self.close_shared(&block)?;
        }
        places::bump_block_seq(self.txn.conn)?;
        let declared = limit.and_then(|limit| self.upstream.limits.get(limit));
        Ok(Some(Blocked {
            limit: declared.map(|limit| limit.name.clone()),
            key: declared
                .map_or_else(|| self.columns.clone(), |l| from_json(&key_of(l, &self.columns))),
            until: block.until.unwrap_or(until),
            reason: next.reason,
        }))
    }

    fn write_block(&mut self, index: Index, block: &Block) -> rusqlite::Result<()> {
        let id = self.instances.row(index)?;
        let mut set = self.txn.conn.prepare_cached(queries::INSTANCE_BLOCK)?;
        set.execute(named_params! {
            ":id": id, ":at": block.at.map(Timestamp::as_nanos),
            ":until": block.until.map(Timestamp::as_nanos), ":reason": block.reason,
            ":detail": block.detail, ":since": block.since.map(Timestamp::as_nanos),
            ":refusals": block.refusals,
        })?;
        if places::has_waiters(self.txn.conn, id)? {
            places::wake_at(self.txn, id, block.until)?;
        }
        Ok(())
    }

    /// Where three partitions are blocked at once, what they share is what is refused: the narrowest
    /// limit instance common to them closes too.
    fn close_shared(&mut self, block: &Block) -> rusqlite::Result<Option<usize>> {
        const TOGETHER: usize = 3;
        let id = places::upstream_id(self.txn.conn, &self.upstream.name)?;
        let mut query = self.txn.conn.prepare_cached(queries::GATES_BLOCKED)?;
        let rows = query.query_map(
            named_params! { ":upstream": id, ":now": self.txn.now.store.as_nanos() },
            |row| Ok(from_json(&row.get::<_, String>(0)?)),
        )?;
        let blocked: Vec<Columns> = rows.collect::<rusqlite::Result<_>>()?;
        let mut narrowest: Vec<usize> = (0..self.upstream.limits.len()).collect();
        let width = |limit: &usize| self.upstream.limits.get(*limit).map_or(0, |l| l.key.len());
        narrowest.sort_by_key(|limit| std::cmp::Reverse(width(limit)));
        for limit in narrowest {
            let Some(declared) = self.upstream.limits.get(limit) else { continue };
            let ours = key_of(declared, &self.columns);
            let sharing = blocked.iter().filter(|other| key_of(declared, other) == ours).count();
            if sharing >= TOGETHER {
                let index = self.instances.of_limit(limit, &self.columns)?;
                self.write_block(index, block)?;
                return Ok(Some(limit));
            }
        }
        Ok(None)
    }

    /// Probes that this call carried are over.
    fn unprobe(&self) -> rusqlite::Result<()> {
        unprobe(self.txn, self.settlement.call)
    }

    fn hold(&self, next: &Next) -> rusqlite::Result<Option<Held>> {
        if next.refused_hard {
            let mut count = self.txn.conn.prepare_cached(queries::PARTITION_HARD)?;
            count.execute(named_params! {
                ":id": self.leased.partition, ":count": self.leased.hard_refusals + 1,
            })?;
        }
        let Some(why) = &next.hold else { return Ok(None) };
        let said = &self.settlement.reading.detail;
        let detail = if said.is_empty() { why.clone() } else { format!("{said} ({why})") };
        let mut set = self.txn.conn.prepare_cached(queries::PARTITION_HOLD)?;
        set.execute(named_params! {
            ":id": self.leased.partition, ":now": self.txn.now.store.as_nanos(),
            ":reason": next.reason.name(), ":detail": detail,
        })?;
        places::bump_block_seq(self.txn.conn)?;
        let reason = next.reason.name().to_owned();
        Ok(Some(Held { key: self.columns.clone(), reason, detail }))
    }
}

/// A call's probes are over without a verdict: the next call through is another one.
pub(super) fn unprobe(txn: &Txn<'_>, call: CallId) -> rusqlite::Result<()> {
    let mut query = txn.conn.prepare_cached(queries::INSTANCES_PROBED)?;
    let probed = query.query_map([call.0], |row| row.get::<_, i64>(0))?;
    for instance in probed.collect::<rusqlite::Result<Vec<_>>>()? {
        txn.conn.prepare_cached(queries::INSTANCE_UNPROBE)?.execute([instance])?;
        places::wake_now(txn, instance)?;
    }
    Ok(())
}

/// Removes a call, with its lease and its places in flight, and wakes who waits for these.
pub(super) fn remove_call(txn: &Txn<'_>, call: CallId) -> rusqlite::Result<()> {
    let mut query = txn.conn.prepare_cached(queries::IN_FLIGHT_OF)?;
    let counted = query.query_map([call.0], |row| row.get::<_, i64>(0))?;
    let counted = counted.collect::<rusqlite::Result<Vec<_>>>()?;
    txn.conn.prepare_cached(queries::CALL_REMOVE)?.execute([call.0])?;
    for instance in counted {
        places::wake_now(txn, instance)?;
    }
    Ok(())
}

/// "it could have gone at ..., which is past its deadline"
pub(super) fn too_late(txn: &Txn<'_>, could_go_at: Timestamp, said: &str) -> String {
    let at = txn.now.to_wall(could_go_at);
    let said = if said.is_empty() { String::new() } else { format!("; {said}") };
    format!("it could have gone at {at}, which is past its deadline{said}")
}

fn hint_at(txn: &Txn<'_>, retry_at: Option<Timestamp>) -> Option<i64> {
    retry_at.map(|at| txn.now.to_store(at).as_nanos())
}

fn keep_body(txn: &Txn<'_>, settlement: &Settlement) -> rusqlite::Result<()> {
    let Some(body) = &settlement.body else { return Ok(()) };
    let mut keep = txn.conn.prepare_cached(queries::BODY_KEEP)?;
    keep.execute(named_params! {
        ":call": settlement.call.0, ":bytes": body.bytes, ":cut": body.cut,
    })?;
    Ok(())
}

fn end_job(
    txn: &Txn<'_>,
    job: JobId,
    n: u32,
    state: JobState,
    settlement: &Settlement,
    reason: Reason,
    detail: &str,
) -> rusqlite::Result<()> {
    let fields = match settlement.fields.is_empty() {
        true => None,
        false => serde_json::to_string(&settlement.fields).ok(),
    };
    let mut end = txn.conn.prepare_cached(queries::JOB_END)?;
    end.execute(named_params! {
        ":id": job.0, ":state": state.name(), ":now": txn.now.store.as_nanos(),
        ":status": settlement.status, ":reason": reason.name(), ":detail": detail,
        ":fields": fields, ":n": n,
    })?;
    Ok(())
}

/// A settle whose lease had run out. Its attempt is completed; the job moves only where no later call
/// of it exists, which resolves an `unsure` one.
fn late(txn: &Txn<'_>, settlement: &Settlement) -> rusqlite::Result<Settled> {
    let call = settlement.call;
    let nothing = Settled { call, job: None, end: SettleEnd::Late, block: None, hold: None };
    let mut query = txn.conn.prepare_cached(queries::ATTEMPT_LOST)?;
    let lost = query
        .query_row([call.0], |row| {
            let job = JobId(row.get("job_id")?);
            Ok((row.get::<_, i64>("id")?, job, row.get::<_, i64>("partition_id")?))
        })
        .optional()?;
    // Neither leased nor lost: it was settled before.
    let Some((attempt, job, partition)) = lost else { return Ok(nothing) };
    let reading = &settlement.reading;
    txn.conn.prepare_cached(queries::ATTEMPT_COMPLETE)?.execute(named_params! {
        ":id": attempt, ":sent": settlement.sent_at.as_nanos(),
        ":ended": txn.now.store.as_nanos(), ":status": settlement.status,
        ":reason": reading.reason.name(), ":source": reading.source, ":limit": reading.limit,
        ":hint": hint_at(txn, reading.retry_at), ":detail": reading.detail,
    })?;
    let mut query = txn.conn.prepare_cached(queries::JOB_AWAITS_LATE)?;
    let awaits = query.exists(named_params! { ":job": job.0, ":call": call.0 })?;
    if !awaits {
        return Ok(Settled { job: Some(job), ..nothing });
    }
    let reason = reading.reason;
    let end = if reason.is_success() {
        end_job(txn, job, 0, JobState::Done, settlement, reason, &reading.detail)?;
        SettleEnd::Ended(JobState::Done)
    } else if reason.is_permanent() {
        end_job(txn, job, 0, JobState::Failed, settlement, reason, &reading.detail)?;
        SettleEnd::Ended(JobState::Failed)
    } else if reason != Reason::Transient {
        // A refusal proves that it was not done: it goes again.
        let mut again = txn.conn.prepare_cached(queries::JOB_PROVED_UNDONE)?;
        again.execute(named_params! { ":id": job.0, ":now": txn.now.store.as_nanos() })?;
        SettleEnd::Again(txn.now.store)
    } else {
        SettleEnd::Late
    };
    places::refresh(txn, partition)?;
    Ok(Settled { job: Some(job), end, ..nothing })
}
