//! What a store cannot do, and what to do about it.

use std::path::PathBuf;

use crate::quota::declare::meant;

/// Why a store could not do its work. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error(
        "cannot open the store {path}: {source}; choose another with --store or PACELINE_STORE"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is no store.
    #[error(
        "{path} is not a Paceline store, and is left as it is; choose another file with --store"
    )]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// A newer program made it.
    #[error(
        "the store {path} has schema {found}, and this program knows up to {known}: \
         use the newer paceline that made it, or another store"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The highest schema that is known here.
        known: i64,
    },
    /// An older program still runs on it.
    #[error(
        "the store {path} must be brought from schema {found} to {known}, and a runner of the older \
         version is at work on it: stop that first"
    )]
    BesideOlder {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The schema wanted.
        known: i64,
    },
    /// A network file system cannot lock as SQLite needs.
    #[error(
        "{path} is on a network file system ({kind}), where SQLite cannot lock safely: \
         put the store on a local disk"
    )]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// What kind.
        kind: &'static str,
    },
    /// The file is not where it was.
    #[error(
        "the store {path} was deleted or replaced by another file while it was in use: nothing more is \
         recorded, and nothing sent"
    )]
    Moved {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else has it locked.
    #[error("the store {path} is locked by another program; nothing was changed")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("the disk that holds the store {path} is full; nothing was changed")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file may not be written.
    #[error("the store {path} cannot be written: it, or its folder, is read-only")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged, or its disk cannot be read, which SQLite takes for the same.
    #[error(
        "the store {path} is damaged, or its disk is ({detail}): move it away and restore a copy; \
         `sqlite3 FILE .recover` reads what is left"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// The disk did not do as it was told.
    #[error("the store {path} could not be read or written")]
    Disk {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else that the database said.
    #[error("the store {path} could not answer")]
    Other {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store's thread has ended.
    #[error("the store {path} is closed")]
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// Nothing of that name is declared.
    #[error(
        "the upstream `{upstream}` has no budget or rolling limit `{limit}`{}",
        meant(.limit, .known.iter().map(String::as_str))
    )]
    NoSuchLimit {
        /// The upstream.
        upstream: String,
        /// The limit.
        limit: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A key lacks a column, or has one too many.
    #[error("{}", wrong_key(.limit, .expected))]
    WrongKey {
        /// The limit.
        limit: String,
        /// The columns of its key.
        expected: Vec<String>,
    },
}

fn wrong_key(limit: &str, expected: &[String]) -> String {
    match expected {
        [] => format!("the limit `{limit}` counts all jobs together: leave --key out"),
        columns => {
            let flags: Vec<_> = columns.iter().map(|name| format!("--key {name}=VALUE")).collect();
            format!("the limit `{limit}` counts by {}: say {}", columns.join(", "), flags.join(" "))
        }
    }
}

impl StoreError {
    /// Whether the trouble may pass by itself, so that a runner goes on trying.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            StoreError::Locked { .. }
                | StoreError::Full { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::Disk { .. }
        )
    }
}
