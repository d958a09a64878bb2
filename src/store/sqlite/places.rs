//! Where a partition waits. It is in one place at a time, so that picking the next job never visits
//! what cannot go: ready, timed, on a limit instance, held, or idle.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::instances::from_json;
use super::queries;
use super::writer::Txn;
use crate::clock::Timestamp;
use crate::job::Columns;

/// Where a job stands, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Line {
    /// In the queue, which runners send.
    Queue,
    /// With those that a process owns.
    Callers,
    /// The same, and with a claim on what budgets keep for people.
    Reserve,
}

impl Line {
    pub const fn number(self) -> i64 {
        match self {
            Line::Queue => 0,
            Line::Callers => 1,
            Line::Reserve => 2,
        }
    }

    pub const fn of(number: i64) -> Line {
        match number {
            0 => Line::Queue,
            1 => Line::Callers,
            _ => Line::Reserve,
        }
    }

    pub const fn side(self) -> Side {
        match self {
            Line::Queue => Side::Queue,
            Line::Callers | Line::Reserve => Side::Callers,
        }
    }
}

/// The two sides that take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    #[default]
    Queue,
    Callers,
}

impl Side {
    pub const fn number(self) -> i64 {
        match self {
            Side::Queue => 0,
            Side::Callers => 1,
        }
    }

    pub const fn of(number: i64) -> Side {
        if number == 0 { Side::Queue } else { Side::Callers }
    }

    pub const fn other(self) -> Side {
        match self {
            Side::Queue => Side::Callers,
            Side::Callers => Side::Queue,
        }
    }
}

/// An upstream's row.
#[derive(Clone, Debug)]
pub(super) struct UpstreamRow {
    pub id: i64,
    pub quota: Option<Vec<u8>>,
    pub held: Option<HeldRow>,
    /// Who got its last call.
    pub side: Side,
}

/// Why something is held.
#[derive(Clone, Debug)]
pub(super) struct HeldRow {
    pub at: Timestamp,
    pub reason: String,
    pub detail: String,
    /// When what it is held for is over, as far as is told.
    pub until: Option<Timestamp>,
}

impl HeldRow {
    /// Of the `held_...` columns of a row; `None`: it is not held.
    pub fn read(row: &Row<'_>, until: Option<Timestamp>) -> rusqlite::Result<Option<HeldRow>> {
        let at: Option<i64> = row.get("held_at")?;
        let Some(at) = at.map(Timestamp::from_nanos) else { return Ok(None) };
        let detail: Option<String> = row.get("held_detail")?;
        let (reason, detail) = (row.get("held_reason")?, detail.unwrap_or_default());
        Ok(Some(HeldRow { at, reason, detail, until }))
    }
}

pub(super) fn upstream(conn: &Connection, name: &str) -> rusqlite::Result<Option<UpstreamRow>> {
    let mut query = conn.prepare_cached(queries::UPSTREAM)?;
    query
        .query_row([name], |row| {
            let held = HeldRow::read(row, None)?;
            let side = Side::of(row.get("side")?);
            Ok(UpstreamRow { id: row.get("id")?, quota: row.get("quota")?, held, side })
        })
        .optional()
}

/// The upstream's id; its row is made where there is none.
pub(super) fn upstream_id(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    let known = conn.prepare_cached(queries::UPSTREAM_ID)?.query_row([name], |row| row.get(0));
    match known.optional()? {
        Some(id) => Ok(id),
        None => conn.prepare_cached(queries::UPSTREAM_ADD)?.query_row([name], |row| row.get(0)),
    }
}

/// What could be picked of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Nothing.
    None,
    /// A job of this priority, now; one of a better priority, where there is any, from `better_at` on.
    Due { priority: u8, better_at: Option<Timestamp> },
    /// Something, at this instant.
    Later { at: Timestamp, priority: u8 },
}

/// The best priority below this one that jobs of the partition have.
pub(super) fn level_below(
    conn: &Connection,
    partition: i64,
    below: u8,
) -> rusqlite::Result<Option<u8>> {
    let mut query = conn.prepare_cached(queries::HEAD_LEVEL)?;
    query.query_row(named_params! { ":partition": partition, ":below": below }, |row| row.get(0))
}

/// The partition's best job: one look a priority that is in use.
pub(super) fn head(conn: &Connection, partition: i64, now: Timestamp) -> rusqlite::Result<Head> {
    let mut due_query = conn.prepare_cached(queries::HEAD_DUE)?;
    let mut bound = 10;
    // The earliest of those that are due later, among the priorities looked at.
    let mut later: Option<(Timestamp, u8)> = None;
    loop {
        let Some(priority) = level_below(conn, partition, bound)? else {
            return Ok(later.map_or(Head::None, |(at, priority)| Head::Later { at, priority }));
        };
        let params = named_params! { ":partition": partition, ":priority": priority };
        let due: Option<i64> = due_query.query_row(params, |row| row.get(0)).optional()?;
        match due.map(Timestamp::from_nanos) {
            Some(due) if due <= now => {
                return Ok(Head::Due { priority, better_at: later.map(|(at, _)| at) });
            }
            Some(due) if later.is_none_or(|(at, _)| due < at) => later = Some((due, priority)),
            _ => {}
        }
        bound = priority;
    }
}

/// Puts a partition that may have gained or lost jobs where it belongs. One that waits on a limit stays
/// there until that opens, unless nothing of it is left, or a job of it would be too late by then and
/// must be told so; one that is held stays held.
pub(super) fn refresh(txn: &Txn<'_>, partition: i64) -> rusqlite::Result<()> {
    ask_if_late(txn, partition)?;
    find_place(txn, partition)
}

/// Has a partition that waits on a limit asked again where a job of it would be too late.
pub(super) fn ask_if_late(txn: &Txn<'_>, partition: i64) -> rusqlite::Result<()> {
    match txn.conn.prepare_cached(queries::PARTITION_IS_LATE)?.exists([partition])? {
        true => ask_again(txn, partition),
        false => Ok(()),
    }
}

fn ask_again(txn: &Txn<'_>, partition: i64) -> rusqlite::Result<()> {
    txn.conn.prepare_cached(queries::PARTITION_ASK_AGAIN)?.execute([partition]).map(drop)
}

fn find_place(txn: &Txn<'_>, partition: i64) -> rusqlite::Result<()> {
    let mut set = txn.conn.prepare_cached(queries::PARTITION_REFRESH)?;
    let (place, wake, better, priority) = match head(txn.conn, partition, txn.now.store)? {
        Head::None => ("idle", None, None, 0),
        Head::Due { priority, better_at } => ("ready", None, better_at, priority),
        Head::Later { at, priority } => ("timed", Some(at), None, priority),
    };
    set.execute(named_params! {
        ":id": partition, ":place": place, ":wake": wake.map(Timestamp::as_nanos),
        ":better": better.map(Timestamp::as_nanos), ":priority": priority,
    })?;
    Ok(())
}

/// As [`refresh`], where a call of the partition has ended: while none is answered it may wait for just
/// that, at its own gate.
pub(super) fn refresh_unanswered(txn: &Txn<'_>, partition: i64) -> rusqlite::Result<()> {
    if txn.conn.prepare_cached(queries::PARTITION_WAITS_FOR_ITSELF)?.exists([partition])? {
        ask_again(txn, partition)?;
    }
    refresh(txn, partition)
}

/// Lets partitions that were not due, and those of which a better job was not, take their turn.
pub(super) fn wake_due(txn: &Txn<'_>, upstream_id: i64, most: i64) -> rusqlite::Result<()> {
    let due = named_params! {
        ":upstream": upstream_id, ":now": txn.now.store.as_nanos(), ":most": most,
    };
    for query in [queries::TIMED, queries::BETTER] {
        let mut query = txn.conn.prepare_cached(query)?;
        let found = query.query_map(due, |row| row.get(0))?;
        for partition in found.collect::<rusqlite::Result<Vec<_>>>()? {
            refresh(txn, partition)?;
        }
    }
    Ok(())
}

/// Has a partition wait for a limit instance (or for its own gate) to open.
pub(super) fn wait_on(txn: &Txn<'_>, partition: i64, instance: i64) -> rusqlite::Result<()> {
    let mut set = txn.conn.prepare_cached(queries::PARTITION_WAIT)?;
    set.execute(named_params! { ":id": partition, ":instance": instance })?;
    Ok(())
}

/// Lets up to `most` of those who wait on an instance be asked again: of each side half, the one first that
/// did not take of it `last`; best priority first, then who was served longest ago. `queue`: whether
/// anybody is there who sends the queue's jobs.
pub(super) fn let_go(
    txn: &Txn<'_>,
    instance: i64,
    most: u64,
    last: Side,
    queue: bool,
) -> rusqlite::Result<()> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let go = |side: Side, most: usize| -> rusqlite::Result<usize> {
        let query = match side {
            Side::Queue if queue => queries::QUEUE_LET_GO,
            Side::Queue => return Ok(0),
            Side::Callers => queries::CALLERS_LET_GO,
        };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut release = txn.conn.prepare_cached(query)?;
        release.execute(named_params! { ":instance": instance, ":most": most })
    };
    let mut left = most - go(last.other(), most.div_ceil(2))?;
    left -= go(last, left)?;
    go(last.other(), left).map(drop)
}

pub(super) fn has_waiters(conn: &Connection, instance: i64) -> rusqlite::Result<bool> {
    conn.prepare_cached(queries::PARTITION_WAITS)?.exists([instance])
}

/// When those who wait on the instance are looked at again; `None`: when something in flight ends.
pub(super) fn wake_at(txn: &Txn<'_>, instance: i64, at: Option<Timestamp>) -> rusqlite::Result<()> {
    let mut set = txn.conn.prepare_cached(queries::INSTANCE_WAKE)?;
    set.execute(named_params! { ":id": instance, ":at": at.map(Timestamp::as_nanos) })?;
    Ok(())
}

/// Has those who wait on the instance looked at now: something of it came free.
pub(super) fn wake_now(txn: &Txn<'_>, instance: i64) -> rusqlite::Result<()> {
    if has_waiters(txn.conn, instance)? {
        wake_at(txn, instance, Some(txn.now.store))?;
    }
    bump_news(txn.conn)
}

/// Something may go that could not before: runners that sleep look again.
pub(super) fn bump_news(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached(queries::STORE_BUMP_NEWS)?.execute([]).map(drop)
}

/// Has every partition of an upstream that waits on a limit looked at again.
pub(super) fn reconsider(txn: &Txn<'_>, upstream_id: i64) -> rusqlite::Result<()> {
    let mut wake = txn.conn.prepare_cached(queries::RECONSIDER)?;
    wake.execute(named_params! { ":upstream": upstream_id, ":now": txn.now.store.as_nanos() })?;
    bump_news(txn.conn)
}

/// A block or hold began or ended: senders look before they send.
pub(super) fn bump_block_seq(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached(queries::STORE_BUMP_BLOCK)?.execute([]).map(drop)
}

/// Partitions of an upstream whose columns have these values, with their ids.
pub(super) fn matching(
    conn: &Connection,
    upstream_id: i64,
    key: &Columns,
) -> rusqlite::Result<BTreeMap<i64, Columns>> {
    let mut query = conn.prepare_cached(queries::PARTITIONS)?;
    let rows = query.query_map([upstream_id], |row| {
        Ok((row.get::<_, i64>(0)?, from_json(&row.get::<_, String>(1)?)))
    })?;
    let fits = |columns: &Columns| key.iter().all(|(name, value)| columns.get(name) == Some(value));
    let mut found = BTreeMap::new();
    for row in rows {
        let (id, columns) = row?;
        if fits(&columns) {
            found.insert(id, columns);
        }
    }
    Ok(found)
}
