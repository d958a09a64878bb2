//! The release: calls that were never sent give their slots and units back.

use rusqlite::{Connection, OptionalExtension as _, named_params};

use super::instances::TakenFrom;
use super::usage::give_back_all;
use super::writer::Txn;
use super::{places, queries, settle};
use crate::clock::Now;
use crate::job::CallId;
use crate::store::{Release, RunnerId, Withdrawal};

pub(super) fn release(txn: &Txn<'_>, releases: &[Release]) -> rusqlite::Result<()> {
    // Newest first: slots taken one after another unwind one after another.
    let mut calls: Vec<CallId> = releases.iter().map(|release| release.call).collect();
    calls.sort_unstable_by(|a, b| b.cmp(a));
    for call in calls {
        let mut query = txn.conn.prepare_cached(queries::CALL_TAKEN)?;
        let found = query
            .query_row([call.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
            .optional()?;
        let Some((partition, taken)) = found else { continue };
        let taken: Vec<TakenFrom> = serde_json::from_str(&taken).unwrap_or_default();
        give_back_all(txn.conn, &taken)?;
        settle::remaining::put_back(txn.conn, &taken)?;
        for from in &taken {
            places::wake_now(txn, from.instance)?;
        }
        settle::unprobe(txn, call)?;
        for instance in settle::remove_call(txn, call)? {
            places::wake_now(txn, instance)?;
        }
        places::refresh_unanswered(txn, partition)?;
        places::bump_news(txn.conn)?;
    }
    Ok(())
}

/// Owned jobs end that nobody waits for any more. One whose call is out stays: that ends it.
pub(super) fn withdraw(
    txn: &Txn<'_>,
    owner: RunnerId,
    jobs: &[Withdrawal],
) -> rusqlite::Result<()> {
    for gone in jobs {
        let mut end = txn.conn.prepare_cached(queries::OWNED_WITHDRAW)?;
        let could_go = gone.could_go_at.map(|at| txn.now.to_store(at).as_nanos());
        let partition: Option<i64> = end
            .query_row(
                named_params! {
                    ":job": gone.job.0, ":owner": owner.0, ":now": txn.now.store.as_nanos(),
                    ":state": gone.state.name(), ":reason": gone.reason, ":detail": gone.detail,
                    ":could_go": could_go, ":limit": gone.limit,
                },
                |row| row.get(0),
            )
            .optional()?;
        if let Some(partition) = partition {
            places::refresh(txn, partition)?;
        }
    }
    // Whoever left it its turn goes on.
    places::bump_news(txn.conn)
}

/// Whether a block or hold stands in a call's way: it was claimed before that began.
pub(super) fn is_blocked(conn: &Connection, call: CallId, now: Now) -> rusqlite::Result<bool> {
    let mut held = conn.prepare_cached(queries::CALL_HELD)?;
    if held.exists([call.0])? {
        return Ok(true);
    }
    let mut query = conn.prepare_cached(queries::CALL_TAKEN)?;
    let taken: Option<String> = query.query_row([call.0], |row| row.get(1)).optional()?;
    // A call whose lease is gone must not be sent either.
    let Some(taken) = taken else { return Ok(true) };
    let taken: Vec<TakenFrom> = serde_json::from_str(&taken).unwrap_or_default();
    let mut closed = conn.prepare_cached(queries::INSTANCE_CLOSED)?;
    for from in &taken {
        let params = named_params! {
            ":id": from.instance, ":call": call.0, ":now": now.store.as_nanos(),
        };
        if closed.exists(params)? {
            return Ok(true);
        }
    }
    if settle::remaining::is_too_many(conn, call, &taken, now)? {
        return Ok(true);
    }
    let mut gate = conn.prepare_cached(queries::CALL_GATE_CLOSED)?;
    gate.exists(named_params! { ":call": call.0, ":now": now.store.as_nanos() })
}
