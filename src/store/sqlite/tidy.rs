//! What nobody needs any more.

use std::time::Duration;

use rusqlite::named_params;

use super::queries;
use super::writer::Txn;
use crate::store::views::Tidied;

const DAY: Duration = Duration::from_secs(86_400);

/// No window or span is longer than a month; the one before it stays too, should somebody set the clock
/// back.
const WINDOWS_KEPT: Duration = Duration::from_secs(62 * 86_400);

pub(super) fn tidy(txn: &Txn<'_>) -> rusqlite::Result<Tidied> {
    let now = txn.now;
    // Whoever sets the clock ahead, and back again, lets nobody in twice.
    let wall = now.wall.min(now.store);
    let today = wall.as_nanos().div_euclid(crate::clock::nanos(DAY));
    let marks = txn.conn.execute(queries::DEDUPE_FORGET, [today - 1])?;
    let idle = (now.store - DAY).as_nanos();
    let windows = (wall - WINDOWS_KEPT).as_nanos();
    txn.conn.execute(queries::WINDOWS_FORGET, named_params! { ":windows": windows })?;
    let instances = txn
        .conn
        .execute(queries::INSTANCES_FORGET, named_params! { ":idle": idle, ":windows": windows })?;
    Ok(Tidied { marks: marks as u64, instances: instances as u64 })
}

/// Gives at most `most` bytes of free room back to the system; tells how many it were.
pub(super) fn give_back(txn: &Txn<'_>, most: u64) -> rusqlite::Result<u64> {
    let number = |sql: &str| txn.conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let page = u64::try_from(number(queries::PAGE_SIZE)?).unwrap_or(1);
    let before = number(queries::FREE_PAGES)?;
    let pages = most.div_ceil(page.max(1));
    // One step a page: the statement must be run to its end.
    let mut vacuum = txn.conn.prepare(&format!("{} ({pages})", queries::VACUUM_SOME))?;
    let mut steps = vacuum.query([])?;
    while steps.next()?.is_some() {}
    let pages = before - number(queries::FREE_PAGES)?;
    Ok(u64::try_from(pages).unwrap_or(0) * page)
}
