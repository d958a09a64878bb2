//! `resume`: what was held goes on.

use paceline::store::Store as _;
use serde_json::json;

use crate::args::act::ResumeArgs;
use crate::args::select::columns;
use crate::context::Context;
use crate::exit::Exit;

/// Lets go.
pub async fn run(args: ResumeArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    context.check_name(&store, &args.upstream).await?;
    let resumed = store.resume(args.upstream.clone(), columns(&args.key)).await?;
    if context.global.json {
        context.out.json(&json!({ "upstream": args.upstream, "resumed": resumed }))?;
    } else if !context.global.quiet {
        let text = match resumed {
            0 => format!("nothing of {} was held", args.upstream),
            _ => format!("{} goes on; one call goes before the rest", args.upstream),
        };
        context.out.text(&text)?;
    }
    Ok(Exit::Done)
}
