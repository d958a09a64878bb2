//! Processes that send. Each holds a lock on a small file beside the store: the system lets go of it
//! when the process ends, however it ends, so that its leases are found at once and never by guessing
//! from process numbers.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use rusqlite::named_params;

use super::writer::Txn;
use super::{queries, sweep};
use crate::store::{RunnerId, Serves, StoreError};

/// A handle on a runner's lock that child processes inherit.
#[derive(Debug)]
pub struct HeldLock(#[allow(dead_code, reason = "it is held, no more")] File);

/// The locks that this process holds.
#[derive(Clone, Debug)]
pub(super) struct RunnerLocks {
    store: PathBuf,
    held: Arc<Mutex<HashMap<RunnerId, File>>>,
}

impl RunnerLocks {
    pub fn beside(store: &Path) -> Self {
        RunnerLocks { store: store.to_owned(), held: Arc::default() }
    }

    /// A new runner's number, with its lock held.
    pub fn take(&self) -> Result<RunnerId, StoreError> {
        let failed = |source: std::io::Error| StoreError::Open {
            path: self.store.clone(),
            source: source.into(),
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut id = i64::from(std::process::id());
        loop {
            // A number is taken only by the process that makes its file.
            let file =
                File::options().write(true).create_new(true).open(lock_file(&self.store, id));
            match file {
                Ok(file) => {
                    file.lock().map_err(failed)?;
                    held.insert(RunnerId(id), file);
                    return Ok(RunnerId(id));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    id = id.wrapping_add(1 << 32);
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Lets go of a runner's lock.
    pub fn free(&self, runner: RunnerId) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.remove(&runner).is_some() {
            let _ = std::fs::remove_file(lock_file(&self.store, runner.0));
        }
    }

    /// A handle on a runner's lock that child processes inherit: the lock is held until that is gone too, in
    /// whichever process.
    pub fn share(&self, runner: RunnerId) -> std::io::Result<HeldLock> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || std::io::Error::other("the runner has left the store");
        let file = held.get(&runner).ok_or_else(gone)?.try_clone()?;
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(HeldLock(file))
    }

    /// Whether the process that took this number is there.
    pub fn is_alive(&self, runner: RunnerId) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.contains_key(&runner) || is_locked(&lock_file(&self.store, runner.0))
    }

    /// Removes the file that a dead process left.
    pub fn bury(&self, runner: RunnerId) {
        let _ = std::fs::remove_file(lock_file(&self.store, runner.0));
    }
}

fn lock_file(store: &Path, id: i64) -> PathBuf {
    PathBuf::from(format!("{}-runner-{id}", store.display()))
}

fn is_locked(file: &Path) -> bool {
    match File::open(file) {
        Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// Whether any runner is at work on the store.
pub(super) fn any_alive(store: &Path) -> bool {
    let Some(name) = store.file_name() else { return false };
    let prefix = format!("{}-runner-", name.to_string_lossy());
    let folder = match store.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .any(|entry| is_locked(&entry.path()))
}

pub(super) fn register(txn: &Txn<'_>, runner: RunnerId, serves: &Serves) -> rusqlite::Result<()> {
    let (upstreams, serves) = match serves {
        Serves::Queue(upstreams) => (upstreams.as_slice(), true),
        Serves::Itself => (&[][..], false),
    };
    let list = serde_json::Value::from(upstreams).to_string();
    let mut insert = txn.conn.prepare_cached(queries::REGISTER)?;
    insert.execute(named_params! {
        ":id": runner.0, ":pid": std::process::id(), ":now": txn.now.store.as_nanos(),
        ":upstreams": list, ":serves": serves,
    })?;
    Ok(())
}

pub(super) fn retire(txn: &Txn<'_>, runner: RunnerId) -> rusqlite::Result<()> {
    sweep::leave_no_orphans(txn, runner)?;
    // A runner whose calls could not be settled stays, and is swept as a dead one.
    txn.conn.prepare_cached(queries::RETIRE)?.execute(named_params! { ":id": runner.0 })?;
    Ok(())
}
