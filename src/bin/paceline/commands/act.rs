//! Acting on jobs: by number, or on all that a filter finds, once somebody said yes.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};

use paceline::job::{Columns, JobId, JobState};
use paceline::quota::declare::meant;
use paceline::store::sqlite::SqliteStore;
use paceline::store::{Act, Filter, Resolution, Store};
use serde_json::json;

use super::prune;
use crate::args::act::Targets;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::text::count;

/// Jobs of one transaction, so that nobody else's work waits long.
pub const CHUNK: u64 = 5000;

/// An act in words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// As typed: `cancel`.
    pub verb: &'static str,
    /// What became of the jobs: `cancelled`.
    pub done: &'static str,
    /// Which jobs it fits: `queued`.
    pub fits: &'static str,
}

/// The filter that the targets name.
pub fn filter(
    targets: &Targets,
    store: &SqliteStore,
    context: &Context,
    words: Words,
) -> anyhow::Result<Filter> {
    if targets.jobs.is_empty() && !targets.select.is_given() {
        let verb = words.verb;
        return wrong(format!(
            "say which jobs: numbers, as in `{verb} 4711`, or a filter, as in `{verb} --load NAME`"
        ));
    }
    targets.select.filter(&targets.jobs, &context.times(), store.now())
}

/// Counts, asks where it are many, acts, and tells.
pub async fn run(
    targets: &Targets,
    filter: Filter,
    act: Act,
    words: Words,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<Exit> {
    check_names(&filter, store, context).await?;
    let single = targets.jobs.len() == 1;
    let fits = store.count(filter.clone(), act.clone()).await?;
    if single && fits == 0 {
        return refuse(targets, words, store).await;
    }
    let many = targets.jobs.len() > 1 || targets.jobs.is_empty();
    if fits > 0 && many && !targets.yes && !confirmed(fits, words, context)? {
        context.note("nothing was changed");
        return Ok(Exit::Done);
    }
    let changed = if fits > 0 { repeat(store, &filter, &act).await? } else { 0 };
    let running = match act {
        Act::Cancel | Act::Set { .. } => store.running(filter).await?,
        _ => 0,
    };
    tell(changed, running, words, context)?;
    Ok(Exit::Done)
}

/// A load or upstream that does not exist is a slip of the pen, not an empty answer.
pub async fn check_names(
    filter: &Filter,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<()> {
    for name in &filter.upstreams {
        context.check_name(store, name).await?;
    }
    check_load(filter, store).await?;
    check_columns(filter, store, context).await
}

async fn check_load(filter: &Filter, store: &SqliteStore) -> anyhow::Result<()> {
    let Some(load) = &filter.load else { return Ok(()) };
    if store.is_load(load.clone()).await? {
        return Ok(());
    }
    let loads = store.loads().await?;
    if loads.is_empty() {
        return Ok(());
    }
    let meant = meant(load, loads.iter().map(|load| load.name.as_str()));
    wrong(format!("there is no load `{load}`{meant}; `paceline loads` lists them"))
}

/// Jobs whose columns are looked at for the name that was meant.
const LOOKED_AT: u64 = 200;

/// A column that no job has, where one of nearly that name is there.
async fn check_columns(
    filter: &Filter,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<()> {
    let one = Filter { limit: Some(1), ..filter.clone() };
    if filter.columns.is_empty() || !store.jobs(one, Default::default()).await?.is_empty() {
        return Ok(());
    }
    let others = Filter { columns: Default::default(), limit: Some(LOOKED_AT), ..filter.clone() };
    let jobs = store.jobs(others, Default::default()).await?;
    let mut known: BTreeSet<String> =
        jobs.into_iter().flat_map(|job| job.columns.into_keys()).collect();
    for upstream in context.declared(store).await?.into_values() {
        known.extend(upstream.columns.keys().cloned());
    }
    for name in filter.columns.keys().filter(|name| !known.contains(*name)) {
        let meant = meant(name, known.iter().map(String::as_str));
        if !meant.is_empty() {
            return wrong(format!("no job that is looked at has a column `{name}`{meant}"));
        }
    }
    Ok(())
}

/// Of a key that names a column by which the upstream does not tell jobs apart: which it does.
pub fn odd_key(upstream: &str, key: &Columns, context: &Context) -> Option<String> {
    let declared = context.upstream(upstream).ok()?;
    let known: Vec<&str> = declared.partition_columns().into_iter().collect();
    let name = key.keys().find(|name| !known.contains(&name.as_str()))?;
    Some(match known.as_slice() {
        [] => format!("{upstream} tells no jobs apart by `{name}`: leave --key out"),
        known => format!(
            "{upstream} does not tell jobs apart by `{name}`{}, but by {}",
            meant(name, known.iter().copied()),
            known.join(", ")
        ),
    })
}

/// Why one job named by its number is not acted on.
async fn refuse(targets: &Targets, words: Words, store: &SqliteStore) -> anyhow::Result<Exit> {
    let ids: Vec<JobId> = targets.jobs.iter().copied().map(JobId).collect();
    let id = targets.jobs.first().copied().unwrap_or_default();
    let found = store.jobs(Filter { ids, ..Filter::default() }, Default::default()).await?;
    let Words { verb, fits, .. } = words;
    match found.first().map(|job| job.state) {
        None => wrong(format!("there is no job {id}")),
        Some(JobState::Running) => wrong(format!(
            "job {id} is running, and {verb} is for {fits} jobs: wait for its answer"
        )),
        Some(state) => wrong(format!("job {id} is {state}, and {verb} is for {fits} jobs")),
    }
}

fn confirmed(jobs: u64, words: Words, context: &Context) -> anyhow::Result<bool> {
    let question = format!("{} {}", words.verb, count(jobs, "job"));
    if !context.can_ask() {
        return wrong(format!("this would {question}: say --yes to do so"));
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{question}? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Acts in chunks, where a job that was acted on no longer fits; else at once.
pub async fn repeat(store: &SqliteStore, filter: &Filter, act: &Act) -> anyhow::Result<u64> {
    if *act == Act::Prune {
        return prune::all(store, vec![filter.clone()]).await;
    }
    let leaves = matches!(act, Act::Cancel | Act::Resolve(Resolution::Done | Resolution::Failed));
    if !leaves {
        return Ok(store.act(filter.clone(), act.clone()).await?);
    }
    let filter = Filter { limit: Some(CHUNK), ..filter.clone() };
    let mut changed = 0;
    loop {
        match store.act(filter.clone(), act.clone()).await? {
            0 => return Ok(changed),
            some => changed += some,
        }
    }
}

fn tell(changed: u64, running: u64, words: Words, context: &Context) -> anyhow::Result<()> {
    if context.global.json {
        return context.out.json(&json!({ words.done: changed, "running": running }));
    }
    if context.global.quiet {
        return Ok(());
    }
    let mut text = format!("{} {}", count(changed, "job"), words.done);
    if running > 0 {
        let are = if running == 1 { "is" } else { "are" };
        text.push_str(&format!("; {} {are} running and could not be", count(running, "job")));
    }
    Ok(context.out.text(&text)?)
}
