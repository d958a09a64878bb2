//! `set`: queued jobs get another priority, deadline or not-before.

use paceline::clock::Timestamp;
use paceline::store::{Act, Store as _};

use super::act::{self, Words};
use crate::args::act::SetArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::time::{Moment, Times};

const WORDS: Words = Words { verb: "set", done: "changed", fits: "queued" };

/// Changes queued jobs.
pub async fn run(args: SetArgs, context: &Context) -> anyhow::Result<Exit> {
    if args.priority.is_none() && args.deadline.is_none() && args.not_before.is_none() {
        return wrong("say what to set: --priority, --deadline or --not-before");
    }
    let store = context.store()?;
    let (times, now) = (context.times(), store.now());
    let deadline = match args.deadline.map(|deadline| deadline.0) {
        Some(Some(moment)) => Some(Some(now.to_store(instant(moment, "--deadline", &times)?))),
        Some(None) => Some(None),
        None => None,
    };
    let not_before = args.not_before.map(|moment| instant(moment, "--not-before", &times));
    let due_at = not_before.transpose()?.map(|at| now.to_store(at));
    let act = Act::Set { priority: args.priority, deadline_at: deadline, due_at };
    let filter = act::filter(&args.targets, &store, context, WORDS)?;
    act::run(&args.targets, filter, act, WORDS, &store, context).await
}

fn instant(moment: Moment, flag: &str, times: &Times) -> anyhow::Result<Timestamp> {
    match moment.to_come(times) {
        Some(at) => Ok(at),
        None => wrong(format!("{flag} is at no instant of this zone")),
    }
}
