//! `show`: one job with all its attempts and what was answered.

use paceline::report::jobs as told;
use paceline::report::turn::before;
use paceline::store::views::{AttemptView, JobView, Turn};
use paceline::store::{AttemptFilter, KeptBody, Store as _};

use super::why::{ends, find, held_back};
use crate::args::look::ShowArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::table::indented;
use crate::render::text::visible;
use crate::render::time::Times;

/// Shows one job.
pub async fn run(args: ShowArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let job = find(&store, &args.what, context).await?;
    let filter = AttemptFilter { job: Some(job.id), bodies: true, ..AttemptFilter::default() };
    let attempts = store.attempts(filter).await?;
    if context.global.json {
        context.out.json(&told::shown(&job, &attempts))?;
        return Ok(Exit::Done);
    }
    let times = context.times();
    head(&job, &times, context)?;
    for attempt in &attempts {
        context.out.text(&format!("\nattempt {}", one(attempt, &times)))?;
        if let Some(body) = &attempt.body {
            context.out.text(&indented(&text(body)))?;
        }
    }
    Ok(Exit::Done)
}

fn head(job: &JobView, times: &Times, context: &Context) -> anyhow::Result<()> {
    let mut lines = vec![
        format!("job {} of {}, load {}: {}", job.id, job.upstream, job.load, job.state),
        format!("  {} {}", job.method, job.url),
        format!("  added {}", times.near_and_far(job.added_at)),
    ];
    if let Some(at) = job.ended_at {
        lines.push(format!("  ended {}", times.near_and_far(at)));
    }
    if let Some(at) = job.deadline_at {
        lines.push(format!("  deadline {}", times.near_and_far(at)));
    }
    if job.priority > 0 {
        lines.push(format!("  priority {}", job.priority));
    }
    if let Some(wait) = &job.waiting {
        lines.push(format!("  {}", held_back(wait)));
        if wait.turn == Turn::Held {
            lines.push(format!("  `paceline why {}` says how it goes on", job.id));
        }
        if let Some(until) = wait.until {
            let zone = wait.limit.as_ref().and_then(|limit| context.zone(&job.upstream, limit));
            lines.push(format!("  {}", ends(wait.turn, until, zone, times)));
        }
    }
    if let Some(before) = job.ahead.and_then(before) {
        lines.push(format!("  {before}"));
    }
    if let (Some(reason), Some(detail)) = (&job.reason, &job.detail) {
        lines.push(format!("  last: {reason}: {detail}"));
    }
    lines.extend(job.columns.iter().map(|(name, value)| format!("  {name} = {value}")));
    lines.extend(job.fields.iter().map(|(name, value)| format!("  answer's {name} = {value}")));
    for line in lines {
        context.out.text(&visible(&line))?;
    }
    Ok(())
}

fn one(attempt: &AttemptView, times: &Times) -> String {
    let status = match (attempt.status, attempt.ended_at) {
        (Some(status), _) => status.to_string(),
        (None, Some(_)) => "no answer".to_owned(),
        (None, None) => "lost with its process".to_owned(),
    };
    let mut text = format!("{}: {}: {status}", attempt.n, times.near_and_far(attempt.sent_at));
    if let Some(reason) = &attempt.reason {
        text.push_str(&format!(", {reason}"));
    }
    if let Some(source) = &attempt.source {
        text.push_str(&format!(" (by {source})"));
    }
    if let Some(limit) = &attempt.limit {
        text.push_str(&format!(", limit {limit}"));
    }
    if let Some(hint) = attempt.hint_at {
        text.push_str(&format!(", come back {}", times.here(hint)));
    }
    if let Some(detail) = &attempt.detail {
        text.push_str(&format!("\n  {}", visible(detail)));
    }
    text
}

fn text(body: &KeptBody) -> String {
    let mut text = match std::str::from_utf8(&body.bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("({} bytes that are no text; --json has them)", body.bytes.len()),
    };
    if body.cut {
        text.push_str("\n(cut: there was more)");
    }
    text
}
