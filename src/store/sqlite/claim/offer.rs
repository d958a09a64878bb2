//! Turns of other processes: each of two sides, the queue and the callers who wait for jobs of their own,
//! gets its turn, whoever claims. Who is at its turn is offered it, and what it would take is left to it
//! for a short while; who lets that pass stands aside until it asks for calls itself.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::{OptionalExtension, named_params};

use super::turns::{Asked, HeadJob, Turn};
use super::wait::Permit;
use super::{Round, grantable};
use crate::clock::Timestamp;
use crate::store::RunnerId;
use crate::store::sqlite::instances::Index;
use crate::store::sqlite::places::{self, Line};
use crate::store::sqlite::queries;

/// A turn is offered for so long: a process that waits looks for news more often.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is left to others in one claim.
#[derive(Default)]
pub(super) struct Offers {
    /// Units of each instance.
    promised: HashMap<Index, u64>,
    /// Until when each owner's turn is offered; `None`: it let it pass.
    owners: HashMap<i64, Option<Timestamp>>,
    /// Whether anybody is there who sends the queue's jobs, as far as that was looked at.
    queue: Option<bool>,
    /// When the first of the offers lapses that this claim left something to.
    pub until: Option<Timestamp>,
    /// Something of this claim's own waits for that.
    pub is_waited_for: bool,
}

impl Round<'_> {
    /// Whether the job is one that this claim may take.
    pub(super) fn is_own(&self, turn: &Turn, job: &HeadJob) -> bool {
        match self.wish.owned {
            true => job.owner == Some(self.wish.runner),
            false => turn.line == Line::Queue,
        }
    }

    /// Whoever claims is there: a turn that was offered to it is taken, or was missed until now.
    pub(super) fn show_up(&mut self) -> rusqlite::Result<()> {
        let (conn, now) = (self.txn.conn, self.txn.now.store);
        let params = named_params! { ":runner": self.wish.runner.0, ":upstream": self.upstream_id };
        let mut taken = conn.prepare_cached(queries::OFFER_TAKEN)?;
        let until: Option<i64> = taken.query_row(params, |row| row.get(0)).optional()?;
        if !self.wish.owned || until.is_none_or(|until| until > now.as_nanos()) {
            return Ok(());
        }
        let mut back = conn.prepare_cached(queries::OWNED_BACK)?;
        let rows = back.query_map(
            named_params! { ":owner": self.wish.runner.0, ":upstream": self.upstream_id },
            |row| row.get(0),
        )?;
        self.refresh(rows.collect::<rusqlite::Result<Vec<i64>>>()?)
    }

    fn refresh(&self, mut partitions: Vec<i64>) -> rusqlite::Result<()> {
        partitions.sort_unstable();
        partitions.dedup();
        partitions.into_iter().try_for_each(|partition| places::refresh(self.txn, partition))
    }

    /// Whether anybody is there who sends the queue's jobs. One that let its turn pass is not.
    pub(super) fn has_queue(&mut self) -> rusqlite::Result<bool> {
        if !self.wish.owned {
            return Ok(true);
        }
        if let Some(known) = self.offers.queue {
            return Ok(known);
        }
        let now = self.txn.now.store.as_nanos();
        let is_there = |(_, until): &(RunnerId, Option<i64>)| until.is_none_or(|until| until > now);
        let known = self.queue_takers()?.iter().any(is_there);
        self.offers.queue = Some(known);
        Ok(known)
    }

    fn queue_takers(&self) -> rusqlite::Result<Vec<(RunnerId, Option<i64>)>> {
        let mut takers = self.txn.conn.prepare_cached(queries::QUEUE_TAKERS)?;
        let rows = takers.query_map(
            named_params! { ":upstream": self.upstream_id, ":name": self.wish.upstream.name },
            |row| Ok((RunnerId(row.get(0)?), row.get(1)?)),
        )?;
        rows.collect()
    }

    /// Another process is at its turn, and could go: it is offered that, and what it takes left to it.
    pub(super) fn offer(
        &mut self,
        turn: &mut Turn,
        job: &HeadJob,
        permits: &[Permit],
    ) -> rusqlite::Result<Asked> {
        turn.is_offered = true;
        let until = match job.owner {
            Some(owner) => self.offer_owner(owner)?,
            None => self.offer_queue()?,
        };
        let Some(until) = until else { return Ok(Asked::Gone) };
        for (_, index, cost) in permits {
            *self.offers.promised.entry(*index).or_default() += cost;
        }
        self.offers.until = self.offers.until.into_iter().chain([until]).min();
        Ok(Asked::Offered)
    }

    fn offer_owner(&mut self, owner: RunnerId) -> rusqlite::Result<Option<Timestamp>> {
        if let Some(known) = self.offers.owners.get(&owner.0) {
            return Ok(*known);
        }
        let params = named_params! { ":runner": owner.0, ":upstream": self.upstream_id };
        let mut offered = self.txn.conn.prepare_cached(queries::OFFERED)?;
        let until: Option<i64> = offered.query_row(params, |row| row.get(0)).optional()?;
        let until = match until.map(Timestamp::from_nanos) {
            Some(until) if until > self.txn.now.store => Some(until),
            Some(_) => {
                self.set_aside(owner)?;
                None
            }
            None => Some(self.offer_to(owner)?),
        };
        self.offers.owners.insert(owner.0, until);
        Ok(until)
    }

    fn set_aside(&mut self, owner: RunnerId) -> rusqlite::Result<()> {
        let mut aside = self.txn.conn.prepare_cached(queries::OWNED_ASIDE)?;
        let rows = aside.query_map(
            named_params! {
                ":owner": owner.0, ":upstream": self.upstream_id,
                ":now": self.txn.now.store.as_nanos(),
            },
            |row| row.get(0),
        )?;
        let partitions = rows.collect::<rusqlite::Result<Vec<i64>>>()?;
        self.moves += partitions.len();
        self.refresh(partitions)
    }

    fn offer_queue(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        let mut latest = None;
        for (taker, until) in self.queue_takers()? {
            let until = match until.map(Timestamp::from_nanos) {
                None => Some(self.offer_to(taker)?),
                Some(until) => Some(until).filter(|until| *until > self.txn.now.store),
            };
            latest = latest.max(until);
        }
        Ok(latest)
    }

    fn offer_to(&self, taker: RunnerId) -> rusqlite::Result<Timestamp> {
        let until = self.txn.now.store + PATIENCE;
        let mut offer = self.txn.conn.prepare_cached(queries::OFFER)?;
        offer.execute(named_params! {
            ":runner": taker.0, ":upstream": self.upstream_id, ":until": until.as_nanos(),
        })?;
        places::bump_news(self.txn.conn)?;
        Ok(until)
    }

    /// Whether a call with these permits would take what is left to another process.
    pub(super) fn is_promised(&self, turn: &Turn, permits: &[Permit]) -> bool {
        permits.iter().any(|(limit, index, cost)| {
            let Some(promised) = self.offers.promised.get(index).filter(|units| **units > 0) else {
                return false;
            };
            let wanted = promised.saturating_add(*cost);
            let ask = self.instances.ask_in(turn.line, *limit, *index, &turn.columns, *cost);
            ask.is_some_and(|ask| {
                let lookahead = ask.lookahead.max(self.wish.lead);
                grantable(&ask, self.txn.now, lookahead, wanted) < wanted
            })
        })
    }
}
