//! What the lanes of one run share: its bounds, its counts, and the word to leave.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::auth::Tokens;
use super::outage::PATIENCE;
use super::{Event, Leave, Report, RunOptions, Tell};
use crate::clock::Timestamp;
use crate::job::{JobId, JobState};
use crate::quota::library::Library;
use crate::secrets::Secrets;
use crate::store::Swept;

pub(super) struct Shared {
    pub options: RunOptions,
    pub library: Arc<Library>,
    pub secrets: Arc<Secrets>,
    pub tokens: Arc<Tokens>,
    pub leave: Leave,
    /// Hears every event, and keeps count of what is in flight.
    pub tell: Tell,
    out: Out,
    /// Calls that may still be sent; `u64::MAX` where that is not bounded.
    count: AtomicU64,
    active: AtomicUsize,
    sent: AtomicU64,
    unreached: AtomicU64,
    refused: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    expired: AtomicU64,
    unsure: AtomicU64,
    looked: Mutex<BTreeSet<String>>,
    left_at: Mutex<Option<Timestamp>>,
}

/// The jobs whose calls have left and are not settled yet.
type Out = Arc<Mutex<BTreeSet<JobId>>>;

fn lock(out: &Out) -> MutexGuard<'_, BTreeSet<JobId>> {
    out.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counting(out: &Out, tell: Tell) -> Tell {
    let out = Arc::clone(out);
    Arc::new(move |event| {
        match event {
            Event::Sent { job, .. } => drop(lock(&out).insert(*job)),
            Event::Answered { job, .. } => drop(lock(&out).remove(job)),
            _ => {}
        }
        tell(event);
    })
}

impl Shared {
    pub fn new(options: RunOptions, library: Arc<Library>, leave: Leave, tell: Tell) -> Shared {
        let out = Out::default();
        Shared {
            count: AtomicU64::new(options.count.unwrap_or(u64::MAX)),
            options,
            library,
            secrets: Arc::new(Secrets::new()),
            tokens: Arc::default(),
            leave,
            tell: counting(&out, tell),
            out,
            active: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            unreached: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            unsure: AtomicU64::new(0),
            looked: Mutex::default(),
            left_at: Mutex::default(),
        }
    }

    pub fn tell(&self, event: &Event) {
        (self.tell)(event);
    }

    /// Calls that have left and are not settled yet.
    pub fn in_flight(&self) -> usize {
        lock(&self.out).len()
    }

    /// Whether somebody asked the run to leave.
    pub fn is_interrupted(&self) -> bool {
        *self.leave.borrow()
    }

    /// Whether nothing new is to be sent: somebody said so, or the run's time is over.
    pub fn is_leaving(&self, wall: Timestamp) -> bool {
        self.is_interrupted() || self.options.until.is_some_and(|until| wall >= until)
    }

    /// Whether a run that leaves, or does not wait for long, has waited long enough for a store whose
    /// trouble has `lasted` so far.
    pub fn has_given_up(&self, wall: Timestamp, lasted: Duration) -> bool {
        if self.options.max_wait.is_some_and(|most| lasted >= most.max(PATIENCE)) {
            return true;
        }
        if !self.is_leaving(wall) {
            return false;
        }
        let mut left_at = self.left_at.lock().unwrap_or_else(PoisonError::into_inner);
        wall.since(*left_at.get_or_insert(wall)) >= PATIENCE
    }

    /// Whether this is the first look at an upstream in this run.
    pub fn first_look(&self, upstream: &str) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.insert(upstream.to_owned())
    }

    /// Calls that one lane may have in flight: the lanes at work share them evenly, so that an
    /// upstream that answers slowly leaves room for the others.
    pub fn share(&self) -> usize {
        let active = self.active.load(Ordering::Relaxed).max(1);
        (self.options.concurrency / active).max(1)
    }

    pub fn change_active(&self, more: bool) {
        if more {
            self.active.fetch_add(1, Ordering::Relaxed);
        } else {
            self.active.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn count_left(&self) -> usize {
        usize::try_from(self.count.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Takes up to `most` of the calls that may still be sent.
    pub fn take_count(&self, most: usize) -> usize {
        if self.options.count.is_none() {
            return most;
        }
        let most = most as u64;
        let before = self
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(most))
            })
            .unwrap_or(0);
        usize::try_from(before.min(most)).unwrap_or(usize::MAX)
    }

    /// Gives back what was taken and not used.
    pub fn give_count(&self, calls: usize) {
        if self.options.count.is_some() {
            self.count.fetch_add(calls as u64, Ordering::Relaxed);
        }
    }

    pub fn return_count(&self) {
        self.give_count(1);
    }

    /// A call was settled. One that never `left` was not sent.
    pub fn count_call(&self, left: bool) {
        let calls = if left { &self.sent } else { &self.unreached };
        calls.fetch_add(1, Ordering::Relaxed);
    }

    /// It was refused.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A settle left a job in this state.
    pub fn count_end(&self, state: JobState) {
        let counter = match state {
            JobState::Done => &self.done,
            JobState::Failed => &self.failed,
            JobState::Expired => &self.expired,
            JobState::Unsure => &self.unsure,
            JobState::Queued | JobState::Running | JobState::Cancelled => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Jobs ended without a call.
    pub fn count_unsent(&self, expired: u64, failed: u64) {
        self.expired.fetch_add(expired, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    pub fn count_swept(&self, swept: Swept) {
        self.expired.fetch_add(swept.expired, Ordering::Relaxed);
        self.unsure.fetch_add(swept.unsure, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn report(&self) -> Report {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Report {
            sent: read(&self.sent),
            unreached: read(&self.unreached),
            refused: read(&self.refused),
            done: read(&self.done),
            failed: read(&self.failed),
            expired: read(&self.expired),
            unsure: read(&self.unsure),
            interrupted: self.is_interrupted(),
            counted_out: self.options.count.is_some() && self.count_left() == 0,
            ..Report::default()
        }
    }
}
