//! Events in a line each.

use std::time::Duration;

use paceline::dispatch::Event;
use paceline::job::JobState;
use paceline::report::why;
use paceline::report::words::span;
use paceline::store::Restored;

use crate::render::text::{count, visible};
use crate::render::time::Times;

/// An event in a line; `None`: it is no news.
pub fn told(event: &Event, times: &Times) -> Option<String> {
    Some(match event {
        Event::Started { swept } if swept.restored.is_some() => restored(swept.restored?, times),
        Event::Started { swept } if swept.returned + swept.unsure + swept.expired > 0 => format!(
            "found of earlier runs: {} to send again, {} unsure, {} expired",
            swept.returned, swept.unsure, swept.expired
        ),
        Event::Answered { .. } => answer(event)?,
        Event::Blocked { upstream, limit, key, until, reason } => {
            let what = what(upstream, limit.as_deref(), &why::key(key));
            format!("{what} is closed by {reason} until {}", times.near_and_far(*until))
        }
        Event::Held { upstream, key, reason, detail, until } => {
            let key = key.as_ref().map(why::key).unwrap_or_default();
            let until = until.map(|until| format!("; {}", times.left_alone(until)));
            let until = until.unwrap_or_default();
            format!("{} is held ({reason}): {detail}{until}", what(upstream, None, &key))
        }
        Event::Split { upstream, jobs, most } => format!(
            "{upstream}: a batch of {} was refused; the next ones carry at most {most}",
            count(*jobs as u64, "job")
        ),
        Event::LetGo { upstream } => format!("{upstream} goes on: what it lacked is there"),
        Event::NoToken { upstream, credential, detail } => {
            let of = credential.as_ref().map(|name| format!(" [credential={name}]"));
            format!("{upstream}{} has no token: {detail}", of.unwrap_or_default())
        }
        Event::Expired { upstream, jobs } => format!("{upstream}: {} expired", count(*jobs, "job")),
        Event::Waiting { upstream, until, limit } => {
            let limit = limit.as_ref().map(|limit| format!(" for the limit `{limit}`"));
            let limit = limit.unwrap_or_default();
            format!("{upstream} waits{limit} until {}", times.near_and_far(*until))
        }
        Event::QuotaTold { upstream, limit, key, remaining } => {
            let what = what(upstream, Some(limit), &why::key(key));
            match remaining {
                Ok(left) => format!("{what}: the upstream says {left} are left"),
                Err(why) => format!(
                    "{what}: the upstream does not say what is left, our own count stands ({})",
                    visible(why)
                ),
            }
        }
        other => return of_the_machine(other),
    })
}

/// What it means that the store was a copy.
pub fn restored(restored: Restored, times: &Times) -> String {
    let unsure = match restored.unsure {
        0 => String::new(),
        jobs => format!(
            "; {} that must not be sent twice may have been sent since, and {} unsure: see `paceline help resolve`",
            count(jobs, "job"),
            if jobs == 1 { "is" } else { "are" }
        ),
    };
    format!(
        "this store was a copy of {}: each window that is open now counts as spent until its reset \
        (`paceline restore --trust`, where nothing was sent since){unsure}",
        times.here(restored.copied_at)
    )
}

/// What an attempt came to.
fn answer(event: &Event) -> Option<String> {
    let Event::Answered { upstream, job, attempt, url, status, reason, detail, state, .. } = event
    else {
        return None;
    };
    let status = status.map_or("no answer".to_owned(), |status| status.to_string());
    let again = *state == JobState::Queued;
    let end = if again { "goes again" } else { state.name() };
    let said = if reason.is_success() && !again { String::new() } else { format!(" ({detail})") };
    let said = visible(&said).into_owned();
    Some(format!("{upstream} job {job} attempt {attempt}: {status} {reason}, {end}: {url}{said}"))
}

/// What happened to quota files, the clock, the store, the run itself.
fn of_the_machine(event: &Event) -> Option<String> {
    Some(match event {
        Event::QuotaChanged { upstream, problem: None } => {
            format!("{upstream}: its changed quota file is in force")
        }
        Event::QuotaChanged { upstream, problem: Some(problem) } => format!(
            "{upstream}: its changed quota file is wrong, the last good one stays in force\n{problem}"
        ),
        Event::Unserved { upstream, problem } => {
            format!("{upstream} is left out until its quota file is mended\n{problem}")
        }
        Event::ClockStepped { nanos } => {
            let way = if *nanos < 0 { "back" } else { "forwards" };
            let by = span(Duration::from_nanos(nanos.unsigned_abs()));
            format!("somebody set this machine's clock {way} by {by}")
        }
        Event::StoreTrouble { message } => {
            format!("the store cannot answer, nothing new is sent until it does: {message}")
        }
        Event::Pruned { jobs } => format!("{} past their age removed", count(*jobs, "job")),
        Event::StoreBack => "the store answers again".to_owned(),
        Event::StoreFallback { upstream, job, message } => format!(
            "{upstream} job {job} leaves though the store cannot say whether it still may: {message}"
        ),
        Event::Draining { in_flight: in_flight @ 1.. } => {
            format!("leaving: {} in flight", count(*in_flight as u64, "call"))
        }
        _ => return None,
    })
}

fn what(upstream: &str, limit: Option<&str>, key: &str) -> String {
    let mut text = upstream.to_owned();
    if let Some(limit) = limit {
        text.push_str(&format!(" limit `{limit}`"));
    }
    if !key.is_empty() {
        text.push_str(&format!(" [{key}]"));
    }
    text
}
