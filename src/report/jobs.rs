//! Jobs, attempts and results as JSON.
//!
//! A job's columns stand beside its own fields. Where a column has the name of such a field, the
//! field wins (but for `url`: what the user called the job by), and the column is found in `columns`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{columns, instant, why};
use crate::store::KeptBody;
use crate::store::views::{AttemptView, JobView};

/// An entry of `jobs --json`.
pub fn job(job: &JobView) -> Map<String, Value> {
    let own = json!({
        "id": job.id, "upstream": job.upstream, "load": job.load, "url": url(job),
        "state": job.state, "waiting": why::waiting(job.waiting.as_ref()),
        "turn": why::turn(job), "ahead": job.ahead.map(|ahead| ahead.jobs),
        "ahead_more": job.ahead.map(|ahead| ahead.more), "method": job.method, "address": job.url,
        "priority": job.priority, "attempts": job.attempts, "failures": job.failures,
        "status": job.status, "reason": job.reason, "detail": job.detail,
        "added_at": instant(Some(job.added_at)), "due_at": instant(Some(job.due_at)),
        "deadline_at": instant(job.deadline_at), "ended_at": instant(job.ended_at),
        "columns": columns(&job.columns),
    });
    let Value::Object(own) = own else { return Map::new() };
    with_columns(own, job, &[])
}

/// What the user called the job by: its column `url`, else the address called.
pub fn url(job: &JobView) -> &str {
    job.columns.get("url").filter(|url| !url.is_empty()).unwrap_or(&job.url)
}

/// The job's columns beside its own fields, but for those that are `reserved`.
fn with_columns(
    mut own: Map<String, Value>,
    job: &JobView,
    reserved: &[&str],
) -> Map<String, Value> {
    for (name, value) in &job.columns {
        if !own.contains_key(name) && !reserved.contains(&name.as_str()) {
            own.insert(name.clone(), Value::from(value.as_str()));
        }
    }
    own
}

/// `show --json`: the job with its attempts.
pub fn shown(shown: &JobView, attempts: &[AttemptView]) -> Value {
    let mut all = job(shown);
    all.insert("fields".to_owned(), shown.fields.clone().into_iter().collect());
    let attempts: Vec<Value> = attempts.iter().map(attempt).collect();
    all.insert("attempts".to_owned(), attempts.into());
    Value::Object(all)
}

/// An attempt of `show --json`.
pub fn attempt(attempt: &AttemptView) -> Value {
    let mut told = json!({
        "n": attempt.n, "sent_at": instant(Some(attempt.sent_at)),
        "ended_at": instant(attempt.ended_at), "status": attempt.status,
        "reason": attempt.reason, "hint_at": instant(attempt.hint_at), "body": null,
        "source": attempt.source, "limit": attempt.limit, "detail": attempt.detail,
        "redirect": attempt.redirect,
    });
    if let (Some(told), Some(body)) = (told.as_object_mut(), &attempt.body) {
        put_body(told, body);
    }
    told
}

/// A body as text, or where it is none as base64 beside it.
fn put_body(into: &mut Map<String, Value>, body: &KeptBody) {
    match std::str::from_utf8(&body.bytes) {
        Ok(text) => into.insert("body".to_owned(), text.into()),
        Err(_) => into.insert("body_base64".to_owned(), STANDARD.encode(&body.bytes).into()),
    };
    if body.cut {
        into.insert("body_cut".to_owned(), true.into());
    }
}

/// An entry of `log --json`.
pub fn logged(attempt: &AttemptView) -> Value {
    json!({
        "job": attempt.job, "upstream": attempt.upstream, "url": attempt.url, "n": attempt.n,
        "sent_at": instant(Some(attempt.sent_at)), "status": attempt.status,
        "reason": attempt.reason, "hint_at": instant(attempt.hint_at),
        "ended_at": instant(attempt.ended_at), "limit": attempt.limit, "detail": attempt.detail,
        "redirect": attempt.redirect,
    })
}

/// The fields that every result has, before the extracted ones and the job's columns.
pub const RESULT_FIELDS: [&str; 8] =
    ["id", "url", "state", "status", "reason", "finished_at", "load", "upstream"];

/// Names that a result has besides, or may have: a row's column of such a name is in `columns` alone.
pub const RESULT_RESERVED: [&str; 7] =
    ["detail", "attempts", "cursor", "columns", "body", "body_base64", "body_cut"];

/// A result; `cursor` is what `results --after` goes on from.
pub fn result(job: &JobView, body: Option<&KeptBody>, cursor: &str) -> Map<String, Value> {
    let own = json!({
        "id": job.id, "url": url(job), "state": job.state, "status": job.status,
        "reason": job.reason, "finished_at": instant(job.ended_at), "load": job.load,
        "upstream": job.upstream, "detail": job.detail, "attempts": job.attempts,
        "cursor": cursor, "columns": columns(&job.columns),
    });
    let Value::Object(mut all) = own else { return Map::new() };
    if let Some(body) = body {
        put_body(&mut all, body);
    }
    for (name, value) in &job.fields {
        all.entry(name.clone()).or_insert_with(|| value.clone());
    }
    with_columns(all, job, &RESULT_RESERVED)
}
