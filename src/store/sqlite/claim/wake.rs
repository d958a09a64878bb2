//! Instants that have come, and when the instances on which somebody waits are looked at next.

use std::time::Duration;

use rusqlite::{OptionalExtension, named_params};

use super::{Decision, Line, Round, Side, decide, grantable};
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::decide::{Gate, NEAR};
use crate::store::sqlite::instances::{Index, OWN_GATE, from_json};
use crate::store::sqlite::{places, queries};

/// Instances and timed partitions that one claim wakes.
const WAKES: i64 = 512;

/// An instance whose waiters changed.
pub(super) struct Touched {
    pub index: Index,
    /// The limit's position; `None`: a partition's own gate.
    pub limit: Option<usize>,
    pub why: Touch,
}

pub(super) enum Touch {
    /// It opened, and so many of its waiters were let go.
    Opened { let_go: u64 },
    /// Somebody asked and must wait: until then, or until something in flight ends.
    Asked { again_at: Option<Timestamp> },
}

impl Round<'_> {
    /// Lets those be asked whose instant has come, as many as their limit can grant.
    pub(super) fn wake(&mut self) -> rusqlite::Result<()> {
        let now = self.txn.now.store;
        places::wake_due(self.txn, self.upstream_id, WAKES)?;
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
                let least = u64::from(self.must_ask(limit, index));
                (index, self.grantable(limit, index, key).max(least))
            }
            None if name == OWN_GATE => {
                let index = self.instances.own_gate(key)?;
                (index, self.gate_grants(index))
            }
            // The limit is not declared any more: whoever waited for it is free of it.
            None => {
                places::let_go(self.txn, id, u64::MAX, Side::Queue, true)?;
                return places::wake_at(self.txn, id, None);
            }
        };
        let last = self.instances.get(index).map(|instance| instance.side).unwrap_or_default();
        let queue = self.has_queue()?;
        places::let_go(self.txn, id, most, last, queue)?;
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
        // Who may use the reserve finds most; whoever may not waits again.
        let ask = self.instances.ask_in(Line::Reserve, limit, index, key, 1);
        let Some(ask) = ask else { return 0 };
        let lookahead = ask.lookahead.max(self.wish.lead);
        match most {
            0 => 0,
            most => grantable(&ask, self.txn.now, lookahead, most),
        }
    }

    pub(super) fn next_wake(&self) -> rusqlite::Result<Option<Timestamp>> {
        let query = match self.wish.owned {
            true => queries::NEXT_WAKE_CALLERS,
            false => queries::NEXT_WAKE,
        };
        let mut query = self.txn.conn.prepare_cached(query)?;
        let wake: Option<i64> = query
            .query_row(named_params! { ":upstream": self.upstream_id }, |row| row.get(0))
            .optional()?
            .flatten();
        Ok(wake.map(Timestamp::from_nanos))
    }

    /// Decides for each touched instance when its waiters are looked at next.
    pub(super) fn settle_wakes(&mut self) -> rusqlite::Result<()> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_by_key(|touched| touched.index);
        for group in touched.chunk_by(|a, b| a.index == b.index) {
            let Some(Touched { index, limit, .. }) = group.first() else { continue };
            let id = self.instances.row(*index)?;
            let at = match places::has_waiters(self.txn.conn, id)? {
                true => {
                    let at = self.look_again(group, *limit, *index);
                    self.or_asks_again(*limit, *index, at)
                }
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
