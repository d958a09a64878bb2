//! `prune`: ended jobs are removed, by a filter or by the ages that the quota files declare.

use paceline::store::retention::{Pass, too_old};
use paceline::store::sqlite::SqliteStore;
use paceline::store::{Act, Filter, Store as _};
use serde_json::json;

use super::act::{self, Words};
use crate::args::act::PruneArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::{count, grouped};

const WORDS: Words =
    Words { verb: "prune", done: "pruned", fits: "done, failed, expired or cancelled" };

/// Bytes that are given back in one transaction, so that nobody else's work waits long.
const ROOM: u64 = 4 << 20;

/// Removes ended jobs, and what nobody needs any more.
pub async fn run(args: PruneArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    let targets = &args.targets;
    if targets.jobs.is_empty() && !targets.select.is_given() && args.older_than.is_none() {
        return by_age(&args, &store, context).await;
    }
    let now = store.now();
    let mut filter = targets.select.filter(&targets.jobs, &context.times(), now)?;
    filter.ended_before = args.older_than.map(|age| now.store - age);
    if args.dry_run {
        act::check_names(&filter, &store, context).await?;
        return would(&[filter], &store, context).await;
    }
    let exit = act::run(targets, filter, Act::Prune, WORDS, &store, context).await?;
    store.tidy().await?;
    give_back(&store, context).await?;
    Ok(exit)
}

/// What `[keep]` no longer keeps: declared beforehand, so nobody is asked.
async fn by_age(args: &PruneArgs, store: &SqliteStore, context: &Context) -> anyhow::Result<Exit> {
    let library = context.library();
    let now = store.now().store;
    let mut filters = Vec::new();
    for name in store.upstream_names().await? {
        match library.get(&name) {
            Ok(upstream) => filters.extend(too_old(&name, &upstream.keep, now)),
            Err(error) => context.note(&format!(
                "{name} keeps all, for how long nobody knows: {error}\n  `paceline prune --upstream {name} \
                 --older-than 30d` removes what is older"
            )),
        }
    }
    if args.dry_run {
        return would(&filters, store, context).await;
    }
    let pruned = all(store, filters).await?;
    let tidied = store.tidy().await?;
    if context.global.json {
        let bytes = room(store).await?;
        context.out.json(&json!({
            "pruned": pruned, "marks": tidied.marks, "instances": tidied.instances,
            "bytes": bytes,
        }))?;
        return Ok(Exit::Done);
    }
    if !context.global.quiet {
        let text = format!("{} pruned", count(pruned, "job"));
        context.out.text(&text)?;
        if pruned == 0 {
            context.note(
                "no job that ended is older than its [keep] says: done 30 days, all others 90, unless a quota \
                 file says otherwise; `paceline prune --older-than 1d` removes more",
            );
        }
        if context.global.verbose > 0 {
            context.note(&format!(
                "also removed: {} day marks, {} idle limit instances",
                grouped(tidied.marks),
                grouped(tidied.instances)
            ));
        }
    }
    give_back(store, context).await?;
    Ok(Exit::Done)
}

/// Tells how many jobs would go.
async fn would(filters: &[Filter], store: &SqliteStore, context: &Context) -> anyhow::Result<Exit> {
    let mut jobs = 0;
    for filter in filters {
        jobs += store.count(filter.clone(), Act::Prune).await?;
    }
    if context.global.json {
        context.out.json(&json!({ "would_prune": jobs }))?;
    } else {
        context.out.text(&format!("{} would be pruned", count(jobs, "job")))?;
    }
    Ok(Exit::Done)
}

/// Removes all the jobs that the filters find.
pub async fn all(store: &SqliteStore, filters: Vec<Filter>) -> anyhow::Result<u64> {
    let mut pass = Pass::new(filters, act::CHUNK);
    let mut pruned = 0;
    while let Some(some) = pass.step(store).await? {
        pruned += some;
    }
    Ok(pruned)
}

/// Gives back what room came free; tells of it where more is to be said.
async fn give_back(store: &SqliteStore, context: &Context) -> anyhow::Result<()> {
    let bytes = room(store).await?;
    if context.global.verbose > 0 && bytes > 0 {
        context.note(&format!("{} KiB given back to the disk", grouped(bytes / 1024)));
    }
    Ok(())
}

async fn room(store: &SqliteStore) -> anyhow::Result<u64> {
    let mut bytes = 0;
    loop {
        match store.give_back(ROOM).await? {
            0 => return Ok(bytes),
            some => bytes += some,
        }
    }
}
