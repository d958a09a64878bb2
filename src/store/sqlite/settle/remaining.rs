//! What the upstream told is left, beside our own count.

use rusqlite::{Connection, OptionalExtension};

use super::Settle;
use crate::clock::{Now, Timestamp};
use crate::job::CallId;
use crate::quota::reported::{Report, Reported, Span};
use crate::quota::{Limit, Upstream};
use crate::reading::remaining::Left;
use crate::store::QuotaAnswer;
use crate::store::sqlite::fields::Fields;
use crate::store::sqlite::heard::{self, Heard};
use crate::store::sqlite::instances::{Instances, TakenFrom};
use crate::store::sqlite::writer::Txn;
use crate::store::sqlite::{places, queries};

/// A call that is out.
struct Out {
    id: CallId,
    slot: Timestamp,
    taken: Vec<TakenFrom>,
}

impl Settle<'_> {
    /// Takes note of what the answer told, or did not tell though it could have. The call itself is gone
    /// by now.
    pub(super) fn hear(&mut self) -> rusqlite::Result<()> {
        let Some(slot) = self.carried.slot else { return Ok(()) };
        if !self.settlement.left {
            return put_back(self.txn.conn, &self.carried.taken);
        }
        let upstream = self.upstream;
        let asked = upstream.quota_call.as_ref().map(|quota| quota.limit.as_str());
        for (position, limit) in upstream.limits.iter().enumerate() {
            let told = self.settlement.remaining.iter().find(|told| told.limit == limit.name);
            if told.is_some() || limit.reported.is_some() || asked == Some(&limit.name) {
                self.hear_of(position, limit, told, slot)?;
            }
        }
        Ok(())
    }

    fn hear_of(
        &mut self,
        position: usize,
        limit: &Limit,
        told: Option<&Left>,
        slot: Timestamp,
    ) -> rusqlite::Result<()> {
        let index = self.instances.of_limit(position, &self.columns)?;
        let id = self.instances.row(index)?;
        let before = self.instances.get(index).map(|found| found.heard.reported);
        let before = before.unwrap_or_default();
        let own = self.carried.taken.iter().find(|taken| taken.instance == id);
        let (units, silent) = own.map_or((0, before.silent), |own| (own.units, own.silent));
        let resets_at = told.and_then(|told| told.resets_at).map(|at| self.txn.now.to_store(at));
        let span = Span::of(limit.rule_for(&self.columns), resets_at, slot, self.txn.now);
        let after = match (told, span) {
            (Some(told), Some(span)) => {
                let unseen = unseen(self.txn.conn, self.upstream_id, id)?;
                let report = Report {
                    remaining: told.left,
                    unseen: unseen.saturating_add(before.silent.saturating_sub(silent)),
                    call: Some((self.settlement.call.0, units)),
                    last_call: last_call(self.txn.conn)?,
                    span,
                };
                before.hear(&report, self.txn.now.store)
            }
            _ => before.silence(units),
        };
        note(self.txn, id, before, after)
    }
}

/// The upstream was asked what is left of a limit, and answered so, or did not.
pub(in crate::store::sqlite) fn quota_told(
    txn: &Txn<'_>,
    upstream: &Upstream,
    answer: &QuotaAnswer,
) -> rusqlite::Result<()> {
    let Some(quota) = &upstream.quota_call else { return Ok(()) };
    let Some(position) = upstream.limits.iter().position(|limit| limit.name == quota.limit) else {
        return Ok(());
    };
    let Some(limit) = upstream.limits.get(position) else { return Ok(()) };
    let upstream_id = places::upstream_id(txn.conn, &upstream.name)?;
    let mut instances = Instances::new(txn.conn, txn.now, upstream_id, upstream);
    let index = instances.of_limit(position, &answer.partition)?;
    let id = instances.row(index)?;
    let heard = instances.get(index).map(|instance| instance.heard).unwrap_or_default();
    let asked = heard.asked.answered(answer.slot_at, quota.every, answer.remaining.is_some());
    instances.set_asked(index, asked)?;
    let rule = limit.rule_for(&answer.partition);
    if let Some(remaining) = answer.remaining
        && let Some(span) = Span::asked(rule, answer.slot_at, txn.now)
    {
        let before = heard.reported;
        let unseen = unseen(txn.conn, upstream_id, id)?;
        let report = Report {
            remaining,
            unseen: unseen.saturating_add(before.silent.saturating_sub(answer.mark)),
            call: None,
            last_call: last_call(txn.conn)?,
            span,
        };
        note(txn, id, before, before.hear(&report, txn.now.store))?;
    }
    // Whoever waited for the answer goes, or waits anew: for longer, perhaps too long for its deadline.
    places::let_go(txn, id, u64::MAX, places::Side::Queue, true)?;
    places::bump_news(txn.conn)
}

/// Writes down what is known now. Whoever waited may go where more is left than was known; what was
/// claimed may have to stay where less is.
fn note(txn: &Txn<'_>, instance: i64, before: Reported, after: Reported) -> rusqlite::Result<()> {
    if before == after {
        return Ok(());
    }
    heard::save_reported(txn.conn, instance, &after)?;
    let left = |reported: Reported| reported.at(txn.now.store).map_or(i64::MAX, |told| told.left);
    if left(after) > left(before) {
        places::wake_now(txn, instance)?;
    }
    if left(after) < 0 {
        places::bump_block_seq(txn.conn)?;
    }
    Ok(())
}

/// Units of an instance that went to calls that are not settled yet: nobody can tell whether the upstream
/// had seen them.
fn unseen(conn: &Connection, upstream_id: i64, instance: i64) -> rusqlite::Result<u64> {
    let out = calls_out(conn, upstream_id)?;
    Ok(out.iter().map(|call| call.units_of(instance)).fold(0, u64::saturating_add))
}

fn last_call(conn: &Connection) -> rusqlite::Result<i64> {
    let mut seqs = conn.prepare_cached(queries::STORE_SEQS)?;
    seqs.query_row([], |row| row.get(1))
}

fn calls_out(conn: &Connection, upstream_id: i64) -> rusqlite::Result<Vec<Out>> {
    let mut query = conn.prepare_cached(queries::CALLS_OUT)?;
    let calls = query.query_map([upstream_id], |row| {
        let taken: String = row.get("taken")?;
        Ok(Out {
            id: CallId(row.get("id")?),
            slot: Timestamp::from_nanos(row.get("slot_at")?),
            taken: serde_json::from_str(&taken).unwrap_or_default(),
        })
    })?;
    calls.collect()
}

impl Out {
    fn units_of(&self, instance: i64) -> u64 {
        let own = self.taken.iter().filter(|taken| taken.instance == instance);
        own.map(|taken| taken.units).fold(0, u64::saturating_add)
    }
}

/// Puts back what a call took that never left.
pub(in crate::store::sqlite) fn put_back(
    conn: &Connection,
    taken: &[TakenFrom],
) -> rusqlite::Result<()> {
    for taken in taken {
        let before = heard_of(conn, taken.instance)?.reported;
        let mut after = before;
        after.give_back(taken.units);
        if after != before {
            heard::save_reported(conn, taken.instance, &after)?;
        }
    }
    Ok(())
}

/// A call whose process died may have been sent, and nobody hears what it was answered.
pub(in crate::store::sqlite) fn lost(conn: &Connection, call: CallId) -> rusqlite::Result<()> {
    let mut query = conn.prepare_cached(queries::CALL_TAKEN)?;
    let taken: Option<String> = query.query_row([call.0], |row| row.get(1)).optional()?;
    let taken: Vec<TakenFrom> =
        taken.and_then(|taken| serde_json::from_str(&taken).ok()).unwrap_or_default();
    for taken in taken {
        let before = heard_of(conn, taken.instance)?.reported;
        if before.told.is_some() {
            heard::save_reported(conn, taken.instance, &before.silence(taken.units))?;
        }
    }
    Ok(())
}

/// Whether a call that was claimed is one of those for which nothing is left, as is known by now: the
/// last ones have to stay.
pub(in crate::store::sqlite) fn is_too_many(
    conn: &Connection,
    call: CallId,
    taken: &[TakenFrom],
    now: Now,
) -> rusqlite::Result<bool> {
    for TakenFrom { instance, .. } in taken {
        let told = heard_of(conn, *instance)?.reported.at(now.store);
        let Some(told) = told.filter(|told| told.left < 0) else { continue };
        let mut query = conn.prepare_cached(queries::CALL_OUT)?;
        let (slot, upstream_id): (i64, i64) =
            query.query_row([call.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let slot = Timestamp::from_nanos(slot);
        let is_later = |out: &&Out| (out.slot, out.id) > (slot, call);
        let out = calls_out(conn, upstream_id)?;
        let later = out.iter().filter(is_later).map(|out| out.units_of(*instance));
        if later.fold(0, u64::saturating_add) < told.left.unsigned_abs() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn heard_of(conn: &Connection, instance: i64) -> rusqlite::Result<Heard> {
    let mut query = conn.prepare_cached(queries::INSTANCE_HEARD)?;
    Ok(query
        .query_row([instance], |row| Heard::read(&Fields::of(row)))
        .optional()?
        .unwrap_or_default())
}
