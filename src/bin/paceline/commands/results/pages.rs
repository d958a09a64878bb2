//! Results page by page, so that memory does not grow with their number.

use std::collections::BTreeMap;

use paceline::job::JobId;
use paceline::report::jobs::result;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::JobView;
use paceline::store::{Cursor, Filter, Store as _};
use serde_json::{Map, Value};

use super::bodies::Bodies;
use crate::args::look::ResultsArgs;

/// Results that are looked for at once.
const PAGE: usize = 1000;

/// Bodies that are read at once: each may have as much as `[keep] max_bytes`.
const WITH_BODIES: usize = 50;

/// Results in the order in which their jobs ended.
pub struct Pages {
    filter: Filter,
    latest_by: Option<String>,
    left: usize,
    /// All that are to come, where they had to be found at once.
    found: Option<std::vec::IntoIter<Cursor>>,
    done: bool,
    /// The last one that was told.
    pub last: Option<Cursor>,
    bodies: Bodies,
}

/// Some of them.
pub struct Page<'p> {
    cursors: std::vec::IntoIter<Cursor>,
    jobs: BTreeMap<JobId, JobView>,
    bodies: &'p mut Bodies,
}

impl Pages {
    pub fn new(filter: Filter, args: &ResultsArgs, bodies: Bodies) -> Pages {
        let left = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let latest_by = args.latest_by.clone();
        Pages { filter, latest_by, left, found: None, done: false, last: args.after(), bodies }
    }

    pub async fn next(&mut self, store: &SqliteStore) -> anyhow::Result<Option<Page<'_>>> {
        if self.done {
            return Ok(None);
        }
        let most = PAGE.min(self.left);
        let cursors = self.cursors(store, most).await?;
        // Another look for what is not there would go over all that does not fit.
        self.done = cursors.len() < most;
        let Some(last) = cursors.last() else { return Ok(None) };
        self.last = Some(*last);
        self.left -= cursors.len();
        let ids = cursors.iter().map(|cursor| cursor.job).collect();
        let jobs = store.jobs(Filter { ids, ..Filter::default() }, BTreeMap::new()).await?;
        let jobs = jobs.into_iter().map(|job| (job.id, job)).collect();
        Ok(Some(Page { cursors: cursors.into_iter(), jobs, bodies: &mut self.bodies }))
    }

    /// The next page's places. Who is the latest of its like is asked once: one number a result.
    async fn cursors(&mut self, store: &SqliteStore, most: usize) -> anyhow::Result<Vec<Cursor>> {
        if self.latest_by.is_none() {
            let filter = Filter { limit: Some(most as u64), ..self.filter.clone() };
            return Ok(store.ended(filter, self.last, None).await?);
        }
        let found = match &mut self.found {
            Some(found) => found,
            None => {
                let all =
                    store.ended(self.filter.clone(), self.last, self.latest_by.clone()).await?;
                self.found.insert(all.into_iter())
            }
        };
        Ok(found.take(most).collect())
    }
}

impl Page<'_> {
    /// The next rows of it; `None`: that was all.
    pub async fn rows(
        &mut self,
        store: &SqliteStore,
    ) -> anyhow::Result<Option<Vec<Map<String, Value>>>> {
        let with_bodies = self.bodies.are_wanted();
        let cursors: Vec<Cursor> = match with_bodies {
            true => self.cursors.by_ref().take(WITH_BODIES).collect(),
            false => self.cursors.by_ref().collect(),
        };
        if cursors.is_empty() {
            return Ok(None);
        }
        let kept = match with_bodies {
            true => store.last_bodies(cursors.iter().map(|cursor| cursor.job).collect()).await?,
            false => BTreeMap::new(),
        };
        let mut rows = Vec::with_capacity(cursors.len());
        for cursor in cursors {
            // A job that was pruned or queued again meanwhile has no result any more.
            let job = self.jobs.get(&cursor.job).filter(|job| job.state.is_final());
            let Some(job) = job else { continue };
            let body = kept.get(&cursor.job);
            let shown = body.filter(|_| self.bodies.whole);
            let mut row = result(job, shown, &cursor.to_string());
            self.bodies.fill(&mut row, job, body);
            rows.push(row);
        }
        Ok(Some(rows))
    }
}
