//! `retry`: ended jobs are queued again.

use paceline::job::JobState;
use paceline::store::Act;

use super::act::{self, Words};
use crate::args::act::RetryArgs;
use crate::context::Context;
use crate::exit::Exit;

const WORDS: Words = Words { verb: "retry", done: "queued", fits: "ended" };

/// Queues ended jobs again. A filter takes only what did not end as wished, unless it names states:
/// nobody who says `--load NAME` wants everything sent twice.
pub async fn run(args: RetryArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    let mut filter = act::filter(&args.targets, &store, context, WORDS)?;
    if filter.states.is_empty() && filter.ids.is_empty() {
        filter.states = vec![JobState::Failed, JobState::Expired];
    }
    act::run(&args.targets, filter, Act::Retry, WORDS, &store, context).await
}
