//! `jobs`: a list.

use std::collections::BTreeSet;

use paceline::job::JobId;
use paceline::report::jobs as told;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::{Ahead, JobView, Turn};
use paceline::store::{Filter, Store as _};
use serde_json::Value;

use super::act::check_names;
use crate::args::look::JobsArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::table::table;
use crate::render::text::cut;
use crate::render::time::Times;

/// Jobs that are read at once.
const PAGE: u64 = 1000;

/// Lists jobs.
pub async fn run(args: JobsArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let mut filter = args.select.filter(&args.jobs, &context.times(), store.now())?;
    filter.url = args.url;
    check_names(&filter, &store, context).await?;
    check_numbers(&args.jobs, &store).await?;
    let mut pages = Pages::new(filter, args.limit);
    match context.global.json {
        true => {
            let mut array = context.out.array();
            while let Some(page) = pages.next(&store, context).await? {
                for job in &page {
                    array.push(&Value::Object(told::job(job)))?;
                }
            }
            array.finish()?;
        }
        false => list(&mut pages, &store, context).await?,
    }
    Ok(Exit::Done)
}

/// A job that is not there is a slip of the pen, or was pruned: no empty answer.
async fn check_numbers(asked: &[i64], store: &SqliteStore) -> anyhow::Result<()> {
    if asked.is_empty() {
        return Ok(());
    }
    let ids: Vec<JobId> = asked.iter().copied().map(JobId).collect();
    let found = store.jobs(Filter { ids, ..Filter::default() }, Default::default()).await?;
    let found: BTreeSet<i64> = found.iter().map(|job| job.id.0).collect();
    let lacking = asked.iter().filter(|id| !found.contains(id)).map(ToString::to_string);
    let lacking: Vec<String> = lacking.collect();
    match lacking.as_slice() {
        [] => Ok(()),
        [one] => wrong(format!("there is no job {one}")),
        several => wrong(format!("there are no jobs {}", several.join(", "))),
    }
}

/// Jobs by number, page by page.
struct Pages {
    filter: Filter,
    left: u64,
}

impl Pages {
    fn new(filter: Filter, limit: Option<u64>) -> Pages {
        Pages { filter, left: limit.unwrap_or(u64::MAX) }
    }

    async fn next(
        &mut self,
        store: &SqliteStore,
        context: &Context,
    ) -> anyhow::Result<Option<Vec<JobView>>> {
        self.filter.limit = Some(PAGE.min(self.left));
        let declared = context.declared(store).await?;
        let page = store.jobs(self.filter.clone(), declared).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.filter.after = Some(last.id);
        self.left -= page.len() as u64;
        Ok(Some(page))
    }
}

async fn list(pages: &mut Pages, store: &SqliteStore, context: &Context) -> anyhow::Result<()> {
    let times = context.times();
    let mut any = false;
    while let Some(page) = pages.next(store, context).await? {
        any = true;
        let rows: Vec<_> = page.iter().map(|job| row(job, &times)).collect();
        context.out.text(&table(["JOB", "UPSTREAM", "LOAD", "STATE", "URL", "WHY"], &rows))?;
    }
    if !any {
        context.note("no job fits");
    }
    Ok(())
}

fn row(job: &JobView, times: &Times) -> [String; 6] {
    let state = match &job.waiting {
        Some(wait) => wait.turn.name().to_owned(),
        None => job.state.to_string(),
    };
    let more = match &job.waiting {
        Some(wait) => {
            // What is held does not go on by itself.
            let until = wait.until.filter(|_| wait.turn != Turn::Held);
            let until = until.map(|until| format!(" {}", times.distance(until)));
            let limit = wait.limit.as_deref().unwrap_or(&wait.reason);
            format!("{limit}{}", until.unwrap_or_default())
        }
        None => job.reason.clone().or_else(|| job.detail.clone()).unwrap_or_default(),
    };
    let ahead = job.ahead.filter(|ahead| ahead.jobs > 0).map(|Ahead { jobs, more }| {
        format!("{jobs}{} before it", if more { " or more" } else { "" })
    });
    let more = [more, ahead.unwrap_or_default()];
    let more: Vec<String> = more.into_iter().filter(|part| !part.is_empty()).collect();
    let more = more.join(", ");
    let url = cut(told::url(job), 80).into_owned();
    [job.id.to_string(), job.upstream.clone(), job.load.clone(), state, url, more]
}
