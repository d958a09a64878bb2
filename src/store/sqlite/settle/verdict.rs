//! What an answer opens, blocks or holds.

use rusqlite::named_params;

use super::Settle;
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::next::Next;
use crate::store::sqlite::instances::{Block, Index, from_json, key_of};
use crate::store::sqlite::{places, queries};
use crate::store::{Blocked, Held};

/// So many partitions refused at once mean that it is what they share that is refused.
const TOGETHER: usize = 3;

impl Settle<'_> {
    /// The upstream answered as if nothing stood in the way: what this call probed opens again.
    pub(super) fn open(&mut self) -> rusqlite::Result<()> {
        // No answer says nothing about the block, nor does one from the way: another probe goes.
        let answered = self.settlement.status.is_some() && self.settlement.redirect.is_none();
        for instance in super::unprobe(self.txn, self.settlement.call)? {
            if answered {
                let mut open = self.txn.conn.prepare_cached(queries::INSTANCE_OPEN)?;
                let now = self.txn.now.store.as_nanos();
                let done = self.reading.reason.is_success();
                open.execute(named_params! { ":id": instance, ":now": now, ":done": done })?;
            }
        }
        let silent = self.settlement.status.is_none();
        if (answered && !self.carried.answered) || (silent && self.carried.answered) {
            let mut set = self.txn.conn.prepare_cached(queries::PARTITION_ANSWERED)?;
            set.execute(named_params! { ":id": self.carried.partition, ":answered": answered })?;
        }
        if answered && self.carried.hard_refusals > 0 {
            let mut calm = self.txn.conn.prepare_cached(queries::PARTITION_HARD)?;
            calm.execute(named_params! { ":id": self.carried.partition, ":count": 0 })?;
        }
        Ok(())
    }

    /// Closes what the refusal concerns.
    pub(super) fn close(&mut self, next: &Next, block: Block) -> rusqlite::Result<Option<Blocked>> {
        super::unprobe(self.txn, self.settlement.call)?;
        let Some(until) = next.block else { return Ok(None) };
        let Some(block) = self.grown(next, block, until) else { return Ok(None) };
        self.write_block(self.index, &block)?;
        let mut limit = self.limit;
        let mut closed_until = block.until;
        if limit.is_none() {
            let gate = self.instances.row(self.index)?;
            let mut set = self.txn.conn.prepare_cached(queries::PARTITION_GATE)?;
            set.execute(named_params! { ":id": self.carried.partition, ":gate": gate })?;
            if let Some((shared, block)) = self.close_shared(next, until)? {
                (limit, closed_until) = (Some(shared), block.until);
            }
        }
        places::bump_block_seq(self.txn.conn)?;
        let declared = limit.and_then(|limit| self.upstream.limits.get(limit));
        let key = |columns: &Columns| match declared {
            Some(limit) => from_json(&key_of(limit, columns)),
            None => columns.clone(),
        };
        Ok(Some(Blocked {
            limit: declared.map(|limit| limit.name.clone()),
            key: key(&self.columns),
            until: closed_until.unwrap_or(until),
            reason: next.reason,
        }))
    }

    /// The block of an instance after one more refusal; `None`: nothing changes. Refusals in a row count
    /// only calls sent after the last block began: those that were under way then say nothing new, but
    /// that the upstream asks for longer.
    fn grown(&self, next: &Next, block: Block, until: Timestamp) -> Option<Block> {
        let now = self.txn.now.store;
        let news = block.at.is_none_or(|at| self.settlement.sent_at > at);
        let standing = block.until.filter(|until| *until > now);
        if !news && self.reading.retry_at.is_none() {
            return None;
        }
        let reading = self.reading;
        let begins = || reading.becomes.map(|_| (reading.reason.name().to_owned(), now));
        let stands = match self.stood(&block) {
            Some(_) => block.stands,
            None => begins().or(block.stands),
        };
        Some(Block {
            at: if news { Some(now) } else { block.at },
            until: Some(standing.map_or(until, |standing| standing.max(until))),
            reason: Some(next.reason.name().to_owned()),
            detail: Some(reading.detail.clone()),
            stands,
            // At least one, also where the last block has opened since: a probe goes first.
            refusals: (block.refusals + u32::from(news)).max(1),
            // A probe that is out goes on being the only one.
            probe: block.probe.filter(|probe| *probe != self.settlement.call),
        })
    }

    fn write_block(&mut self, index: Index, block: &Block) -> rusqlite::Result<()> {
        let id = self.instances.row(index)?;
        let mut set = self.txn.conn.prepare_cached(queries::INSTANCE_BLOCK)?;
        set.execute(named_params! {
            ":id": id, ":at": block.at.map(Timestamp::as_nanos),
            ":until": block.until.map(Timestamp::as_nanos), ":reason": block.reason,
            ":detail": block.detail,
            ":stands": block.stands.as_ref().map(|(reason, _)| reason),
            ":since": block.stands.as_ref().map(|(_, since)| since.as_nanos()),
            ":refusals": block.refusals, ":probe": block.probe.map(|call| call.0),
        })?;
        if places::has_waiters(self.txn.conn, id)? {
            places::wake_at(self.txn, id, block.until)?;
        }
        Ok(())
    }

    /// Where several partitions are blocked at once, what they share is what is refused: the narrowest
    /// limit instance common to them closes too.
    fn close_shared(
        &mut self,
        next: &Next,
        until: Timestamp,
    ) -> rusqlite::Result<Option<(usize, Block)>> {
        let mut query = self.txn.conn.prepare_cached(queries::GATES_BLOCKED)?;
        let now = self.txn.now.store.as_nanos();
        let params = named_params! { ":upstream": self.upstream_id, ":now": now };
        let rows = query.query_map(params, |row| Ok(from_json(&row.get::<_, String>(0)?)))?;
        let blocked: Vec<Columns> = rows.collect::<rusqlite::Result<_>>()?;
        if blocked.len() < TOGETHER {
            return Ok(None);
        }
        let upstream = self.upstream;
        let mut narrowest: Vec<_> = upstream.limits.iter().enumerate().collect();
        narrowest.sort_by_key(|(_, limit)| std::cmp::Reverse(limit.key.len()));
        for (limit, declared) in narrowest {
            let ours = key_of(declared, &self.columns);
            let sharing = blocked.iter().filter(|other| key_of(declared, other) == ours).count();
            if sharing >= TOGETHER {
                let index = self.instances.of_limit(limit, &self.columns)?;
                let Some(block) = self.grown(next, self.block(index), until) else {
                    return Ok(None);
                };
                self.write_block(index, &block)?;
                return Ok(Some((limit, block)));
            }
        }
        Ok(None)
    }

    pub(super) fn hold(&self, next: &Next) -> rusqlite::Result<Option<Held>> {
        if next.refused_hard && !next.uncounted_hard {
            let mut count = self.txn.conn.prepare_cached(queries::PARTITION_HARD)?;
            count.execute(named_params! {
                ":id": self.carried.partition, ":count": self.carried.hard_refusals + 1,
            })?;
        }
        let Some(why) = &next.hold else { return Ok(None) };
        let said = &self.reading.detail;
        let detail = if said.is_empty() { why.clone() } else { format!("{said} ({why})") };
        let mut set = self.txn.conn.prepare_cached(queries::PARTITION_HOLD)?;
        let held = set.execute(named_params! {
            ":id": self.carried.partition, ":now": self.txn.now.store.as_nanos(),
            ":reason": next.reason.name(), ":detail": detail,
            ":until": next.hold_until.map(Timestamp::as_nanos),
        })?;
        if held == 0 {
            // It was held already, by a call that was under way beside this one.
            return Ok(None);
        }
        places::bump_block_seq(self.txn.conn)?;
        let reason = next.reason.name().to_owned();
        Ok(Some(Held { key: self.columns.clone(), reason, detail, until: next.hold_until }))
    }
}
