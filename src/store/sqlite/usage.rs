//! What is stored of an instance's use: read, and written back where it changed.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::instances::TakenFrom;
use super::queries;
use crate::clock::{Now, Timestamp};
use crate::quota::LimitRule;
use crate::quota::budget::{Budget, Window, Windows};
use crate::quota::decide::{Taken, Usage, give_back};
use crate::quota::rolling::Entries;

/// The use of an instance, as it is stored and as its rule counts it.
pub(super) fn load(
    conn: &Connection,
    id: i64,
    rule: &LimitRule,
    now: Now,
) -> rusqlite::Result<(Usage, Usage)> {
    let usage = match rule {
        LimitRule::Rate(_) => Usage::Rate(None),
        LimitRule::Budget(budget) => {
            let starts = budget.windows_at(now, now.store);
            let reach = |start: &Timestamp| {
                let window = budget.calendar.window(*start);
                window.start - window.next_reset.since(window.start)
            };
            let from = starts.iter().map(reach).min().unwrap_or(Timestamp::EPOCH);
            let stored = windows_since(conn, id, from)?;
            let counted = carried_over(budget, &stored, &starts, now);
            return Ok((Usage::Budget(stored), Usage::Budget(counted)));
        }
        LimitRule::Rolling(_) => Usage::Rolling(entries(conn, id)?),
        LimitRule::Concurrency(_) => {
            let mut count = conn.prepare_cached(queries::IN_FLIGHT_COUNT)?;
            Usage::Concurrency(units(count.query_row([id], |row| row.get(0))?))
        }
    };
    Ok((usage.clone(), usage))
}

/// A window that begins where none of the calendar does was counted before the zone or the reset was
/// changed. What may have been spent of it in one of the current windows counts there.
fn carried_over(budget: &Budget, stored: &Windows, starts: &[Timestamp], now: Now) -> Windows {
    let is_own = |start: Timestamp| budget.calendar.window(start).start == start;
    if stored.0.keys().all(|start| is_own(*start)) {
        return stored.clone();
    }
    let mut counted = Windows(stored.0.clone());
    for (start, window) in stored.0.iter().filter(|(start, _)| !is_own(**start)) {
        counted.0.remove(start);
        let touches = |own: &&Timestamp| window.last_at.is_none_or(|at| now.to_wall(at) >= **own);
        for own in starts.iter().filter(touches) {
            let own = counted.0.entry(*own).or_default();
            own.spent = own.spent.saturating_add(window.spent);
            own.last_at = own.last_at.max(window.last_at);
        }
    }
    counted
}

fn windows_since(conn: &Connection, id: i64, from: Timestamp) -> rusqlite::Result<Windows> {
    let mut query = conn.prepare_cached(queries::BUDGET_WINDOWS)?;
    let rows = query.query_map(named_params! { ":id": id, ":from": from.as_nanos() }, |row| {
        let window = Window {
            spent: units(row.get("spent")?),
            last_at: row.get::<_, Option<i64>>("last_at")?.map(Timestamp::from_nanos),
        };
        Ok((Timestamp::from_nanos(row.get("window_start")?), window))
    })?;
    rows.collect::<rusqlite::Result<_>>().map(Windows)
}

fn entries(conn: &Connection, id: i64) -> rusqlite::Result<Entries> {
    let mut query = conn.prepare_cached(queries::ROLLING_ENTRIES)?;
    let rows = query
        .query_map([id], |row| Ok((Timestamp::from_nanos(row.get(0)?), units(row.get(1)?))))?;
    rows.collect::<rusqlite::Result<_>>().map(Entries)
}

/// Units as SQLite keeps them: a figure beyond its integers is as good as endless.
pub(super) fn stored(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

pub(super) fn units(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

pub(super) fn save(
    conn: &Connection,
    id: i64,
    before: Option<&Usage>,
    after: &Usage,
) -> rusqlite::Result<()> {
    if before == Some(after) {
        return Ok(());
    }
    match (before, after) {
        (_, Usage::Rate(tat)) => {
            let mut update = conn.prepare_cached(queries::INSTANCE_TAT)?;
            let tat = tat.map(Timestamp::as_nanos);
            update.execute(named_params! { ":id": id, ":tat": tat })?;
        }
        (before, Usage::Budget(after)) => {
            let empty = Windows::default();
            let before = if let Some(Usage::Budget(before)) = before { before } else { &empty };
            let mut remove = conn.prepare_cached(queries::BUDGET_REMOVE)?;
            for start in before.0.keys().filter(|start| !after.0.contains_key(start)) {
                remove.execute(named_params! { ":id": id, ":start": start.as_nanos() })?;
            }
            let mut upsert = conn.prepare_cached(queries::BUDGET_SET)?;
            for (start, window) in
                after.0.iter().filter(|(start, w)| before.0.get(start) != Some(w))
            {
                upsert.execute(named_params! {
                    ":id": id, ":start": start.as_nanos(), ":spent": stored(window.spent),
                    ":last": window.last_at.map(Timestamp::as_nanos),
                })?;
            }
        }
        (before, Usage::Rolling(after)) => {
            let empty = Entries::default();
            let before = if let Some(Usage::Rolling(before)) = before { before } else { &empty };
            let mut delete = conn.prepare_cached(queries::ROLLING_REMOVE)?;
            for (at, _) in before.0.iter().filter(|entry| !after.0.contains(entry)) {
                delete.execute(named_params! { ":id": id, ":at": at.as_nanos() })?;
            }
            let mut insert = conn.prepare_cached(queries::ROLLING_ADD)?;
            for (at, taken) in after.0.iter().filter(|entry| !before.0.contains(entry)) {
                let (at, taken) = (at.as_nanos(), stored(*taken));
                insert.execute(named_params! { ":id": id, ":at": at, ":units": taken })?;
            }
        }
        // Places in flight are rows of their own, beside their call.
        (_, Usage::Concurrency(_)) => {}
    }
    Ok(())
}

/// Gives back what a call took, newest first, so that slots taken one after another unwind.
pub(super) fn give_back_all(conn: &Connection, taken: &[TakenFrom]) -> rusqlite::Result<()> {
    for TakenFrom { instance, what, .. } in taken.iter().rev() {
        let before = match what {
            Taken::Rate { .. } => {
                let mut query = conn.prepare_cached(queries::INSTANCE_TAT_GET)?;
                let tat: Option<Option<i64>> =
                    query.query_row([instance], |row| row.get(0)).optional()?;
                Usage::Rate(tat.flatten().map(Timestamp::from_nanos))
            }
            Taken::Budget { windows, .. } => {
                let from = windows.iter().copied().min().unwrap_or(0);
                Usage::Budget(windows_since(conn, *instance, Timestamp::from_nanos(from))?)
            }
            Taken::Rolling { .. } => Usage::Rolling(entries(conn, *instance)?),
            Taken::Concurrency => continue,
        };
        let mut after = before.clone();
        give_back(&mut after, what);
        save(conn, *instance, Some(&before), &after)?;
    }
    Ok(())
}
