//! `status`: how things stand.

use paceline::job::JobState;
use paceline::report::status::{self, Known};
use paceline::report::why;
use paceline::report::words::figure;
use paceline::store::Store;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::{LimitView, PartitionView, Tally, Turn, UpstreamView};

use crate::args::look::StatusArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::table::{indented, table};
use crate::render::text::{count, grouped, visible};
use crate::render::time::Times;

/// Partitions that people are shown; JSON has more.
const PARTITIONS_SHOWN: usize = 10;

/// Limit instances that people are shown.
const LIMITS_SHOWN: usize = 20;

/// Shows how things stand.
pub async fn run(args: StatusArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let known = known(&store, &args.upstreams, context).await?;
    let jobs = match args.upstreams.as_slice() {
        [] => store.tally().await?,
        _ => status::sum(&known),
    };
    let path = context.store_path()?.display().to_string();
    if context.global.json {
        context.out.json(&status::status(&path, &jobs, &known))?;
        return Ok(Exit::Done);
    }
    let times = context.times();
    context.out.text(&format!("store {path}"))?;
    if known.len() != 1 {
        context.out.text(&jobs_line(&jobs))?;
    }
    for known in &known {
        context.out.text("")?;
        match &known.view {
            Ok(view) => upstream(view, &times, context)?,
            Err(problem) => {
                let jobs = jobs_line(&known.jobs);
                context.out.text(&format!("{}: {jobs}\n{}", known.name, indented(problem)))?;
            }
        }
    }
    if let Some(at) = status::next_at(&known) {
        let next = if at <= times.now() { "now".to_owned() } else { times.near_and_far(at) };
        context.out.text(&format!("\nnext: {next}"))?;
    }
    Ok(Exit::Done)
}

/// The upstreams that were named, else all that have, or had, jobs.
pub async fn known(
    store: &SqliteStore,
    named: &[String],
    context: &Context,
) -> anyhow::Result<Vec<Known>> {
    let names = match named {
        [] => store.upstream_names().await?,
        named => named.to_vec(),
    };
    let library = context.library();
    let mut all = Vec::new();
    for name in names {
        if !named.is_empty() {
            context.check_name(store, &name).await?;
        }
        let view = match library.get(&name) {
            Ok(upstream) => Ok(store.upstream(upstream).await?),
            Err(problem) => Err(problem.to_string()),
        };
        let jobs = store.tally_of(&name)?;
        all.push(Known { name, view, jobs });
    }
    Ok(all)
}

/// `12 queued, 3 done`.
pub fn jobs_line(jobs: &Tally) -> String {
    let some = JobState::ALL.into_iter().filter_map(|state| {
        let number = jobs.get(&state).copied().filter(|number| *number > 0)?;
        Some(format!("{} {state}", grouped(number)))
    });
    let some: Vec<_> = some.collect();
    if some.is_empty() { "no jobs".to_owned() } else { some.join(", ") }
}

fn upstream(view: &UpstreamView, times: &Times, context: &Context) -> anyhow::Result<()> {
    context.out.text(&format!("{}: {}", view.name, jobs_line(&view.jobs)))?;
    if let Some(held) = &view.held {
        context.out.text(&format!(
            "  held since {} ({}): {}",
            times.here(held.at),
            held.reason,
            visible(&held.detail)
        ))?;
    }
    let holds = why::held(view);
    if let Some(hold) = holds.first().filter(|_| view.held.is_some()) {
        context.out.text(&format!("  {}", hold.way_out))?;
    }
    let held = status::is_all_held(view);
    let limits = view.limits.iter().take(LIMITS_SHOWN);
    let rows: Vec<_> = limits.map(|limit| limit_row(limit, held, times)).collect();
    if !rows.is_empty() {
        let header = ["LIMIT", "KEY", "USED", "LEFT", "NEXT OR RESET"];
        context.out.text(&indented(&table(header, &rows)))?;
    }
    let partitions: Vec<_> = view.partitions.iter().filter(|one| waits(one)).collect();
    for partition in partitions.iter().take(PARTITIONS_SHOWN) {
        context.out.text(&format!("  {}", partition_line(partition, view, times)))?;
        if let Some(hold) =
            holds.iter().find(|hold| view.held.is_none() && hold.key == partition.key)
        {
            context.out.text(&format!("    {}", hold.way_out))?;
        }
    }
    let hidden = view.limits.len().saturating_sub(LIMITS_SHOWN) as u64
        + partitions.len().saturating_sub(PARTITIONS_SHOWN) as u64
        + view.omitted;
    if hidden > 0 {
        context.out.text(&format!(
            "  and {} that --json shows",
            count(hidden, "more limit instance or partition")
        ))?;
    }
    Ok(())
}

/// `0.743 of 4 a second after refusals`, `4 a second`.
pub fn pace(limit: &LimitView, rate: f64) -> String {
    match limit.declared_rate.filter(|_| limit.slowed.is_some()) {
        Some(whole) => format!("{} of {} a second after refusals", figure(rate), figure(whole)),
        None => format!("{} a second", figure(rate)),
    }
}

/// When a pace that was cut is whole again.
pub fn full(limit: &LimitView, times: &Times) -> Option<String> {
    Some(format!("full pace again {}", times.distance(limit.full_at?)))
}

/// `is_held`: nothing of the upstream goes before a person acts, whatever the limit grants.
fn limit_row(limit: &LimitView, is_held: bool, times: &Times) -> [String; 5] {
    let used = match (limit.kind, limit.spent) {
        ("rate", _) => limit.effective_rate.map(|rate| pace(limit, rate)).unwrap_or_default(),
        (_, Some(spent)) => format!("{} of {}", grouped(spent), grouped(limit.amount)),
        _ => format!("of {}", grouped(limit.amount)),
    };
    let used = if limit.restored { format!("{used}, as restored") } else { used };
    let used = match limit.slowed.filter(|_| limit.kind != "rate") {
        Some(share) => {
            format!("{used}, at {} % of its pace after refusals", figure((share * 100.0).round()))
        }
        None => used,
    };
    let left = limit.remaining.map(|left| format!("{} reported", grouped(left)));
    let when = match (limit.blocked_until, limit.resets_at, limit.next_at) {
        (Some(until), ..) => format!(
            "blocked ({}) until {}",
            limit.reason.as_deref().unwrap_or("refused"),
            times.both(until, limit.zone)
        ),
        (None, Some(resets), _) => format!("resets {}", times.both(resets, limit.zone)),
        _ if is_held => "held".to_owned(),
        (None, None, Some(next)) if next > times.now() => times.near_and_far(next),
        (None, None, Some(_)) => "free now".to_owned(),
        (None, None, None) => "when a call ends".to_owned(),
    };
    let when =
        [Some(when), full(limit, times)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    [limit.name.clone(), why::key(&limit.key), used, left.unwrap_or_default(), when]
}

/// The zone of a partition's binding limit.
pub fn zone(view: &UpstreamView, limit: Option<&str>) -> Option<chrono_tz::Tz> {
    let of = |shown: &&LimitView| Some(shown.name.as_str()) == limit;
    view.limits.iter().find(of).and_then(|shown| shown.zone)
}

/// Whether anything of a partition waits: of some all jobs are running.
pub fn waits(partition: &PartitionView) -> bool {
    partition.jobs > 0 || partition.wait.turn == Turn::Held
}

/// What one partition waits for.
pub fn partition_line(partition: &PartitionView, view: &UpstreamView, times: &Times) -> String {
    let wait = &partition.wait;
    let mut text = match why::key(&partition.key).as_str() {
        "" => String::new(),
        key => format!("{key}: "),
    };
    text.push_str(&format!("{} {}", count(partition.jobs, "job"), wait.turn.name()));
    if let Some(limit) = &wait.limit {
        text.push_str(&format!(" for the limit `{limit}`"));
    }
    match wait.until {
        _ if wait.turn == Turn::Held => {
            text.push_str(" until a person acts");
            if let Some(until) = wait.until {
                text.push_str(&format!("; {}", times.left_alone(until)));
            }
        }
        Some(until) => {
            let zone = zone(view, wait.limit.as_deref());
            text.push_str(&format!(" until {}", times.due(until, zone)));
        }
        None => {}
    }
    let detail = if wait.detail.is_empty() { String::new() } else { format!(": {}", wait.detail) };
    text.push_str(&format!(" ({}{detail})", wait.reason));
    visible(&text).into_owned()
}
