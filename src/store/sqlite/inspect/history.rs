//! Jobs, attempts and the bodies that were kept.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use super::Declared;
use super::look::{Look, PartitionRow, later};
use crate::clock::{Now, Timestamp};
use crate::job::{CallId, JobId, JobState};
use crate::store::sqlite::body;
use crate::store::sqlite::instances::from_json;
use crate::store::sqlite::places::{self, UpstreamRow};
use crate::store::sqlite::queries;
use crate::store::sqlite::usage::stored;
use crate::store::views::{Ahead, AttemptView, JobView, Turn, WaitView};
use crate::store::{AttemptFilter, Filter, KeptBody};

/// Jobs that fit the filter, by number, with what they wait for where their upstream is declared.
pub(in crate::store::sqlite) fn jobs(
    conn: &Connection,
    now: Now,
    filter: &Filter,
    declared: &Declared,
) -> rusqlite::Result<Vec<JobView>> {
    let (condition, mut values) = queries::job_filter(filter);
    let most = filter.limit.map_or(-1, stored);
    values.push(most.into());
    let mut query = conn.prepare(&queries::jobs_where(&condition))?;
    let rows = query.query_map(params_from_iter(values), |row| job_row(row, now))?;
    let mut views: Vec<(i64, JobView)> = rows.collect::<rusqlite::Result<_>>()?;
    add_waits(conn, now, declared, &mut views)?;
    add_ahead(conn, &mut views)?;
    Ok(views.into_iter().map(|(_, view)| view).collect())
}

fn add_waits(
    conn: &Connection,
    now: Now,
    declared: &Declared,
    views: &mut [(i64, JobView)],
) -> rusqlite::Result<()> {
    let mut partitions: HashMap<i64, (Option<WaitView>, Option<WaitView>)> = HashMap::new();
    let mut rows: HashMap<String, Option<UpstreamRow>> = HashMap::new();
    for (partition, view) in views.iter_mut().filter(|(_, v)| v.state == JobState::Queued) {
        let Some(upstream) = declared.get(&view.upstream) else { continue };
        if !rows.contains_key(&view.upstream) {
            rows.insert(view.upstream.clone(), places::upstream(conn, &view.upstream)?);
        }
        let row = rows.get(&view.upstream).and_then(Option::as_ref);
        let look = Look::new(conn, now, row, upstream);
        if !partitions.contains_key(partition) {
            let mut query = conn.prepare_cached(queries::PARTITION_ROW)?;
            let mut found = query.query_row([*partition], PartitionRow::read)?;
            found.again = None;
            let held = row.and_then(|row| row.held.as_ref()).or(found.held.as_ref());
            let wait = match held {
                Some(_) => look.partition_wait(&mut look.instances(), &found)?,
                None => look.limits_wait(&mut look.instances(), &found.key, 1)?,
            };
            partitions.insert(*partition, (wait, look.lingering(&found)));
        }
        let (wait, lingers) = partitions.get(partition).cloned().unwrap_or_default();
        let due = now.to_store(view.due_at);
        let own = (due > now.store).then(|| {
            let reason = view.reason.as_deref();
            // By the wall clock no instant is the last one.
            let away = view.due_at >= now.to_wall(Timestamp::MAX);
            let due = if away { Timestamp::MAX } else { due };
            look.scheduled(due, reason, view.detail.as_deref())
        });
        let own = own.or(lingers);
        view.waiting = match wait {
            Some(wait) if wait.turn == Turn::Held => Some(wait),
            wait => later(wait, own),
        };
    }
    Ok(())
}

/// So far the line of a job is counted that is looked at alone, and of each of many.
const LINE_OF_ONE: u64 = 10_000;
const LINE_OF_MANY: u64 = 1_000;

/// Tells where in its partition's line each queued job stands, as far as that is near its head.
fn add_ahead(conn: &Connection, views: &mut [(i64, JobView)]) -> rusqlite::Result<()> {
    let most = if views.len() == 1 { LINE_OF_ONE } else { LINE_OF_MANY };
    let mut lines: HashMap<i64, HashMap<i64, u64>> = HashMap::new();
    for (partition, view) in views.iter_mut().filter(|(_, v)| v.state == JobState::Queued) {
        if !lines.contains_key(partition) {
            let mut query = conn.prepare_cached(queries::LINE)?;
            let rows = query.query_map([*partition, stored(most)], |row| row.get(0))?;
            let line = rows.zip(0..).map(|(id, place)| Ok((id?, place)));
            lines.insert(*partition, line.collect::<rusqlite::Result<_>>()?);
        }
        let place = lines.get(partition).and_then(|line| line.get(&view.id.0)).copied();
        view.ahead = Some(Ahead { jobs: place.unwrap_or(most), more: place.is_none() });
    }
    Ok(())
}

/// Of a running job: the attempt that is under way.
fn under_way(row: &Row<'_>, now: Now) -> rusqlite::Result<Option<String>> {
    let Some(n) = row.get::<_, Option<u32>>("running")? else { return Ok(None) };
    let slot_at = Timestamp::from_nanos(row.get("slot_at")?);
    let pid: u32 = row.get("pid")?;
    let at = now.to_wall(slot_at).to_rfc3339_seconds();
    Ok(Some(format!("attempt {n}, with its slot at {at}, is in the hands of process {pid}")))
}

fn job_row(row: &Row<'_>, now: Now) -> rusqlite::Result<(i64, JobView)> {
    let wall = |nanos: i64| now.to_wall(Timestamp::from_nanos(nanos));
    let at = |nanos: Option<i64>| nanos.map(wall);
    let state: String = row.get("state")?;
    let running = under_way(row, now)?;
    let fields: Option<String> = row.get("fields")?;
    let view = JobView {
        id: JobId(row.get("id")?),
        upstream: row.get("upstream")?,
        load: row.get("load")?,
        method: row.get("method")?,
        url: row.get("url")?,
        state: if running.is_some() {
            JobState::Running
        } else {
            state.parse().unwrap_or(JobState::Queued)
        },
        waiting: None,
        ahead: None,
        columns: from_json(&row.get::<_, String>("columns")?),
        partition: from_json(&row.get::<_, String>("key")?),
        priority: row.get("priority")?,
        due_at: wall(row.get("due_at")?),
        deadline_at: at(row.get("deadline_at")?),
        added_at: wall(row.get("added_at")?),
        ended_at: at(row.get("ended_at")?),
        attempts: row.get("attempts")?,
        failures: row.get("failures")?,
        status: row.get("status")?,
        reason: if running.is_some() { None } else { row.get("reason")? },
        detail: if running.is_some() { running } else { row.get("detail")? },
        limit: row.get("limit_name")?,
        could_go_at: at(row.get("could_go_at")?),
        fields: fields.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    };
    Ok((row.get("partition_id")?, view))
}

pub(in crate::store::sqlite) fn attempts(
    conn: &Connection,
    now: Now,
    filter: &AttemptFilter,
) -> rusqlite::Result<Vec<AttemptView>> {
    let (condition, mut values) = queries::attempt_filter(filter, now);
    values.push(filter.limit.map_or(-1, stored).into());
    let mut query = conn.prepare(&queries::attempts_where(&condition, filter.after.is_some()))?;
    let rows = query.query_map(params_from_iter(values), |row| attempt_row(row, now))?;
    let mut found: Vec<AttemptView> = rows.collect::<rusqlite::Result<_>>()?;
    if filter.after.is_none() {
        found.reverse();
    }
    if filter.bodies {
        let mut query = conn.prepare_cached(queries::BODY)?;
        for attempt in &mut found {
            attempt.body = query.query_row([attempt.call.0], body::read).optional()?;
        }
    }
    Ok(found)
}

fn attempt_row(row: &Row<'_>, now: Now) -> rusqlite::Result<AttemptView> {
    let wall = |nanos: i64| now.to_wall(Timestamp::from_nanos(nanos));
    let at = |nanos: Option<i64>| nanos.map(wall);
    Ok(AttemptView {
        id: row.get("id")?,
        job: JobId(row.get("job_id")?),
        upstream: row.get("upstream")?,
        url: row.get("url")?,
        n: row.get("n")?,
        call: CallId(row.get("call_id")?),
        sent_at: wall(row.get("sent_at")?),
        ended_at: at(row.get("ended_at")?),
        status: row.get("status")?,
        reason: row.get("reason")?,
        source: row.get("source")?,
        limit: row.get("limit_name")?,
        hint_at: at(row.get("hint_at")?),
        detail: row.get("detail")?,
        redirect: row.get("redirect")?,
        body: None,
        connection: row.get("connection")?,
        partition: from_json(&row.get::<_, String>("key")?),
    })
}

/// The bodies that the last attempts of these jobs kept.
pub(in crate::store::sqlite) fn last_bodies(
    conn: &Connection,
    jobs: &[JobId],
) -> rusqlite::Result<BTreeMap<JobId, KeptBody>> {
    let mut query = conn.prepare_cached(queries::LAST_BODY)?;
    let mut bodies = BTreeMap::new();
    for job in jobs {
        if let Some(body) = query.query_row([job.0], body::read).optional()? {
            bodies.insert(*job, body);
        }
    }
    Ok(bodies)
}
