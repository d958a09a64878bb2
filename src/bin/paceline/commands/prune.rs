//! `prune`: ended jobs are removed, by a filter or by the ages that the quota files declare.

use paceline::job::JobState;
use paceline::quota::Keep;
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

/// Removes ended jobs, and what nobody needs any more.
pub async fn run(args: PruneArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    let targets = &args.targets;
    if targets.jobs.is_empty() && !targets.select.is_given() && args.older_than.is_none() {
        return by_age(&store, context).await;
    }
    let now = store.now();
    let mut filter = targets.select.filter(&targets.jobs, &context.times(), now)?;
    filter.ended_before = args.older_than.map(|age| now.store - age);
    let exit = act::run(targets, filter, Act::Prune, WORDS, &store, context).await?;
    store.tidy().await?;
    Ok(exit)
}

/// What `[keep]` no longer keeps: declared beforehand, so nobody is asked.
async fn by_age(store: &SqliteStore, context: &Context) -> anyhow::Result<Exit> {
    let library = context.library();
    let mut pruned = 0;
    for name in store.upstream_names().await? {
        let keep = library.get(&name).map(|upstream| upstream.keep.clone()).unwrap_or_default();
        pruned += upstream(store, &name, &keep).await?;
    }
    let tidied = store.tidy().await?;
    if context.global.json {
        context.out.json(&json!({
            "pruned": pruned, "marks": tidied.marks, "instances": tidied.instances,
        }))?;
    } else if !context.global.quiet {
        let text = format!("{} pruned", count(pruned, "job"));
        context.out.text(&text)?;
        if context.global.verbose > 0 {
            context.note(&format!(
                "also removed: {} day marks, {} idle limit instances",
                grouped(tidied.marks),
                grouped(tidied.instances)
            ));
        }
    }
    Ok(Exit::Done)
}

async fn upstream(store: &SqliteStore, name: &str, keep: &Keep) -> anyhow::Result<u64> {
    let now = store.now().store;
    let ages = [
        (keep.done, vec![JobState::Done, JobState::Cancelled]),
        (keep.failed, vec![JobState::Failed, JobState::Expired]),
    ];
    let mut pruned = 0;
    for (age, states) in ages {
        let filter = Filter {
            upstreams: vec![name.to_owned()],
            states,
            ended_before: Some(now - age),
            ..Filter::default()
        };
        pruned += act::repeat(store, &filter, &Act::Prune).await?;
    }
    Ok(pruned)
}
