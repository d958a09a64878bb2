//! The ready partitions at their turn, with the jobs that may be taken of each.

use std::collections::VecDeque;

use rusqlite::named_params;

use super::Round;
use crate::clock::Timestamp;
use crate::job::{CallId, Columns, JobId, Request};
use crate::quota::batch::Batch;
use crate::redirect::Redirect;
use crate::store::RunnerId;
use crate::store::sqlite::fields::Fields;
use crate::store::sqlite::instances::{Index, from_json};
use crate::store::sqlite::places::{self, Line, Side};
use crate::store::sqlite::queries;
use crate::store::sqlite::usage::stored;

/// So many jobs of callers are looked at for those of one of them.
const LOOK: usize = 64;

/// So many partitions of callers, at least, are looked at for those with own jobs.
const LISTED: usize = 64;

/// A partition at its turn, with the jobs that may be taken of it.
pub(super) struct Turn {
    pub partition: i64,
    pub line: Line,
    pub columns: Columns,
    pub gate: Option<Index>,
    pub jobs: VecDeque<HeadJob>,
    /// Whether the jobs are all that the partition has at this priority.
    is_all: bool,
    /// The last call it got in this claim.
    pub served: Option<CallId>,
    /// Jobs of it were left to their owners, or for others' turn.
    pub is_offered: bool,
}

/// A job that may be taken.
pub(super) struct HeadJob {
    pub id: JobId,
    pub attempts: u32,
    pub added_at: Timestamp,
    pub due_at: Timestamp,
    pub deadline_at: Option<Timestamp>,
    pub repeatable: bool,
    pub request: Request,
    pub redirect: Option<Redirect>,
    pub columns: Columns,
    /// Who alone sends it; `None`: whoever sends the queue.
    pub owner: Option<RunnerId>,
    /// It ends with its call.
    pub once: bool,
    /// What it takes of limits that count calls.
    pub units: u64,
    /// Its last try met a refusal that only a person can lift.
    refused_hard: bool,
}

impl Turn {
    /// Leaves the other jobs for another turn: they may have to wait for company anew.
    pub(super) fn cut_short(&mut self) {
        self.is_all &= self.jobs.is_empty();
        self.jobs.clear();
    }
}

/// Which jobs of a partition are wanted.
#[derive(Clone, Copy)]
enum Which {
    Any,
    /// Those that were not refused in a way that only a person can mend.
    Unrefused,
}

/// What came of asking for one job.
pub(super) enum Asked {
    Taken,
    /// It is another process's turn, which was told so.
    Offered,
    /// The job ended without a call.
    Gone,
    /// The partition waits now.
    Waits,
    /// Nobody of this upstream can go.
    Closed,
}

/// A row of the ready partitions.
pub(super) struct Ready {
    pub id: i64,
    pub key: String,
    line: Line,
    /// The priority of its head, as noted.
    priority: u8,
    has_gate: bool,
    answered: bool,
    /// Jobs in its next batches, where that is less than usual.
    batch_most: Option<u32>,
    /// A person let it go on, or it was refused in a way that only a person can mend; and nothing got
    /// through since.
    doubted: bool,
}

impl Ready {
    /// How many jobs its next call may carry. What probes whether a hold is over is one job, not a batch.
    fn most(&self, batch: &Batch, probes: bool) -> usize {
        match self.batch_most {
            _ if probes && self.doubted => 1,
            Some(most) => batch.max_items.min(most as usize),
            None => batch.max_items,
        }
    }
}

impl Round<'_> {
    /// The ready partitions of the best priority, who was served longest ago first, of both sides in
    /// turn; `None`: none is ready.
    pub(super) fn turns(&mut self) -> rusqlite::Result<Option<Vec<Turn>>> {
        let room = self.room();
        let queue = match self.has_queue()? {
            true => self.ready(queries::READY, room)?,
            false => Vec::new(),
        };
        let callers = self.ready(queries::READY_CALLERS, room.max(LISTED))?;
        if queue.is_empty() && callers.is_empty() {
            return Ok(None);
        }
        let own = if self.wish.owned { callers.len() } else { queue.len() };
        let share = room.div_ceil(own.max(1));
        let sides = match self.last {
            Side::Queue => [callers, queue],
            Side::Callers => [queue, callers],
        };
        let [first, second] = sides.map(Vec::into_iter);
        let mut turns = Vec::new();
        for ready in alternated(first, second) {
            let others = !self.wish.owned || ready.line != Line::Queue;
            let share = match ready.answered || ready.line != Line::Queue {
                true => share,
                false => share.min(self.wish.unanswered.saturating_sub(self.calls_of(ready.id)?)),
            };
            match share {
                0 => self.wait_for_answer(&ready)?,
                // The queue's jobs are not this claim's: one of each partition stands for its turn.
                share => turns.extend(self.turn(ready, if others { share } else { 1 })?),
            }
        }
        Ok(Some(turns))
    }

    fn calls_of(&self, partition: i64) -> rusqlite::Result<usize> {
        let mut count = self.txn.conn.prepare_cached(queries::PARTITION_CALLS)?;
        count.query_row([partition], |row| row.get::<_, u32>(0)).map(|calls| calls as usize)
    }

    /// Those of the best priority.
    fn ready(&self, query: &str, most: usize) -> rusqlite::Result<Vec<Ready>> {
        let mut query = self.txn.conn.prepare_cached(query)?;
        let rows = query.query_map(
            named_params! { ":upstream": self.upstream_id, ":most": stored(most as u64) },
            |row| {
                let row = Fields::of(row);
                Ok(Ready {
                    id: row.next()?,
                    key: row.next()?,
                    line: Line::of(row.next()?),
                    priority: row.next()?,
                    has_gate: row.next::<Option<i64>>()?.is_some(),
                    answered: row.next()?,
                    batch_most: row.next()?,
                    doubted: row.next::<u32>()? > 0,
                })
            },
        )?;
        let ready = rows.collect::<rusqlite::Result<Vec<Ready>>>()?;
        let best = ready.first().map(|ready| ready.priority);
        Ok(ready.into_iter().take_while(|ready| Some(ready.priority) == best).collect())
    }

    /// Where the priority was noted too high, there are no jobs, and the partition is looked at anew
    /// when it leaves. Of batches one is put together at a turn. `None`: it waits for more jobs.
    fn turn(&mut self, ready: Ready, share: usize) -> rusqlite::Result<Option<Turn>> {
        let columns = from_json(&ready.key);
        let gate = match ready.has_gate {
            true => Some(self.instances.own_gate(&columns)?),
            false => None,
        };
        let probes = gate.and_then(|gate| self.instances.get(gate));
        let probes = probes.is_some_and(|gate| gate.block.is_half_open());
        let batch = self.wish.upstream.batch.as_ref().filter(|_| ready.line == Line::Queue);
        let most = match (batch, ready.line) {
            (Some(batch), _) => ready.most(batch, probes),
            (None, Line::Queue) => share,
            // Its own jobs stand among those of other owners.
            (None, _) if self.wish.owned => share.max(LOOK),
            (None, _) => share,
        };
        let unrefused = match ready.doubted && ready.line == Line::Queue {
            true => self.unrefused(ready.id, ready.priority, most)?,
            false => VecDeque::new(),
        };
        let all_may = unrefused.is_empty();
        let jobs = match all_may {
            true => self.head_jobs(ready.id, ready.priority, Which::Any, most)?,
            false => unrefused,
        };
        if let Some(until) = batch.and_then(|batch| self.lingers(batch, &jobs, most))
            && until > self.txn.now.store
        {
            self.moves += 1;
            let mut linger = self.txn.conn.prepare_cached(queries::PARTITION_LINGER)?;
            linger.execute(named_params! { ":id": ready.id, ":at": until.as_nanos() })?;
            return Ok(None);
        }
        let is_all = all_may && jobs.len() < most;
        let (partition, line, served) = (ready.id, ready.line, None);
        Ok(Some(Turn { partition, line, columns, gate, jobs, is_all, served, is_offered: false }))
    }

    /// Until when a batch of these jobs waits for more. One that was on its way already does not, nor one
    /// that has no room for all of them.
    fn lingers(&self, batch: &Batch, jobs: &VecDeque<HeadJob>, most: usize) -> Option<Timestamp> {
        let first = jobs.front().filter(|first| first.attempts == 0)?;
        let deadline = jobs.iter().filter_map(|job| job.deadline_at).min();
        let until = batch.lingers(jobs.len(), most, first.due_at, deadline)?;
        (self.together(first, jobs.iter().skip(1)) == jobs.len()).then_some(until)
    }

    /// While it is in doubt whether anybody gets through, those that were not refused go first, of a lower
    /// priority too: else the same job would be refused again and again, and nobody else be tried.
    fn unrefused(
        &self,
        partition: i64,
        priority: u8,
        most: usize,
    ) -> rusqlite::Result<VecDeque<HeadJob>> {
        let first = self.head_jobs(partition, priority, Which::Any, 1)?;
        if !first.front().is_some_and(|first| first.refused_hard) {
            return Ok(VecDeque::new());
        }
        let mut level = Some(priority);
        while let Some(priority) = level {
            let jobs = self.head_jobs(partition, priority, Which::Unrefused, most)?;
            if !jobs.is_empty() {
                return Ok(jobs);
            }
            level = places::level_below(self.txn.conn, partition, priority)?;
        }
        Ok(VecDeque::new())
    }

    fn head_jobs(
        &self,
        partition: i64,
        priority: u8,
        which: Which,
        most: usize,
    ) -> rusqlite::Result<VecDeque<HeadJob>> {
        let mut query = self.txn.conn.prepare_cached(queries::HEAD_JOBS)?;
        let rows = query.query_map(
            named_params! {
                ":partition": partition, ":priority": priority,
                ":hard": matches!(which, Which::Any),
                ":now": self.txn.now.store.as_nanos(), ":most": stored(most as u64),
            },
            head_job,
        )?;
        rows.collect()
    }

    /// Where a partition stands after its turn.
    pub(super) fn leave(&mut self, turn: &Turn) -> rusqlite::Result<()> {
        if let Some(served) = turn.served {
            let mut set = self.txn.conn.prepare_cached(queries::PARTITION_SERVED)?;
            set.execute(named_params! { ":id": turn.partition, ":served": served.0 })?;
        }
        if turn.is_all && turn.jobs.is_empty() && !turn.is_offered {
            self.moves += 1;
            places::refresh(self.txn, turn.partition)?;
        }
        Ok(())
    }
}

fn head_job(row: &rusqlite::Row<'_>) -> rusqlite::Result<HeadJob> {
    let row = &Fields::of(row);
    let id = JobId(row.next()?);
    let attempts = row.next()?;
    let added_at = Timestamp::from_nanos(row.next()?);
    let due_at = Timestamp::from_nanos(row.next()?);
    let deadline_at = row.next::<Option<i64>>()?.map(Timestamp::from_nanos);
    let url = row.next()?;
    let columns = from_json(&row.next::<String>()?);
    let repeatable = row.next()?;
    let method = row.next()?;
    let headers = from_json(&row.next::<String>()?);
    let body: String = row.next()?;
    let has_body: bool = row.next()?;
    Ok(HeadJob {
        id,
        attempts,
        added_at,
        due_at,
        deadline_at,
        repeatable,
        request: Request { method, url, headers, body: has_body.then_some(body) },
        redirect: redirect(row)?,
        columns,
        owner: row.next::<Option<i64>>()?.map(RunnerId),
        once: row.next::<Option<bool>>()?.unwrap_or(false),
        units: row.next::<Option<i64>>()?.map_or(1, i64::unsigned_abs),
        refused_hard: row.next()?,
    })
}

/// One of each in turn, and then what is left of the longer.
fn alternated<T>(
    mut first: impl Iterator<Item = T>,
    mut second: impl Iterator<Item = T>,
) -> impl Iterator<Item = T> {
    let mut turn = false;
    std::iter::from_fn(move || {
        turn = !turn;
        if turn {
            first.next().or_else(|| second.next())
        } else {
            second.next().or_else(|| first.next())
        }
    })
}

fn redirect(row: &Fields<'_, '_>) -> rusqlite::Result<Option<Redirect>> {
    let url: Option<String> = row.next()?;
    let (hops, as_get, away): (Option<u32>, Option<bool>, Option<bool>) =
        (row.next()?, row.next()?, row.next()?);
    let redirected = url.zip(hops).zip(as_get.zip(away));
    Ok(redirected.map(|((url, hops), (as_get, away))| Redirect { url, hops, as_get, away }))
}
