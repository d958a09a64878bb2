//! A word in time: of answers that nobody declared to keep, nothing comes out at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::job::JobState;
use paceline::quota::{KeepBody, Upstream};
use paceline::store::sqlite::SqliteStore;
use paceline::store::{Store as _, StoreError};

/// What is said of calls by `method`, where it is worth a word: who sends something wants to hear that it
/// was taken, who asks for something wants the answer.
pub fn lost(upstream: &Upstream, method: Option<&str>) -> Option<String> {
    let asks = method.unwrap_or(&upstream.request.method) == "GET";
    let kept = !upstream.results.is_empty() || upstream.keep.body == KeepBody::All;
    (asks && !kept).then(|| {
        format!(
            "note: of each answer of {} only status and reason will be there for `results`: name fields under \
             [results] in its quota file, or have answers kept by [keep] body = \"all\"",
            upstream.name
        )
    })
}

/// The same of a run, for as long as none of an upstream's answers has come.
pub async fn lost_in_run(
    store: &SqliteStore,
    declared: BTreeMap<String, Arc<Upstream>>,
    named: &[String],
) -> Result<Vec<String>, StoreError> {
    let mut notes = Vec::new();
    for upstream in declared.into_values() {
        let served = named.is_empty() || named.contains(&upstream.name);
        let Some(note) = lost(&upstream, None).filter(|_| served) else { continue };
        let jobs = store.upstream(upstream).await?.jobs;
        let of = |state| jobs.get(&state).copied().unwrap_or(0);
        if of(JobState::Queued) > 0 && of(JobState::Done) == 0 {
            notes.push(note);
        }
    }
    Ok(notes)
}
