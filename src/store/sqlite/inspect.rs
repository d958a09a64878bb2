//! Consistent reads for people and tools.
//!
//! | file | noun |
//! | --- | --- |
//! | `look` | an upstream's limits, and what its partitions wait for |
//! | `backlog` | what waits, for forecasts |
//! | `history` | jobs, attempts, bodies |
//! | `resets` | what answers show of days that begin nobody knows when |

mod backlog;
mod history;
mod look;
mod resets;

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, named_params};

use super::places;
use super::{queries, runners::RunnerLocks};
use crate::clock::{Now, Timestamp};
use crate::job::JobState;
use crate::quota::Upstream;
use crate::store::views::{LoadView, RunnerView, Tally, UpstreamView};
use crate::store::{Remaining, RunnerId};
pub(super) use backlog::backlog;
pub(super) use history::{attempts, jobs, last_bodies};
use look::Look;
pub(super) use resets::resets;

/// Upstreams by name, for telling what binds their jobs.
pub(super) type Declared = BTreeMap<String, Arc<Upstream>>;

pub(super) fn upstream_names(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = conn.prepare_cached(queries::UPSTREAM_NAMES)?;
    query.query_map([], |row| row.get(0))?.collect()
}

pub(super) fn tally(conn: &Connection, upstream: Option<&str>) -> rusqlite::Result<Tally> {
    let mut query = conn.prepare_cached(queries::TALLY)?;
    let rows = query.query_map(named_params! { ":upstream": upstream }, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let mut tally = Tally::new();
    for row in rows {
        let (state, jobs) = row?;
        if let Ok(state) = state.parse() {
            tally.insert(state, u64::try_from(jobs).unwrap_or(0));
        }
    }
    let mut query = conn.prepare_cached(queries::TALLY_RUNNING)?;
    let running: i64 =
        query.query_row(named_params! { ":upstream": upstream }, |row| row.get(0))?;
    let running = u64::try_from(running).unwrap_or(0);
    // A running job's row says queued until it ends.
    let queued = tally.entry(JobState::Queued).or_default();
    *queued = queued.saturating_sub(running);
    tally.insert(JobState::Running, running);
    for state in JobState::ALL {
        tally.entry(state).or_default();
    }
    Ok(tally)
}

pub(super) fn remaining(conn: &Connection, name: &str) -> rusqlite::Result<Remaining> {
    let Some(row) = places::upstream(conn, name)? else { return Ok(Remaining::default()) };
    let tally = tally(conn, Some(name))?;
    let of = |state| tally.get(&state).copied().unwrap_or(0);
    // What its owner alone sends, no run waits for.
    let mut owned = conn.prepare_cached(queries::OWNED_OPEN)?;
    let (open, out): (i64, i64) =
        owned.query_row([row.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let less = |jobs: u64, owned: i64| jobs.saturating_sub(u64::try_from(owned).unwrap_or(0));
    let queued = less(of(JobState::Queued), open - out);
    let running = less(of(JobState::Running), out);
    if row.held.is_some() {
        return Ok(Remaining { waiting: 0, held: queued, running });
    }
    let mut query = conn.prepare_cached(queries::HELD_JOBS)?;
    let held: i64 = query.query_row([row.id], |row| row.get(0))?;
    let held = u64::try_from(held).unwrap_or(0);
    Ok(Remaining { waiting: queued.saturating_sub(held), held, running })
}

pub(super) fn loads(conn: &Connection, now: Now) -> rusqlite::Result<Vec<LoadView>> {
    let mut query = conn.prepare_cached(queries::LOADS)?;
    let rows = query.query_map([], |row| {
        let at = Timestamp::from_nanos(row.get(1)?);
        Ok((row.get::<_, String>(0)?, at, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
    })?;
    let mut loads: Vec<LoadView> = Vec::new();
    for row in rows {
        let (name, added_at, state, jobs) = row?;
        if loads.last().is_none_or(|last| last.name != name) {
            let added_at = now.to_wall(added_at);
            loads.push(LoadView { name, added_at, jobs: Tally::new() });
        }
        if let (Some(load), Ok(state)) = (loads.last_mut(), state.parse()) {
            *load.jobs.entry(state).or_default() += u64::try_from(jobs).unwrap_or(0);
        }
    }
    Ok(loads)
}

pub(super) fn is_load(conn: &Connection, name: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached(queries::LOAD_NAMED)?.exists([name])
}

pub(super) fn runners(conn: &Connection, locks: &RunnerLocks) -> rusqlite::Result<Vec<RunnerView>> {
    let mut query = conn.prepare_cached(queries::RUNNERS_SERVING)?;
    let rows = query.query_map([], |row| {
        let upstreams: String = row.get(2)?;
        let upstreams = serde_json::from_str(&upstreams).unwrap_or_default();
        Ok(RunnerView { id: RunnerId(row.get(0)?), pid: row.get(1)?, upstreams })
    })?;
    let mut alive = Vec::new();
    for row in rows {
        let view = row?;
        if locks.is_alive(view.id) {
            alive.push(view);
        }
    }
    Ok(alive)
}

/// One upstream as it stands.
pub(super) fn upstream(
    conn: &Connection,
    now: Now,
    declared: &Upstream,
) -> rusqlite::Result<UpstreamView> {
    let row = places::upstream(conn, &declared.name)?;
    let mut view = UpstreamView {
        name: declared.name.clone(),
        jobs: tally(conn, Some(&declared.name))?,
        held: None,
        limits: Vec::new(),
        partitions: Vec::new(),
        omitted: 0,
        next_at: None,
    };
    let look = Look::new(conn, now, row.as_ref(), declared);
    view.held = row.as_ref().and_then(|row| row.held.as_ref()).map(|held| look.hold_view(held));
    look.limits(&mut view)?;
    if row.is_some() {
        look.partitions(&mut view)?;
    }
    Ok(view)
}
