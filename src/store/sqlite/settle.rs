//! The settle: ends a call, moves its job, opens or closes what the answer concerns.
//!
//! | file | noun |
//! | --- | --- |
//! | `part` | the job's part in the call, still leased or lost |
//! | `verdict` | what the answer opens, blocks or holds |
//! | `remaining` | what the upstream told is left |
//! | `adapt` | a pace that is cut |

mod adapt;
mod part;
pub(super) mod remaining;
mod verdict;

use std::collections::BTreeMap;

use rusqlite::named_params;

use super::instances::{Block, Index, Instances, TakenFrom, from_json};
use super::sweep::Late;
use super::usage::give_back_all;
use super::writer::Txn;
use super::{places, queries};
use crate::clock::Timestamp;
use crate::crash;
use crate::job::{CallId, Columns, JobId, JobState};
use crate::next::{Facts, JobNext, Next, next};
use crate::quota::budget::Counts;
use crate::quota::decide::Taken;
use crate::quota::{LimitRule, Upstream};
use crate::reading::Reason;
use crate::store::{SettleEnd, Settled, Settlement};
use part::{Part, Standing};

pub(super) fn mark(txn: &Txn<'_>, calls: &[CallId]) -> rusqlite::Result<()> {
    let mut mark = txn.conn.prepare_cached(queries::CALL_MARK)?;
    for call in calls {
        mark.execute([call.0])?;
    }
    Ok(())
}

/// Ends calls; then each of their partitions finds its place anew, once.
pub(super) fn settle(
    txn: &Txn<'_>,
    upstream: &Upstream,
    settlements: &[Settlement],
) -> rusqlite::Result<Vec<Settled>> {
    let mut partitions = BTreeMap::new();
    let mut all = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        let settled = match Part::find(txn, upstream, settlement.call)? {
            Some(part) => {
                partitions.entry(part.partition).or_insert(part.answered);
                keep_body(txn, settlement)?;
                Settle::new(txn, upstream, settlement, part)?.run()?
            }
            // It was settled before, or given back.
            None => settled(settlement.call, None),
        };
        all.push(settled);
    }
    for (partition, answered) in &partitions {
        match answered {
            true => places::refresh(txn, *partition)?,
            false => places::refresh_unanswered(txn, *partition)?,
        }
    }
    let first = partitions.values().any(|answered| !answered);
    if first || all.iter().any(|settled| !matches!(settled.end, SettleEnd::Ended(_))) {
        places::bump_news(txn.conn)?;
    }
    Ok(all)
}

/// Where nothing moved.
fn settled(call: CallId, job: Option<JobId>) -> Settled {
    Settled { call, job, end: SettleEnd::Late, block: None, hold: None }
}

/// One settle at work.
struct Settle<'t> {
    txn: &'t Txn<'t>,
    upstream: &'t Upstream,
    upstream_id: i64,
    settlement: &'t Settlement,
    part: Part,
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
        part: Part,
    ) -> rusqlite::Result<Self> {
        let upstream_id = places::upstream_id(txn.conn, &upstream.name)?;
        let mut instances = Instances::new(txn.conn, txn.now, upstream_id, upstream);
        let columns = from_json(&part.partition_key);
        let named = settlement.reading.limit.as_deref();
        let limit = named.and_then(|name| upstream.limits.iter().position(|l| l.name == name));
        let index = match limit {
            Some(limit) => instances.of_limit(limit, &columns)?,
            None => instances.own_gate(&columns)?,
        };
        Ok(Settle {
            txn,
            upstream,
            upstream_id,
            settlement,
            part,
            columns,
            instances,
            limit,
            index,
        })
    }

    fn run(mut self) -> rusqlite::Result<Settled> {
        let block = self.block(self.index);
        let next = next(&self.settlement.reading, &self.facts(&block));
        crash::stop("next");
        self.end_call(&next)?;
        self.hear()?;
        let mut settled = settled(self.settlement.call, Some(self.part.job));
        let has_hint = self.settlement.reading.retry_at.is_some();
        match self.part.standing {
            // The job went on without this call. What the upstream asked for still counts.
            Standing::Overtaken if has_hint => settled.block = self.close(&next, block)?,
            Standing::Overtaken => return Ok(settled),
            Standing::Leased | Standing::Awaited => {
                settled.end = self.move_job(&next)?;
                if next.is_open() {
                    self.open()?;
                } else {
                    settled.block = self.close(&next, block)?;
                    let blocked = settled.block.as_ref().and_then(|block| block.limit.as_deref());
                    self.slow_down(&next, blocked)?;
                    settled.hold = self.hold(&next)?;
                }
            }
        }
        Ok(settled)
    }

    fn block(&self, index: Index) -> Block {
        self.instances.get(index).map(|instance| instance.block.clone()).unwrap_or_default()
    }

    fn facts(&self, block: &Block) -> Facts<'t> {
        let same = self.goes_on(block);
        Facts {
            now: self.txn.now,
            policy: &self.upstream.retry,
            repeatable: self.part.repeatable,
            left: self.settlement.left,
            redirected: self.settlement.redirect.is_some(),
            deadline_at: self.part.deadline_at,
            failures: self.part.failures,
            job_refused_hard: self.part.refused_hard,
            hard_refusals: self.part.hard_refusals,
            refusals: block.refusals,
            reason_since: block.since.filter(|_| same),
            random: self.settlement.random,
        }
    }

    /// Whether the block has the reason of this refusal, or the one that it becomes: it stands since then.
    fn goes_on(&self, block: &Block) -> bool {
        let reading = &self.settlement.reading;
        let then = reading.becomes.map(|(_, then)| then);
        let known = block.reason.as_deref();
        [Some(reading.reason), then].into_iter().flatten().any(|one| Some(one.name()) == known)
    }

    /// Removes the call, records its attempt, and gives back what it did not use.
    fn end_call(&self, next: &Next) -> rusqlite::Result<()> {
        if !self.settlement.left {
            self.give_back(&self.part.taken)?;
        } else if !next.is_open() {
            self.give_back(&self.refundable())?;
        }
        remove_call(self.txn, self.settlement.call)?;
        let query = match self.part.standing {
            Standing::Leased => queries::ATTEMPT_ADD,
            Standing::Awaited | Standing::Overtaken => queries::ATTEMPT_COMPLETE,
        };
        let reading = &self.settlement.reading;
        self.txn.conn.prepare_cached(query)?.execute(named_params! {
            ":job": self.part.job.0, ":n": self.part.n, ":call": self.settlement.call.0,
            ":sent": self.settlement.sent_at.as_nanos(), ":ended": self.txn.now.store.as_nanos(),
            ":status": self.settlement.status, ":reason": next.reason.name(),
            ":source": reading.source, ":limit": reading.limit,
            ":hint": reading.retry_at.map(|at| self.txn.now.to_store(at).as_nanos()),
            ":detail": reading.detail,
            ":redirect": self.settlement.redirect.as_ref().map(|redirect| &redirect.url),
        })?;
        Ok(())
    }

    fn give_back(&self, taken: &[TakenFrom]) -> rusqlite::Result<()> {
        give_back_all(self.txn.conn, taken)?;
        taken.iter().try_for_each(|from| places::wake_now(self.txn, from.instance))
    }

    /// What goes back after a refusal: units of budgets that count only accepted calls.
    fn refundable(&self) -> Vec<TakenFrom> {
        let accepted = |rule: &LimitRule| match rule {
            LimitRule::Budget(budget) => budget.counts == Counts::Accepted,
            LimitRule::Rolling(rolling) => rolling.counts == Counts::Accepted,
            _ => false,
        };
        let limits = self.upstream.limits.iter();
        let names: Vec<_> = limits
            .filter(|limit| accepted(limit.rule_for(&self.columns)))
            .map(|limit| limit.name.as_str())
            .collect();
        if names.is_empty() {
            return Vec::new();
        }
        let of = |instance: i64| -> rusqlite::Result<String> {
            let mut query = self.txn.conn.prepare_cached(queries::INSTANCE_NAME)?;
            query.query_row([instance], |row| row.get(0))
        };
        let refunds = |taken: &&TakenFrom| {
            matches!(taken.what, Taken::Budget { .. } | Taken::Rolling { .. })
                && of(taken.instance).is_ok_and(|name| names.contains(&name.as_str()))
        };
        self.part.taken.iter().filter(refunds).cloned().collect()
    }

    fn move_job(&self, next: &Next) -> rusqlite::Result<SettleEnd> {
        if self.part.standing == Standing::Awaited && next.job == JobNext::Unsure {
            // It is already, since its lease ran out.
            return Ok(SettleEnd::Late);
        }
        let detail = &self.settlement.reading.detail;
        let mut late = None;
        let (state, detail) = match next.job {
            JobNext::Again { due_at, failure } => {
                self.queue_again(next, due_at, failure)?;
                self.redirect()?;
                return Ok(SettleEnd::Again(due_at));
            }
            JobNext::Done => (JobState::Done, detail.clone()),
            JobNext::Failed => (JobState::Failed, detail.clone()),
            JobNext::Unsure => (JobState::Unsure, detail.clone()),
            JobNext::Expired { could_go_at } => {
                let limit = self.limit.and_then(|limit| self.upstream.limits.get(limit));
                let limit = limit.map(|limit| limit.name.as_str());
                let told = late.insert(Late { could_go_at, limit }).told(self.txn);
                let said = if detail.is_empty() { told } else { format!("{told}; {detail}") };
                (JobState::Expired, said)
            }
        };
        self.end_job(state, next.reason, &detail, late)?;
        Ok(SettleEnd::Ended(state))
    }

    fn queue_again(&self, next: &Next, due_at: Timestamp, failure: bool) -> rusqlite::Result<()> {
        let mut again = self.txn.conn.prepare_cached(queries::JOB_AGAIN)?;
        again.execute(named_params! {
            ":id": self.part.job.0, ":n": self.part.n, ":due": due_at.as_nanos(),
            ":now": self.txn.now.store.as_nanos(),
            ":failures": self.part.failures + u32::from(failure), ":hard": next.refused_hard,
            ":status": self.settlement.status, ":reason": next.reason.name(),
            ":detail": self.settlement.reading.detail,
        })?;
        Ok(())
    }

    /// The job's next call goes to another address.
    fn redirect(&self) -> rusqlite::Result<()> {
        let Some(redirect) = &self.settlement.redirect else { return Ok(()) };
        let mut set = self.txn.conn.prepare_cached(queries::REDIRECT_SET)?;
        set.execute(named_params! {
            ":job": self.part.job.0, ":url": redirect.url, ":hops": redirect.hops,
            ":as_get": redirect.as_get, ":away": redirect.away,
        })?;
        Ok(())
    }

    fn end_job(
        &self,
        state: JobState,
        reason: Reason,
        detail: &str,
        late: Option<Late<'_>>,
    ) -> rusqlite::Result<()> {
        let fields = match self.settlement.fields.is_empty() {
            true => None,
            false => serde_json::to_string(&self.settlement.fields).ok(),
        };
        let mut end = self.txn.conn.prepare_cached(queries::JOB_END)?;
        end.execute(named_params! {
            ":id": self.part.job.0, ":n": self.part.n, ":state": state.name(),
            ":now": self.txn.now.store.as_nanos(), ":status": self.settlement.status,
            ":reason": reason.name(), ":detail": detail, ":fields": fields,
            ":could_go": late.map(|late| late.could_go_at.as_nanos()),
            ":limit": late.and_then(|late| late.limit),
        })?;
        Ok(())
    }
}

/// A call's probes are over: unless its answer opened them, the next call through is another one.
/// Returns the instances that it probed.
pub(super) fn unprobe(txn: &Txn<'_>, call: CallId) -> rusqlite::Result<Vec<i64>> {
    let mut query = txn.conn.prepare_cached(queries::INSTANCES_PROBED)?;
    let probed = query.query_map([call.0], |row| row.get(0))?;
    let probed = probed.collect::<rusqlite::Result<Vec<_>>>()?;
    for instance in &probed {
        txn.conn.prepare_cached(queries::INSTANCE_UNPROBE)?.execute([instance])?;
        places::wake_now(txn, *instance)?;
    }
    Ok(probed)
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

fn keep_body(txn: &Txn<'_>, settlement: &Settlement) -> rusqlite::Result<()> {
    let Some(body) = &settlement.body else { return Ok(()) };
    let mut keep = txn.conn.prepare_cached(queries::BODY_KEEP)?;
    keep.execute(named_params! {
        ":call": settlement.call.0, ":bytes": body.bytes, ":cut": body.cut,
    })?;
    Ok(())
}
