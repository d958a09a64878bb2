//! `demo`: the whole thing against a practice upstream on this machine.
//!
//! It takes a user's way with a user's code: a quota file is found by name, the rows of a catalogue
//! are planned and added, a runner sends them. Then the upstream tells what it saw.

mod catalogue;
mod stage;
mod story;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use paceline::dispatch::{self, Report, RunOptions};
use paceline::job::JobState;
use paceline::practice::Stats;
use paceline::report::why;
use paceline::store::Store;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::{LimitView, Tally, UpstreamView};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::commands::run::finish;
use crate::context::Context;
use crate::exit::Exit;

use stage::{DAILY, Stage, UPSTREAM};
use story::{Listener, Story};

/// The whole thing against a practice upstream on this machine, in some ten seconds.
///
/// Starts an HTTP server on loopback that enforces a rate and a daily budget strictly, adds a
/// catalogue of 320 books, sends what may be sent, and tells what the server saw and what must wait.
/// Ends with 0 where the server refused nothing of Paceline's making.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Examples:\n  paceline demo\n  paceline demo --keep ./demo")]
pub struct DemoArgs {
    /// Keep quota file, catalogue and store in this folder, to look at them afterwards
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// A wait of the upstream's whim is sat out; the one for tomorrow's budget is not.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Plays the demo; with `--json` the story is told on stderr, and what it came to on stdout.
///
/// # Errors
///
/// Where this machine lacks something: loopback, a temporary folder, a store.
pub async fn run(args: &DemoArgs, context: &Context) -> anyhow::Result<Exit> {
    let story = match (context.global.json, context.global.quiet) {
        (false, _) => Story::Out,
        (true, false) => Story::Beside,
        (true, true) => Story::Untold,
    };
    let stage = Stage::set(args.keep.as_deref()).await?;
    story.opening(&stage);
    let upstream = stage.library.get(UPSTREAM)?;
    let added = catalogue::add(&stage.store, &upstream).await?;
    story.added(&added);
    let again = catalogue::add(&stage.store, &upstream).await?;
    story.added_again(&again);

    story.sending(&upstream);
    let began_at = stage.store.now().store;
    let report = send(story, &stage).await?;
    let took = stage.store.now().store.since(began_at);
    story.sent(&report, took);

    let view = stage.store.upstream(Arc::clone(&upstream)).await?;
    let tally = stage.store.tally().await?;
    let stats = stage.practice.stats();
    story.upstream_saw(&stats, &stage.zone);
    let broken = broken_promises(&stats, &report, &view, &tally, added.jobs);
    story.still_waiting(&stage, &report, &view);
    story.closing(&stage, &broken);
    stage.practice.stop().await;
    if context.global.json {
        context.out.json(&told(&stats, &report, &view, &broken))?;
    }
    Ok(if broken.is_empty() { Exit::Done } else { Exit::Fault })
}

/// What the upstream saw, what the run came to, what waits, and what did not hold.
fn told(stats: &Stats, report: &Report, view: &UpstreamView, broken: &[String]) -> Value {
    let rules = stats
        .rules
        .iter()
        .map(|rule| json!({ "name": rule.name, "busiest": rule.busiest, "allowed": rule.allowed }));
    json!({
        "upstream": {
            "calls": stats.count, "connections": stats.connections, "refused": stats.refused,
            "whims": stats.whims, "early": stats.early, "rules": rules.collect::<Vec<_>>(),
        },
        "run": finish::json(report, Exit::of_run(report, &[])),
        "waits": view.partitions.iter().map(why::partition).collect::<Vec<_>>(),
        "broken": broken,
    })
}

/// What a user's `paceline run practice --max-wait 30s` does.
async fn send(story: Story, stage: &Stage) -> anyhow::Result<Report> {
    let (leave, left) = watch::channel(false);
    // Ctrl-C drains: what is in flight is awaited and settled.
    let interrupt = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = leave.send(true);
        }
        // The sender must outlive the run, or the runner would take its end for a wish to leave.
        std::future::pending::<()>().await;
    });
    let options = RunOptions {
        upstreams: vec![UPSTREAM.to_owned()],
        max_wait: Some(MAX_WAIT),
        ..RunOptions::default()
    };
    let listener = Listener::new(story, stage.store.clone());
    let tell = Arc::new(move |event: &dispatch::Event| listener.hear(event));
    let library = Arc::clone(&stage.library);
    let report = dispatch::run(stage.store.clone(), library, options, left, tell).await;
    interrupt.abort();
    report.context("the run could not go on")
}

/// What was promised and did not hold; empty where all did.
fn broken_promises(
    stats: &Stats,
    report: &Report,
    view: &UpstreamView,
    tally: &Tally,
    added: u64,
) -> Vec<String> {
    let mut broken = Vec::new();
    let mut must = |held: bool, what: String| {
        if !held {
            broken.push(what);
        }
    };
    must(stats.refused == 0, format!("the upstream refused {} calls", stats.refused));
    must(stats.early == 0, format!("{} calls came before its Retry-After", stats.early));
    for rule in &stats.rules {
        let over = rule.excess_offered;
        must(over <= 0.0, format!("`{}` was exceeded by {over:.1} calls", rule.name));
    }
    must(stats.count == report.sent, format!("{} calls of {} arrived", stats.count, report.sent));
    let spent = limit(view, DAILY).and_then(|limit| limit.spent).unwrap_or(0);
    must(spent >= stats.count, format!("{spent} calls of {} are on the books", stats.count));
    let jobs: u64 = tally.values().sum();
    must(jobs == added, format!("{added} jobs were added, and {jobs} are there"));
    let running = tally.get(&JobState::Running).copied().unwrap_or(0);
    must(running == 0, format!("{running} jobs were left running"));
    must(!report.interrupted, "the demo was interrupted".to_owned());
    broken
}

fn limit<'v>(view: &'v UpstreamView, name: &str) -> Option<&'v LimitView> {
    view.limits.iter().find(|limit| limit.name == name)
}

/// The store of a demo is any user's.
type DemoStore = SqliteStore;

#[cfg(test)]
mod tests;
