//! `log`: one line an attempt.

use std::collections::BTreeMap;

use paceline::job::JobState;
use paceline::output::CsvOut;
use paceline::reading::Reason;
use paceline::report::jobs::logged;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::AttemptView;
use paceline::store::{AttemptFilter, Filter, Store as _};

use super::act::check_names;
use super::why::LOST;
use crate::args::look::LogArgs;
use crate::args::select::{columns, since};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::visible;
use crate::render::time::Times;

/// Attempts that are read at once.
pub const PAGE: u64 = 2000;

const FIELDS: [&str; 9] =
    ["job", "upstream", "url", "n", "sent_at", "status", "reason", "hint_at", "detail"];

/// Lists attempts, oldest first.
pub async fn run(args: LogArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let upstreams: Vec<String> = args.upstream.into_iter().collect();
    let jobs = Filter {
        upstreams: upstreams.clone(),
        load: args.load.clone(),
        url: args.url.clone(),
        columns: columns(&args.columns),
        ..Filter::default()
    };
    check_names(&jobs, &store, context).await?;
    let times = context.times();
    let since = since(args.since, &times)?;
    let filter = AttemptFilter {
        upstreams,
        url: args.url,
        load: args.load,
        reason: args.reason,
        columns: columns(&args.columns),
        since,
        limit: args.limit,
        ..AttemptFilter::default()
    };
    let mut pages = Pages { filter, latest: args.limit.is_some(), done: false, any: false };
    if args.csv {
        csv(&mut pages, &store, context).await?;
    } else if context.global.json {
        let mut array = context.out.array();
        while let Some(page) = pages.next(&store).await? {
            page.iter().try_for_each(|attempt| array.push(&logged(attempt)))?;
        }
        array.finish()?;
    } else {
        while let Some(page) = pages.next(&store).await? {
            page.iter().try_for_each(|attempt| context.out.text(&line(attempt, &times)))?;
        }
    }
    if !pages.any {
        nothing(jobs, &store, context).await?;
    }
    Ok(Exit::Done)
}

/// Says of an address that was not sent why, where it is queued.
async fn nothing(jobs: Filter, store: &SqliteStore, context: &Context) -> anyhow::Result<()> {
    let url = jobs.url.clone();
    let queued = Filter { states: vec![JobState::Queued, JobState::Running], ..jobs };
    let found = match &url {
        Some(_) => store.jobs(queued, BTreeMap::new()).await?.pop(),
        None => None,
    };
    match found {
        Some(job) => context.note(&format!(
            "no attempt fits; job {id} of that URL is {}: `paceline why {id}` says more",
            job.state,
            id = job.id
        )),
        None => context.note("no attempt fits"),
    }
    Ok(())
}

/// Attempts in their order, page by page; the latest so many at once.
struct Pages {
    filter: AttemptFilter,
    latest: bool,
    done: bool,
    any: bool,
}

impl Pages {
    async fn next(&mut self, store: &SqliteStore) -> anyhow::Result<Option<Vec<AttemptView>>> {
        if self.done {
            return Ok(None);
        }
        if !self.latest {
            self.filter.after.get_or_insert(0);
            self.filter.limit = Some(PAGE);
        }
        let page = store.attempts(self.filter.clone()).await?;
        // Another look for what is not there would go over all that does not fit.
        self.done = self.latest || (page.len() as u64) < PAGE;
        self.any |= !page.is_empty();
        self.filter.after = page.last().map(|last| last.id).or(self.filter.after);
        Ok((!page.is_empty()).then_some(page))
    }
}

async fn csv(pages: &mut Pages, store: &SqliteStore, context: &Context) -> anyhow::Result<()> {
    let mut out = CsvOut::new(context.out.writer(), FIELDS)?;
    while let Some(page) = pages.next(store).await? {
        for attempt in &page {
            if let Some(row) = logged(attempt).as_object() {
                out.row(row)?;
            }
        }
    }
    out.finish()?;
    Ok(())
}

fn line(attempt: &AttemptView, times: &Times) -> String {
    let status = attempt.status.map_or("---".to_owned(), |status| status.to_string());
    let reason = attempt.reason.as_deref().unwrap_or(LOST);
    let hint = attempt.hint_at.map(|at| format!(" come back {}", times.here(at)));
    let redirect = attempt.redirect.as_ref().map(|url| format!(" -> {url}"));
    let said = attempt.detail.as_ref().filter(|said| !said.is_empty() && !is_success(reason));
    let said = said.map(|said| format!(" ({said})"));
    let text = format!(
        "{} {} job {} attempt {} {status} {reason}{} {}{}{}",
        times.here(attempt.sent_at),
        attempt.upstream,
        attempt.job,
        attempt.n,
        hint.unwrap_or_default(),
        attempt.url,
        redirect.unwrap_or_default(),
        said.unwrap_or_default()
    );
    visible(&text).into_owned()
}

/// Of a success the reason says it all.
fn is_success(reason: &str) -> bool {
    [Reason::Ok, Reason::AcceptedPending].into_iter().any(|success| success.name() == reason)
}
