//! The stores that the suite is run over.

use std::sync::Arc;

use paceline::clock::{ManualClock, Timestamp};
use paceline::store::sqlite::{Options, SqliteStore};

use crate::world::{Fixture, START};

fn sqlite(threaded: bool) -> Fixture<SqliteStore> {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(Timestamp::from_secs(START));
    let ticking = clock.clone();
    let open = move || {
        let options = Options::new(folder.path().join("queue.db"), Arc::new(ticking.clone()));
        SqliteStore::open(Options { threaded, ..options }).unwrap()
    };
    Fixture { clock, open: Box::new(open) }
}

/// SQLite, working at once on the caller's thread.
pub fn at_once() -> Fixture<SqliteStore> {
    sqlite(false)
}

/// SQLite with its writing thread.
pub fn threaded() -> Fixture<SqliteStore> {
    sqlite(true)
}
