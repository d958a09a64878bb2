//! The settle: ends a call, moves its jobs, opens or closes what the answer concerns.
//!
//! | file | noun |
//! | --- | --- |
//! | `part` | the call, still leased or lost, and its jobs' parts in it |
//! | `mover` | what becomes of each job |
//! | `refund` | what the call took and did not use |
//! | `verdict` | what the answer opens, blocks or holds |
//! | `remaining` | what the upstream told is left |
//! | `adapt` | a pace that is cut |

mod adapt;
mod mover;
mod part;
mod refund;
pub(super) mod remaining;
mod verdict;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::named_params;

use super::instances::{Block, Index, Instances, from_json};
use super::usage::stored;
use super::writer::Txn;
use super::{body, places, queries};
use crate::clock::Timestamp;
use crate::crash;
use crate::job::{CallId, Columns, JobId, JobState};
use crate::next::{Facts, Next, next};
use crate::quota::batch::Size;
use crate::quota::{Cost, Upstream};
use crate::reading::{Reading, Reason};
use crate::store::{ItemEnd, SettleEnd, Settled, Settlement};
use part::{Carried, Part, Standing};

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
    let (mut partitions, mut sum) = (BTreeMap::new(), Sum::default());
    let upstream_id = places::upstream_id(txn.conn, &upstream.name)?;
    let mut all = Vec::with_capacity(settlements.len());
    for settlement in settlements {
        let settled = match Carried::find(txn, upstream, settlement.call)? {
            Some(carried) => {
                partitions.entry(carried.partition).or_insert(carried.answered);
                body::keep(txn.conn, settlement, carried.parts.len())?;
                Settle::new(txn, (upstream, upstream_id), settlement, carried)?.run(&mut sum)?
            }
            // It was settled before, or given back.
            None => nothing_moved(settlement.call),
        };
        all.push(settled);
    }
    count_done(txn, upstream_id, &sum.done)?;
    sum.freed.iter().try_for_each(|instance| places::wake_now(txn, *instance))?;
    for (partition, answered) in &partitions {
        match answered {
            true => places::refresh(txn, *partition)?,
            false => places::refresh_unanswered(txn, *partition)?,
        }
    }
    let first = partitions.values().any(|answered| !answered);
    let has_ended = |settled: &Settled| matches!(settled.end, SettleEnd::Ended(_));
    if first || !all.iter().all(|one| has_ended(one) && one.more.is_empty()) {
        places::bump_news(txn.conn)?;
    }
    Ok(all)
}

/// What settles of one transaction come to together.
#[derive(Default)]
struct Sum {
    /// Jobs that were queued and are done, by load: those that no trigger counts.
    done: BTreeMap<i64, i64>,
    /// Where a place came free.
    freed: BTreeSet<i64>,
}

fn count_done(txn: &Txn<'_>, upstream_id: i64, done: &BTreeMap<i64, i64>) -> rusqlite::Result<()> {
    for (load, jobs) in done {
        for query in [queries::TALLY_LESS, queries::TALLY_DONE] {
            let mut count = txn.conn.prepare_cached(query)?;
            count.execute(named_params! {
                ":upstream": upstream_id, ":load": load, ":jobs": jobs,
            })?;
        }
    }
    Ok(())
}

fn nothing_moved(call: CallId) -> Settled {
    let (job, end, more) = (None, SettleEnd::Late, Vec::new());
    Settled { call, job, end, more, split: None, block: None, hold: None }
}

/// The status of an item that was not tried because another one failed (RFC 4918 section 11.4).
const FAILED_DEPENDENCY: u16 = 424;

fn is_culprit(item: &ItemEnd) -> bool {
    item.status != Some(FAILED_DEPENDENCY) && item.reading.reason.is_permanent()
}

/// One settle at work.
struct Settle<'t> {
    txn: &'t Txn<'t>,
    upstream: &'t Upstream,
    upstream_id: i64,
    settlement: &'t Settlement,
    /// What it says of more than single jobs.
    reading: &'t Reading,
    /// What it says of single jobs of a batch.
    items: HashMap<JobId, &'t ItemEnd>,
    /// Whether one of these fails for what is in it.
    has_culprit: bool,
    carried: Carried,
    columns: Columns,
    instances: Instances<'t>,
    /// The limit that the reading names, where it is declared; else it concerns the partition.
    limit: Option<usize>,
    index: Index,
}

impl<'t> Settle<'t> {
    fn new(
        txn: &'t Txn<'t>,
        (upstream, upstream_id): (&'t Upstream, i64),
        settlement: &'t Settlement,
        carried: Carried,
    ) -> rusqlite::Result<Self> {
        let mut instances = Instances::new(txn.conn, txn.now, upstream_id, upstream);
        let columns = from_json(&carried.partition_key);
        let reading = settlement.general();
        let named = reading.limit.as_deref();
        let limit = named.and_then(|name| upstream.limits.iter().position(|l| l.name == name));
        let index = match limit {
            Some(limit) => instances.of_limit(limit, &columns)?,
            None if carried.gated => instances.own_gate(&columns)?,
            None => instances.open_gate(&columns),
        };
        Ok(Settle {
            txn,
            upstream,
            upstream_id,
            settlement,
            reading,
            items: settlement.items.iter().map(|item| (item.job, item)).collect(),
            has_culprit: settlement.items.iter().any(is_culprit),
            carried,
            columns,
            instances,
            limit,
            index,
        })
    }

    fn run(mut self, sum: &mut Sum) -> rusqlite::Result<Settled> {
        let block = self.block(self.index);
        let parts = std::mem::take(&mut self.carried.parts);
        let moves: Vec<Next> =
            parts.iter().map(|part| self.next_of(part, &block, &parts)).collect();
        crash::stop("next");
        self.give_back_unused(&parts, &moves)?;
        sum.freed.extend(remove_call(self.txn, self.settlement.call)?);
        self.hear()?;
        let mut settled = nothing_moved(self.settlement.call);
        let mut overtaken = true;
        for (part, next) in parts.iter().zip(&moves) {
            self.record(part, next)?;
            overtaken &= part.standing == Standing::Overtaken;
            let end = match part.standing {
                // The job went on without this call.
                Standing::Overtaken => SettleEnd::Late,
                Standing::Leased | Standing::Awaited => self.move_job(part, next)?,
            };
            if part.queued && end == SettleEnd::Ended(JobState::Done) {
                *sum.done.entry(part.load).or_default() += 1;
            }
            match settled.job {
                None => (settled.job, settled.end) = (Some(part.job), end),
                Some(_) => settled.more.push((part.job, end)),
            }
        }
        let Some(first) = parts.first() else { return Ok(settled) };
        let jobs = if self.items.is_empty() { parts.len() } else { 1 };
        let verdict = next(self.reading, &self.facts(first, &block, jobs));
        // What the upstream asked for still counts where the job went on without the call.
        let has_hint = self.reading.retry_at.is_some();
        match (overtaken, verdict.is_open()) {
            (true, _) if has_hint => settled.block = self.close(&verdict, block)?,
            (true, _) => {}
            (false, true) => {
                self.open()?;
                settled.split = self.learn_size(&moves)?;
            }
            (false, false) => {
                settled.block = self.close(&verdict, block)?;
                let blocked = settled.block.as_ref().and_then(|block| block.limit.as_deref());
                self.slow_down(&verdict, blocked)?;
                settled.hold = self.hold(&verdict)?;
            }
        }
        Ok(settled)
    }

    fn block(&self, index: Index) -> Block {
        self.instances.get(index).map(|instance| instance.block.clone()).unwrap_or_default()
    }

    /// What becomes of one job, by what the answer says of it.
    fn next_of(&self, part: &Part, block: &Block, all: &[Part]) -> Next {
        match self.items.get(&part.job) {
            Some(item) => {
                let facts = self.facts(part, block, 1);
                next(&item.reading, &Facts { dependent: self.depends(item), ..facts })
            }
            None => next(&self.settlement.reading, &self.facts(part, block, all.len())),
        }
    }

    fn facts(&self, part: &Part, block: &Block, jobs: usize) -> Facts<'t> {
        Facts {
            now: self.txn.now,
            policy: &self.upstream.retry,
            repeatable: self.carried.repeatable,
            left: self.settlement.left,
            jobs,
            could_go: self.could_go(),
            dependent: false,
            redirected: self.settlement.redirect.is_some(),
            once: part.once,
            owned: part.owned,
            deadline_at: part.deadline_at,
            failures: part.failures,
            job_refused_hard: part.refused_hard,
            hard_refusals: self.carried.hard_refusals,
            answered: self.carried.answered,
            token: self.settlement.token,
            refusals: block.refusals,
            reason_since: self.stood(block),
            random: self.settlement.random,
        }
    }

    /// Whether an item was refused for another one, which fails now: without that one it may do.
    fn depends(&self, item: &ItemEnd) -> bool {
        item.status == Some(FAILED_DEPENDENCY)
            && self.has_culprit
            && item.reading.reason == Reason::Unprocessable
    }

    /// How many jobs of this batch could have gone, by what the upstream says is left of the limit that
    /// refused it. Only where that limit counts jobs.
    fn could_go(&self) -> Option<usize> {
        let limit = self.limit.and_then(|limit| self.upstream.limits.get(limit))?;
        let left = self.left().filter(|_| limit.cost == Cost::Items)?;
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// What the upstream told is left of the limit that the reading names; where it names none, of any.
    fn left(&self) -> Option<u64> {
        let named = self.reading.limit.as_deref();
        let mut told = self.settlement.remaining.iter();
        told.find(|told| named.is_none_or(|name| name == told.limit)).map(|told| told.left)
    }

    /// Since when the reason of this refusal stands, where it may for a time only. Other answers meanwhile
    /// do not end that, but a success.
    fn stood(&self, block: &Block) -> Option<Timestamp> {
        let (reason, since) = block.stands.as_ref()?;
        (reason == self.reading.reason.name()).then_some(*since)
    }

    /// Takes note of how many jobs the partition's next batches may carry. Tells it where they are fewer.
    fn learn_size(&self, moves: &[Next]) -> rusqlite::Result<Option<usize>> {
        let Some(batch) = &self.upstream.batch else { return Ok(None) };
        let known = self.carried.size;
        let size = known.unwrap_or(Size { most: batch.max_items, bad: None });
        let split = moves.iter().any(|next| next.split);
        let alone = moves.len() == 1 && moves.iter().all(|next| next.reason.is_permanent());
        let learned = match (split, alone) {
            (false, true) if known.is_none() => return Ok(None),
            (true, _) | (false, true) => size.refused(moves.len()),
            (false, false) => size.passed(moves.len(), batch.max_items),
        };
        if Some(learned) != known && (known.is_some() || learned.most < batch.max_items) {
            let kept = Some(learned).filter(|kept| kept.most < batch.max_items);
            let mut set = self.txn.conn.prepare_cached(queries::PARTITION_BATCH)?;
            set.execute(named_params! {
                ":id": self.carried.partition, ":most": kept.map(|kept| stored(kept.most as u64)),
                ":bad": kept.and_then(|kept| kept.bad).map(|bad| stored(bad as u64)),
            })?;
        }
        Ok(split.then_some(learned.most))
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

/// Removes a call, with its lease and its places in flight. Returns where these came free: who waits there is
/// to be woken.
pub(super) fn remove_call(txn: &Txn<'_>, call: CallId) -> rusqlite::Result<Vec<i64>> {
    let mut query = txn.conn.prepare_cached(queries::IN_FLIGHT_OF)?;
    let counted = query.query_map([call.0], |row| row.get::<_, i64>(0))?;
    let counted = counted.collect::<rusqlite::Result<Vec<_>>>()?;
    if !counted.is_empty() {
        txn.conn.prepare_cached(queries::IN_FLIGHT_REMOVE)?.execute([call.0])?;
    }
    for query in [queries::RUNNING_REMOVE, queries::CALL_REMOVE] {
        txn.conn.prepare_cached(query)?.execute([call.0])?;
    }
    Ok(counted)
}
