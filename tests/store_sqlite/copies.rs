//! Copies: made while others write, put back without granting again what was spent since.

use std::path::Path;
use std::time::Duration;

use paceline::job::JobState;
use paceline::store::sqlite::{CopyError, Origin, SqliteStore, backup, restore};
use paceline::store::{Claimed, Restored, RunnerId, Serves, Store, StoreError, Swept};

use super::Folder;
use super::world::{FREE, World, daily, limit, secs};

/// A second store beside the first, from a copy.
struct Second {
    store: SqliteStore,
    runner: RunnerId,
    swept: Swept,
}

impl Folder {
    fn copy(&self, name: &str) -> Result<u64, CopyError> {
        backup(&self.file(), &self.folder.path().join(name), &self.clock, |_, _| true)
    }

    /// Opens the file as the first run on it would.
    fn second(&self, w: &World<SqliteStore>, path: &Path) -> Second {
        let store = self.open_at(path, false).unwrap();
        let (runner, swept) = w.wait(store.register(Serves::Queue(Vec::new()))).unwrap();
        Second { store, runner, swept }
    }

    /// The copy `name`, put in place at `second.db`.
    fn restored(&self, w: &World<SqliteStore>, name: &str, trust: bool) -> Second {
        let (from, to) = (self.folder.path().join(name), self.folder.path().join("second.db"));
        assert_eq!(restore(&from, &to, &self.clock, (false, trust)).unwrap(), None);
        self.second(w, &to)
    }
}

impl Second {
    fn claim(&self, w: &World<SqliteStore>) -> Claimed {
        w.claimed_by(&self.store, self.runner, 64)
    }

    fn count(&self, w: &World<SqliteStore>, state: JobState) -> u64 {
        w.wait(self.store.tally()).unwrap().get(&state).copied().unwrap_or(0)
    }
}

fn windows() -> [String; 2] {
    [daily(10, "reserve = 2\n"), limit("hourly", "rolling", "amount = 10\nper = \"1h\"\n")]
}

#[test]
fn what_was_spent_after_the_copy_is_not_granted_again() {
    for (limits, opens) in windows().iter().zip(["2026-06-02T00:00:02Z", "2026-06-01T13:30:00Z"]) {
        let folder = Folder::new();
        let w = folder.world(limits, false);
        w.add(20, &[]);
        folder.copy("copy.db").unwrap();
        assert!(w.claim(64).len() >= 8, "all of the window is spent after the copy was made");
        let second = folder.restored(&w, "copy.db", false);
        let restored = second.swept.restored.unwrap();
        assert_eq!(restored, Restored { copied_at: w.store.now().wall, unsure: 0 });
        let claimed = second.claim(&w);
        assert!(claimed.calls.is_empty(), "{limits}: {claimed:?}");
        assert_eq!(claimed.next_at.unwrap().to_rfc3339(), *opens);
        let view = w.wait(second.store.upstream(w.upstream.clone())).unwrap();
        assert_eq!((view.limits[0].spent, view.limits[0].restored), (Some(10), true));
        let wait = &view.partitions[0].wait;
        assert!(wait.detail.contains("because the store was restored"), "{}", wait.detail);
        w.pass_to(claimed.next_at.unwrap());
        assert!(second.claim(&w).calls.len() >= 8, "the next window has its own units");
        let view = w.wait(second.store.upstream(w.upstream.clone())).unwrap();
        assert!(!view.limits[0].restored);
    }
}

#[test]
fn an_instance_that_the_copy_does_not_know_counts_as_spent_too() {
    let folder = Folder::new();
    let w = folder.world(&daily(3, "key = [\"site\"]\n"), false);
    w.add(1, &[("site", "a")]);
    folder.copy("copy.db").unwrap();
    let second = folder.restored(&w, "copy.db", false);
    let job = w.job(&[("site", "b")]);
    w.wait(second.store.add(w.upstream.clone(), "load".to_owned(), vec![job])).unwrap();
    assert!(second.claim(&w).calls.is_empty());
    w.pass(secs(86_400));
    assert_eq!(second.claim(&w).calls.len(), 2);
}

#[test]
fn a_burst_is_not_granted_again() {
    let folder = Folder::new();
    let text = "rate = \"1/min\"\nburst = 5\ncounted = \"bucket\"\n";
    let w = folder.world(&limit("pace", "rate", text), false);
    w.add(9, &[]);
    folder.copy("copy.db").unwrap();
    assert!(w.claim(64).len() > 1, "a burst goes at once");
    let second = folder.restored(&w, "copy.db", false);
    let claimed = second.claim(&w);
    assert!(claimed.calls.is_empty(), "{claimed:?}");
    let wait = claimed.next_at.unwrap().since(w.now());
    assert!(wait > secs(50) && wait < secs(70), "{wait:?}");
}

#[test]
fn what_must_not_go_twice_is_unsure() {
    let folder = Folder::new();
    let w = folder.world(FREE, false);
    let once = || super::world_once(&w);
    let (running, waiting) = (w.add_one(once()), w.add_one(once()));
    let claimed = w.claim(1);
    assert_eq!(claimed.len(), 1);
    let repeatable = w.add(2, &[]);
    folder.copy("copy.db").unwrap();
    let second = folder.restored(&w, "copy.db", false);
    assert_eq!(second.swept.restored.unwrap().unsure, 2);
    assert_eq!(second.swept.unsure, 2, "it ends a run with 3");
    let filter = paceline::store::Filter { states: vec![JobState::Unsure], ..Default::default() };
    let jobs = w.wait(second.store.jobs(filter, Default::default())).unwrap();
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids, [running, waiting], "the one that was running in the copy too");
    assert!(jobs[0].detail.as_ref().unwrap().contains("after the copy was made"));
    assert_eq!(second.claim(&w).calls.len(), repeatable.len());
}

#[test]
fn counts_are_trusted_where_nothing_was_sent_since() {
    let folder = Folder::new();
    let w = folder.world(&daily(10, ""), false);
    w.add_one(super::world_once(&w));
    w.add(20, &[]);
    let sent = w.claim(4);
    for call in &sent {
        w.ok(call);
    }
    folder.copy("copy.db").unwrap();
    let trusted = folder.restored(&w, "copy.db", true);
    assert_eq!(trusted.swept.restored, None);
    assert_eq!(trusted.store.origin().unwrap(), Origin::Own);
    assert_eq!(trusted.claim(&w).calls.len(), 6);
    // Later on, too; nothing of it was written into the counts.
    let late = folder.second(&w, &folder.folder.path().join("copy.db"));
    assert!(late.claim(&w).calls.is_empty());
    assert_eq!(late.store.origin().unwrap(), Origin::Restored(w.store.now().wall));
    w.wait(late.store.trust_counts()).unwrap();
    assert_eq!(late.claim(&w).calls.len(), 6);
    assert_eq!(late.count(&w, JobState::Unsure), 0);
}

#[test]
fn looking_into_a_copy_leaves_it_one() {
    let folder = Folder::new();
    let w = folder.world(&daily(10, ""), false);
    w.add(3, &[]);
    folder.copy("copy.db").unwrap();
    let copy = folder.folder.path().join("copy.db");
    let looked = folder.open_at(&copy, false).unwrap();
    let view = w.wait(looked.upstream(w.upstream.clone())).unwrap();
    assert_eq!(view.limits[0].spent, Some(0), "it shows what was then");
    assert!(matches!(looked.origin().unwrap(), Origin::Copy(_)));
    drop(looked);
    // A day later the windows of that day count, and not those of the look.
    w.pass(secs(86_400));
    let second = folder.second(&w, &copy);
    assert!(second.claim(&w).calls.is_empty());
}

#[test]
fn a_plain_copy_is_taken_for_one_when_it_is_restored() {
    let folder = Folder::new();
    let w = folder.world(&daily(10, ""), false);
    w.add(3, &[]);
    folder.connect().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    std::fs::copy(folder.file(), folder.folder.path().join("plain.db")).unwrap();
    assert!(folder.restored(&w, "plain.db", false).claim(&w).calls.is_empty());
}

#[test]
fn a_copy_replaces_nothing_and_is_the_owners_alone() {
    let folder = Folder::new();
    let missing = folder.copy("copy.db").unwrap_err();
    assert!(matches!(missing, CopyError::Missing(_)), "{missing}");
    let w = folder.world(FREE, false);
    w.add(50, &[]);
    let bytes = folder.copy("copy.db").unwrap();
    let copy = folder.folder.path().join("copy.db");
    assert_eq!(std::fs::metadata(&copy).unwrap().len(), bytes);
    assert_eq!(
        std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&copy).unwrap()) & 0o777,
        0o600
    );
    let before = std::fs::read(&copy).unwrap();
    assert!(matches!(folder.copy("copy.db").unwrap_err(), CopyError::Exists(_)));
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    let stopped = folder.folder.path().join("stopped.db");
    w.add(20_000, &[]);
    let error = backup(&folder.file(), &stopped, &folder.clock, |_, _| false).unwrap_err();
    assert!(matches!(error, CopyError::Interrupted), "{error}");
    let left = std::fs::read_dir(folder.folder.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(
        !left.iter().any(|name| name.contains("stopped") || name.contains("partial")),
        "{left:?}"
    );
}

#[test]
fn a_store_is_replaced_on_request_and_kept() {
    let folder = Folder::new();
    let w = folder.world(FREE, false);
    w.add(2, &[]);
    folder.copy("copy.db").unwrap();
    w.add(3, &[]);
    let (from, to) = (folder.folder.path().join("copy.db"), folder.file());
    let put = |replace| restore(&from, &to, &folder.clock, (replace, false));
    assert!(matches!(put(false).unwrap_err(), CopyError::InUse(_) | CopyError::Exists(_)));
    assert!(matches!(put(true).unwrap_err(), CopyError::InUse(_)), "a runner is registered");
    drop(w);
    let aside = put(true).unwrap().unwrap();
    assert_eq!(super::queued(&folder.open().unwrap()), 2);
    assert_eq!(super::queued(&folder.open_at(&aside, false).unwrap()), 5);
    let again = put(true).unwrap().unwrap();
    assert_ne!(again, aside, "in the same second: what was kept stays");
    std::fs::write(folder.folder.path().join("text.db"), "no store").unwrap();
    let text = folder.folder.path().join("text.db");
    let error = restore(&text, &to, &folder.clock, (true, false)).unwrap_err();
    assert!(matches!(error, CopyError::Store(StoreError::NotAStore { .. })), "{error}");
    assert_eq!(super::queued(&folder.open().unwrap()), 2);
}

#[test]
fn the_log_of_a_store_that_is_gone_is_not_read() {
    let folder = Folder::new();
    let w = folder.world(FREE, false);
    w.add(2, &[]);
    folder.copy("copy.db").unwrap();
    w.add(500, &[]);
    let log = folder.folder.path().join("queue.db-wal");
    let lost = std::fs::read(&log).unwrap();
    assert!(!lost.is_empty());
    let second = folder.folder.path().join("second.db");
    std::fs::write(second.with_extension("db-wal"), lost).unwrap();
    restore(&folder.folder.path().join("copy.db"), &second, &folder.clock, (false, true)).unwrap();
    assert_eq!(super::queued(&folder.open_at(&second, false).unwrap()), 2);
}

#[test]
fn clocks_that_were_set_are_no_way_round() {
    let folder = Folder::new();
    let w = folder.world(&daily(10, ""), false);
    w.add(20, &[]);
    folder.copy("copy.db").unwrap();
    // The wall clock is a day ahead when the copy becomes the store: both days count as spent.
    let day = i64::try_from(Duration::from_secs(86_400).as_nanos()).unwrap();
    folder.clock.step_wall(day);
    let second = folder.restored(&w, "copy.db", false);
    assert!(second.claim(&w).calls.is_empty());
    folder.clock.step_wall(-day);
    assert!(second.claim(&w).calls.is_empty());
}
