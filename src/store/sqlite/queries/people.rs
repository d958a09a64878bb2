//! Statements of what people do and look at.

use rusqlite::types::Value;

use crate::clock::Now;
use crate::job::JobState;
use crate::store::{AttemptFilter, Filter};

// ---- acts

/// A filter's condition on `job`, with its values in order.
pub(in crate::store::sqlite) fn job_filter(filter: &Filter) -> (String, Vec<Value>) {
    let mut parts = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut any_of = |column: &str, list: Vec<Value>| {
        if !list.is_empty() {
            let marks = vec!["?"; list.len()].join(", ");
            parts.push(format!("{column} IN ({marks})"));
            values.extend(list);
        }
    };
    let text = |text: &String| Value::from(text.clone());
    any_of("job.id", filter.ids.iter().map(|id| Value::from(id.0)).collect());
    any_of("job.reason", filter.reason.iter().map(text).collect());
    if !filter.states.is_empty() {
        parts.push(states(&filter.states));
    }
    if let Some(url) = &filter.url {
        parts.push("(job.url = ? OR job.columns ->> '$.url' = ?)".to_owned());
        values.extend([text(url), text(url)]);
    }
    if let Some(load) = &filter.load {
        parts.push("job.load_id = (SELECT id FROM load WHERE name = ?)".to_owned());
        values.push(text(load));
    }
    if !filter.upstreams.is_empty() {
        let marks = vec!["?"; filter.upstreams.len()].join(", ");
        parts.push(format!("job.upstream_id IN (SELECT id FROM upstream WHERE name IN ({marks}))"));
        values.extend(filter.upstreams.iter().map(text));
    }
    for (name, value) in &filter.columns {
        parts.push("job.columns ->> ? = ?".to_owned());
        values.push(Value::from(column_path(name)));
        values.push(text(value));
    }
    if let Some(since) = filter.since {
        parts.push("max(job.added_at, coalesce(job.ended_at, 0)) >= ?".to_owned());
        values.push(Value::from(since.as_nanos()));
    }
    if let Some(before) = filter.ended_before {
        parts.push("job.ended_at <= ?".to_owned());
        values.push(Value::from(before.as_nanos()));
    }
    if let Some(after) = filter.after {
        parts.push("job.id > ?".to_owned());
        values.push(Value::from(after.0));
    }
    (parts.join(" AND "), values)
}

/// A running job's row says queued.
fn states(states: &[JobState]) -> String {
    let one = |state: &JobState| match state {
        JobState::Queued => format!("(job.state = 'queued' AND {NOT_RUNNING})"),
        JobState::Running => "job.id IN (SELECT job_id FROM running)".to_owned(),
        ended => format!("job.state = '{ended}'"),
    };
    let alternatives: Vec<String> = states.iter().map(one).collect();
    format!("({})", alternatives.join(" OR "))
}

const NOT_RUNNING: &str = "NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)";

pub(in crate::store::sqlite) fn job_count(condition: &str) -> String {
    format!("SELECT count(*) FROM job WHERE {condition} AND {NOT_RUNNING}")
}

pub(in crate::store::sqlite) fn job_partitions(condition: &str) -> String {
    format!("SELECT DISTINCT partition_id FROM job WHERE {condition} AND {NOT_RUNNING}")
}

/// `act`, on the jobs that fit the condition and are not running; at most the last value's number.
pub(in crate::store::sqlite) fn act_where(act: &str, condition: &str) -> String {
    format!(
        "{act} WHERE id IN (SELECT id FROM job WHERE {condition} AND {NOT_RUNNING} \
         ORDER BY id LIMIT ?)"
    )
}

pub(in crate::store::sqlite) fn act_end(state: &str, reason: &str) -> String {
    format!(
        "UPDATE job SET state = '{state}', ended_at = ?, could_go_at = NULL, reason = '{reason}'"
    )
}

/// At most the last value's number.
pub(in crate::store::sqlite) fn jobs_to_queue(condition: &str) -> String {
    format!(
        "SELECT id, dedupe, partition_id FROM job WHERE {condition} AND {NOT_RUNNING} ORDER BY id LIMIT ?"
    )
}

/// A deadline that has passed is dropped.
pub(in crate::store::sqlite) const JOB_QUEUE_AGAIN: &str = "UPDATE job SET state = 'queued', ended_at = NULL,
    due_at = :now, failures = 0, refused_hard = 0, fields = NULL, limit_name = NULL, could_go_at = NULL,
    deadline_at = CASE WHEN deadline_at <= :now THEN NULL ELSE deadline_at END WHERE id = :id";

/// Who is sent again begins at its own address.
pub(in crate::store::sqlite) const REDIRECT_FORGET: &str = "DELETE FROM redirect WHERE job_id = ?1";

/// What nobody waits for any more is sent by nobody: it was its owner's.
pub(in crate::store::sqlite) const NOT_OWNED: &str =
    "job.id NOT IN (SELECT job_id FROM owned WHERE job_id = job.id)";

pub(in crate::store::sqlite) const PRUNE: &str = "DELETE FROM job";

pub(in crate::store::sqlite) fn act_set(
    priority: Option<u8>,
    deadline_at: Option<Option<i64>>,
    due_at: Option<i64>,
) -> (String, Vec<Value>) {
    let mut parts = vec!["priority = priority".to_owned()];
    let mut values = Vec::new();
    if let Some(priority) = priority {
        parts.push("priority = ?".to_owned());
        values.push(Value::from(i64::from(priority)));
    }
    if let Some(deadline) = deadline_at {
        parts.push("deadline_at = ?".to_owned());
        values.push(deadline.map_or(Value::Null, Value::from));
    }
    if let Some(due) = due_at {
        parts.push("due_at = ?".to_owned());
        values.push(Value::from(due));
    }
    (format!("UPDATE job SET {}", parts.join(", ")), values)
}

// ---- inspection

/// Queued jobs of held partitions, less those that run: their rows say queued too.
pub(in crate::store::sqlite) const HELD_JOBS: &str = "SELECT
    (SELECT count(*) FROM partition
     JOIN job ON job.partition_id = partition.id AND job.state = 'queued'
     WHERE partition.upstream_id = ?1 AND partition.place = 'held' AND line = 0)
    - (SELECT count(*) FROM partition JOIN call ON call.partition_id = partition.id
       JOIN running ON running.call_id = call.id
       WHERE partition.upstream_id = ?1 AND partition.place = 'held' AND line = 0)";
pub(in crate::store::sqlite) const TALLY: &str = "SELECT state, sum(jobs) FROM tally
    WHERE :upstream IS NULL OR upstream_id = (SELECT id FROM upstream WHERE name = :upstream)
    GROUP BY state";
pub(in crate::store::sqlite) const TALLY_RUNNING: &str = "SELECT count(*) FROM running
    WHERE :upstream IS NULL OR EXISTS (SELECT 1 FROM job JOIN upstream ON upstream.id = upstream_id
                                       WHERE job.id = running.job_id AND upstream.name = :upstream)";
pub(in crate::store::sqlite) const LOADS: &str =
    "SELECT load.name, load.added_at, tally.state, tally.jobs
    FROM load JOIN tally ON tally.load_id = load.id WHERE tally.jobs > 0
    ORDER BY load.added_at, load.id";
pub(in crate::store::sqlite) const INSTANCE_KEYS: &str = "SELECT key FROM limit_instance
    WHERE upstream_id = :upstream AND limit_name = :limit ORDER BY key";
pub(in crate::store::sqlite) const PARTITIONS_BUSY: &str =
    "SELECT id, key, line, held_at, held_reason, held_detail, held_until, wake_at,
    (SELECT reason FROM job WHERE partition_id = partition.id AND state = 'queued'
     ORDER BY priority DESC, due_at LIMIT 1) AS again,
    (SELECT detail FROM job WHERE partition_id = partition.id AND state = 'queued'
     ORDER BY priority DESC, due_at LIMIT 1) AS again_detail
    FROM partition WHERE upstream_id = ?1 AND ((place = 'held' AND line = 0) OR EXISTS
        (SELECT 1 FROM job WHERE partition_id = partition.id AND state = 'queued'))
    ORDER BY key";
pub(in crate::store::sqlite) const PARTITION_ROW: &str =
    "SELECT id, key, line, held_at, held_reason, held_detail, held_until, wake_at,
    NULL AS again, NULL AS again_detail FROM partition WHERE id = ?1";
pub(in crate::store::sqlite) const PARTITION_IS_LONE: &str =
    "SELECT count(*) = 1 FROM (SELECT 1 FROM partition WHERE upstream_id = ?1 LIMIT 2)";
/// A partition's first jobs, in the order in which they go once they are due.
pub(in crate::store::sqlite) const LINE: &str = "SELECT id FROM job
    WHERE partition_id = ?1 AND state = 'queued'
      AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
    ORDER BY priority DESC, due_at, id LIMIT ?2";
/// Less those that run: their rows say queued too.
pub(in crate::store::sqlite) const PARTITION_JOBS: &str = "SELECT
    (SELECT count(*) FROM job WHERE partition_id = ?1 AND state = 'queued')
    - (SELECT count(*) FROM call JOIN running ON running.call_id = call.id
       WHERE call.partition_id = ?1)";
/// The latest answers that say whether a budget was used up, in the order in which they came.
pub(in crate::store::sqlite) const ANSWERS: &str = "SELECT latest.sent_at, latest.ended_at,
        latest.reason, latest.limit_name, latest.left_units, partition.key
    FROM (SELECT * FROM attempt ORDER BY id DESC LIMIT :latest) AS latest
    JOIN job ON job.id = latest.job_id JOIN partition ON partition.id = job.partition_id
    JOIN upstream ON upstream.id = job.upstream_id
    WHERE upstream.name = :upstream AND latest.redirect IS NULL
      AND latest.reason IN ('ok', 'accepted_pending', 'quota_exhausted')
    ORDER BY latest.sent_at, latest.id";
pub(in crate::store::sqlite) const BODY: &str =
    "SELECT bytes, packed, cut FROM body WHERE call_id = ?1";
/// The body of the last attempt alone: an earlier one's is no result.
pub(in crate::store::sqlite) const LAST_BODY: &str = "SELECT body.bytes, body.packed, body.cut
    FROM body WHERE call_id = (SELECT call_id FROM attempt WHERE job_id = ?1 ORDER BY n DESC LIMIT 1)";

pub(in crate::store::sqlite) fn jobs_where(condition: &str) -> String {
    format!(
        "SELECT job.*, upstream.name AS upstream, load.name AS load, shape.method, partition.key, \
         (SELECT n FROM running WHERE job_id = job.id) AS running, \
         (SELECT slot_at FROM running JOIN call ON call.id = call_id \
          WHERE job_id = job.id) AS slot_at, \
         (SELECT pid FROM running JOIN call ON call.id = call_id \
          JOIN runner ON runner.id = runner_id WHERE job_id = job.id) AS pid \
         FROM job JOIN upstream ON upstream.id = job.upstream_id JOIN load ON load.id = job.load_id \
         JOIN shape ON shape.id = job.shape_id JOIN partition ON partition.id = job.partition_id \
         WHERE {condition} ORDER BY job.id LIMIT ?"
    )
}

/// A log's condition on `attempt` joined with `job` and `upstream`, with its values in order.
pub(in crate::store::sqlite) fn attempt_filter(
    filter: &AttemptFilter,
    now: Now,
) -> (String, Vec<Value>) {
    let mut parts = vec!["1".to_owned()];
    let mut values = Vec::new();
    if let Some(job) = filter.job {
        parts.push("attempt.job_id = ?".to_owned());
        values.push(Value::from(job.0));
    }
    if let Some(url) = &filter.url {
        parts.push("(job.url = ? OR job.columns ->> '$.url' = ?)".to_owned());
        values.extend([Value::from(url.clone()), Value::from(url.clone())]);
    }
    if let Some(load) = &filter.load {
        parts.push("job.load_id = (SELECT id FROM load WHERE name = ?)".to_owned());
        values.push(Value::from(load.clone()));
    }
    if let Some(reason) = &filter.reason {
        parts.push("attempt.reason = ?".to_owned());
        values.push(Value::from(reason.clone()));
    }
    for (name, value) in &filter.columns {
        parts.push("job.columns ->> ? = ?".to_owned());
        values.extend([Value::from(column_path(name)), Value::from(value.clone())]);
    }
    if !filter.upstreams.is_empty() {
        let marks = vec!["?"; filter.upstreams.len()].join(", ");
        parts.push(format!("upstream.name IN ({marks})"));
        values.extend(filter.upstreams.iter().map(|name| Value::from(name.clone())));
    }
    if let Some(since) = filter.since {
        parts.push("attempt.sent_at >= ?".to_owned());
        values.push(Value::from(now.to_store(since).as_nanos()));
    }
    if let Some(after) = filter.after {
        parts.push("attempt.id > ?".to_owned());
        values.push(Value::from(after));
    }
    (parts.join(" AND "), values)
}

/// The latest attempts first, or the first.
pub(in crate::store::sqlite) fn attempts_where(condition: &str, first: bool) -> String {
    let order = if first { "ASC" } else { "DESC" };
    format!(
        "SELECT attempt.*, coalesce(nullif(job.columns ->> '$.url', ''), job.url) AS url, \
         upstream.name AS upstream, partition.key FROM attempt \
         JOIN job ON job.id = attempt.job_id JOIN upstream ON upstream.id = job.upstream_id \
         JOIN partition ON partition.id = job.partition_id \
         WHERE {condition} ORDER BY attempt.id {order} LIMIT ?"
    )
}

pub(in crate::store::sqlite) fn running_where(condition: &str) -> String {
    format!("SELECT count(*) FROM running JOIN job ON job.id = running.job_id WHERE {condition}")
}

/// After the condition's values: the cursor's two, and the number. Unless jobs are `named`, each page would
/// sort all that is left by any other index.
pub(in crate::store::sqlite) fn ended_where(condition: &str, named: bool) -> String {
    let by = if named { "" } else { "INDEXED BY job_ended" };
    format!(
        "SELECT job.id, job.ended_at FROM job {by} \
         WHERE {condition} AND job.ended_at IS NOT NULL AND (job.ended_at, job.id) > (?, ?) \
         ORDER BY job.ended_at, job.id LIMIT ?"
    )
}

/// Before the condition's values: the column's path. A job without that column stands for itself.
pub(in crate::store::sqlite) fn ended_latest_where(condition: &str) -> String {
    format!(
        "SELECT id, ended_at FROM (SELECT job.id, job.ended_at, row_number() OVER \
         (PARTITION BY coalesce(job.columns ->> ?, job.id) ORDER BY job.ended_at DESC, job.id DESC) \
         AS place FROM job WHERE {condition} AND job.ended_at IS NOT NULL) \
         WHERE place = 1 AND (ended_at, id) > (?, ?) ORDER BY ended_at, id LIMIT ?"
    )
}

/// Answered jobs whose answer was not kept; after the condition's values: the cursor's two, and whether a
/// cut answer will do.
pub(in crate::store::sqlite) fn bodiless_where(condition: &str) -> String {
    format!(
        "SELECT count(*) FROM job INDEXED BY job_ended \
         WHERE {condition} AND job.ended_at IS NOT NULL AND (job.ended_at, job.id) > (?, ?) \
         AND EXISTS (SELECT 1 FROM attempt WHERE job_id = job.id AND n = job.attempts \
                     AND status IS NOT NULL \
                     AND NOT EXISTS (SELECT 1 FROM body \
                                     WHERE body.call_id = attempt.call_id AND cut <= ?))"
    )
}

/// The names in `object` (`columns` or `fields`) of ended jobs; sorted here, all that there are would be.
pub(in crate::store::sqlite) fn result_names_where(object: &str, condition: &str) -> String {
    format!(
        "SELECT DISTINCT names.key FROM job, json_each(job.{object}) AS names \
         WHERE {condition} AND job.ended_at IS NOT NULL"
    )
}

/// A column's path in a row's JSON.
pub(in crate::store::sqlite) fn column_path(name: &str) -> String {
    format!("$.\"{}\"", name.replace('"', "\\\""))
}

// ---- forecasts

/// One row a partition that has queued jobs: only the index of what is next is read.
pub(in crate::store::sqlite) const BACKLOG: &str = "SELECT partition.id, key, place, gate_id,
        count(*) AS jobs, min(due_at) AS first_due, max(due_at) AS last_due
    FROM partition CROSS JOIN job ON job.partition_id = partition.id AND job.state = 'queued'
    WHERE partition.upstream_id = ?1 GROUP BY partition.id";
pub(in crate::store::sqlite) const BACKLOG_OTHERS: &str = "SELECT 1 FROM tally
    WHERE upstream_id = :upstream AND state = 'queued' AND jobs > 0
      AND load_id <> coalesce((SELECT id FROM load WHERE name = :load), 0)";
/// Up to the last job of the load: those before it, of whichever load, go first.
pub(in crate::store::sqlite) const BACKLOG_LOAD: &str = "SELECT partition_id, (SELECT count(*) FROM job AS before
        WHERE before.partition_id = mine.partition_id AND before.state = 'queued' AND before.id <= mine.last)
    FROM (SELECT partition_id, max(job.id) AS last FROM job JOIN load ON load.id = job.load_id
          WHERE load.name = :load AND job.upstream_id = :upstream AND job.state = 'queued'
          GROUP BY partition_id) AS mine";
pub(in crate::store::sqlite) const BACKLOG_COSTS: &str =
    "SELECT partition_id, sum(CAST(columns ->> :path AS INTEGER)) FROM job
    WHERE upstream_id = :upstream AND state = 'queued' GROUP BY partition_id";

// ---- tidying

pub(in crate::store::sqlite) const WINDOWS_FORGET: &str = "DELETE FROM budget_window
    WHERE window_start < :windows AND coalesce(last_at, window_start) < :windows";
/// A window that is still open, and those just before it, keep their count.
pub(in crate::store::sqlite) const INSTANCES_FORGET: &str = "DELETE FROM limit_instance
    WHERE probe_call IS NULL AND refusals = 0 AND (tat IS NULL OR tat < :idle)
      AND (blocked_until IS NULL OR blocked_until < :idle)
      AND (stands_since IS NULL OR stands_since < :idle)
      AND (reported_until IS NULL OR reported_until < :idle) AND (ask_at IS NULL OR ask_at < :idle)
      AND (slowed_at IS NULL OR slowed_at < :idle)
      AND NOT EXISTS (SELECT 1 FROM partition WHERE waits_on = limit_instance.id)
      AND NOT EXISTS (SELECT 1 FROM partition WHERE gate_id = limit_instance.id)
      AND NOT EXISTS (SELECT 1 FROM in_flight WHERE instance_id = limit_instance.id)
      AND NOT EXISTS (SELECT 1 FROM rolling_entry
                      WHERE instance_id = limit_instance.id AND at >= :windows)
      AND NOT EXISTS (SELECT 1 FROM budget_window
                      WHERE instance_id = limit_instance.id AND window_start >= :windows)";
