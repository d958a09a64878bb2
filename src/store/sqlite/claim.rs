//! The claim: picks jobs, makes calls of them, takes their permits from all their limits, leases them.

use std::collections::VecDeque;
use std::time::Duration;

use rusqlite::{OptionalExtension, named_params};
use sha2::{Digest, Sha256};

use super::instances::{Index, Instances, OWN_GATE, TakenFrom, from_json, lookahead, stored};
use super::places::{self, Head};
use super::writer::Txn;
use super::{queries, sweep};
use crate::clock::{STEP_TOLERANCE, Timestamp, nanos};
use crate::job::{CallId, Columns, JobId, Request};
use crate::quota::decide::{Ask, Decision, Gate, NEAR, decide, grantable};
use crate::quota::{Cost, LimitRule, Upstream};
use crate::store::{Call, Claim, Claimed, ClaimedJob};

/// A claim looks at no more partitions than this that turn out not to be able to go; the next claim
/// goes on from there.
const VISITS: usize = 1024;

/// Instances and timed partitions that one claim wakes.
const WAKES: i64 = 512;

/// A lease outlives its call's timeout by this.
const LEASE_MARGIN: Duration = Duration::from_secs(30);

pub(super) fn claim(txn: &Txn<'_>, wish: &Claim) -> rusqlite::Result<Claimed> {
    let news = txn.conn.prepare_cached(queries::STORE_NEWS)?.query_row([], |row| row.get(0))?;
    let Some(row) = places::upstream(txn.conn, &wish.upstream.name)? else {
        return Ok(Claimed { news, ..Claimed::default() });
    };
    let mut claimed = Claimed { stepped: notice_step(txn)?, news, ..Claimed::default() };
    notice_change(txn, row.id, row.quota.as_deref(), &wish.upstream)?;
    claimed.expired += sweep::expire_due(txn, row.id)?;
    if row.held.is_some() {
        return Ok(claimed);
    }
    let instances = Instances::new(txn.conn, txn.now, row.id, &wish.upstream);
    let mut round = Round::new(txn, wish, row.id, instances, claimed)?;
    if !round.shared_closed()? {
        round.wake()?;
        round.pick()?;
    }
    round.finish()
}

/// Where somebody set the wall clock, whoever waits for a calendar is looked at again.
fn notice_step(txn: &Txn<'_>) -> rusqlite::Result<Option<i64>> {
    let skew = txn.now.skew();
    let known: i64 =
        txn.conn.prepare_cached(queries::STORE_SKEW)?.query_row([], |row| row.get(0))?;
    let step = skew.saturating_sub(known);
    if step.saturating_abs() <= nanos(STEP_TOLERANCE) / 2 {
        return Ok(None);
    }
    txn.conn.prepare_cached(queries::STORE_SET_SKEW)?.execute([skew])?;
    txn.conn.prepare_cached(queries::RECONSIDER_ALL)?.execute([txn.now.store.as_nanos()])?;
    Ok(Some(step))
}

/// Where the quota file's limits changed, whoever waits was found by the old ones.
fn notice_change(
    txn: &Txn<'_>,
    id: i64,
    known: Option<&[u8]>,
    upstream: &Upstream,
) -> rusqlite::Result<()> {
    let digest = Sha256::digest(format!("{:?}", upstream.limits));
    let digest = digest.get(..8).unwrap_or_default();
    if known == Some(digest) {
        return Ok(());
    }
    let mut set = txn.conn.prepare_cached(queries::UPSTREAM_SET_QUOTA)?;
    set.execute(named_params! { ":id": id, ":quota": digest })?;
    places::reconsider(txn, id)
}

/// A partition at its turn, with the jobs that may be taken of it.
struct Turn {
    partition: i64,
    columns: Columns,
    gate: Option<Index>,
    jobs: VecDeque<HeadJob>,
    /// Whether the jobs are all that the partition has at this priority.
    is_all: bool,
    /// The last call it got in this claim.
    served: Option<CallId>,
}

struct HeadJob {
    id: JobId,
    attempts: u32,
    added_at: Timestamp,
    deadline_at: Option<Timestamp>,
    request: Request,
    columns: Columns,
}

/// What came of asking for one job.
enum Asked {
    Taken,
    /// The job ended without a call.
    Gone,
    /// The partition waits now.
    Waits,
    /// Nobody of this upstream can go.
    Closed,
}

/// One claim at work.
struct Round<'t> {
    txn: &'t Txn<'t>,
    wish: &'t Claim,
    upstream_id: i64,
    instances: Instances<'t>,
    /// Limits without a key, with their instances: asked first, once for all partitions.
    shared: Vec<(usize, Index)>,
    keyed: Vec<usize>,
    claimed: Claimed,
    earliest: Timestamp,
    block_seq: i64,
    call_seq: i64,
    visits: usize,
    /// Limits without a key let nobody go for now.
    closed: bool,
    /// Instances that opened, and those on which somebody began to wait: when they are looked at next
    /// must be settled before the claim ends.
    touched: Vec<Touched>,
}

/// An instance whose waiters changed.
struct Touched {
    index: Index,
    /// The limit's position; `None`: a partition's own gate.
    limit: Option<usize>,
    why: Touch,
}

enum Touch {
    /// It opened, and so many of its waiters were let go.
    Opened { let_go: u64 },
    /// Somebody asked and must wait: until then, or until something in flight ends.
    Asked { again_at: Option<Timestamp> },
}

impl<'t> Round<'t> {
    fn new(
        txn: &'t Txn<'t>,
        wish: &'t Claim,
        upstream_id: i64,
        mut instances: Instances<'t>,
        claimed: Claimed,
    ) -> rusqlite::Result<Self> {
        let mut shared = Vec::new();
        let mut keyed = Vec::new();
        for (limit, declared) in wish.upstream.limits.iter().enumerate() {
            match declared.key.is_empty() {
                true => shared.push((limit, instances.of_limit(limit, &Columns::new())?)),
                false => keyed.push(limit),
            }
        }
        let mut seqs = txn.conn.prepare_cached(queries::STORE_SEQS)?;
        let (block_seq, call_seq) = seqs.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let earliest = txn.now.store + wish.lead;
        Ok(Round {
            txn,
            wish,
            upstream_id,
            instances,
            shared,
            keyed,
            claimed,
            earliest,
            block_seq,
            call_seq,
            visits: 0,
            closed: false,
            touched: Vec::new(),
        })
    }

    /// Lets those be asked whose instant has come, as many as their limit can grant.
    fn wake(&mut self) -> rusqlite::Result<()> {
        let now = self.txn.now.store;
        self.txn.conn.prepare_cached(queries::WAKE_TIMED)?.execute(named_params! {
            ":upstream": self.upstream_id, ":now": now.as_nanos(), ":most": WAKES,
        })?;
        let mut query = self.txn.conn.prepare_cached(queries::INSTANCES_OPEN)?;
        let open = query.query_map(
            named_params! {
                ":upstream": self.upstream_id, ":now": now.as_nanos(), ":most": WAKES,
            },
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?)),
        )?;
        for row in open.collect::<rusqlite::Result<Vec<_>>>()? {
            let (id, name, key) = row;
            self.wake_instance(id, &name, &from_json(&key))?;
        }
        Ok(())
    }

    fn wake_instance(&mut self, id: i64, name: &str, key: &Columns) -> rusqlite::Result<()> {
        let limit = self.wish.upstream.limits.iter().position(|limit| limit.name == name);
        let (index, most) = match limit {
            Some(limit) => {
                let index = self.instances.of_limit(limit, key)?;
                (index, self.grantable(limit, index, key))
            }
            None if name == OWN_GATE => {
                let index = self.instances.own_gate(key)?;
                (index, self.gate_grants(index))
            }
            // The limit is not declared any more: whoever waited for it is free of it.
            None => {
                places::let_go(self.txn, id, u64::MAX)?;
                return places::wake_at(self.txn, id, None);
            }
        };
        places::let_go(self.txn, id, most)?;
        self.touched.push(Touched { index, limit, why: Touch::Opened { let_go: most } });
        Ok(())
    }

    fn gate_grants(&self, index: Index) -> u64 {
        let Some(instance) = self.instances.get(index) else { return 0 };
        let Gate { blocked_until, probing } = instance.block.gate();
        let shut = probing || blocked_until.is_some_and(|until| until > self.earliest);
        match (shut, instance.block.refusals > 0) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => u64::MAX,
        }
    }

    fn grantable(&self, limit: usize, index: Index, key: &Columns) -> u64 {
        let most = self.gate_grants(index).min(self.wish.most as u64);
        let Some(Ask { rule: Some((rule, usage)), lookahead, .. }) =
            self.instances.ask(limit, index, key, 1)
        else {
            return 0;
        };
        match most {
            0 => 0,
            most => grantable(rule, usage, self.txn.now, lookahead.max(self.wish.lead), most),
        }
    }

    fn pick(&mut self) -> rusqlite::Result<()> {
        while self.claimed.calls.len() < self.wish.most {
            if self.visits >= VISITS {
                self.claimed.next_at = Some(self.txn.now.store);
                return Ok(());
            }
            let turns = self.turns()?;
            let Some(turns) = turns else { return Ok(()) };
            if !self.serve(turns)? || self.shared_closed()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the limits without a key let nobody of this upstream go.
    fn shared_closed(&mut self) -> rusqlite::Result<bool> {
        let columns = Columns::new();
        let asks: Vec<_> = self
            .shared
            .iter()
            .filter_map(|(limit, index)| self.instances.ask(*limit, *index, &columns, 1))
            .collect();
        let decision = decide(&asks, self.txn.now, self.earliest);
        match decision {
            Decision::Admit { .. } | Decision::Never { .. } => Ok(false),
            Decision::Wait { until, limit, blocked } => {
                self.close(until, limit, blocked)?;
                Ok(true)
            }
            Decision::Busy { limit } => {
                self.close_busy(limit);
                Ok(true)
            }
        }
    }

    /// Nobody of the upstream goes before something in flight ends.
    fn close_busy(&mut self, limit: Option<String>) {
        self.closed = true;
        self.claimed.next_at = None;
        self.claimed.limit = limit;
    }

    /// Nobody of the upstream goes before `until`; jobs that would be too late by then expire.
    fn close(
        &mut self,
        until: Timestamp,
        limit: Option<String>,
        blocked: bool,
    ) -> rusqlite::Result<()> {
        self.claimed.expired += sweep::expire_upstream(self.txn, self.upstream_id, until)?;
        let declared = limit.as_deref().and_then(|name| self.wish.upstream.limit(name));
        let early = declared.map_or(Duration::ZERO, |limit| self.early(limit, blocked));
        self.closed = true;
        self.claimed.next_at = Some(until - early);
        self.claimed.limit = limit;
        Ok(())
    }

    /// How long before a limit opens its waiters are looked at, so that a claim hands out slots ahead.
    fn early(&self, limit: &crate::quota::Limit, blocked: bool) -> Duration {
        match limit.rule {
            LimitRule::Rate(_) if !blocked => lookahead(&self.wish.upstream, limit) / 2,
            _ => Duration::ZERO,
        }
    }

    /// The ready partitions of the best priority, who was served longest ago first; `None`: none is ready.
    fn turns(&mut self) -> rusqlite::Result<Option<Vec<Turn>>> {
        let room = self.wish.most - self.claimed.calls.len();
        let mut query = self.txn.conn.prepare_cached(queries::READY)?;
        let rows = query.query_map(
            named_params! { ":upstream": self.upstream_id, ":most": stored(room as u64) },
            |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, u8>(2)?,
                    row.get(3)?,
                ))
            },
        )?;
        let rows: Vec<(i64, String, u8, Option<i64>)> = rows.collect::<rusqlite::Result<_>>()?;
        let Some(priority) = rows.first().map(|row| row.2) else { return Ok(None) };
        let group: Vec<_> = rows.into_iter().take_while(|row| row.2 == priority).collect();
        let share = room.div_ceil(group.len());
        let mut turns = Vec::with_capacity(group.len());
        for (partition, key, known, gate) in group {
            // A job of another priority may have come due, or have been cancelled, since it was noted.
            let priority = match places::head(self.txn.conn, partition, self.txn.now.store)? {
                Head::Due { priority } => priority,
                Head::None | Head::Later { .. } => known,
            };
            if priority < known {
                places::refresh(self.txn, partition)?;
                continue;
            }
            let jobs = self.head_jobs(partition, priority, share)?;
            let columns = from_json(&key);
            let gate = match gate {
                Some(_) => Some(self.instances.own_gate(&columns)?),
                None => None,
            };
            let is_all = jobs.len() < share;
            turns.push(Turn { partition, columns, gate, jobs, is_all, served: None });
        }
        Ok(Some(turns))
    }

    fn head_jobs(
        &self,
        partition: i64,
        priority: u8,
        most: usize,
    ) -> rusqlite::Result<VecDeque<HeadJob>> {
        let mut query = self.txn.conn.prepare_cached(queries::HEAD_JOBS)?;
        let rows = query.query_map(
            named_params! {
                ":partition": partition, ":priority": priority,
                ":now": self.txn.now.store.as_nanos(), ":most": stored(most as u64),
            },
            |row| {
                let has_body: bool = row.get("has_body")?;
                let headers: String = row.get("headers")?;
                Ok(HeadJob {
                    id: JobId(row.get("id")?),
                    attempts: row.get("attempts")?,
                    added_at: Timestamp::from_nanos(row.get("added_at")?),
                    deadline_at: row
                        .get::<_, Option<i64>>("deadline_at")?
                        .map(Timestamp::from_nanos),
                    request: Request {
                        method: row.get("method")?,
                        url: row.get("url")?,
                        headers: from_json(&headers),
                        body: has_body.then(|| row.get("body")).transpose()?,
                    },
                    columns: from_json(&row.get::<_, String>("columns")?),
                })
            },
        )?;
        rows.collect()
    }

    /// Takes one job of each partition in turn until nothing more can be taken. Tells whether it makes
    /// sense to look for further partitions.
    fn serve(&mut self, mut turns: Vec<Turn>) -> rusqlite::Result<bool> {
        let mut open = true;
        let mut going = true;
        while open && going {
            going = false;
            for turn in turns.iter_mut().filter(|turn| !turn.jobs.is_empty()) {
                if self.claimed.calls.len() >= self.wish.most {
                    open = false;
                    break;
                }
                match self.serve_one(turn)? {
                    Asked::Taken | Asked::Gone => going = true,
                    Asked::Waits => turn.jobs.clear(),
                    Asked::Closed => {
                        open = false;
                        break;
                    }
                }
            }
        }
        for turn in &turns {
            self.leave(turn)?;
        }
        Ok(open)
    }

    fn serve_one(&mut self, turn: &mut Turn) -> rusqlite::Result<Asked> {
        let Some(job) = turn.jobs.pop_front() else { return Ok(Asked::Gone) };
        let mut places = Vec::with_capacity(self.shared.len() + self.keyed.len());
        for (limit, index) in &self.shared {
            places.push((*limit, *index, self.cost(*limit, &job)));
        }
        for limit in &self.keyed {
            let index = self.instances.of_limit(*limit, &turn.columns)?;
            places.push((*limit, index, self.cost(*limit, &job)));
        }
        let mut asks: Vec<_> = places
            .iter()
            .filter_map(|(limit, index, cost)| {
                self.instances.ask(*limit, *index, &turn.columns, *cost)
            })
            .collect();
        asks.extend(turn.gate.and_then(|gate| self.instances.ask_gate(gate)));
        let decision = decide(&asks, self.txn.now, self.earliest);
        match decision {
            Decision::Admit { slot } => self.take(turn, job, &places, slot),
            Decision::Wait { until, limit, blocked } => {
                self.wait(turn, limit, Some(until), blocked)
            }
            Decision::Busy { limit } => self.wait(turn, limit, None, false),
            Decision::Never { limit } => {
                self.claimed.failed += 1;
                sweep::fail_oversized(self.txn, job.id, &limit)?;
                Ok(Asked::Gone)
            }
        }
    }

    fn cost(&self, limit: usize, job: &HeadJob) -> u64 {
        match self.wish.upstream.limits.get(limit).map(|limit| &limit.cost) {
            Some(Cost::Column(name)) => {
                // A figure that cannot be read can never be charged right: it counts as endless.
                job.columns.get(name).map_or(1, |text| text.trim().parse().unwrap_or(u64::MAX))
            }
            _ => 1,
        }
    }

    /// The partition waits for the binding limit; or, where that is everybody's, everybody does.
    fn wait(
        &mut self,
        turn: &mut Turn,
        limit: Option<String>,
        until: Option<Timestamp>,
        blocked: bool,
    ) -> rusqlite::Result<Asked> {
        self.visits += 1;
        let position = limit
            .as_deref()
            .and_then(|name| self.wish.upstream.limits.iter().position(|limit| limit.name == name));
        if let Some(position) = position
            && self.shared.iter().any(|(shared, _)| *shared == position)
        {
            match until {
                Some(until) => self.close(until, limit, blocked)?,
                None => self.close_busy(limit),
            }
            return Ok(Asked::Closed);
        }
        let index = match position {
            Some(position) => self.instances.of_limit(position, &turn.columns)?,
            None => self.instances.own_gate(&turn.columns)?,
        };
        if let Some(until) = until {
            self.claimed.expired += sweep::expire_partition(self.txn, turn.partition, until)?;
        }
        let instance = self.instances.row(index)?;
        places::wait_on(self.txn, turn.partition, instance)?;
        let early = position
            .and_then(|position| self.wish.upstream.limits.get(position))
            .map_or(Duration::ZERO, |limit| self.early(limit, blocked));
        let again_at = until.map(|until| until - early);
        self.touched.push(Touched { index, limit: position, why: Touch::Asked { again_at } });
        Ok(Asked::Waits)
    }

    /// Makes a call of one job, with its permits.
    fn take(
        &mut self,
        turn: &mut Turn,
        job: HeadJob,
        places: &[(usize, Index, u64)],
        slot: Timestamp,
    ) -> rusqlite::Result<Asked> {
        if job.deadline_at.is_some_and(|deadline| deadline < slot) {
            self.claimed.expired += 1;
            sweep::expire_job(self.txn, job.id, slot)?;
            return Ok(Asked::Gone);
        }
        let upstream = &self.wish.upstream;
        self.call_seq += 1;
        let id = CallId(self.call_seq);
        let mut taken: Vec<TakenFrom> = Vec::with_capacity(places.len());
        let mut paced = false;
        let mut counted = Vec::new();
        for (limit, index, cost) in places {
            taken.extend(self.instances.charge(*limit, *index, &turn.columns, *cost, slot)?);
            self.instances.take_probe(*index, id)?;
            match upstream.limits.get(*limit).map(|limit| &limit.rule) {
                Some(LimitRule::Concurrency(_)) => counted.push(self.instances.row(*index)?),
                Some(LimitRule::Rate(_)) => paced = true,
                _ => {}
            }
        }
        if let Some(gate) = turn.gate {
            self.instances.take_probe(gate, id)?;
        }
        let expires_at = slot + upstream.request.timeout + LEASE_MARGIN;
        let repeatable = upstream.request.is_repeatable(&job.request.method);
        self.record(turn.partition, id, slot, expires_at, repeatable, &taken, &counted, &job)?;
        turn.served = Some(id);
        self.claimed.calls.push(Call {
            id,
            partition: turn.columns.clone(),
            slot_at: slot,
            expires_at,
            block_seq: self.block_seq,
            repeatable,
            paced,
            job: ClaimedJob {
                id: job.id,
                attempt: job.attempts + 1,
                request: job.request,
                columns: job.columns,
                added_at: job.added_at,
                deadline_at: job.deadline_at,
            },
        });
        Ok(Asked::Taken)
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of one row")]
    fn record(
        &self,
        partition: i64,
        id: CallId,
        slot: Timestamp,
        expires_at: Timestamp,
        repeatable: bool,
        taken: &[TakenFrom],
        counted: &[i64],
        job: &HeadJob,
    ) -> rusqlite::Result<()> {
        let conn = self.txn.conn;
        let taken = serde_json::to_string(taken).unwrap_or_default();
        conn.prepare_cached(queries::CALL_ADD)?.execute(named_params! {
            ":id": id.0, ":runner": self.wish.runner.0, ":partition": partition,
            ":slot": slot.as_nanos(), ":expires": expires_at.as_nanos(),
            ":repeatable": repeatable, ":taken": taken,
        })?;
        conn.prepare_cached(queries::RUNNING_ADD)?.execute(named_params! {
            ":job": job.id.0, ":call": id.0, ":n": job.attempts + 1,
        })?;
        for instance in counted {
            let mut add = conn.prepare_cached(queries::IN_FLIGHT_ADD)?;
            add.execute(named_params! { ":instance": instance, ":call": id.0 })?;
        }
        Ok(())
    }

    /// Where a partition stands after its turn.
    fn leave(&mut self, turn: &Turn) -> rusqlite::Result<()> {
        if let Some(served) = turn.served {
            let mut set = self.txn.conn.prepare_cached(queries::PARTITION_SERVED)?;
            set.execute(named_params! { ":id": turn.partition, ":served": served.0 })?;
        }
        if turn.is_all && turn.jobs.is_empty() {
            places::refresh(self.txn, turn.partition)?;
        }
        Ok(())
    }

    fn finish(mut self) -> rusqlite::Result<Claimed> {
        if !self.claimed.calls.is_empty() {
            let mut set = self.txn.conn.prepare_cached(queries::STORE_SET_CALL_SEQ)?;
            set.execute([self.call_seq])?;
        }
        self.instances.save()?;
        self.settle_wakes()?;
        if !self.closed {
            let wake = self.next_wake()?;
            let known = self.claimed.next_at.into_iter().chain(wake).min();
            self.claimed.next_at = known;
        }
        self.claimed.calls.sort_by_key(|call| call.slot_at);
        Ok(self.claimed)
    }

    fn next_wake(&self) -> rusqlite::Result<Option<Timestamp>> {
        let mut query = self.txn.conn.prepare_cached(queries::NEXT_WAKE)?;
        let wake: Option<i64> = query
            .query_row(named_params! { ":upstream": self.upstream_id }, |row| row.get(0))
            .optional()?
            .flatten();
        Ok(wake.map(Timestamp::from_nanos))
    }

    /// Decides for each touched instance when its waiters are looked at next.
    fn settle_wakes(&mut self) -> rusqlite::Result<()> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_by_key(|touched| touched.index);
        for group in touched.chunk_by(|a, b| a.index == b.index) {
            let Some(Touched { index, limit, .. }) = group.first() else { continue };
            let id = self.instances.row(*index)?;
            let at = match places::has_waiters(self.txn.conn, id)? {
                true => self.look_again(group, *limit, *index),
                false => None,
            };
            places::wake_at(self.txn, id, at)?;
        }
        Ok(())
    }

    /// Who asked and must wait says until when; where nobody asked, the limit itself does.
    fn look_again(
        &self,
        group: &[Touched],
        limit: Option<usize>,
        index: Index,
    ) -> Option<Timestamp> {
        let mut asked = Vec::new();
        let mut released = 0;
        for touched in group {
            match touched.why {
                Touch::Asked { again_at } => asked.push(again_at),
                Touch::Opened { let_go } => released += let_go,
            }
        }
        if !asked.is_empty() {
            return asked.into_iter().flatten().min();
        }
        let soon = self.txn.now.store + NEAR;
        let open = self.next_open(limit, index);
        // An instance that let nobody go must not be asked again in the same instant.
        if released == 0 { open.map(|at| at.max(soon)) } else { open }
    }

    /// When an instance could let one more go; `None`: when something in flight ends.
    fn next_open(&self, limit: Option<usize>, index: Index) -> Option<Timestamp> {
        let key = from_json(&self.instances.get(index)?.key);
        let ask = match limit {
            Some(limit) => self.instances.ask(limit, index, &key, 1),
            None => self.instances.ask_gate(index),
        }?;
        let declared = limit.and_then(|limit| self.wish.upstream.limits.get(limit));
        match decide(&[ask], self.txn.now, self.earliest) {
            Decision::Admit { slot } => Some(slot - NEAR),
            Decision::Wait { until, blocked, .. } => {
                let early = declared.map_or(Duration::ZERO, |limit| self.early(limit, blocked));
                Some(until - early)
            }
            Decision::Busy { .. } | Decision::Never { .. } => None,
        }
    }
}
