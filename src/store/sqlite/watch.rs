//! Whether somebody writes to the store. Whoever waits for news looks for it while that is so: nothing tells of
//! a commit by another process, but its pages can be seen to come.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use super::count::{Count, Rise, count};

/// From the first page to the first look.
const FIRST: Duration = Duration::from_millis(5);

/// Further looks: a commit counts only after its pages are on the disk, which nothing tells.
const LATER: Duration = Duration::from_millis(50);

/// So many looks follow a page, before the next one is waited for.
const LOOKS: usize = 20;

/// A thread that watches the write-ahead log.
#[derive(Debug)]
pub(super) struct Watch {
    looks: Count,
    log: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Watched {
    path: OsString,
    inotify: Inotify,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    watched: Option<WatchDescriptor>,
    leaving: bool,
}

impl Watch {
    /// `None`: the system does not tell of writes.
    pub fn start(store: &Path) -> Option<Watch> {
        let mut path = store.as_os_str().to_owned();
        path.push("-wal");
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC).ok()?;
        let (state, left) = Default::default();
        let log = Arc::new(Watched { path, inotify, state, left });
        log.watch()?;
        let (tell, looks) = count();
        let watching = Arc::clone(&log);
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let thread = thread.spawn(move || watching.serve(&tell)).ok()?;
        Some(Watch { looks, log, thread: Some(thread) })
    }

    /// The looks that were due so far; it rises while writes are told of.
    pub fn looks(&self) -> &Count {
        &self.looks
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.log.lock();
        state.leaving = true;
        if let Some(watched) = state.watched {
            // Whoever reads hears of that too.
            let _ = self.log.inotify.rm_watch(watched);
        }
        drop(state);
        self.log.left.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the next write alone: to be told of each would slow down all that follow. `None`: it cannot be
    /// watched any more, or nobody wants to know.
    fn watch(&self) -> Option<()> {
        let mut state = self.lock();
        if state.leaving {
            return None;
        }
        let next = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ONESHOT;
        state.watched = Some(self.inotify.add_watch(self.path.as_os_str(), next).ok()?);
        Some(())
    }

    fn serve(&self, tell: &Rise) {
        // The next write is asked for before the looks: one that comes in the course of these is not missed.
        while self.hears_of_a_write() && self.watch().is_some() {
            let mut pause = FIRST;
            for _ in 0..LOOKS {
                if self.leaves_within(pause) {
                    return;
                }
                tell.by_one();
                pause = LATER;
            }
        }
    }

    /// Waits for the one write that was asked for: until the system has struck out the wish for it.
    fn hears_of_a_write(&self) -> bool {
        loop {
            match self.inotify.read_events() {
                Ok(events) => {
                    let is_over =
                        |event: &InotifyEvent| event.mask.contains(AddWatchFlags::IN_IGNORED);
                    if events.iter().any(is_over) {
                        return true;
                    }
                }
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn leaves_within(&self, pause: Duration) -> bool {
        let waited = self.left.wait_timeout_while(self.lock(), pause, |state| !state.leaving);
        waited.unwrap_or_else(PoisonError::into_inner).0.leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With time enough for a machine that is at other work.
    const PATIENCE: Duration = Duration::from_secs(30);

    async fn looks_to(watch: &Watch, count: u64) {
        let looks = watch.looks().beyond(count - 1);
        tokio::time::timeout(PATIENCE, looks).await.unwrap();
    }

    #[tokio::test]
    async fn looks_follow_each_write_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("queue.db");
        let write = || std::fs::write(folder.path().join("queue.db-wal"), "a page").unwrap();
        assert!(Watch::start(&store).is_none(), "there is no log");
        write();
        let watch = Watch::start(&store).unwrap();
        let all = LOOKS as u64;
        write();
        looks_to(&watch, 1).await;
        // In the course of the looks: as many follow this one.
        write();
        looks_to(&watch, 2 * all).await;
        write();
        looks_to(&watch, 3 * all).await;
        assert!(watch.looks().is_on());
    }
}
