//! One partition, or everybody, must wait.

use std::time::Duration;

use super::turns::{Asked, HeadJob, Ready, Turn};
use super::wake::{Touch, Touched};
use super::{Decision, LimitRule, Line, Round, decide};
use crate::clock::Timestamp;
use crate::store::sqlite::instances::{Index, from_json};
use crate::store::sqlite::places;
use crate::store::sqlite::sweep::{self, Late};

/// A limit that a job must pass: its position, its instance, the units that the job takes of it.
pub(super) type Permit = (usize, Index, u64);

/// The answer to one job that cannot go now.
pub(super) struct Refused {
    /// The limit that binds; `None`: the partition's own gate.
    pub limit: Option<String>,
    /// When it could go; `None`: when something in flight ends.
    pub until: Option<Timestamp>,
    /// Whether a refusal closes it, rather than our own count.
    pub blocked: bool,
}

/// Where a partition waits.
struct Place {
    index: Index,
    /// The limit's position; `None`: the partition's own gate.
    limit: Option<usize>,
}

impl Round<'_> {
    /// The partition waits for the binding limit; or, where that lets nobody go, everybody waits.
    pub(super) fn wait(
        &mut self,
        turn: &Turn,
        jobs: &[HeadJob],
        permits: &[Permit],
        refused: Refused,
    ) -> rusqlite::Result<Asked> {
        self.visits += 1;
        self.moves += 1;
        let binder = self.position(refused.limit.as_deref());
        let is_shared = self.shared.iter().any(|(shared, _)| Some(*shared) == binder);
        if is_shared && self.shared_closed()? {
            return Ok(Asked::Closed);
        }
        let index = permits.iter().find(|(limit, ..)| Some(*limit) == binder);
        let surely =
            |until| index.map_or(until, |(_, index, _)| self.surely(binder, *index, until));
        if let Some(could_go_at) = refused.until.map(surely)
            && self.expire(turn, jobs, Late { could_go_at, limit: refused.limit.as_deref() })?
        {
            return Ok(Asked::Gone);
        }
        let place = match is_shared {
            true => self.own_place(turn, permits)?,
            false => Some(self.place(turn, binder)?),
        };
        let place = match (place, binder) {
            (Some(place), _) => place,
            // A job takes more units than are left for it, while others would fit. Where they would
            // take what it waits for, they wait behind it; a calendar's next window has room for all, and
            // what is kept for people is nobody else's.
            (None, Some(limit)) if !self.is_budget(limit) && !self.keeps_reserve(limit) => {
                self.close(refused.until, refused.limit, refused.blocked);
                return Ok(Asked::Closed);
            }
            (None, _) => self.place(turn, binder)?,
        };
        self.wait_at(turn.partition, place, &refused)?;
        Ok(Asked::Waits)
    }

    /// The partition has as many calls out as it may have while none is answered.
    pub(super) fn wait_for_answer(&mut self, ready: &Ready) -> rusqlite::Result<()> {
        self.visits += 1;
        self.moves += 1;
        let gate = self.instances.own_gate(&from_json(&ready.key))?;
        let place = Place { index: gate, limit: None };
        self.wait_at(ready.id, place, &Refused { limit: None, until: None, blocked: false })
    }

    fn position(&self, limit: Option<&str>) -> Option<usize> {
        self.wish.upstream.limits.iter().position(|declared| Some(declared.name.as_str()) == limit)
    }

    fn is_budget(&self, limit: usize) -> bool {
        self.limit(limit).is_some_and(|limit| matches!(limit.rule, LimitRule::Budget(_)))
    }

    fn keeps_reserve(&self, limit: usize) -> bool {
        self.limit(limit).is_some_and(|limit| limit.rule.unreserved().is_some())
    }

    fn place(&mut self, turn: &Turn, limit: Option<usize>) -> rusqlite::Result<Place> {
        let index = match limit {
            Some(limit) => self.instances.of_limit(limit, &turn.columns)?,
            None => self.instances.own_gate(&turn.columns)?,
        };
        Ok(Place { index, limit })
    }

    /// What of the partition's own binds it, apart from the limits that all share.
    fn own_place(&mut self, turn: &Turn, permits: &[Permit]) -> rusqlite::Result<Option<Place>> {
        let own = permits.iter().filter(|(limit, ..)| self.keyed.contains(limit));
        let ask = |(limit, index, cost): &Permit| {
            self.instances.ask_in(turn.line, *limit, *index, &turn.columns, *cost)
        };
        let mut asks: Vec<_> = own.filter_map(ask).collect();
        asks.extend(turn.gate.and_then(|gate| self.instances.ask_gate(gate)));
        let binder = match decide(&asks, self.txn.now, self.earliest) {
            Decision::Wait { limit, .. } | Decision::Busy { limit } => limit,
            Decision::Admit { .. } | Decision::Never { .. } => return Ok(None),
        };
        let limit = self.position(binder.as_deref());
        self.place(turn, limit).map(Some)
    }

    /// Ends jobs that would be too late by then. Where jobs take different units, what holds back
    /// one may let another go: then only these are looked at. Tells whether any of them is gone.
    fn expire(&mut self, turn: &Turn, jobs: &[HeadJob], late: Late<'_>) -> rusqlite::Result<bool> {
        if !self.has_costs && turn.line == Line::Queue {
            self.claimed.expired += sweep::expire_partition(self.txn, turn.partition, late)?;
            return Ok(false);
        }
        let too_late =
            |job: &&HeadJob| job.deadline_at.is_some_and(|deadline| deadline < late.could_go_at);
        let mut any = false;
        for job in jobs.iter().filter(too_late) {
            sweep::expire_job(self.txn, job.id, late)?;
            self.claimed.expired += 1;
            any = true;
        }
        Ok(any)
    }

    fn wait_at(&mut self, partition: i64, place: Place, refused: &Refused) -> rusqlite::Result<()> {
        let instance = self.instances.row(place.index)?;
        places::wait_on(self.txn, partition, instance)?;
        let declared = place.limit.and_then(|limit| self.limit(limit));
        let early = declared.map_or(Duration::ZERO, |limit| self.early(limit, refused.blocked));
        let why = Touch::Asked { again_at: refused.until.map(|until| until - early) };
        self.touched.push(Touched { index: place.index, limit: place.limit, why });
        Ok(())
    }
}
