//! Holds that a person is told of, each once.

use rusqlite::{Row, named_params};

use super::instances::{from_json, to_json};
use super::writer::Txn;
use super::{queries, usage};
use crate::clock::Timestamp;
use crate::store::views::{HoldNews, HoldView};

/// Holds that are told at once, at most; the rest the next time.
const MOST: u32 = 1000;

/// Those that nobody was told of; from now on they are told.
pub(super) fn tell(txn: &Txn<'_>) -> rusqlite::Result<Vec<HoldNews>> {
    let mut query = txn.conn.prepare_cached(queries::HOLDS_UNTOLD)?;
    let found =
        query.query_map([MOST], |row| news(txn, row))?.collect::<rusqlite::Result<Vec<_>>>()?;
    set(txn, &found, true)?;
    Ok(found)
}

fn news(txn: &Txn<'_>, row: &Row<'_>) -> rusqlite::Result<HoldNews> {
    let wall = |nanos| txn.now.to_wall(Timestamp::from_nanos(nanos));
    let partition: Option<i64> = row.get("partition_id")?;
    let (count, of) = match partition {
        Some(partition) => (queries::PARTITION_JOBS, partition),
        None => (queries::UPSTREAM_QUEUED, row.get("upstream_id")?),
    };
    let jobs: i64 = txn.conn.prepare_cached(count)?.query_row([of], |row| row.get(0))?;
    Ok(HoldNews {
        upstream: row.get("name")?,
        key: row.get::<_, Option<String>>("key")?.map(|key| from_json(&key)),
        jobs: usage::units(jobs),
        hold: HoldView {
            at: wall(row.get("held_at")?),
            reason: row.get("held_reason")?,
            detail: row.get::<_, Option<String>>("held_detail")?.unwrap_or_default(),
        },
        until: row.get::<_, Option<i64>>("held_until")?.map(wall),
    })
}

/// Writes down whether these were told.
pub(super) fn set(txn: &Txn<'_>, holds: &[HoldNews], told: bool) -> rusqlite::Result<()> {
    for HoldNews { upstream, key, .. } in holds {
        match key {
            Some(key) => {
                let mut set = txn.conn.prepare_cached(queries::HOLD_SET_TOLD_KEY)?;
                set.execute(
                    named_params! { ":told": told, ":name": upstream, ":key": to_json(key) },
                )?;
            }
            None => {
                let mut set = txn.conn.prepare_cached(queries::HOLD_SET_TOLD)?;
                set.execute(named_params! { ":told": told, ":name": upstream })?;
            }
        }
    }
    Ok(())
}
