//! `report`: evidence for an upstream's support.

use std::sync::Arc;

use paceline::clock::Timestamp;
use paceline::quota::Upstream;
use paceline::report::conclusion::{conclude, share};
use paceline::report::evidence::{Evidence, Gatherer, Refusal, SPANS};
use paceline::report::limits::{counted, describe};
use paceline::store::sqlite::SqliteStore;
use paceline::store::{AttemptFilter, Store as _};
use serde_json::Value;

use super::log::PAGE;
use crate::args::look::ReportArgs;
use crate::args::select::since;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::{count, visible};
use crate::render::time::Times;

/// Connections that are told one by one; `--json` has all.
const CONNECTIONS: usize = 10;

/// Tells of one upstream, or of all that were called.
pub async fn run(args: ReportArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let times = context.times();
    let since = since(args.since, &times)?;
    let names = match &args.upstream {
        Some(name) => {
            context.check_name(&store, name).await?;
            vec![name.clone()]
        }
        None => store.upstream_names().await?,
    };
    let mut told = Vec::new();
    for name in names {
        let upstream = match (context.library().get(&name), &args.upstream) {
            (Ok(upstream), _) => upstream,
            (Err(error), Some(_)) => return Err(error.into()),
            (Err(error), None) => {
                context.note(&format!("{name} is left out: {error}"));
                continue;
            }
        };
        let evidence = gather(&store, &upstream, since).await?;
        told.push((upstream, evidence));
    }
    let pruned = store.pruned()?;
    if context.global.json {
        let mut all = told.iter().map(|(upstream, evidence)| {
            let mut told = evidence.to_json(upstream, since);
            if let Some(told) = told.as_object_mut() {
                told.insert("pruned".to_owned(), pruned.into());
            }
            told
        });
        let json = match &args.upstream {
            Some(_) => all.next().unwrap_or_default(),
            None => Value::Array(all.collect()),
        };
        context.out.json(&json)?;
        return Ok(Exit::Done);
    }
    for (upstream, evidence) in &told {
        tell(upstream, evidence, &times, context)?;
    }
    if pruned > 0 {
        context.note(&format!(
            "{} removed from this store by `prune` or [keep], of all upstreams together: their calls are not \
             counted here",
            are(pruned)
        ));
    }
    Ok(Exit::Done)
}

fn are(jobs: u64) -> String {
    format!("{} {}", count(jobs, "job"), if jobs == 1 { "was" } else { "were" })
}

async fn gather(
    store: &SqliteStore,
    upstream: &Arc<Upstream>,
    since: Option<Timestamp>,
) -> anyhow::Result<Evidence> {
    let mut gatherer = Gatherer::new(upstream);
    let mut filter = AttemptFilter {
        upstreams: vec![upstream.name.clone()],
        since,
        after: Some(0),
        limit: Some(PAGE),
        ..AttemptFilter::default()
    };
    loop {
        let page = store.attempts(filter.clone()).await?;
        page.iter().for_each(|attempt| gatherer.take(attempt));
        match page.last() {
            Some(last) => filter.after = Some(last.id),
            None => return Ok(gatherer.finish()),
        }
    }
}

fn tell(
    upstream: &Upstream,
    evidence: &Evidence,
    times: &Times,
    context: &Context,
) -> anyhow::Result<()> {
    let out = &context.out;
    out.text(&format!("{}:", upstream.name))?;
    let (calls, refused) = (evidence.all.calls, evidence.all.refused);
    let in_part = match evidence.refused_in_part {
        0 => String::new(),
        some => format!("; {} refused in part", count(some, "call")),
    };
    out.text(&format!(
        "  {}, {refused} refused ({}), {} of these within the declared limits{in_part}",
        count(calls, "call"),
        share(refused, calls),
        evidence.refused_inside
    ))?;
    for (reason, calls) in &evidence.by_reason {
        out.text(&format!("    {reason}: {}", count(*calls, "call")))?;
    }
    for ((name, _), most) in SPANS.iter().zip(evidence.busiest) {
        out.text(&format!("  busiest {name}: {most}"))?;
    }
    for limit in &upstream.limits {
        let declared = describe(&limit.rule).declared;
        out.text(&format!("  declared: {}: {declared}{}", limit.name, counted(limit)))?;
    }
    connections(evidence, context)?;
    for (which, refusal) in [("first", &evidence.first), ("worst", &evidence.worst)] {
        if let Some(refusal) = refusal {
            out.text(&visible(&line(which, refusal, times)))?;
        }
    }
    out.text(&format!("\n{}", visible(&conclude(upstream, evidence))))?;
    Ok(())
}

/// Those that met most refusals.
fn connections(evidence: &Evidence, context: &Context) -> anyhow::Result<()> {
    let mut all: Vec<_> = evidence.by_connection.iter().collect();
    all.sort_by_key(|(_, of)| std::cmp::Reverse(of.refused));
    for (number, of) in all.iter().take(CONNECTIONS) {
        let calls = count(of.calls, "call");
        context.out.text(&format!("  connection {number}: {calls}, {} refused", of.refused))?;
    }
    match all.len().saturating_sub(CONNECTIONS) as u64 {
        0 => Ok(()),
        more => context
            .out
            .text(&format!("  and {}", count(more, "more connection")))
            .map_err(Into::into),
    }
}

fn line(which: &str, refusal: &Refusal, times: &Times) -> String {
    let status = refusal.status.map_or("no answer".to_owned(), |status| status.to_string());
    let hint = refusal.hint_at.map(|at| format!(", come back {}", times.here(at)));
    format!(
        "  {which} refusal: {} {status} {}{}: {}",
        times.here(refusal.sent_at),
        refusal.reason,
        hint.unwrap_or_default(),
        refusal.detail
    )
}
