//! Why rows cannot go into a table, and what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why rows could not be written. Of the chunk that failed nothing was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file is none of SQLite's.
    #[error("{path} is no SQLite file, and is left as it is; choose another with --sqlite")]
    NotSqlite {
        /// The file.
        path: PathBuf,
    },
    /// What has that name is no table.
    #[error("`{table}` in {path} is a {what}; choose another name with --table")]
    NotATable {
        /// The file.
        path: PathBuf,
        /// The name.
        table: String,
        /// A view, say.
        what: String,
    },
    /// A column would change what is written to it.
    #[error(
        "the column `{column}` of the table `{table}` in {path} is {declared}, which would change texts \
         (0012 becomes 12): make it TEXT, leave it out with --fields, or choose another --table"
    )]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// As it was declared.
        declared: String,
    },
    /// SQLite does not tell small letters from capitals in names.
    #[error(
        "`{first}` and `{second}` are one column to SQLite: leave one of them out with --fields"
    )]
    SameName {
        /// One name.
        first: String,
        /// The other.
        second: String,
    },
    /// Several rows of the table have the same value in the column that rows are told apart by.
    #[error(
        "several rows of the table `{table}` in {path} have the same `{key}`, so that none can be \
         replaced by it: remove all but one of each, or choose another --table"
    )]
    NotUnique {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
        /// The column.
        key: String,
    },
    /// A row has no value by which it could be told from others.
    #[error(
        "the result of job {job} has no `{key}` to replace a row by: leave such jobs out (--load, --upstream, \
         --where), or choose another column with --upsert"
    )]
    NoKey {
        /// The job.
        job: String,
        /// The column.
        key: String,
    },
    /// Somebody else has it locked.
    #[error("{path} is locked by another program: once it is free, the same command goes through")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be used.
    #[error("{path} cannot be opened or written ({detail}): choose another file with --sqlite")]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// The table has a rule of its own that a row breaks.
    #[error(
        "a rule of the table `{table}` in {path} forbids a row ({detail}): choose another --table"
    )]
    Rule {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
        /// What SQLite said.
        detail: String,
    },
    /// Anything else that the database said.
    #[error("{path} could not be written")]
    Other {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl TableError {
    /// Whether another command line would do.
    pub fn is_usage(&self) -> bool {
        !matches!(self, TableError::Locked { .. } | TableError::Other { .. })
    }
}

/// What SQLite said, sorted into what can be done about it.
pub(super) fn sorted(path: &Path, table: &str, error: rusqlite::Error) -> TableError {
    let (path, detail) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => TableError::Locked { path },
        Some(ErrorCode::NotADatabase) => TableError::NotSqlite { path },
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            TableError::Open { path, detail }
        }
        Some(ErrorCode::ConstraintViolation) => {
            TableError::Rule { path, table: table.to_owned(), detail }
        }
        _ => TableError::Other { path, source: Box::new(error) },
    }
}
