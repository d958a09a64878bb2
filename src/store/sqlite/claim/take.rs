//! One job becomes a call, with its permits.

use rusqlite::named_params;

use super::turns::{Asked, HeadJob, Turn};
use super::wait::{Permit, Refused};
use super::{Cost, Decision, LimitRule, Round, decide};
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
    /// Whether its slot is one of a rate.
    paced: bool,
}

impl Round<'_> {
    /// Asks for the partition's next job.
    pub(super) fn serve_one(&mut self, turn: &mut Turn) -> rusqlite::Result<Asked> {
        let Some(job) = turn.jobs.pop_front() else { return Ok(Asked::Gone) };
        self.ask(&turn.columns)?;
        let permits = self.permits(turn, &job)?;
        let mut asks: Vec<_> = permits
            .iter()
            .filter_map(|(limit, index, cost)| {
                self.instances.ask(*limit, *index, &turn.columns, *cost)
            })
            .collect();
        asks.extend(turn.gate.and_then(|gate| self.instances.ask_gate(gate)));
        match decide(&asks, self.txn.now, self.earliest) {
            Decision::Admit { slot } => self.take(turn, job, &permits, slot),
            Decision::Wait { until, limit, blocked } => {
                self.wait(turn, &job, &permits, Refused { limit, until: Some(until), blocked })
            }
            Decision::Busy { limit } => {
                self.wait(turn, &job, &permits, Refused { limit, until: None, blocked: false })
            }
            Decision::Never { limit } => {
                self.claimed.failed += 1;
                sweep::fail_oversized(self.txn, job.id, &limit)?;
                Ok(Asked::Gone)
            }
        }
    }

    /// The limits that the job must pass.
    fn permits(&mut self, turn: &Turn, job: &HeadJob) -> rusqlite::Result<Vec<Permit>> {
        let mut permits = Vec::with_capacity(self.shared.len() + self.keyed.len());
        for (limit, index) in &self.shared {
            permits.push((*limit, *index, self.cost(*limit, job)));
        }
        for limit in &self.keyed {
            let index = self.instances.of_limit(*limit, &turn.columns)?;
            permits.push((*limit, index, self.cost(*limit, job)));
        }
        Ok(permits)
    }

    fn cost(&self, limit: usize, job: &HeadJob) -> u64 {
        match self.limit(limit).map(|limit| &limit.cost) {
            Some(Cost::Column(name)) => {
                // A figure that cannot be read can never be charged right: it counts as endless.
                job.columns.get(name).map_or(1, |text| text.trim().parse().unwrap_or(u64::MAX))
            }
            _ => 1,
        }
    }

    fn take(
        &mut self,
        turn: &mut Turn,
        job: HeadJob,
        permits: &[Permit],
        slot: Timestamp,
    ) -> rusqlite::Result<Asked> {
        if job.deadline_at.is_some_and(|deadline| deadline < slot) {
            self.claimed.expired += 1;
            sweep::expire_job(self.txn, job.id, Late { could_go_at: slot, limit: None })?;
            return Ok(Asked::Gone);
        }
        self.call_seq += 1;
        let took = self.charge(turn, permits, slot)?;
        let request = &self.wish.upstream.request;
        let call = Call {
            id: CallId(self.call_seq),
            partition: turn.columns.clone(),
            slot_at: slot,
            expires_at: slot + request.timeout + LEASE_MARGIN,
            block_seq: self.block_seq,
            repeatable: job.redirect.as_ref().is_some_and(|redirect| redirect.as_get)
                || job.repeatable && request.is_repeatable(&job.request.method),
            paced: took.paced,
            job: ClaimedJob {
                id: job.id,
                attempt: job.attempts + 1,
                added_at: job.added_at,
                request: job.request,
                redirect: job.redirect,
                columns: job.columns,
                deadline_at: job.deadline_at,
            },
        };
        self.record(turn.partition, &call, &took)?;
        turn.served = Some(call.id);
        self.claimed.calls.push(call);
        Ok(Asked::Taken)
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
            let from = self.instances.charge(*limit, *index, &turn.columns, *cost, slot)?;
            took.from.extend(from);
            self.instances.take_probe(*index, id)?;
            match self.limit(*limit).map(|limit| &limit.rule) {
                Some(LimitRule::Concurrency(_)) => took.flights.push(self.instances.row(*index)?),
                Some(LimitRule::Rate(_)) => took.paced = true,
                _ => {}
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
        conn.prepare_cached(queries::CALL_ADD)?.execute(named_params! {
            ":id": call.id.0, ":runner": self.wish.runner.0, ":partition": partition,
            ":slot": call.slot_at.as_nanos(), ":expires": call.expires_at.as_nanos(),
            ":repeatable": call.repeatable, ":taken": taken,
        })?;
        conn.prepare_cached(queries::RUNNING_ADD)?.execute(named_params! {
            ":job": call.job.id.0, ":call": call.id.0, ":n": call.job.attempt,
        })?;
        for instance in &took.flights {
            let mut add = conn.prepare_cached(queries::IN_FLIGHT_ADD)?;
            add.execute(named_params! { ":instance": instance, ":call": call.id.0 })?;
        }
        Ok(())
    }
}
