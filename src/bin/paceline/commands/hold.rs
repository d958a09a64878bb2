//! `hold`: an upstream, or some of its partitions, stops until a person acts.

use paceline::store::{Hold, Store as _};
use serde_json::json;

use super::act::odd_key;
use crate::args::act::HoldArgs;
use crate::args::select::columns;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::text::count;

/// Stops something.
pub async fn run(args: HoldArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.store()?;
    context.check_name(&store, &args.upstream).await?;
    if args.why.trim().is_empty() {
        return wrong("--why is empty: say why, for whoever finds it held");
    }
    let key = columns(&args.key);
    let (whole, asked) = (key.is_empty(), key.clone());
    let hold = Hold {
        upstream: args.upstream.clone(),
        key,
        reason: "by_hand".to_owned(),
        detail: args.why,
        until: None,
    };
    let partitions = store.hold(hold).await?;
    if !whole && partitions == 0 {
        let why = odd_key(&args.upstream, &asked, context);
        let why = why.unwrap_or_else(|| format!("{} has no jobs with that key", args.upstream));
        return wrong(format!("{why}; nothing is held"));
    }
    if context.global.json {
        context.out.json(&json!({ "upstream": args.upstream, "partitions": partitions }))?;
    } else if !context.global.quiet {
        let what = match whole {
            true => args.upstream.clone(),
            false => format!("{} of {}", count(partitions, "partition"), args.upstream),
        };
        context.out.text(&format!("{what} held; `paceline resume {}` lets go", args.upstream))?;
    }
    Ok(Exit::Done)
}
