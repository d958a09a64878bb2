//! A copy that becomes the store. What was sent after the copy was made is not in it: so each window that is
//! open when somebody first sends from it counts as spent, in limits and instances that the copy does
//! not know too, and jobs that must not be sent twice are unsure.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, named_params};

use super::writer::Txn;
use super::{places, queries, sweep};
use crate::clock::{Now, Timestamp};
use crate::quota::LimitRule;
use crate::quota::decide::Usage;
use crate::store::{self, RunnerId, Swept};

/// No window is longer, and none that was open then is still open after so long.
const FORGOTTEN: Duration = Duration::from_secs(62 * 86_400);

/// Where the data of a store is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// It was made here.
    Own,
    /// It is a copy of this instant (wall time), and nobody has sent from it yet.
    Copy(Timestamp),
    /// It was restored at this instant (wall time): windows that were open then count as spent.
    Restored(Timestamp),
}

pub(super) fn origin(conn: &Connection, now: Now) -> rusqlite::Result<Origin> {
    let copied: Option<i64> = conn.query_row(queries::COPIED_AT, [], |row| row.get(0))?;
    Ok(match (copied, Restored::read(conn, now)?) {
        (Some(at), _) => Origin::Copy(Timestamp::from_nanos(at)),
        (None, Some(restored)) => Origin::Restored(restored.0.wall),
        (None, None) => Origin::Own,
    })
}

/// When the copy became the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restored(Now);

impl Restored {
    /// `None` where the store was not restored, or so long ago that nothing of it is left.
    pub fn read(conn: &Connection, now: Now) -> rusqlite::Result<Option<Restored>> {
        let at = Timestamp::from_nanos;
        let mut query = conn.prepare_cached(queries::RESTORED)?;
        let found =
            query.query_row([], |row| Ok(Now { store: at(row.get(0)?), wall: at(row.get(1)?) }));
        let recent = |then: &Now| now.store.since(then.store) < FORGOTTEN;
        Ok(found.optional()?.filter(recent).map(Restored))
    }

    /// Counts what may have been sent since the copy was made: all that the rule allows.
    pub fn count(&self, rule: &LimitRule, usage: &mut Usage) {
        let at = self.0.store;
        match (rule, usage) {
            (LimitRule::Budget(budget), Usage::Budget(windows)) => {
                for start in budget.windows_at(self.0, at) {
                    let window = windows.0.entry(start).or_default();
                    window.spent = window.spent.max(budget.amount);
                }
            }
            (LimitRule::Rolling(rolling), Usage::Rolling(entries)) => {
                let all = crate::quota::rolling::Rolling { reserve: 0, ..rolling.clone() };
                let left = all.left(entries, at);
                rolling.charge(entries, at, at, left);
            }
            (LimitRule::Rate(rate), Usage::Rate(tat)) => {
                let plan = rate.plan();
                *tat = (*tat).max(Some(plan.charge(None, at, plan.burst)));
            }
            _ => {}
        }
    }
}

impl Restored {
    /// Whether the rule's window of now was open then.
    pub fn covers(&self, rule: &LimitRule, now: Now) -> bool {
        match rule {
            LimitRule::Budget(budget) => {
                let open = budget.windows_at(self.0, self.0.store);
                budget.windows_at(now, now.store).iter().any(|start| open.contains(start))
            }
            LimitRule::Rolling(rolling) => self.0.store + rolling.life() > now.store,
            LimitRule::Rate(_) | LimitRule::Concurrency(_) => false,
        }
    }
}

/// Makes a copy the store that is sent from. `None`: it was no copy.
pub(super) fn adopt(txn: &Txn<'_>) -> rusqlite::Result<Option<store::Restored>> {
    let conn = txn.conn;
    let mut copied = conn.prepare_cached(queries::COPIED_AT)?;
    let Some(copied_at) = copied.query_row([], |row| row.get::<_, Option<i64>>(0))? else {
        return Ok(None);
    };
    let mut swept = Swept::default();
    // Whoever ran when the copy was made ran on another file.
    let mut runners = conn.prepare_cached(queries::RUNNERS)?;
    let runners = runners.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    for runner in runners {
        sweep::dead(txn, RunnerId(runner), &mut swept)?;
    }
    let mut touched = conn.prepare(queries::PARTITIONS_NOT_REPEATABLE)?;
    let touched =
        touched.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    let now = txn.now.store.as_nanos();
    let unsure = conn.execute(queries::JOBS_UNSURE_SINCE_COPY, named_params! { ":now": now })?;
    touched.into_iter().try_for_each(|partition| places::refresh(txn, partition))?;
    conn.execute(
        queries::COPY_ADOPT,
        named_params! { ":now": now, ":wall": txn.now.wall.as_nanos() },
    )?;
    reconsider_all(txn)?;
    let unsure = unsure as u64 + swept.unsure;
    Ok(Some(store::Restored { copied_at: Timestamp::from_nanos(copied_at), unsure }))
}

/// Nothing was sent since the copy was made: its counts hold.
pub(super) fn trust(txn: &Txn<'_>) -> rusqlite::Result<()> {
    txn.conn.execute(queries::COPY_TRUST, [])?;
    reconsider_all(txn)
}

fn reconsider_all(txn: &Txn<'_>) -> rusqlite::Result<()> {
    let mut query = txn.conn.prepare_cached(queries::UPSTREAM_IDS)?;
    let upstreams =
        query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    upstreams.into_iter().try_for_each(|upstream| places::reconsider(txn, upstream))
}
