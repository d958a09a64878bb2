//! Retention: ended jobs that `[keep]` no longer keeps are removed, some at a time.

use crate::clock::Timestamp;
use crate::job::JobState;
use crate::quota::Keep;
use crate::store::{Act, Cursor, Filter, Store, StoreError};

/// The jobs of an upstream that are too old at `now` (store time).
pub fn too_old(upstream: &str, keep: &Keep, now: Timestamp) -> [Filter; 2] {
    let of = |age, states: &[JobState]| Filter {
        upstreams: vec![upstream.to_owned()],
        states: states.to_vec(),
        ended_before: Some(now - age),
        ..Filter::default()
    };
    [
        of(keep.done, &[JobState::Done, JobState::Cancelled]),
        of(keep.failed, &[JobState::Failed, JobState::Expired]),
    ]
}

/// One way through the ended jobs, from the first that ended on: no job is looked at twice.
#[derive(Debug)]
pub struct Pass {
    filters: std::vec::IntoIter<Filter>,
    filter: Option<Filter>,
    after: Option<Cursor>,
    most: u64,
}

impl Pass {
    /// Through the jobs that these filters find, `most` in a step.
    pub fn new(filters: Vec<Filter>, most: u64) -> Pass {
        Pass { filters: filters.into_iter(), filter: None, after: None, most }
    }

    /// Removes the next ones, in one transaction. Tells how many; `None`: all are gone.
    ///
    /// # Errors
    ///
    /// Where the store cannot do it; the same step can be tried again.
    pub async fn step(&mut self, store: &impl Store) -> Result<Option<u64>, StoreError> {
        loop {
            if self.filter.is_none() {
                (self.filter, self.after) = (self.filters.next(), None);
            }
            let Some(filter) = &self.filter else { return Ok(None) };
            let some = Filter { limit: Some(self.most), ..filter.clone() };
            let found = store.ended(some, self.after, None).await?;
            let Some(last) = found.last().copied() else {
                self.filter = None;
                continue;
            };
            let ids = found.iter().map(|cursor| cursor.job).collect();
            // One that was queued again meanwhile stays.
            let exactly = Filter { ids, ..filter.clone() };
            let pruned = store.act(exactly, Act::Prune).await?;
            self.after = Some(last);
            return Ok(Some(pruned));
        }
    }
}
