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
        Some(Code::SystemIoFailure) => StoreError::Disk { path, source },
        _ => StoreError::Other { path, source },
    }
}
