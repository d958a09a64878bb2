//! What a run came to.

use paceline::dispatch::Report;
use paceline::report::instant;
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::{count, grouped};

/// `run --json`.
pub fn json(report: &Report, exit: Exit) -> Value {
    json!({
        "sent": report.sent, "unreached": report.unreached, "refused": report.refused, "done": report.done, "failed": report.failed,
        "expired": report.expired, "unsure": report.unsure, "held": report.held,
        "waiting": report.waiting, "next_at": instant(report.next_at),
        "upstream": report.next_upstream, "limit": report.limit, "unserved": report.unserved.keys().collect::<Vec<_>>(),
        "left_for": left_for(report), "exit": exit.code(),
    })
}

/// Tells it: as JSON on stdout, or in words on stderr.
pub fn tell(
    report: &Report,
    holds: &[String],
    exit: Exit,
    context: &Context,
) -> anyhow::Result<()> {
    if context.global.json {
        return context.out.json(&json(report, exit));
    }
    if let Some(pid) = report.served_by {
        context.note(&format!("the runner with process number {pid} serves already"));
        return Ok(());
    }
    let mut text = sum(report);
    if let Some(left_for) = left_for(report) {
        text.push_str(match left_for {
            "count" => "\nit sent as many calls as --count lets it, and left",
            _ => "\nits time (--for, --until) was over, and it left",
        });
    }
    if report.waiting > 0 {
        text.push_str(&format!("\n{}", waiting(report, context)));
    }
    if report.held > 0 {
        text.push_str(&format!("\n{} held until a person acts", are(report.held)));
        text.extend(holds.iter().map(|hold| format!("\n  {hold}")));
    }
    for (upstream, problem) in &report.unserved {
        text.push_str(&format!("\n{upstream} was left out: {problem}"));
    }
    let ends = [
        (report.failed, "failed", ""),
        (report.expired, "expired", ""),
        (report.unsure, "unsure", ", `paceline resolve` ends it"),
    ];
    for (_, state, more) in ends.into_iter().filter(|(number, ..)| *number > 0) {
        text.push_str(&format!("\n`paceline jobs --state {state}` lists what is {state}{more}"));
    }
    match exit {
        Exit::Done | Exit::Waiting => context.note(&text),
        _ => context.complain(&text),
    }
    Ok(())
}

/// Why it left while jobs wait, where that was for a bound of its own.
fn left_for(report: &Report) -> Option<&'static str> {
    let bounds = [(report.counted_out, "count"), (report.timed_out, "time")];
    let open = report.waiting > 0 && !report.interrupted;
    bounds.into_iter().find(|(met, _)| open && *met).map(|(_, name)| name)
}

fn are(jobs: u64) -> String {
    format!("{} {}", count(jobs, "job"), if jobs == 1 { "is" } else { "are" })
}

fn sum(report: &Report) -> String {
    let mut parts = vec![format!("{} sent", grouped(report.sent))];
    let ends = [
        (report.refused, "refused"),
        (report.done, "done"),
        (report.failed, "failed"),
        (report.expired, "expired"),
        (report.unsure, "unsure"),
    ];
    for (number, name) in ends.into_iter().filter(|(number, _)| *number > 0) {
        parts.push(format!("{} {name}", grouped(number)));
    }
    if report.unreached > 0 {
        parts.push(format!("{} could not be sent", count(report.unreached, "call")));
    }
    parts.join(", ")
}

/// How many wait, for what, until when, and how to hear more.
fn waiting(report: &Report, context: &Context) -> String {
    let jobs = count(report.waiting, "job");
    let verb = if report.waiting == 1 { "waits" } else { "wait" };
    let name = report.next_upstream.as_deref();
    let mut text = match (&report.limit, name) {
        (Some(limit), Some(name)) => format!("{jobs} {verb}: the limit `{limit}` of {name} binds"),
        (None, Some(name)) => format!("{jobs} {verb}; the next one is of {name}"),
        _ => format!("{jobs} {verb}"),
    };
    match report.next_at {
        Some(at) => {
            let zone = name.zip(report.limit.as_deref());
            let zone = zone.and_then(|(name, limit)| context.zone(name, limit));
            text.push_str(&format!(", until\n  {}", context.times().both(at, zone)));
        }
        None => text.push_str("; until when cannot be told"),
    }
    match name {
        Some(name) => text.push_str(&format!("\n`paceline why {name}` tells more")),
        None => text.push_str("\n`paceline status` tells more"),
    }
    text
}
