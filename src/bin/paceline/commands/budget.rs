//! `budget`: what is spent and left, and units spent elsewhere.

use paceline::quota::{LimitRule, Upstream};
use paceline::report::status;
use paceline::report::why;
use paceline::store::Store as _;
use paceline::store::views::LimitView;
use serde_json::{Value, json};

use super::status::known;
use crate::args::look::{BudgetArgs, BudgetCommand};
use crate::args::select::{Pair, columns};
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::table::table;
use crate::render::text::grouped;
use crate::render::time::Times;

/// Shows budgets, or records what was spent.
pub async fn run(args: BudgetArgs, context: &Context) -> anyhow::Result<Exit> {
    match args.command {
        None => show(&args.upstreams, context).await,
        Some(BudgetCommand::Show { upstreams }) => show(&upstreams, context).await,
        Some(BudgetCommand::Spend { upstream, units, limit, key }) => {
            spend(&upstream, units, limit, &key, context).await
        }
    }
}

async fn show(named: &[String], context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let known = known(&store, named, context).await?;
    let mut shown = Vec::new();
    for known in &known {
        match &known.view {
            Ok(view) => shown.extend(
                view.limits.iter().filter(|l| is_budget(l)).map(|limit| (&known.name, limit)),
            ),
            Err(problem) => context.complain(&format!("{}: {problem}", known.name)),
        }
    }
    if context.global.json {
        let all = shown.iter().map(|(upstream, limit)| {
            let mut told = status::limit(limit);
            if let Some(told) = told.as_object_mut() {
                told.insert("upstream".to_owned(), upstream.as_str().into());
            }
            told
        });
        context.out.json(&Value::from(all.collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    let times = context.times();
    let rows: Vec<_> = shown.iter().map(|(name, limit)| row(name, limit, &times)).collect();
    match rows.as_slice() {
        [] => context.note("no budget has been used here"),
        rows => context.out.text(&table(
            ["UPSTREAM", "LIMIT", "KEY", "SPENT", "AMOUNT", "REPORTED LEFT", "RESETS"],
            rows,
        ))?,
    }
    Ok(Exit::Done)
}

fn is_budget(limit: &LimitView) -> bool {
    matches!(limit.kind, "budget" | "rolling")
}

fn row(name: &str, limit: &LimitView, times: &Times) -> [String; 7] {
    let resets = match (limit.resets_at, limit.next_at) {
        (Some(at), _) => times.both(at, limit.zone),
        (None, Some(at)) if at > times.now() => format!("some {}", times.near_and_far(at)),
        _ => "as units grow old".to_owned(),
    };
    [
        name.to_owned(),
        limit.name.clone(),
        why::key(&limit.key),
        grouped(limit.spent.unwrap_or(0)),
        grouped(limit.amount),
        limit.remaining.map(grouped).unwrap_or_default(),
        resets,
    ]
}

async fn spend(
    name: &str,
    units: i64,
    limit: Option<String>,
    key: &[Pair],
    context: &Context,
) -> anyhow::Result<Exit> {
    let upstream = context.upstream(name)?;
    let limit = match limit {
        Some(limit) => limit,
        None => only_budget(&upstream)?,
    };
    let store = context.store()?;
    let key = columns(key);
    store.spend(std::sync::Arc::clone(&upstream), limit.clone(), key.clone(), units).await?;
    let view = store.upstream(upstream).await?;
    let now = view.limits.iter().find(|shown| shown.name == limit && shown.key == key);
    // The window is what it is: it was spent elsewhere. But a slip of the pen would close it to all.
    if let Some((spent, amount)) = now.and_then(|limit| Some((limit.spent?, limit.amount)))
        && spent > amount
        && units > 0
    {
        context.note(&format!(
            "more is recorded than {name} allows: {} of {}; `paceline budget spend {name} -{}` takes back \
             what was too much",
            grouped(spent),
            grouped(amount),
            spent - amount
        ));
    }
    if context.global.json {
        context.out.json(&now.map_or(json!({ "name": limit }), status::limit))?;
    } else if !context.global.quiet {
        let spent = now.and_then(|limit| Some((limit.spent?, limit.amount)));
        let text = match spent {
            Some((spent, amount)) => {
                format!("{name} {limit}: {} of {} spent", grouped(spent), grouped(amount))
            }
            None => format!("{name} {limit}: recorded"),
        };
        context.out.text(&text)?;
    }
    Ok(Exit::Done)
}

fn only_budget(upstream: &Upstream) -> anyhow::Result<String> {
    let counts = |rule: &LimitRule| matches!(rule, LimitRule::Budget(_) | LimitRule::Rolling(_));
    let budgets: Vec<&str> = upstream
        .limits
        .iter()
        .filter(|limit| counts(&limit.rule))
        .map(|limit| limit.name.as_str())
        .collect();
    match budgets.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => wrong(format!("{} has no budget or rolling limit", upstream.name)),
        several => wrong(format!("say which with --limit: {}", several.join(", "))),
    }
}
