//! `resume`: what was held goes on.

use paceline::store::Store as _;
use serde_json::json;

use super::act::odd_key;
use crate::args::act::ResumeArgs;
use crate::args::select::columns;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::count;

/// Lets go.
pub async fn run(args: ResumeArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    context.check_name(&store, &args.upstream).await?;
    let key = columns(&args.key);
    let resumed = store.resume(args.upstream.clone(), key.clone()).await?;
    if context.global.json {
        context.out.json(&json!({ "upstream": args.upstream, "resumed": resumed }))?;
    } else if !context.global.quiet {
        let text = match resumed {
            0 => match odd_key(&args.upstream, &key, context) {
                Some(why) => format!("nothing was held: {why}"),
                None => format!("nothing of {} was held", args.upstream),
            },
            _ if args.key.is_empty() => {
                format!(
                    "{} goes on; where it was refused, one job goes before the rest",
                    args.upstream
                )
            }
            _ => format!(
                "{} of {} {} on; where it was refused, one job of each goes before the rest",
                count(resumed, "partition"),
                args.upstream,
                if resumed == 1 { "goes" } else { "go" },
            ),
        };
        context.out.text(&text)?;
        let remaining = store.remaining(args.upstream.clone()).await?;
        if !args.key.is_empty() && remaining.held > 0 && remaining.waiting == 0 {
            context.out.text(&format!(
                "all of {0} is still held: `paceline why {0}` says why",
                args.upstream
            ))?;
        }
    }
    Ok(Exit::Done)
}
