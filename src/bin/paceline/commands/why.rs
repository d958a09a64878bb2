//! `why`: what holds a job or an upstream back, and until when.

use std::sync::Arc;

use chrono_tz::Tz;
use paceline::clock::Timestamp;
use paceline::job::{Columns, JobId, JobState};
use paceline::quota::Upstream;
use paceline::reading::Reason;
use paceline::report::finish::Finish;
use paceline::report::status::open;
use paceline::report::turn::{before, turn};
use paceline::report::why as told;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::{Ahead, JobView, LimitView, Turn, UpstreamView, WaitView};
use paceline::store::{AttemptFilter, Filter, Store as _};
use serde_json::Value;

use super::resets;
use super::status::{full, jobs_line, pace, partition_line, waits, zone};
use crate::args::look::WhyArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::text::{count, grouped, visible};
use crate::render::time::Times;

/// What is said of an attempt that was lost with its process.
pub const LOST: &str = "lost";

/// Tells what holds something back.
pub async fn run(args: WhyArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    match args.what.parse::<i64>() {
        Ok(_) => job(&store, &args.what, context).await,
        Err(_) if args.what.contains("://") => job(&store, &args.what, context).await,
        Err(_) => upstream(&store, &args.what, context).await,
    }
}

/// The job of that number, or the latest of that URL.
pub async fn find(store: &SqliteStore, what: &str, context: &Context) -> anyhow::Result<JobView> {
    let filter = match what.parse() {
        Ok(id) => Filter { ids: vec![JobId(id)], ..Filter::default() },
        Err(_) => Filter { url: Some(what.to_owned()), ..Filter::default() },
    };
    let declared = context.declared(store).await?;
    match store.jobs(filter, declared).await?.pop() {
        Some(job) => Ok(served(job, context)),
        None if what.parse::<i64>().is_ok() => wrong(format!("there is no job {what}")),
        None => wrong(format!("there is no job of `{what}`; `paceline jobs` lists them")),
    }
}

/// A queued job whose quota file is wrong or gone waits for a person too.
fn served(job: JobView, context: &Context) -> JobView {
    let problem = match context.library().get(&job.upstream) {
        Err(error) if job.state == JobState::Queued => error.to_string(),
        _ => return job,
    };
    let (turn, limit, until, reason) = (Turn::Held, None, None, "quota_file".to_owned());
    JobView { waiting: Some(WaitView { turn, limit, until, reason, detail: problem }), ..job }
}

async fn job(store: &SqliteStore, what: &str, context: &Context) -> anyhow::Result<Exit> {
    let job = find(store, what, context).await?;
    let times = context.times();
    let declared = context.library().get(&job.upstream).ok();
    let view = match &declared {
        Some(declared) => Some(store.upstream(Arc::clone(declared)).await?),
        None => None,
    };
    let known = declared.as_ref().zip(view.as_ref());
    let turn = known.and_then(|(declared, view)| turn(declared, view, &job, times.now()));
    if context.global.json {
        let is_told = job.ahead.is_some_and(|ahead| !ahead.more);
        let at = turn.as_ref().filter(|turn| is_told && !turn.is_beyond()).map(|turn| turn.at);
        context.out.json(&told::job(&job, at))?;
        return Ok(Exit::Done);
    }
    context.out.text(&format!("job {} of {}: {}", job.id, job.upstream, reason(&job, &times)))?;
    if job.state == JobState::Unsure {
        context.out.text(&format!(
            "  it may have reached {}, and its {} must not be sent twice; as you know it:\n  \
             `paceline resolve {} --as done`, `--as failed`, or `--as queued` to send it again",
            job.upstream, job.method, job.id
        ))?;
    }
    if let Some((ahead, before)) = job.ahead.and_then(|ahead| Some((ahead, before(ahead)?))) {
        let turn = turn.map(|turn| turn_line(&turn, ahead, &times)).unwrap_or_default();
        context.out.text(&format!("  {before}{turn}"))?;
    }
    let Some((declared, view)) = known else { return Ok(Exit::Done) };
    if let Some(at) = job.could_go_at {
        let zone = zone(view, job.limit.as_deref());
        context.out.text(&format!("  it could have gone {}", times.both(at, zone)))?;
    }
    if let Some(wait) = &job.waiting {
        if let Some(until) = wait.until {
            let zone = zone(view, wait.limit.as_deref());
            context.out.text(&format!("  {}", ends(wait.turn, until, zone, &times)))?;
        }
        held(wait.turn, view, Some(&job.partition), context)?;
        // Its own instances, and those without a key.
        let own = |limit: &&LimitView| {
            limit.key.iter().all(|(name, value)| job.partition.get(name) == Some(value))
        };
        limits(store, declared, view.limits.iter().filter(own), context).await?;
    }
    Ok(Exit::Done)
}

/// When the turn comes of a job that others go before; where these were not all counted, at the earliest.
fn turn_line(turn: &Finish<'_>, ahead: Ahead, times: &Times) -> String {
    let by = turn.limit.map(|limit| format!(", by the limit `{limit}`"));
    let by = by.unwrap_or_default();
    let about = if ahead.more { "no sooner than" } else { "about" };
    match turn.is_beyond() {
        true => format!("; its turn comes in more than 200 years{by}"),
        false if turn.at <= times.now() => String::new(),
        false => format!("; its turn comes {about} {}{by}", times.near_and_far(turn.at)),
    }
}

fn reason(job: &JobView, times: &Times) -> String {
    let Some(wait) = &job.waiting else {
        let last = match (&job.reason, &job.detail) {
            (Some(reason), Some(detail)) => format!(" ({reason}: {})", visible(detail)),
            (Some(reason), None) => format!(" ({reason})"),
            (None, Some(detail)) => format!(" ({})", visible(detail)),
            _ => String::new(),
        };
        return match (job.state, job.ended_at) {
            (JobState::Queued, _) if job.attempts > 0 => {
                format!("ready: it goes as soon as a runner takes it; its last attempt:{last}")
            }
            (JobState::Queued, _) if job.ahead.and_then(before).is_some() => {
                "ready: it goes when its turn comes".to_owned()
            }
            (JobState::Queued, _) => "ready: it goes as soon as a runner takes it".to_owned(),
            (state, Some(at)) => format!("{state} since {}{last}", times.here(at)),
            (state, None) => format!("{state}{last}"),
        };
    };
    held_back(wait)
}

/// What a job waits for: `waiting for the limit `daily` (budget: 200 of 200 are spent)`.
pub fn held_back(wait: &WaitView) -> String {
    let what = match (wait.turn, &wait.limit) {
        (Turn::Held, _) => "held until a person acts".to_owned(),
        (turn, Some(limit)) => format!("{} for the limit `{limit}`", turn.name()),
        (turn, None) => turn.name().to_owned(),
    };
    let detail = match wait.detail.as_str() {
        "" => String::new(),
        detail => format!(": {}", visible(detail)),
    };
    format!("{what} ({}{detail})", wait.reason)
}

/// When a wait ends, or could.
pub fn ends(turn: Turn, until: Timestamp, zone: Option<Tz>, times: &Times) -> String {
    match turn {
        Turn::Held => times.left_alone(until),
        _ => format!("until {}", times.due(until, zone)),
    }
}

/// What a limit counts, and what was said about it.
fn evidence(limit: &LimitView, times: &Times) -> String {
    let mut text = format!("{} {}", limit.kind, limit.name);
    if !limit.key.is_empty() {
        text.push_str(&format!(" [{}]", told::key(&limit.key)));
    }
    match (limit.kind, limit.spent, limit.effective_rate) {
        ("rate", _, Some(rate)) => text.push_str(&format!(": paced at {}", pace(limit, rate))),
        (_, Some(spent), _) => {
            text.push_str(&format!(": {} of {}", grouped(spent), grouped(limit.amount)));
        }
        _ => {}
    }
    if let Some(full) = full(limit, times) {
        text.push_str(&format!("; {full}"));
    }
    if let Some(left) = limit.remaining {
        text.push_str(&format!(", {} left by the upstream's report", grouped(left)));
    }
    if let Some(resets) = limit.resets_at {
        text.push_str(&format!(", resets {}", times.both(resets, limit.zone)));
    }
    if let Some(until) = limit.blocked_until {
        let reason = limit.reason.as_deref().unwrap_or("refused");
        text.push_str(&format!("\n    closed ({reason}) until {}", times.near_and_far(until)));
        if let Some(detail) = &limit.detail {
            text.push_str(&format!("\n    it said: {}", visible(detail)));
        }
    }
    text
}

async fn upstream(store: &SqliteStore, name: &str, context: &Context) -> anyhow::Result<Exit> {
    let declared = context.upstream(name)?;
    let view = store.upstream(Arc::clone(&declared)).await?;
    if context.global.json {
        let seen = store.resets(declared).await?;
        let one = |partition| told::partition_and_resets(partition, &seen);
        let all: Vec<Value> = view.partitions.iter().map(one).collect();
        context.out.json(&Value::from(all))?;
        return Ok(Exit::Done);
    }
    let times = context.times();
    context.out.text(&format!("{name}: {}", jobs_line(&view.jobs)))?;
    partitions(&view, &times, context)?;
    if open(&view.jobs) > 0 {
        last_attempt(store, &view, &times, context).await?;
    }
    limits(store, &declared, view.limits.iter(), context).await?;
    Ok(Exit::Done)
}

/// Each limit with its evidence.
async fn limits(
    store: &SqliteStore,
    declared: &Arc<Upstream>,
    shown: impl Iterator<Item = &LimitView>,
    context: &Context,
) -> anyhow::Result<()> {
    let times = context.times();
    let seen = store.resets(Arc::clone(declared)).await?;
    for limit in shown {
        context.out.text(&format!("  {}", evidence(limit, &times)))?;
        if let Some(line) = resets::line(declared, limit, &seen, &times) {
            context.out.text(&format!("    {line}"))?;
        }
    }
    Ok(())
}

/// What the upstream said last, where that was not what was wished: it may be why nothing moves.
async fn last_attempt(
    store: &SqliteStore,
    view: &UpstreamView,
    times: &Times,
    context: &Context,
) -> anyhow::Result<()> {
    let upstreams = vec![view.name.clone()];
    let filter = AttemptFilter { upstreams, limit: Some(1), ..Default::default() };
    let held = told::held(view);
    let Some(last) = store.attempts(filter).await?.pop() else { return Ok(()) };
    let reason = last.reason.as_deref().unwrap_or(LOST);
    if reason.parse().is_ok_and(Reason::is_success) {
        return Ok(());
    }
    let status = last.status.map_or("no answer".to_owned(), |status| status.to_string());
    // What holds has been told already.
    let told = |detail: &String| held.iter().any(|hold| hold.detail.starts_with(detail.as_str()));
    let said = last.detail.filter(|detail| !told(detail));
    let said = said.map(|detail| format!(": {detail}")).unwrap_or_default();
    let when = times.distance(last.sent_at);
    let text = format!("last attempt (job {}, {when}): {status}, {reason}{said}", last.job);
    Ok(context.out.text(&format!("  {}", visible(&text)))?)
}

/// The way out of a hold; of the whole upstream where `key` is `None`.
fn held(
    turn: Turn,
    view: &UpstreamView,
    key: Option<&Columns>,
    context: &Context,
) -> anyhow::Result<()> {
    if turn != Turn::Held {
        return Ok(());
    }
    let whole = Columns::new();
    let key = key.filter(|_| view.held.is_none()).unwrap_or(&whole);
    let holds = told::held(view);
    match holds.iter().find(|hold| hold.key == *key) {
        Some(hold) => Ok(context.out.text(&format!("    {}", hold.way_out))?),
        None => Ok(()),
    }
}

fn partitions(view: &UpstreamView, times: &Times, context: &Context) -> anyhow::Result<()> {
    let waiting: Vec<_> = view.partitions.iter().filter(|one| waits(one)).collect();
    if waiting.is_empty() {
        context.out.text("  nothing is held back")?;
    }
    for partition in waiting {
        context.out.text(&format!("  {}", partition_line(partition, view, times)))?;
        if view.held.is_none() {
            held(partition.wait.turn, view, Some(&partition.key), context)?;
        }
    }
    if view.held.is_some() {
        held(Turn::Held, view, None, context)?;
    }
    if view.omitted > 0 {
        context
            .out
            .text(&format!("  and {}", count(view.omitted, "more instance or partition")))?;
    }
    Ok(())
}
