//! `cancel`: queued jobs are withdrawn.

use paceline::store::Act;

use super::act::{self, Words};
use crate::args::act::CancelArgs;
use crate::context::Context;
use crate::exit::Exit;

const WORDS: Words = Words { verb: "cancel", done: "cancelled", fits: "queued" };

/// Withdraws queued jobs.
pub async fn run(args: CancelArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    let filter = act::filter(&args.targets, &store, context, WORDS)?;
    act::run(&args.targets, filter, Act::Cancel, WORDS, &store, context).await
}
