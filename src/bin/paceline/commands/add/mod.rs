//! `add`: rows become jobs in the queue.
//!
//! | file | noun |
//! | --- | --- |
//! | `source` | where rows come from; `place` the bytes, `sitemaps` those of an index, `fetch` by HTTP |
//! | `intake` | rows become jobs of each upstream, or are rejected |
//! | `addition` | jobs enter the queue |
//! | `interrupt` | what is told where somebody ends it before |
//! | `progress` | how far it has come |
//! | `dry_run` | what would be sent |
//! | `hint` | what was meant, perhaps |

mod addition;
mod dry_run;
mod fetch;
mod hint;
mod intake;
mod interrupt;
mod place;
mod progress;
mod sitemaps;
mod source;

use std::collections::BTreeSet;
use std::sync::Arc;

use paceline::clock::Timestamp;
use paceline::job::Dedupe;
use paceline::plan::{AddOptions, Planner};
use paceline::quota::Upstream;
use paceline::store::Store;
use paceline::store::sqlite::SqliteStore;

use super::answers::lost;
use super::lacks::lacks;
use super::run::holds;
use crate::args::add::{AddArgs, DedupeRule};
use crate::args::select::{self, columns};
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::time::{Moment, Times};
use addition::Addition;
use intake::{Intake, Rejects, Since};
use progress::Progress;
use source::{Rows, Source};

/// Queues jobs.
pub async fn run(args: AddArgs, context: &Context) -> anyhow::Result<Exit> {
    let names = args.upstreams()?;
    let upstreams = names.into_iter().map(|name| context.upstream(name));
    let upstreams: Vec<Arc<Upstream>> = upstreams.collect::<anyhow::Result<_>>()?;
    check_changed(&args)?;
    let source = Source::new(&args, context)?;
    let rows = source.open()?;
    let times = context.times();
    let mut options = options(&args, rows.columns.clone(), &times)?;
    let since = since(&args, times)?;
    let progress = Progress::new(context);
    let rejects = |rows: &Rows| Rejects::new(rows, args.rejects.as_deref(), &progress, context);
    if args.dry_run {
        let planners = plan(&upstreams, &options, &rows)?;
        let intake = Intake::new(planners, since, rejects(&rows)?);
        let exit = dry_run::run(&upstreams, intake, rows, &args, context)?;
        return Ok(hinted(exit, &upstreams, &args, context));
    }
    let store = context.store()?;
    let now = store.now();
    options.deadline_at = options.deadline_at.map(|at| now.to_store(at));
    options.not_before = options.not_before.map(|at| now.to_store(at));
    let planners = plan(&upstreams, &options, &rows)?;
    let load = load_name(&args, &store, &times).await?;
    let mut intake = Intake::new(planners, since, rejects(&rows)?);
    let mut addition = Addition::new(store, load, &upstreams, dedupe(args.dedupe));
    if !args.strict {
        addition.all(rows, &mut intake, &progress).await?;
    } else if intake.check(rows)? == 0 {
        intake.begin_again();
        addition.all(source.open()?, &mut intake, &progress).await?;
    }
    progress.end();
    let left = intake.finish()?;
    addition.tell(&left, args.strict, context)?;
    for (upstream, credentials) in addition.credentials() {
        let lacks = lacks(upstream, &args).into_iter().filter(|one| one.concerns(credentials));
        lacks.for_each(|one| context.note(&one.note(&upstream.name)));
    }
    held(&addition, context).await?;
    hint::kept_credentials(&args).for_each(|note| context.note(&note));
    let exit = if left.rejected > 0 { Exit::Failed } else { Exit::Done };
    Ok(hinted(exit, &upstreams, &args, context))
}

/// Says where nothing is sent until a person acts: whoever adds may not know, and wait.
async fn held(addition: &Addition, context: &Context) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for name in addition.added_to() {
        if addition.store.remaining(name.to_owned()).await?.held > 0 {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    for line in holds::lines(&addition.store, &names, context).await? {
        context.note(&format!("held, and not sent until a person acts: {line}"));
    }
    Ok(())
}

/// What changes are told by is kept under the key that duplicates are told by.
fn check_changed(args: &AddArgs) -> anyhow::Result<()> {
    match args.dedupe {
        DedupeRule::None if args.changed || args.replace => wrong(
            "--changed and --replace tell rows by their key, which --dedupe none does not take",
        ),
        DedupeRule::Ever if args.changed => wrong(
            "--dedupe ever lets nothing in a second time, changed or not: leave it or --changed out",
        ),
        _ => Ok(()),
    }
}

fn since(args: &AddArgs, times: Times) -> anyhow::Result<Option<Since>> {
    let at = select::since(args.since, &times)?;
    Ok(at.map(|at| Since { at, times }))
}

/// A planner for each upstream, by name.
fn plan<'u>(
    upstreams: &'u [Arc<Upstream>],
    options: &AddOptions,
    rows: &Rows,
) -> anyhow::Result<Vec<(&'u str, Planner<'u>)>> {
    let several = upstreams.len() > 1;
    let planner = |upstream: &'u Arc<Upstream>| {
        let name = upstream.name.as_str();
        hint::check_names(upstream, options, rows)?;
        match Planner::new(upstream, options.clone()) {
            Ok(planner) => Ok((name, planner)),
            Err(error) => Err(hint::misfit(error, rows, several.then_some(name))),
        }
    };
    upstreams.iter().map(planner).collect()
}

/// Says what may have been meant where rows were rejected.
fn hinted(exit: Exit, upstreams: &[Arc<Upstream>], args: &AddArgs, context: &Context) -> Exit {
    let hints = upstreams.iter().filter_map(|upstream| hint::no_urls(upstream, args));
    hints.filter(|_| exit == Exit::Failed).for_each(|hint| context.note(&hint));
    let lost = upstreams.iter().filter_map(|upstream| lost(upstream, args.method.as_deref()));
    lost.for_each(|note| context.note(&note));
    exit
}

/// What all rows have in common. Instants are still wall time.
fn options(
    args: &AddArgs,
    columns_known: Option<BTreeSet<String>>,
    times: &Times,
) -> anyhow::Result<AddOptions> {
    let deadline_at = instant(args.deadline, "--deadline", times)?;
    if deadline_at.is_some_and(|at| at <= times.now()) {
        return wrong("--deadline has passed already");
    }
    let not_before = instant(args.not_before, "--not-before", times)?;
    if not_before.zip(deadline_at).is_some_and(|(due, deadline)| deadline < due) {
        return wrong("--deadline lies before --not-before: nothing could ever go");
    }
    let headers = args.header.iter().map(|header| (header.name.clone(), header.value.clone()));
    Ok(AddOptions {
        columns: columns_known,
        url: args.url.clone(),
        method: args.method.clone(),
        headers: headers.collect(),
        body: args.body.clone(),
        set: columns(&args.set),
        credential: args.credential.clone(),
        priority: args.priority,
        priority_from: args.priority_from.clone(),
        not_before,
        deadline_at,
        dedupe: dedupe(args.dedupe),
        dedupe_key: args.dedupe_key.clone(),
        changed: args.changed,
        replace: args.replace,
        unsent: false,
    })
}

fn instant(moment: Option<Moment>, flag: &str, times: &Times) -> anyhow::Result<Option<Timestamp>> {
    match moment.map(|moment| moment.to_come(times)) {
        Some(None) => wrong(format!("{flag} is at no instant of this zone")),
        at => Ok(at.flatten()),
    }
}

const fn dedupe(rule: DedupeRule) -> Dedupe {
    match rule {
        DedupeRule::None => Dedupe::None,
        DedupeRule::Active => Dedupe::Active,
        DedupeRule::Day => Dedupe::Day,
        DedupeRule::Ever => Dedupe::Ever,
    }
}

/// The name given, else the local day and the first number that no load has.
async fn load_name(args: &AddArgs, store: &SqliteStore, times: &Times) -> anyhow::Result<String> {
    match &args.load {
        Some(load) if load.trim().is_empty() => return wrong("--load is empty"),
        Some(load) => return Ok(load.clone()),
        None => {}
    }
    let day = times.here.date(times.now());
    let mut number = 1_u64;
    loop {
        let name = format!("{day}-{number}");
        if !store.is_load(name.clone()).await? {
            return Ok(name);
        }
        number += 1;
    }
}
