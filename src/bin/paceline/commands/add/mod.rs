//! `add`: rows become jobs in the queue.

mod dry_run;
mod hint;
mod intake;
mod source;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use paceline::clock::Timestamp;
use paceline::job::{Dedupe, JobId};
use paceline::plan::{AddOptions, Planner};
use paceline::quota::Upstream;
use paceline::store::Store;
use paceline::store::sqlite::SqliteStore;
use serde_json::json;

use super::answers::lost;
use super::lacks::{Unset, unset};
use crate::args::add::{AddArgs, DedupeRule};
use crate::args::select::columns;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::text::{count, grouped};
use crate::render::time::{Moment, Times};
use intake::Intake;
use source::{Rows, Source};

/// Rows of one transaction.
const CHUNK: usize = 2000;

/// Ids are told up to this number.
const IDS_TOLD: u64 = 1000;

/// Queues jobs.
pub async fn run(args: AddArgs, context: &Context) -> anyhow::Result<Exit> {
    let upstream = context.upstream(&args.upstream)?;
    let source = Source::new(&args)?;
    let rows = source.open()?;
    let times = context.times();
    let mut options = options(&args, rows.columns.clone(), &times)?;
    if args.dry_run {
        let planner = plan(&upstream, options, &rows)?;
        let intake = Intake::new(planner, &rows, args.rejects.as_deref(), context)?;
        let exit = dry_run::run(&upstream, intake, rows, &lacks(&upstream, &args), context)?;
        return Ok(hinted(exit, &upstream, &args, context));
    }
    let store = context.store()?;
    let now = store.now();
    options.deadline_at = options.deadline_at.map(|at| now.to_store(at));
    options.not_before = options.not_before.map(|at| now.to_store(at));
    let planner = plan(&upstream, options, &rows)?;
    let load = load_name(&args, &store, &times).await?;
    let mut intake = Intake::new(planner, &rows, args.rejects.as_deref(), context)?;
    let mut addition = Addition {
        store,
        upstream: Arc::clone(&upstream),
        load,
        sum: Sum::default(),
        dedupe: dedupe(args.dedupe),
        credentials: BTreeSet::new(),
    };
    if !args.strict {
        addition.all(rows, &mut intake).await?;
    } else if intake.check(rows)? == 0 {
        addition.all(source.open()?, &mut intake).await?;
    }
    let rejected = intake.finish()?;
    addition.tell(rejected, args.strict, context)?;
    for unset in lacks(&upstream, &args).iter().filter(|one| one.concerns(&addition.credentials)) {
        context.note(&unset.note(&upstream.name));
    }
    let exit = if rejected > 0 { Exit::Failed } else { Exit::Done };
    Ok(hinted(exit, &upstream, &args, context))
}

/// What its calls need that is not set here.
fn lacks(upstream: &Upstream, args: &AddArgs) -> Vec<Unset> {
    let headers = args.header.iter().map(|header| &header.value);
    unset(upstream, headers.chain(&args.url).chain(&args.body))
}

fn plan<'u>(
    upstream: &'u Upstream,
    options: AddOptions,
    rows: &Rows,
) -> anyhow::Result<Planner<'u>> {
    Planner::new(upstream, options).map_err(|error| hint::misfit(error, rows))
}

/// Says what may have been meant where rows were rejected, and what would be missed at the end.
fn hinted(exit: Exit, upstream: &Upstream, args: &AddArgs, context: &Context) -> Exit {
    if let Some(hint) = hint::no_urls(upstream, args).filter(|_| exit == Exit::Failed) {
        context.note(&hint);
    }
    if let Some(note) = lost(upstream, args.method.as_deref()) {
        context.note(&note);
    }
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
        not_before,
        deadline_at,
        dedupe: dedupe(args.dedupe),
        dedupe_key: args.dedupe_key.clone(),
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

/// What was added so far.
#[derive(Debug, Default)]
struct Sum {
    added: u64,
    duplicates: u64,
    /// Of those added; empty once there are more than [`IDS_TOLD`].
    ids: Vec<JobId>,
}

/// An `add` at work.
#[derive(Debug)]
struct Addition {
    store: SqliteStore,
    upstream: Arc<Upstream>,
    load: String,
    sum: Sum,
    dedupe: Dedupe,
    /// The credentials of its jobs.
    credentials: BTreeSet<String>,
}

impl Addition {
    async fn all(&mut self, mut rows: Rows, intake: &mut Intake<'_>) -> anyhow::Result<()> {
        loop {
            let chunk = intake.chunk(&mut rows, CHUNK).with_context(|| self.so_far())?;
            if chunk.is_empty() {
                return Ok(());
            }
            let own = chunk.iter().filter_map(|job| job.columns.get("credential"));
            self.credentials.extend(own.cloned());
            let (upstream, load) = (Arc::clone(&self.upstream), self.load.clone());
            let added =
                self.store.add(upstream, load, chunk).await.with_context(|| self.so_far())?;
            self.sum.added += added.ids.len() as u64;
            self.sum.duplicates += added.duplicates;
            if self.sum.added <= IDS_TOLD {
                self.sum.ids.extend(added.ids);
            } else {
                self.sum.ids = Vec::new();
            }
        }
    }

    /// What is told where a later chunk fails.
    fn so_far(&self) -> String {
        let (added, load) = (count(self.sum.added, "job"), &self.load);
        if self.sum.added == 0 {
            return "nothing was added".to_owned();
        }
        match self.dedupe {
            Dedupe::None => format!(
                "{added} were added to the load {load} before this; with --dedupe none the same command \
                 adds them again: cancel that load first"
            ),
            _ => format!(
                "{added} were added to the load {load} before this; the same command with --load {load} \
                 adds only the rest"
            ),
        }
    }

    fn tell(&mut self, rejected: u64, strict: bool, context: &Context) -> anyhow::Result<()> {
        let Sum { added, duplicates, ids } = &self.sum;
        if strict && rejected > 0 {
            context
                .complain("nothing was added, because of --strict; without it the other rows are");
        }
        if context.global.json {
            let mut told = json!({
                "load": self.load, "added": added, "duplicates": duplicates, "rejected": rejected,
            });
            if let Some(told) = told.as_object_mut().filter(|_| *added <= IDS_TOLD) {
                told.insert("ids".to_owned(), serde_json::to_value(ids)?);
            }
            return context.out.json(&told);
        }
        if !context.global.quiet {
            let mut text = format!("load {}: {} added", self.load, grouped(*added));
            if *duplicates > 0 {
                text.push_str(&format!(", {} there already", grouped(*duplicates)));
            }
            if rejected > 0 {
                text.push_str(&format!(", {} rejected", grouped(rejected)));
            }
            context.out.text(&text)?;
        }
        Ok(())
    }
}
