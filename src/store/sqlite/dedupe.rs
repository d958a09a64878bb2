//! The keys that duplicates are told by: which job holds one. A row stays when its job has ended, and the next
//! job of that key takes it over: to take out each would change a page of its own, in no order.
//!
//! The keys of a large addition come in no order either. They are gathered in a small table, which fits the
//! page cache, and moved to the large one in order: so each page of that is written once for many keys.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, named_params};

use super::queries;
use crate::job::JobId;

/// 16 bytes of a hash.
pub(super) type Key = [u8; 16];

/// An addition of so many jobs gathers their keys.
const MANY: usize = 10_000;

/// So many are gathered before they are moved.
const GATHERED: i64 = 200_000;

/// Who was last added with a key.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    pub job: JobId,
    /// It is queued or unsure: it holds the key against others.
    pub is_active: bool,
    is_gathered: bool,
}

/// The keys of an addition, and who holds them.
#[derive(Default)]
pub(super) struct Keys {
    before: HashMap<Key, Holder>,
    taken: BTreeMap<Key, JobId>,
    are_many: bool,
}

impl Keys {
    /// Looks the keys up in their own order, not that of the jobs: neighbours share a page.
    pub fn of(conn: &Connection, keys: impl Iterator<Item = Key>) -> rusqlite::Result<Keys> {
        let mut keys: Vec<Key> = keys.collect();
        keys.sort_unstable();
        let mut before = HashMap::new();
        for key in &keys {
            before.extend(holder(conn, key)?.map(|holder| (*key, holder)));
        }
        Ok(Keys { before, taken: BTreeMap::new(), are_many: keys.len() >= MANY })
    }

    /// The job that holds a key by now.
    pub fn holder(&self, key: &Key) -> Option<JobId> {
        let before = || self.before.get(key).filter(|holder| holder.is_active);
        self.taken.get(key).copied().or_else(|| before().map(|holder| holder.job))
    }

    /// The key is that job's from now on.
    pub fn take(&mut self, key: Key, job: JobId) {
        self.taken.insert(key, job);
    }

    pub fn save(&self, conn: &Connection) -> rusqlite::Result<()> {
        for (key, job) in &self.taken {
            let gather = self.are_many || self.before.get(key).is_some_and(|one| one.is_gathered);
            note(conn, key, *job, gather)?;
        }
        if self.are_many { tidy(conn) } else { Ok(()) }
    }
}

pub(super) fn holder(conn: &Connection, key: &Key) -> rusqlite::Result<Option<Holder>> {
    let mut query = conn.prepare_cached(queries::DEDUPE_HOLDER)?;
    let found = query.query_row([key], |row| {
        let (job, is_active) = (JobId(row.get(0)?), row.get(1)?);
        Ok(Holder { job, is_active, is_gathered: row.get(2)? })
    });
    found.optional()
}

/// The key is that job's from now on; `before`: who had it.
pub(super) fn take(
    conn: &Connection,
    key: &Key,
    job: JobId,
    before: Option<Holder>,
) -> rusqlite::Result<()> {
    note(conn, key, job, before.is_some_and(|holder| holder.is_gathered))
}

/// Who was gathered stays there: those are the newer ones.
fn note(conn: &Connection, key: &Key, job: JobId, gathered: bool) -> rusqlite::Result<()> {
    let query = if gathered { queries::DEDUPE_GATHER } else { queries::DEDUPE_TAKE };
    let mut note = conn.prepare_cached(query)?;
    note.execute(named_params! { ":dedupe": key, ":job": job.0 })?;
    Ok(())
}

/// Moves what was gathered, once that is much.
fn tidy(conn: &Connection) -> rusqlite::Result<()> {
    let gathered: i64 = conn.query_row(queries::DEDUPE_GATHERED, [], |row| row.get(0))?;
    if gathered >= GATHERED { move_gathered(conn) } else { Ok(()) }
}

pub(super) fn move_gathered(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute(queries::DEDUPE_MOVE, [])?;
    conn.execute(queries::DEDUPE_MOVED, []).map(drop)
}

#[cfg(test)]
mod tests;
