//! The upstream is asked what is left, where its quota file says how: before the first job of an
//! instance goes, and every so often.

use std::time::Duration;

use rusqlite::{OptionalExtension, named_params};

use super::{Decision, Round, decide};
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::decide::{Ask, NEAR};
use crate::quota::{Cost, LimitRule, QuotaCall};
use crate::store::sqlite::heard::Asked;
use crate::store::sqlite::instances::{Index, from_json};
use crate::store::sqlite::queries;
use crate::store::{QUOTA_PATIENCE, QuotaQuestion};

/// Where calls in flight leave no room for the question, it is looked at again after this.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);

impl<'t> Round<'t> {
    /// Asks for an instance that all partitions share, before that closes the upstream.
    pub(super) fn ask_shared(&mut self) -> rusqlite::Result<()> {
        let Some((_, limit)) = self.quota_call() else { return Ok(()) };
        let Some((_, index)) = self.shared.iter().find(|(shared, _)| *shared == limit) else {
            return Ok(());
        };
        if !self.is_ask_due(*index) {
            return Ok(());
        }
        let mut query = self.txn.conn.prepare_cached(queries::PARTITION_WITH_WORK)?;
        let params = named_params! { ":upstream": self.upstream_id };
        let key: Option<String> = query.query_row(params, |row| row.get(0)).optional()?;
        match key {
            Some(key) => self.ask(&from_json(&key)),
            None => Ok(()),
        }
    }

    /// Asks what is left for the partition, where that is due and the other limits let the question go.
    pub(super) fn ask(&mut self, partition: &Columns) -> rusqlite::Result<()> {
        let Some((quota, limit)) = self.quota_call() else { return Ok(()) };
        let index = self.instances.of_limit(limit, partition)?;
        if !self.is_ask_due(index) {
            return Ok(());
        }
        let others = self.others(limit, partition)?;
        let gate = self.instances.own_gate(partition)?;
        let mut asks: Vec<Ask<'_>> = others
            .iter()
            .filter_map(|(limit, index, cost)| self.instances.ask(*limit, *index, partition, *cost))
            .collect();
        asks.extend(self.instances.ask_gate(gate));
        let next_at = match decide(&asks, self.txn.now, self.earliest) {
            Decision::Admit { slot } => return self.put(quota, index, partition, &others, slot),
            Decision::Wait { until, .. } => until,
            Decision::Busy { .. } => self.txn.now.store + ROOM_INTERVAL,
            Decision::Never { .. } => self.txn.now.store + quota.every,
        };
        let asked = self.instances.get(index).map(|found| found.heard.asked).unwrap_or_default();
        let asked = Asked { next_at: Some(next_at), ..asked };
        self.instances.set_asked(index, asked)
    }

    fn put(
        &mut self,
        quota: &QuotaCall,
        index: Index,
        partition: &Columns,
        others: &[(usize, Index, u64)],
        slot_at: Timestamp,
    ) -> rusqlite::Result<()> {
        for (limit, index, cost) in others {
            let is_place = |rule: &LimitRule| matches!(rule, LimitRule::Concurrency(_));
            if self.limit(*limit).is_some_and(|limit| !is_place(&limit.rule)) {
                let side = self.side();
                self.instances.charge(*limit, *index, partition, *cost, slot_at, side)?;
            }
        }
        let heard = self.instances.get(index).map(|found| found.heard).unwrap_or_default();
        self.instances.set_asked(index, heard.asked.out(slot_at, quota.every, QUOTA_PATIENCE))?;
        let (partition, mark) = (partition.clone(), heard.reported.silent);
        self.claimed.questions.push(QuotaQuestion { partition, slot_at, mark });
        Ok(())
    }

    /// All limits but that one, with what the question takes of each.
    fn others(
        &mut self,
        limit: usize,
        partition: &Columns,
    ) -> rusqlite::Result<Vec<(usize, Index, u64)>> {
        let mut others = Vec::new();
        for (position, declared) in self.wish.upstream.limits.iter().enumerate() {
            if position != limit {
                let index = self.instances.of_limit(position, partition)?;
                let cost = u64::from(!matches!(declared.cost, Cost::Column(_)));
                others.push((position, index, cost));
            }
        }
        Ok(others)
    }

    /// When the instance, on which somebody waits, is looked at next: at the latest when the upstream is
    /// to be asked again.
    pub(super) fn or_asks_again(
        &self,
        limit: Option<usize>,
        index: Index,
        at: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let is_asked = self.quota_call().is_some_and(|(_, asked)| Some(asked) == limit);
        if !is_asked {
            return at;
        }
        let next_at = self.instances.get(index).and_then(|found| found.heard.asked.next_at);
        let next_at = next_at.map(|next_at| next_at.max(self.txn.now.store + NEAR));
        at.into_iter().chain(next_at).min()
    }

    /// The instant before which a limit surely lets nobody go: the answer to a question may open it sooner.
    pub(super) fn surely(&self, limit: Option<usize>, index: Index, until: Timestamp) -> Timestamp {
        let is_asked = self.quota_call().is_some_and(|(_, asked)| Some(asked) == limit);
        let asked = self.instances.get(index).map(|found| found.heard.asked).filter(|_| is_asked);
        let is_out = asked.and_then(|asked| asked.until).is_some_and(|at| at > self.txn.now.store);
        match (is_out, asked.and_then(|asked| asked.next_at)) {
            (true, _) => self.txn.now.store,
            (false, Some(next_at)) => until.min(next_at),
            (false, None) => until,
        }
    }

    /// Whether one of those who wait on the instance must be let go, so that the question is asked.
    pub(super) fn must_ask(&self, limit: usize, index: Index) -> bool {
        self.quota_call().is_some_and(|(_, asked)| asked == limit) && self.is_ask_due(index)
    }

    fn is_ask_due(&self, index: Index) -> bool {
        let asked = self.instances.get(index).map(|found| found.heard.asked).unwrap_or_default();
        asked.next_at.is_none_or(|at| at <= self.txn.now.store)
    }

    /// `[quota_call]`, and where its limit stands.
    fn quota_call(&self) -> Option<(&'t QuotaCall, usize)> {
        let upstream = &self.wish.upstream;
        let quota = upstream.quota_call.as_ref()?;
        let limit = upstream.limits.iter().position(|limit| limit.name == quota.limit)?;
        Some((quota, limit))
    }
}
