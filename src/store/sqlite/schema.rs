//! Opening a file: is it a store, is its schema ours, and which pragmas hold.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{copies, queries, runners, trouble};
use crate::store::StoreError;

/// The schema, one step a file; a file once released is never changed.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("../../../migrations/0001_queue.sql")];

/// Marks a file as ours in its header: "Pace".
const APPLICATION_ID: i64 = 0x5061_6365;

/// How long one statement waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How often, and after what pause, a new file's write-ahead log is asked for: five seconds in all.
const WAL_TRIES: u32 = 250;
const WAL_PAUSE: Duration = Duration::from_millis(20);

/// A log that begins anew keeps no more room than this.
const LOG_BYTES: i64 = 64 * 1024 * 1024;

/// Opens the file for writing, makes it where it is missing, and brings its schema up to date.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| StoreError::Open { path: path.to_owned(), source: error.into() })?;
    refuse_network(path, folder)?;
    make_private(path)?;
    let conn = connect(path, 16)?;
    let at = |error| trouble::of(path, error);
    recognise(&conn, path)?;
    enter_wal(&conn).map_err(at)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES).map_err(at)?;
    migrate(&conn, path, MIGRATIONS)?;
    Ok(conn)
}

/// Of a new file only: room that comes free can be given back page by page, beside other work. Of any other
/// this would write to the disk, and change nothing.
fn shape_new(conn: &Connection) -> rusqlite::Result<()> {
    match conn.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? {
        0 => conn.pragma_update(None, "auto_vacuum", "incremental"),
        _ => Ok(()),
    }
}

/// A new file's first switch to the write-ahead log. SQLite does not wait for the lock that it takes,
/// where another process is just at the same.
fn enter_wal(conn: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        match shape_new(conn).and_then(|()| conn.pragma_update(None, "journal_mode", "wal")) {
            Err(error) if is_busy(&error) && tries < WAL_TRIES => tries += 1,
            entered => return entered,
        }
        std::thread::sleep(WAL_PAUSE);
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// A connection with the pragmas that hold for each, and a page cache of some MiB.
pub(super) fn connect(path: &Path, cache_mib: i64) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_prepared_statement_cache_capacity(128);
        // Else a statement on a partial index is planned anew with each value that it is asked for.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.pragma_update(None, "foreign_keys", true)?;
        conn.pragma_update(None, "cache_size", -1024 * cache_mib)?;
        Ok(conn)
    };
    connect().map_err(|error| trouble::of(path, error))
}

/// URLs and answers are nobody else's business: a new file is its owner's alone.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::Open { path: path.to_owned(), source: error.into() }),
    }
}

/// Whether the file is a store; of any version. Nothing is made where nothing is.
pub fn is_store(path: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let id = Connection::open_with_flags(path, flags).and_then(|conn| {
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0))
    });
    id.is_ok_and(|id| id == APPLICATION_ID)
}

/// Refuses a file that somebody else made, before anything is written to it.
fn recognise(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let at = |error| trouble::of(path, error);
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    // Tables first: another process may make them and their mark, at once, between the two looks.
    let tables: i64 = conn.query_row(queries::TABLE_COUNT, [], |row| row.get(0)).map_err(at)?;
    let id = pragma("application_id").map_err(at)?;
    if tables > 0 && id != APPLICATION_ID {
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    let found = pragma("user_version").map_err(at)?;
    let known = version(MIGRATIONS);
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

fn version(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

/// Runs the steps that the file lacks, in one transaction. A file that holds work is copied first, and
/// left alone while a runner of the older version is at work.
pub(super) fn migrate(
    conn: &Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    let at = |error| trouble::of(path, error);
    let read = || conn.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    let known = version(migrations);
    let found = read().map_err(at)?;
    if found == known {
        return Ok(());
    }
    if found > 0 {
        if runners::any_alive(path) {
            return Err(StoreError::BesideOlder { path: path.to_owned(), found, known });
        }
        let copy = PathBuf::from(format!("{}.before-schema-{known}", path.display()));
        // A copy that is there already is of an earlier try at this very step.
        if !copy.exists() {
            conn.execute(queries::COPY_INTO, [copy.to_string_lossy()]).map_err(at)?;
            copies::mark(&copy, None).map_err(at)?;
        }
    }
    conn.execute_batch(queries::BEGIN).map_err(at)?;
    let run = || {
        // Another process may have done it while this one waited for the lock.
        let done = usize::try_from(read()?).unwrap_or(usize::MAX);
        for step in migrations.iter().skip(done) {
            conn.execute_batch(step)?;
        }
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        conn.pragma_update(None, "user_version", known)?;
        conn.execute_batch(queries::COMMIT)
    };
    run().map_err(|error| {
        let _ = conn.execute_batch(queries::ROLLBACK);
        at(error)
    })
}

#[cfg(target_os = "linux")]
fn refuse_network(path: &Path, folder: &Path) -> Result<(), StoreError> {
    use nix::sys::statfs::{NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, statfs};
    /// From the kernel's `linux/magic.h`: CIFS, SMB2, Coda, AFS, Ceph, 9p over a network.
    const OTHERS: [(i64, &str); 5] = [
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "smb2"),
        (0x7375_7245, "coda"),
        (0x5346_414F, "afs"),
        (0x00C3_6400, "ceph"),
    ];
    let Ok(info) = statfs(folder) else { return Ok(()) };
    let kind = match info.filesystem_type() {
        NFS_SUPER_MAGIC => Some("nfs"),
        SMB_SUPER_MAGIC => Some("smb"),
        other => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits")]
            let magic = i64::from(other.0 as u32);
            OTHERS.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
        }
    };
    match kind {
        Some(kind) => Err(StoreError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_: &Path, _: &Path) -> Result<(), StoreError> {
    Ok(())
}
