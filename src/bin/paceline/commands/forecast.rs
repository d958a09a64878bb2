//! `forecast`: when a queue will be empty.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::clock::Now;
use paceline::job::Columns;
use paceline::quota::Upstream;
use paceline::quota::decide::{Gate, Usage};
use paceline::quota::forecast::{Backlog, Forecast, Group, Instance, WindowUse, forecast};
use paceline::quota::reported::Reported;
use paceline::report::why::key;
use paceline::report::{instant, words::span};
use paceline::store::sqlite::SqliteStore;
use paceline::store::{Filter, Store as _};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::act::check_names;
use crate::args::look::ForecastArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::text::count;
use crate::render::time::Times;

/// Windows that are listed one by one; of more, the first and the last so many.
const LISTED: usize = 10;

/// Tells when each queue will be empty, and which limit decides that.
pub async fn run(args: ForecastArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let names = names(&args, &store, context).await?;
    if args.count.is_some() && names.len() != 1 {
        return wrong("--count needs the one upstream that so many jobs would be added to");
    }
    let now = store.now();
    let mut told = Vec::new();
    for name in names {
        let upstream = context.library().get(&name)?;
        let mut backlog = store.backlog(Arc::clone(&upstream), args.load.clone()).await?;
        if let Some(more) = args.count {
            note_keys(&upstream, &args.columns(), context);
            add(&mut backlog, &upstream, more, &args.columns());
        }
        let held = backlog.held;
        let forecast = forecast(&upstream, backlog, now);
        if forecast.jobs > 0 || held > 0 || args.upstreams.contains(&name) {
            told.push((upstream, forecast, held));
        }
    }
    if context.global.json {
        let all: Vec<Told<'_>> =
            told.iter().map(|(upstream, forecast, held)| of(upstream, forecast, *held)).collect();
        let ends = told.iter().filter(|(_, forecast, _)| forecast.jobs > 0);
        let ends: Option<Vec<_>> = ends.map(|(_, forecast, _)| forecast.finish_at).collect();
        let finish_at = ends.and_then(|ends| ends.into_iter().max());
        context.out.json(&Answer { finish_at: instant(finish_at), upstreams: all })?;
        return Ok(Exit::Done);
    }
    if told.is_empty() {
        context.out.text("nothing is queued")?;
    }
    for (upstream, forecast, held) in &told {
        tell(upstream, forecast, *held, now, context)?;
    }
    Ok(Exit::Done)
}

async fn names(
    args: &ForecastArgs,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<Vec<String>> {
    let filter = Filter { load: args.load.clone(), ..Filter::default() };
    check_names(&filter, store, context).await?;
    if args.upstreams.is_empty() {
        return Ok(store.upstream_names().await?);
    }
    // One that nothing was queued for yet has a forecast all the same.
    for name in &args.upstreams {
        context.library().get(name)?;
    }
    Ok(args.upstreams.clone())
}

/// Where a limit counts by a column that is not given, all the jobs count as of one instance of it.
fn note_keys(upstream: &Upstream, columns: &Columns, context: &Context) {
    for limit in &upstream.limits {
        for name in limit.key.iter().filter(|name| !columns.contains_key(*name)) {
            context.note(&format!(
                "note: the limit `{}` counts each {name} for itself; all are taken to be of one, which \
                 --set {name}=... would name",
                limit.name
            ));
        }
    }
}

/// So many jobs more, behind those that are queued.
fn add(backlog: &mut Backlog, upstream: &Upstream, jobs: u64, columns: &Columns) {
    let same = |group: &&Group, limit: &paceline::quota::Limit| {
        limit.key.iter().all(|name| group.columns.get(name) == columns.get(name))
    };
    let mut instances = Vec::new();
    for (position, limit) in upstream.limits.iter().enumerate() {
        let known = backlog.groups.iter().find(|group| same(group, limit));
        let known = known.and_then(|group| group.instances.get(position).copied());
        instances.push(known.unwrap_or_else(|| {
            let usage = Usage::none(limit.rule_for(columns));
            let (gate, reported) = (Gate::default(), Reported::default());
            backlog.instances.push(Instance { usage, gate, reported });
            backlog.instances.len() - 1
        }));
    }
    let due = (paceline::clock::Timestamp::EPOCH, paceline::clock::Timestamp::EPOCH);
    let (columns, costs, gate, asked) = (columns.clone(), BTreeMap::new(), Gate::default(), None);
    backlog.groups.push(Group { columns, jobs, costs, due, gate, instances, asked });
}

/// What `--json` tells.
#[derive(Serialize)]
struct Answer<'f> {
    finish_at: Value,
    upstreams: Vec<Told<'f>>,
}

/// The same of an upstream. A queue that takes a century has a million windows: they are
/// written one by one.
#[derive(Serialize)]
struct Told<'f> {
    name: &'f str,
    jobs: u64,
    held: u64,
    finish_at: Value,
    limit: Option<&'f str>,
    never: u64,
    #[serde(serialize_with = "each")]
    windows: &'f [WindowUse],
}

fn of<'f>(upstream: &'f Upstream, forecast: &'f Forecast, held: u64) -> Told<'f> {
    Told {
        name: &upstream.name,
        jobs: forecast.jobs,
        held,
        finish_at: instant(forecast.finish_at),
        limit: forecast.limit.as_deref(),
        never: forecast.never,
        windows: &forecast.windows,
    }
}

fn each<S: Serializer>(windows: &&[WindowUse], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(windows.iter().map(|window| {
        json!({
            "limit": window.limit, "key": window.key, "start": instant(Some(window.start)),
            "resets_at": instant(Some(window.resets_at)), "jobs": window.jobs,
        })
    }))
}

fn tell(
    upstream: &Upstream,
    forecast: &Forecast,
    held: u64,
    now: Now,
    context: &Context,
) -> anyhow::Result<()> {
    let times = context.times();
    let out = &context.out;
    let jobs = count(forecast.jobs, "job");
    let by = forecast.limit.as_ref().map(|limit| format!(", held back by the limit `{limit}`"));
    let by = by.unwrap_or_default();
    match forecast.finish_at {
        Some(at) => out.text(&format!(
            "{}: {jobs}, done in {} ({}){by}",
            upstream.name,
            span(at.since(now.wall)),
            times.here(at)
        ))?,
        None if forecast.jobs == 0 => out.text(&format!("{}: nothing is queued", upstream.name))?,
        None => out.text(&format!("{}: {jobs}, done in more than 200 years{by}", upstream.name))?,
    }
    if held > 0 {
        let held = count(held, "job");
        out.text(&format!("  {held} more wait for a person, and are not counted"))?;
    }
    if forecast.never > 0 {
        let never = count(forecast.never, "job");
        out.text(&format!("  {never} take more than a limit can ever grant, and will fail"))?;
    }
    windows(&forecast.windows, &times, context)
}

/// Reset by reset.
fn windows(windows: &[WindowUse], times: &Times, context: &Context) -> anyhow::Result<()> {
    let skipped = windows.len().saturating_sub(2 * LISTED);
    for (n, window) in windows.iter().enumerate() {
        if skipped > 0 && n == LISTED {
            context.out.text(&format!("  ... {} more ...", count(skipped as u64, "window")))?;
        }
        if skipped > 0 && (LISTED..LISTED + skipped).contains(&n) {
            continue;
        }
        let key = match key(&window.key) {
            key if key.is_empty() => key,
            key => format!(" [{key}]"),
        };
        context.out.text(&format!(
            "  {}{key}: {} until {}",
            window.limit,
            count(window.jobs, "job"),
            times.here(window.resets_at)
        ))?;
    }
    Ok(())
}
