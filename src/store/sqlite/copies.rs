//! Copies of a store: made while others write, and put back in its place.
//!
//! A copy is one consistent moment of the store, and marked as a copy: [`super::restored`] says what that
//! does once somebody sends from it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::{queries, runners, schema, trouble};
use crate::clock::{Clock, Timestamp};
use crate::store::StoreError;

/// Why a copy was not made, or not put back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// There is no store to copy.
    #[error("there is no store at {0}")]
    Missing(PathBuf),
    /// Something is there already.
    #[error("{0} is there already, and is left as it is")]
    Exists(PathBuf),
    /// Somebody is at work on the store that would be replaced.
    #[error("the store {0} is in use: end what runs on it first")]
    InUse(PathBuf),
    /// The new file cannot be written.
    #[error("{path} cannot be written: {source}")]
    Target {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Whoever watched said that it shall not go on.
    #[error("interrupted: no copy was made")]
    Interrupted,
    /// The store that is copied cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the store went that a restored one replaced.
pub type Aside = Option<PathBuf>;

/// Copies the store at `path`, as it is at one moment, into the new file `target`, which is readable by
/// its owner alone and on disk when this returns. Others go on writing meanwhile. `watch` hears how many
/// bytes of about how many are written, and ends the work by saying false. Tells the copy's size.
///
/// # Errors
///
/// There is no store, `target` exists or cannot be written; then nothing is left of it.
pub fn backup(
    path: &Path,
    target: &Path,
    clock: &dyn Clock,
    watch: impl FnMut(u64, u64) -> bool + Send + 'static,
) -> Result<u64, CopyError> {
    if target.exists() {
        return Err(CopyError::Exists(target.to_owned()));
    }
    let partial = Partial::beside(target)?;
    copy_into(path, &partial.0, target, watch)?;
    let written = |source: rusqlite::Error| unwritable(target, source);
    mark(&partial.0, Some(clock.wall())).map_err(written)?;
    partial.become_file(target)?;
    std::fs::metadata(target).map(|file| file.len()).map_err(|error| unwritable(target, error))
}

/// Makes the copy at `from` the store at `path`. A store that is there is only replaced where `replace`
/// says so, and is kept beside it; where it went is told. A file that is not marked as a copy is from now
/// on, unless nothing was sent since it was made, as `trust` says.
///
/// # Errors
///
/// `from` is no whole store, one is at `path` and in use, or not to be replaced.
pub fn restore(
    from: &Path,
    path: &Path,
    clock: &dyn Clock,
    (replace, trust): (bool, bool),
) -> Result<Aside, CopyError> {
    let there = std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
    if there && !replace {
        return Err(CopyError::Exists(path.to_owned()));
    }
    if runners::any_alive(path) {
        return Err(CopyError::InUse(path.to_owned()));
    }
    let failed = |error| unwritable(path, error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let partial = Partial::beside(path)?;
    copy_into(from, &partial.0, path, |_, _| true)?;
    check(&partial.0, from)?;
    let marked = match trust {
        true => unmark(&partial.0),
        false => mark(&partial.0, Some(clock.wall())),
    };
    marked.map_err(|error| unwritable(path, error))?;
    if !there {
        // An empty file is no store, and the log of one that is gone must not be read into this one.
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        return partial.become_file(path).map(|()| None);
    }
    let alone = alone_with(path)?;
    let aside = set_aside(path, clock)?;
    std::fs::rename(&partial.0, path).map_err(failed)?;
    drop(alone);
    sync_folder(path).map_err(failed)?;
    Ok(Some(aside))
}

/// A second name for the store that is replaced, which nothing has yet.
fn set_aside(path: &Path, clock: &dyn Clock) -> Result<PathBuf, CopyError> {
    let stamp = clock.wall().to_utc().format("%Y%m%dT%H%M%SZ");
    let plain = format!("{}.before-restore-{stamp}", path.display());
    let more = (2..100).map(|n| format!("{plain}-{n}"));
    for name in std::iter::once(plain.clone()).chain(more).map(PathBuf::from) {
        match std::fs::hard_link(path, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unwritable(&name, error)),
        }
    }
    Err(CopyError::Exists(PathBuf::from(plain)))
}

/// Says in a copy that it is one; at the instant given, or at the latest that it knows. One that is marked
/// already stays as it is: it is a copy of a copy.
pub(super) fn mark(copy: &Path, at: Option<Timestamp>) -> rusqlite::Result<()> {
    let conn = Connection::open(copy)?;
    // A schema before the mark was thought of has no place for it.
    if conn.query_row(queries::COPY_CAN_BE_MARKED, [], |_| Ok(())).optional()?.is_some() {
        conn.execute(queries::COPY_MARK, [at.map(Timestamp::as_nanos)])?;
    }
    Ok(())
}

fn unmark(copy: &Path) -> rusqlite::Result<()> {
    Connection::open(copy)?.execute(queries::COPY_TRUST, []).map(drop)
}

fn copy_into(
    from: &Path,
    into: &Path,
    target: &Path,
    mut watch: impl FnMut(u64, u64) -> bool + Send + 'static,
) -> Result<(), CopyError> {
    if !from.exists() {
        return Err(CopyError::Missing(from.to_owned()));
    }
    if !schema::is_store(from) {
        return Err(StoreError::NotAStore { path: from.to_owned() }.into());
    }
    let mut conn = schema::connect(from, 16)?;
    let at = |error| trouble::of(from, error);
    let pages = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let used = pages("page_count").and_then(|all| Ok(all - pages("freelist_count")?));
    let bytes = used.and_then(|used| Ok(used * pages("page_size")?)).map_err(at)?;
    let bytes = u64::try_from(bytes).unwrap_or(0);
    let file = into.to_owned();
    let stop = move || {
        let written = std::fs::metadata(&file).map_or(0, |file| file.len());
        !watch(written, bytes)
    };
    conn.progress_handler(STEPS, Some(stop)).map_err(at)?;
    let copied = conn.execute(queries::COPY_INTO, [into.to_string_lossy()]);
    copied.map(drop).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => CopyError::Interrupted,
        // Reading needs no room, and the store is open: it is the new file's disk.
        Some(ErrorCode::DiskFull | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            unwritable(target, error)
        }
        _ => at(error).into(),
    })
}

/// Steps of SQLite's machine from one look at how far it is to the next: some milliseconds.
const STEPS: std::ffi::c_int = 100_000;

/// Whether a copy is whole.
fn check(copy: &Path, from: &Path) -> Result<(), CopyError> {
    let conn = Connection::open(copy).map_err(|error| trouble::of(from, error))?;
    let said: String = conn
        .query_row(queries::QUICK_CHECK, [], |row| row.get(0))
        .map_err(|error| trouble::of(from, error))?;
    match said.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreError::Corrupt { path: from.to_owned(), detail: said }.into()),
    }
}

/// The store with nobody else on it, its write-ahead log folded in and gone, for as long as the
/// connection is kept.
fn alone_with(path: &Path) -> Result<Connection, CopyError> {
    let in_use = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            CopyError::InUse(path.to_owned())
        }
        _ => trouble::of(path, error).into(),
    };
    let conn = schema::connect(path, 1)?;
    conn.busy_timeout(std::time::Duration::from_secs(1)).map_err(in_use)?;
    let mode: String = conn.query_row(queries::LEAVE_WAL, [], |row| row.get(0)).map_err(in_use)?;
    if mode != "delete" {
        return Err(CopyError::InUse(path.to_owned()));
    }
    conn.execute_batch(queries::BEGIN_ALONE).map_err(in_use)?;
    Ok(conn)
}

/// A file in the making: what is left of it goes where it was not finished.
struct Partial(PathBuf);

impl Partial {
    /// Empty, readable by its owner alone.
    fn beside(target: &Path) -> Result<Partial, CopyError> {
        let path = PathBuf::from(format!("{}.partial-{}", target.display(), std::process::id()));
        let mut options = File::options();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).map_err(|error| unwritable(target, error))?;
        Ok(Partial(path))
    }

    /// Puts it where nothing is yet, on disk.
    fn become_file(self, target: &Path) -> Result<(), CopyError> {
        let placed = File::open(&self.0).and_then(|file| file.sync_all()).and_then(|()| {
            match std::fs::hard_link(&self.0, target) {
                // Where there are no hard links, a look must do.
                Err(error) if error.kind() != ErrorKind::AlreadyExists && !target.exists() => {
                    std::fs::rename(&self.0, target)
                }
                linked => linked,
            }
        });
        match placed.and_then(|()| sync_folder(target)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(CopyError::Exists(target.to_owned()))
            }
            Err(error) => Err(unwritable(target, error)),
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(format!("{}-journal", self.0.display()));
    }
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
}

fn unwritable(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CopyError {
    CopyError::Target { path: path.to_owned(), source: source.into() }
}
