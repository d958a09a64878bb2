//! Whether the file, its disk and the clocks are as a store needs them.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{queries, runners::RunnerLocks};
use crate::clock::Now;
use crate::store::RunnerId;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What SQLite finds wrong in the file; none: it is whole.
    pub damage: Vec<String>,
    /// The version of its schema.
    pub schema: i64,
    /// The file's length, with the write-ahead log's.
    pub bytes: u64,
    /// What its disk has left; `None`: that cannot be told here.
    pub free_bytes: Option<u64>,
    /// The file system's name; `None`: it is none of the common ones.
    pub file_system: Option<&'static str>,
    /// Runners at work, by process number.
    pub alive: Vec<u32>,
    /// Runners that died and were not swept yet.
    pub dead: u64,
    /// Both times.
    pub now: Now,
    /// Whether store time is made from the machine's boot-time clock.
    pub has_boot_clock: bool,
}

/// Lines of damage that are told.
const MOST: usize = 5;

pub(super) fn examine(
    conn: &Connection,
    now: Now,
    path: &Path,
    locks: &RunnerLocks,
) -> rusqlite::Result<Health> {
    let mut check = conn.prepare(queries::QUICK_CHECK_ALL)?;
    let said = check.query_map([], |row| row.get::<_, String>(0))?;
    let damage = said.take(MOST).collect::<rusqlite::Result<Vec<_>>>()?;
    let damage = damage.into_iter().filter(|line| line != "ok").collect();
    let mut runners = conn.prepare_cached(queries::RUNNERS_SERVING)?;
    let runners =
        runners.query_map([], |row| Ok((RunnerId(row.get(0)?), row.get::<_, u32>(1)?)))?;
    let runners = runners.collect::<rusqlite::Result<Vec<_>>>()?;
    let (alive, dead): (Vec<_>, Vec<_>) =
        runners.into_iter().partition(|(id, _)| locks.is_alive(*id));
    let boot: Option<String> = conn.query_row(queries::STORE_ANCHOR, [], |row| row.get(0))?;
    Ok(Health {
        damage,
        schema: conn.pragma_query_value(None, "user_version", |row| row.get(0))?,
        bytes: length(path) + length(&PathBuf::from(format!("{}-wal", path.display()))),
        free_bytes: free(path),
        file_system: file_system(path),
        alive: alive.into_iter().map(|(_, pid)| pid).collect(),
        dead: dead.len() as u64,
        now,
        has_boot_clock: boot.is_some(),
    })
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn free(path: &Path) -> Option<u64> {
    let told = nix::sys::statvfs::statvfs(path).ok()?;
    #[allow(clippy::useless_conversion, reason = "the types differ from system to system")]
    Some(u64::from(told.blocks_available()).saturating_mul(u64::from(told.fragment_size())))
}

#[cfg(target_os = "linux")]
fn file_system(path: &Path) -> Option<&'static str> {
    /// From the kernel's `linux/magic.h`.
    const KNOWN: [(i64, &str); 8] = [
        (0xEF53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x794C_7630, "overlay"),
        (0x2FC1_2FC1, "zfs"),
        (0xF2F5_2010, "f2fs"),
        (0x8584_58F6, "ramfs"),
    ];
    let kind = nix::sys::statfs::statfs(path).ok()?.filesystem_type();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits")]
    let magic = i64::from(kind.0 as u32);
    KNOWN.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn file_system(_: &Path) -> Option<&'static str> {
    None
}
