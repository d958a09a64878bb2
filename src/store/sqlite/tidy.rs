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
    let today = now.wall.as_nanos().div_euclid(crate::clock::nanos(DAY));
    let marks = txn.conn.execute(queries::DEDUPE_FORGET, [today - 1])?;
    let bodies = txn.conn.execute(queries::BODIES_FORGET, [])?;
    let idle = (now.store - DAY).as_nanos();
    let windows = (now.wall.min(now.store) - WINDOWS_KEPT).as_nanos();
    txn.conn.execute(queries::WINDOWS_FORGET, named_params! { ":windows": windows })?;
    let instances = txn
        .conn
        .execute(queries::INSTANCES_FORGET, named_params! { ":idle": idle, ":windows": windows })?;
    Ok(Tidied { marks: marks as u64, bodies: bodies as u64, instances: instances as u64 })
}
