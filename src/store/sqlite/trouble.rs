//! What SQLite says, sorted into what a store cannot do.

use std::path::Path;

use rusqlite::ErrorCode as Code;

use crate::store::StoreError;

/// What SQLite said about the file at `path`.
pub(super) fn of(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let detail = source.to_string();
    if let rusqlite::Error::SqliteFailure(code, _) = &source
        && code.extended_code == rusqlite::ffi::SQLITE_READONLY_DBMOVED
    {
        return StoreError::Moved { path };
    }
    let code = source.sqlite_error_code();
    let source = Box::new(source);
    match code {
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreError::Locked { path },
        Some(Code::DiskFull) => StoreError::Full { path },
        Some(Code::ReadOnly) => StoreError::ReadOnly { path },
        Some(Code::DatabaseCorrupt) => StoreError::Corrupt { path, detail },
        Some(Code::NotADatabase) => StoreError::NotAStore { path },
        Some(Code::CannotOpen | Code::PermissionDenied) => StoreError::Open { path, source },
        // For its small files SQLite does not tell a full disk from a broken one.
        Some(Code::SystemIoFailure) if is_full(&path) => StoreError::Full { path },
        Some(Code::SystemIoFailure) => StoreError::Disk { path, source },
        _ => StoreError::Other { path, source },
    }
}

/// Whether the disk under the file has no room left.
fn is_full(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let told = nix::sys::statvfs::statvfs(folder.unwrap_or(Path::new(".")));
    told.is_ok_and(|told| told.blocks_available() == 0)
}
