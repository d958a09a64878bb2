//! Jobs become a call, with its permits.

use rusqlite::{named_params, params};

use super::group::Group;
use super::turns::{Asked, HeadJob, Turn};
use super::wait::{Permit, Refused};
use super::{Decision, LimitRule, Line, Round};
use crate::clock::Timestamp;
use crate::job::CallId;
use crate::store::sqlite::instances::{Index, TakenFrom};
use crate::store::sqlite::queries;
use crate::store::sqlite::sweep::{self, Late};
use crate::store::{Call, ClaimedJob};
use std::time::Duration;

/// A lease outlives its call's timeout by this.
const LEASE_MARGIN: Duration = Duration::from_secs(30);

/// What a call took.
#[derive(Default)]
struct Took {
    from: Vec<TakenFrom>,
    /// Instances in whose flight it has a place.
    flights: Vec<i64>,
}

impl Round<'_> {
    /// Asks for the partition's next job, or for as many as go in one call.
    pub(super) fn serve_one(&mut self, turn: &mut Turn) -> rusqlite::Result<Asked> {
        let Some(first) = turn.jobs.pop_front() else { return Ok(Asked::Gone) };
        if self.together(&first, std::iter::empty()) == 0 {
            self.claimed.failed += 1;
            self.moves += 1;
            sweep::fail_too_large(self.txn, first.id)?;
            return Ok(Asked::Gone);
        }
        self.ask(&turn.columns)?;
        let Group { mut jobs, permits, decision } = self.group(turn, first)?;
        match decision {
            Decision::Admit { slot } => self.admit(turn, jobs, &permits, slot),
            // What waits of the queue is its runners' to look after.
            _ if self.wish.owned && turn.line == Line::Queue => Ok(Asked::Waits),
            Decision::Wait { until, limit, blocked } => {
                self.wait(turn, &jobs, &permits, Refused { limit, until: Some(until), blocked })
            }
            Decision::Busy { limit } => {
                self.wait(turn, &jobs, &permits, Refused { limit, until: None, blocked: false })
            }
            Decision::Never { limit } => {
                self.claimed.failed += 1;
                self.moves += 1;
                sweep::fail_oversized(self.txn, jobs.swap_remove(0).id, &limit)?;
                Ok(Asked::Gone)
            }
        }
    }

    /// The jobs could go: it is their turn, whosever they are.
    fn admit(
        &mut self,
        turn: &mut Turn,
        jobs: Vec<HeadJob>,
        permits: &[Permit],
        slot: Timestamp,
    ) -> rusqlite::Result<Asked> {
        match jobs.first() {
            Some(first) if !self.is_own(turn, first) => self.offer(turn, first, permits),
            Some(_) if self.is_promised(turn, permits) => {
                self.offers.is_waited_for = true;
                turn.is_offered = true;
                Ok(Asked::Waits)
            }
            _ => self.take(turn, jobs, permits, slot),
        }
    }

    fn take(
        &mut self,
        turn: &mut Turn,
        jobs: Vec<HeadJob>,
        permits: &[Permit],
        slot: Timestamp,
    ) -> rusqlite::Result<Asked> {
        self.moves += 1;
        let is_late = |job: &HeadJob| job.deadline_at.is_some_and(|deadline| deadline < slot);
        if jobs.iter().any(is_late) {
            return self.expire_late(turn, jobs, slot);
        }
        let mut jobs = jobs.into_iter();
        let Some(first) = jobs.next() else { return Ok(Asked::Gone) };
        self.call_seq += 1;
        let took = self.charge(turn, permits, slot)?;
        let request = &self.wish.upstream.request;
        let is_repeatable = |job: &HeadJob| {
            job.redirect.as_ref().is_some_and(|redirect| redirect.as_get)
                || job.repeatable && request.is_repeatable(&job.request.method)
        };
        let call = Call {
            id: CallId(self.call_seq),
            partition: turn.columns.clone(),
            slot_at: slot,
            expires_at: match first.once {
                // Its owner's life is its lease.
                true => Timestamp::MAX,
                false => slot + request.timeout + LEASE_MARGIN,
            },
            block_seq: self.block_seq,
            repeatable: is_repeatable(&first) && jobs.as_slice().iter().all(is_repeatable),
            marked: first.owner.is_some(),
            once: first.once,
            job: first.claimed(),
            more: jobs.map(HeadJob::claimed).collect(),
        };
        self.record(turn.partition, &call, &took)?;
        turn.served = Some(call.id);
        if self.wish.upstream.batch.as_ref().is_some_and(|batch| !batch.linger.is_zero()) {
            turn.cut_short();
        }
        self.claimed.calls.push(call);
        Ok(Asked::Taken)
    }

    /// Jobs that would be too late at their slot expire; the others of their batch are asked for again.
    fn expire_late(
        &mut self,
        turn: &mut Turn,
        jobs: Vec<HeadJob>,
        slot: Timestamp,
    ) -> rusqlite::Result<Asked> {
        for job in jobs.into_iter().rev() {
            if job.deadline_at.is_some_and(|deadline| deadline < slot) {
                self.claimed.expired += 1;
                sweep::expire_job(self.txn, job.id, Late { could_go_at: slot, limit: None })?;
            } else {
                turn.jobs.push_front(job);
            }
        }
        Ok(Asked::Gone)
    }

    /// Takes what the call needs of each limit, and the probe of what a block left half open.
    fn charge(
        &mut self,
        turn: &Turn,
        permits: &[Permit],
        slot: Timestamp,
    ) -> rusqlite::Result<Took> {
        let id = CallId(self.call_seq);
        let mut took = Took::default();
        for (limit, index, cost) in permits {
            let side = turn.line.side();
            let from = self.instances.charge(*limit, *index, &turn.columns, *cost, slot, side)?;
            took.from.extend(from);
            self.instances.take_probe(*index, id)?;
            let rule = self.limit(*limit).map(|limit| &limit.rule);
            if matches!(rule, Some(LimitRule::Concurrency(_))) {
                took.flights.push(self.instances.row(*index)?);
            }
        }
        let gate: Option<Index> = turn.gate;
        if let Some(gate) = gate {
            self.instances.take_probe(gate, id)?;
        }
        Ok(took)
    }

    fn record(&self, partition: i64, call: &Call, took: &Took) -> rusqlite::Result<()> {
        let conn = self.txn.conn;
        let taken = serde_json::to_string(&took.from).unwrap_or_default();
        conn.prepare_cached(queries::CALL_ADD)?.execute(params![
            call.id.0,
            self.wish.runner.0,
            partition,
            call.slot_at.as_nanos(),
            call.expires_at.as_nanos(),
            call.repeatable,
            call.marked,
            taken,
        ])?;
        let mut running = conn.prepare_cached(queries::RUNNING_ADD)?;
        for job in call.jobs() {
            running.execute(params![job.id.0, call.id.0, job.attempt])?;
        }
        for instance in &took.flights {
            let mut add = conn.prepare_cached(queries::IN_FLIGHT_ADD)?;
            add.execute(named_params! { ":instance": instance, ":call": call.id.0 })?;
        }
        Ok(())
    }
}

impl HeadJob {
    fn claimed(self) -> ClaimedJob {
        ClaimedJob {
            id: self.id,
            attempt: self.attempts + 1,
            added_at: self.added_at,
            request: self.request,
            redirect: self.redirect,
            columns: self.columns,
            deadline_at: self.deadline_at,
        }
    }
}
