//! How a reading came about, for people and for tools.

use paceline::reading::{Explanation, Reading, Said, Step, Topic};
use serde_json::{Value, json};

/// One answer: its reading, then who was asked, the one who decided marked with `>`.
pub fn text(name: &str, explanation: &Explanation) -> String {
    let mut lines = vec![format!("{name}: {}", reading(&explanation.reading))];
    for topic in [Topic::Reason, Topic::Hint] {
        lines.push(format!("  {}", heading(topic, explanation)));
        let steps: Vec<_> = explanation.steps.iter().filter(|step| step.topic == topic).collect();
        for steps in steps.chunk_by(|step, next| step.is_silent() && next.is_silent()) {
            lines.push(line(steps));
        }
    }
    lines.join("\n")
}

fn reading(reading: &Reading) -> String {
    let waits = if reading.retryable { "waiting can help" } else { "waiting alone does not help" };
    let at = reading.retry_at.map(|at| format!("; not before {}", at.to_rfc3339()));
    format!("{}; {waits}{}; {}", reading.reason, at.unwrap_or_default(), reading.detail)
}

fn heading(topic: Topic, explanation: &Explanation) -> String {
    let Reading { retry_at, wait, .. } = &explanation.reading;
    match (topic, retry_at, wait) {
        (Topic::Reason, ..) => "who reads the reason:".to_owned(),
        (_, Some(_), _) => "what says when to come back:".to_owned(),
        (_, None, Some(wait)) => {
            format!("what says when to come back (nothing usable; our own delay is {wait:?}):")
        }
        (_, None, None) => "what says when to come back (nothing usable):".to_owned(),
    }
}

/// One step, or a run of those that found nothing.
fn line(steps: &[&Step]) -> String {
    let [step] = steps else {
        let names: Vec<_> = steps.iter().map(|step| step.reader.as_str()).collect();
        return format!("      nothing: {}", names.join(", "));
    };
    if step.is_silent() {
        return format!("      nothing: {}", step.reader);
    }
    let place = step.place.as_ref().map(|place| format!(", {}:{}", place.file, place.line));
    let who = format!("{}{} ({})", step.reader, place.unwrap_or_default(), step.looked_at);
    let said = step.said.as_ref().map(said);
    match (said, &step.why, step.decided) {
        (Some(said), _, true) => format!("    > {who}: {said}"),
        (Some(said), Some(why), _) => format!("      {who}: would say {said}, but {why}"),
        (Some(said), None, _) => format!("      {who}: would say {said}"),
        (None, why, _) => format!("      {who}: {}", why.as_deref().unwrap_or_default()),
    }
}

fn said(said: &Said) -> String {
    match said {
        Said::Reason { reason, source, .. } => format!("{reason}, by {source}"),
        Said::Hint(at) => at.to_rfc3339(),
    }
}

/// The steps as JSON.
pub fn json(steps: &[Step]) -> Value {
    let step = |step: &Step| {
        json!({
            "about": step.topic.name(), "reader": step.reader, "looked_at": step.looked_at,
            "said": step.said.as_ref().map(said_json), "decided": step.decided, "why": step.why,
            "file": step.place.as_ref().map(|place| &place.file),
            "line": step.place.as_ref().map(|place| place.line),
        })
    };
    steps.iter().map(step).collect()
}

fn said_json(said: &Said) -> Value {
    match said {
        Said::Reason { reason, retryable, source } => {
            json!({ "reason": reason, "retryable": retryable, "source": source })
        }
        Said::Hint(at) => json!({ "retry_at": at.to_rfc3339() }),
    }
}
