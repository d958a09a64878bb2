//! `resolve`: a person says how unsure jobs ended.

use paceline::store::{Act, Resolution};

use super::act::{self, Words};
use crate::args::act::{End, ResolveArgs};
use crate::context::Context;
use crate::exit::Exit;

const WORDS: Words = Words { verb: "resolve", done: "resolved", fits: "unsure" };

/// Ends unsure jobs, or queues them again.
pub async fn run(args: ResolveArgs, context: &Context) -> anyhow::Result<Exit> {
    let resolution = match args.end {
        End::Done => Resolution::Done,
        End::Failed => Resolution::Failed,
        End::Queued => Resolution::Queued,
    };
    let store = context.store()?;
    let filter = act::filter(&args.targets, &store, context, WORDS)?;
    act::run(&args.targets, filter, Act::Resolve(resolution), WORDS, &store, context).await
}
