//! What holds a job or a partition back.

use serde_json::{Value, json};

use super::{columns, instant};
use crate::clock::Timestamp;
use crate::job::{Columns, JobState};
use crate::reading::Reason;
use crate::store::views::{
    HoldView, JobView, MISSING_SECRET, NO_TOKEN, PartitionView, ResetsView, Turn, UpstreamView,
    WaitView,
};

/// `waiting` of a job: null where nothing holds it back.
pub fn waiting(wait: Option<&WaitView>) -> Value {
    let Some(wait) = wait else { return Value::Null };
    json!({
        "limit": wait.limit, "until": instant(wait.until), "reason": wait.reason,
        "detail": wait.detail, "turn": wait.turn.name(),
    })
}

/// `why JOB --json`.
///
/// A job that is not held back by anything tells its last reason; one that expired, what would have
/// let it go and when. `turn_at`: about when the turn comes of one that others go before.
pub fn job(job: &JobView, turn_at: Option<Timestamp>) -> Value {
    let wait = job.waiting.as_ref();
    json!({
        "id": job.id, "upstream": job.upstream, "state": job.state, "turn": turn(job),
        "limit": wait.map_or_else(|| job.limit.clone(), |wait| wait.limit.clone()),
        "until": instant(wait.map_or(job.could_go_at, |wait| wait.until)),
        "reason": wait.map(|wait| wait.reason.clone()).or_else(|| job.reason.clone()),
        "detail": wait.map(|wait| wait.detail.clone()).or_else(|| job.detail.clone()),
        "key": columns(&job.partition),
        "ahead": job.ahead.map(|ahead| ahead.jobs), "ahead_more": job.ahead.map(|ahead| ahead.more),
        "turn_at": instant(turn_at),
    })
}

/// A queued job's turn; `None`: it is not queued.
pub fn turn(job: &JobView) -> Option<&'static str> {
    let queued = job.state == JobState::Queued;
    queued.then(|| job.waiting.as_ref().map_or(Turn::Ready, |wait| wait.turn).name())
}

/// An entry of `why UPSTREAM --json`, and of `partitions` in `status --json`.
pub fn partition(partition: &PartitionView) -> Value {
    let wait = &partition.wait;
    json!({
        "key": columns(&partition.key), "state": state(wait), "turn": wait.turn.name(),
        "limit": wait.limit, "until": instant(wait.until), "reason": wait.reason,
        "detail": wait.detail, "jobs": partition.jobs,
    })
}

/// As [`partition`], in `why UPSTREAM --json`: with what answers show of the reset of its limit, where
/// nobody states that.
pub fn partition_and_resets(shown: &PartitionView, seen: &[ResetsView]) -> Value {
    let own = |one: &&ResetsView| {
        Some(&one.limit) == shown.wait.limit.as_ref()
            && one.key.iter().all(|(name, value)| shown.key.get(name) == Some(value))
    };
    let mut told = partition(shown);
    if let (Some(seen), Some(told)) = (seen.iter().find(own), told.as_object_mut()) {
        let span = |(from, to): (chrono::NaiveTime, chrono::NaiveTime)| {
            json!([from.format("%H:%M").to_string(), to.format("%H:%M").to_string()])
        };
        let spans: Vec<Value> = seen.allowed.spans().into_iter().map(span).collect();
        told.insert("resets_between".to_owned(), spans.into());
    }
    told
}

/// `held` where a person is needed, else `blocked`.
pub fn state(wait: &WaitView) -> &'static str {
    if wait.turn == Turn::Held { "held" } else { "blocked" }
}

/// A key for people: `siteUrl=https://www.example.com/`, or nothing.
pub fn key(key: &Columns) -> String {
    let pairs: Vec<_> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

/// A key as flags of a command: ` --key siteUrl=https://www.example.com/`, or nothing.
fn key_flags(key: &Columns) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=-_./:@".contains(c);
    let quoted = |text: String| match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    let flag = |(name, value)| format!(" --key {}", quoted(format!("{name}={value}")));
    key.iter().map(flag).collect()
}

/// A hold: what of, why, and the way out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<'v> {
    /// The partition's columns; none where all of the upstream is held.
    pub key: Columns,
    /// Why, in one word.
    pub reason: &'v str,
    /// Why, in a sentence.
    pub detail: &'v str,
    /// Until when the upstream wants to be left alone, where that is why.
    pub until: Option<Timestamp>,
    /// What a person does about it.
    pub way_out: String,
}

/// What of an upstream is held. Where all of it is, its partitions are not told one by one.
pub fn held(view: &UpstreamView) -> Vec<Held<'_>> {
    if let Some(HoldView { reason, detail, .. }) = &view.held {
        let (key, until) = (Columns::new(), None);
        let way_out = way_out(&view.name, &key, reason, detail);
        return vec![Held { key, reason, detail, until, way_out }];
    }
    let held = view.partitions.iter().filter(|partition| partition.wait.turn == Turn::Held);
    held.map(|partition| {
        let (key, WaitView { reason, detail, until, .. }) = (&partition.key, &partition.wait);
        let way_out = match until {
            Some(_) => when_over(&view.name, key),
            None => way_out(&view.name, key, reason, detail),
        };
        Held { key: key.clone(), reason, detail, until: *until, way_out }
    })
    .collect()
}

/// What a person does about a hold. One for a missing secret or token ends by itself once a run has that.
///
/// ```
/// use paceline::job::Columns;
/// use paceline::report::why::way_out;
///
/// let told = way_out("shop", &Columns::new(), "missing_secret", "`${env:SHOP_KEY}` is not set");
/// assert_eq!(told, "set SHOP_KEY (as in `export SHOP_KEY=...`) and run again: it goes on by itself");
/// let told = way_out("shop", &Columns::new(), "misconfigured", "no such key");
/// assert_eq!(
///     told,
///     "when that is mended: `paceline resume shop`; if it is some rows that are wrong: `paceline cancel \
///      --upstream shop --where COLUMN=VALUE --yes` first, or resume and let them fail: others go before them"
/// );
/// ```
pub fn way_out(upstream: &str, key: &Columns, reason: &str, detail: &str) -> String {
    if !matches!(reason, MISSING_SECRET | NO_TOKEN) {
        let resume = format!("when that is mended: `paceline resume {upstream}{}`", key_flags(key));
        return match is_hard(reason) {
            true => format!(
                "{resume}; if it is some rows that are wrong: `paceline cancel --upstream {upstream} \
                 --where COLUMN=VALUE --yes` first, or resume and let them fail: others go before them"
            ),
            false => resume,
        };
    }
    match variable(detail) {
        Some(name) => {
            format!("set {name} (as in `export {name}=...`) and run again: it goes on by itself")
        }
        None => "once that is mended, run again: it goes on by itself".to_owned(),
    }
}

/// Whether what holds came as a refusal of single jobs, which these may have brought about themselves.
fn is_hard(reason: &str) -> bool {
    let reason = reason.parse::<Reason>();
    matches!(reason, Ok(Reason::Misconfigured | Reason::Forbidden | Reason::AuthExpired))
}

/// What a person does about an upstream that wants to be left alone for long.
pub fn when_over(upstream: &str, key: &Columns) -> String {
    format!(
        "when that is over: `paceline resume {upstream}{}` (sooner, it sends one job at once, and the \
         rest once that got through)",
        key_flags(key)
    )
}

/// The variable that a text says is missing.
fn variable(detail: &str) -> Option<&str> {
    let (_, after) = detail.split_once("`${env:")?;
    let (name, after) = after.split_once('}')?;
    after.starts_with("` is not set").then_some(name)
}
