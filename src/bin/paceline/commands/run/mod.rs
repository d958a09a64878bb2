//! `run`: send what may be sent.

pub mod finish;
pub mod holds;
pub mod leave;
pub mod lines;
mod pace;
pub mod progress;

use std::sync::Arc;

use paceline::dispatch::{self, RunOptions};

use super::answers::lost_in_run;
use crate::args::run::RunArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::notify::Notifier;
use progress::Progress;

/// Sends what may be sent.
pub async fn run(args: RunArgs, context: &Context) -> anyhow::Result<Exit> {
    let library = context.library();
    for name in &args.upstreams {
        library.get(name)?;
    }
    let store = context.store()?;
    let options = options(&args, context)?;
    let declared = context.declared(&store).await?;
    for note in lost_in_run(&store, declared, &args.upstreams).await? {
        context.note(&note);
    }
    let progress = Arc::new(Progress::new(context, &args.upstreams));
    let notifier = Notifier::start(&store, context);
    let tell = {
        let (progress, bell) = (Arc::clone(&progress), notifier.bell());
        Arc::new(move |event: &dispatch::Event| {
            progress.hear(event);
            bell.hear(event);
        })
    };
    let abandoned = Arc::clone(&progress);
    let leave = leave::on_signals(move || abandoned.abandon())?;
    let work = dispatch::run(store.clone(), library, options, leave, tell);
    let report = progress.beside(work, &store, context).await?;
    notifier.finish().await;
    let exit = Exit::of_run(&report, &args.fail_on);
    let holds = match report.held {
        0 => Vec::new(),
        _ => holds::lines(&store, &args.upstreams, context).await?,
    };
    finish::tell(&report, &holds, exit, context)?;
    Ok(exit)
}

fn options(args: &RunArgs, context: &Context) -> anyhow::Result<RunOptions> {
    let (times, defaults) = (context.times(), &context.settings.run);
    let until = match args.until.map(|moment| moment.to_come(&times)) {
        Some(None) => return wrong("--until is at no instant of this zone"),
        until => until.flatten(),
    };
    let bound = args.bound.map(|span| times.now() + span);
    Ok(RunOptions {
        upstreams: args.upstreams.clone(),
        max_wait: args.max_wait.or(defaults.max_wait),
        until: until.into_iter().chain(bound).min(),
        count: args.count,
        follow: args.follow,
        single: args.single,
        concurrency: usize::from(args.concurrency.or(defaults.concurrency).unwrap_or(64)),
        seed: None,
    })
}
