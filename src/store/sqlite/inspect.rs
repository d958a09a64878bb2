//! Consistent reads for people and tools.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, named_params, params_from_iter};

use super::instances::{Instances, from_json};
use super::places::{self, Head, UpstreamRow};
use super::{queries, runners::RunnerLocks};
use crate::clock::{Now, Timestamp};
use crate::job::{CallId, Columns, JobId, JobState};
use crate::quota::decide::{Ask, Decision, Usage, decide};
use crate::quota::rolling::{Entries, Rolling};
use crate::quota::{LimitRule, Upstream};
use crate::store::views::{
    AttemptView, HoldView, JobView, LimitView, LoadView, PartitionView, RunnerView, SHOWN, Tally,
    Turn, UpstreamView, WaitView,
};
use crate::store::{AttemptFilter, Filter, KeptBody, Remaining, RunnerId};

/// Upstreams by name, for telling what binds their jobs.
pub(super) type Declared = BTreeMap<String, Arc<Upstream>>;

pub(super) fn upstream_names(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = conn.prepare_cached(queries::UPSTREAM_NAMES)?;
    query.query_map([], |row| row.get(0))?.collect()
}

pub(super) fn tally(conn: &Connection, upstream: Option<&str>) -> rusqlite::Result<Tally> {
    let mut query = conn.prepare_cached(queries::TALLY)?;
    let rows = query.query_map(named_params! { ":upstream": upstream }, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let mut tally = Tally::new();
    for row in rows {
        let (state, jobs) = row?;
        if let Ok(state) = state.parse() {
            tally.insert(state, u64::try_from(jobs).unwrap_or(0));
        }
    }
    let mut query = conn.prepare_cached(queries::TALLY_RUNNING)?;
    let running: i64 =
        query.query_row(named_params! { ":upstream": upstream }, |row| row.get(0))?;
    let running = u64::try_from(running).unwrap_or(0);
    // A running job's row says queued until it ends.
    let queued = tally.entry(JobState::Queued).or_default();
    *queued = queued.saturating_sub(running);
    tally.insert(JobState::Running, running);
    for state in JobState::ALL {
        tally.entry(state).or_default();
    }
    Ok(tally)
}

pub(super) fn remaining(conn: &Connection, name: &str) -> rusqlite::Result<Remaining> {
    let Some(row) = places::upstream(conn, name)? else { return Ok(Remaining::default()) };
    let queued = tally(conn, Some(name))?.get(&JobState::Queued).copied().unwrap_or(0);
    if row.held.is_some() {
        return Ok(Remaining { waiting: 0, held: queued });
    }
    let mut query = conn.prepare_cached(queries::HELD_JOBS)?;
    let held: i64 = query.query_row([row.id], |row| row.get(0))?;
    let held = u64::try_from(held).unwrap_or(0);
    Ok(Remaining { waiting: queued.saturating_sub(held), held })
}

pub(super) fn loads(conn: &Connection, now: Now) -> rusqlite::Result<Vec<LoadView>> {
    let mut query = conn.prepare_cached(queries::LOADS)?;
    let rows = query.query_map([], |row| {
        let at = Timestamp::from_nanos(row.get(1)?);
        Ok((row.get::<_, String>(0)?, at, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
    })?;
    let mut loads: Vec<LoadView> = Vec::new();
    for row in rows {
        let (name, added_at, state, jobs) = row?;
        if loads.last().is_none_or(|last| last.name != name) {
            let added_at = now.to_wall(added_at);
            loads.push(LoadView { name, added_at, jobs: Tally::new() });
        }
        if let (Some(load), Ok(state)) = (loads.last_mut(), state.parse()) {
            *load.jobs.entry(state).or_default() += u64::try_from(jobs).unwrap_or(0);
        }
    }
    Ok(loads)
}

pub(super) fn is_load(conn: &Connection, name: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached(queries::LOAD_NAMED)?.exists([name])
}

pub(super) fn runners(conn: &Connection, locks: &RunnerLocks) -> rusqlite::Result<Vec<RunnerView>> {
    let mut query = conn.prepare_cached(queries::RUNNERS_SERVING)?;
    let rows = query.query_map([], |row| {
        let upstreams: String = row.get(2)?;
        let upstreams = serde_json::from_str(&upstreams).unwrap_or_default();
        Ok((RunnerId(row.get(0)?), RunnerView { pid: row.get(1)?, upstreams }))
    })?;
    let mut alive = Vec::new();
    for row in rows {
        let (id, view) = row?;
        if locks.is_alive(id) {
            alive.push(view);
        }
    }
    Ok(alive)
}

/// One upstream as it stands.
pub(super) fn upstream(
    conn: &Connection,
    now: Now,
    declared: &Upstream,
) -> rusqlite::Result<UpstreamView> {
    let row = places::upstream(conn, &declared.name)?;
    let mut view = UpstreamView {
        name: declared.name.clone(),
        jobs: tally(conn, Some(&declared.name))?,
        held: None,
        limits: Vec::new(),
        partitions: Vec::new(),
        omitted: 0,
        next_at: None,
    };
    let look = Look::new(conn, now, row.as_ref(), declared);
    view.held = row.as_ref().and_then(|row| row.held.as_ref()).map(|held| look.hold_view(held));
    look.limits(&mut view)?;
    if row.is_some() {
        look.partitions(&mut view)?;
    }
    Ok(view)
}

/// Looking at one upstream.
struct Look<'t> {
    conn: &'t Connection,
    now: Now,
    row: Option<&'t UpstreamRow>,
    declared: &'t Upstream,
}

impl<'t> Look<'t> {
    fn new(
        conn: &'t Connection,
        now: Now,
        row: Option<&'t UpstreamRow>,
        declared: &'t Upstream,
    ) -> Self {
        Look { conn, now, row, declared }
    }

    fn id(&self) -> i64 {
        self.row.map_or(0, |row| row.id)
    }

    fn instances(&self) -> Instances<'t> {
        Instances::new(self.conn, self.now, self.id(), self.declared)
    }

    fn hold_view(&self, held: &places::HeldRow) -> HoldView {
        HoldView {
            at: self.now.to_wall(held.at),
            reason: held.reason.clone(),
            detail: held.detail.clone(),
        }
    }

    fn limits(&self, view: &mut UpstreamView) -> rusqlite::Result<()> {
        let mut instances = self.instances();
        for (position, limit) in self.declared.limits.iter().enumerate() {
            let keys = match limit.key.is_empty() {
                true => vec![Columns::new()],
                false => self.keys(&limit.name, &mut view.omitted)?,
            };
            for key in keys {
                let index = instances.of_limit(position, &key)?;
                let Some(ask) = instances.ask(position, index, &key, 1) else { continue };
                let block = instances.get(index).map(|instance| instance.block.clone());
                let mut shown = self.limit_view(&key, &ask);
                if let Some(block) = block.filter(|b| b.until.is_some_and(|u| u > self.now.store)) {
                    shown.blocked_until = block.until.map(|until| self.now.to_wall(until));
                    shown.reason = block.reason;
                    shown.detail = block.detail;
                }
                view.limits.push(shown);
            }
        }
        Ok(())
    }

    fn keys(&self, limit: &str, omitted: &mut u64) -> rusqlite::Result<Vec<Columns>> {
        let mut query = self.conn.prepare_cached(queries::INSTANCE_KEYS)?;
        let params = named_params! { ":upstream": self.id(), ":limit": limit };
        let rows = query.query_map(params, |row| row.get::<_, String>(0))?;
        let mut keys = Vec::new();
        for key in rows {
            match keys.len() < SHOWN {
                true => keys.push(from_json(&key?)),
                false => *omitted += 1,
            }
        }
        Ok(keys)
    }

    fn limit_view(&self, key: &Columns, ask: &Ask<'_>) -> LimitView {
        let next = match decide(std::slice::from_ref(ask), self.now, self.now.store) {
            Decision::Admit { slot } => Some(slot),
            Decision::Wait { until, .. } => Some(until),
            Decision::Busy { .. } | Decision::Never { .. } => None,
        };
        let mut view = LimitView {
            name: ask.limit.unwrap_or_default().to_owned(),
            kind: "",
            key: key.clone(),
            spent: None,
            amount: 0,
            remaining: None,
            resets_at: None,
            zone: None,
            next_at: next.map(|at| self.now.to_wall(at)),
            blocked_until: None,
            reason: None,
            detail: None,
            effective_rate: None,
        };
        if let Some((rule, usage)) = ask.rule {
            self.fill(&mut view, rule, usage);
        }
        view
    }

    fn fill(&self, view: &mut LimitView, rule: &LimitRule, usage: &Usage) {
        view.kind = rule.kind();
        match (rule, usage) {
            (LimitRule::Rate(rate), _) => {
                view.amount = rate.amount;
                view.effective_rate = Some(rate.plan().per_second());
            }
            (LimitRule::Budget(budget), Usage::Budget(windows)) => {
                let window = budget.calendar.window(self.now.wall);
                let count = windows.0.get(&window.start).copied().unwrap_or_default();
                view.amount = budget.amount;
                view.spent = Some(count.spent);
                view.remaining = count.remaining;
                view.resets_at = Some(window.next_reset);
                view.zone = Some(budget.calendar.zone);
            }
            (LimitRule::Rolling(rolling), Usage::Rolling(entries)) => {
                view.amount = rolling.amount;
                view.spent = Some(used(rolling, entries, self.now.store));
            }
            (LimitRule::Concurrency(limit), Usage::Concurrency(in_flight)) => {
                view.amount = limit.amount;
                view.spent = Some(*in_flight);
            }
            _ => {}
        }
    }

    fn partitions(&self, view: &mut UpstreamView) -> rusqlite::Result<()> {
        let mut query = self.conn.prepare_cached(queries::PARTITIONS_BUSY)?;
        let rows = query.query_map([self.id()], PartitionRow::read)?;
        let mut instances = self.instances();
        let mut next = None;
        for row in rows {
            if view.partitions.len() >= SHOWN {
                view.omitted += 1;
                continue;
            }
            let row = row?;
            let wait = self.partition_wait(&mut instances, &row)?;
            let until = wait.as_ref().map_or(Some(self.now.wall), |wait| wait.until);
            next = next.into_iter().chain(until).min();
            let Some(wait) = wait else { continue };
            let mut count = self.conn.prepare_cached(queries::PARTITION_JOBS)?;
            let jobs: i64 = count.query_row([row.id], |row| row.get(0))?;
            let jobs = u64::try_from(jobs).unwrap_or(0);
            view.partitions.push(PartitionView { key: row.key, jobs, wait });
        }
        view.next_at = next;
        Ok(())
    }

    /// Why the partition's head cannot go now; `None`: it can.
    fn partition_wait(
        &self,
        instances: &mut Instances<'_>,
        row: &PartitionRow,
    ) -> rusqlite::Result<Option<WaitView>> {
        let held = self.row.and_then(|row| row.held.as_ref()).or(row.held.as_ref());
        if let Some(held) = held {
            return Ok(Some(WaitView {
                turn: Turn::Held,
                limit: None,
                until: None,
                reason: held.reason.clone(),
                detail: held.detail.clone(),
            }));
        }
        let limits = self.limits_wait(instances, &row.key, 1)?;
        let scheduled = match places::head(self.conn, row.id, self.now.store)? {
            Head::Later { at, .. } => Some(self.scheduled(at, row.again.as_deref())),
            Head::Due { .. } | Head::None => None,
        };
        Ok(later(limits, scheduled))
    }

    fn scheduled(&self, at: Timestamp, again: Option<&str>) -> WaitView {
        let (reason, detail) = match again {
            Some(reason) => {
                ("backoff", format!("its last attempt ended with {reason}; it backs off"))
            }
            None => ("not_before", "it was added to go later".to_owned()),
        };
        WaitView {
            turn: Turn::Scheduled,
            limit: None,
            until: Some(self.now.to_wall(at)),
            reason: reason.to_owned(),
            detail,
        }
    }

    /// The limit that keeps a job of the partition from going at this very moment.
    fn limits_wait(
        &self,
        instances: &mut Instances<'_>,
        key: &Columns,
        cost: u64,
    ) -> rusqlite::Result<Option<WaitView>> {
        let mut indices = Vec::new();
        for position in 0..self.declared.limits.len() {
            indices.push((position, instances.of_limit(position, key)?));
        }
        let gate = instances.own_gate(key)?;
        let mut asks: Vec<Ask<'_>> = indices
            .iter()
            .filter_map(|(position, index)| instances.ask(*position, *index, key, cost))
            .chain(instances.ask_gate(gate))
            .collect();
        for ask in &mut asks {
            ask.lookahead = std::time::Duration::ZERO;
        }
        let (limit, until, blocked) = match decide(&asks, self.now, self.now.store) {
            Decision::Admit { .. } => return Ok(None),
            Decision::Wait { until, limit, blocked } => (limit, Some(until), blocked),
            Decision::Busy { limit } => (limit, None, false),
            Decision::Never { limit } => (Some(limit), None, false),
        };
        let at = indices.iter().zip(&asks).find(|(_, ask)| ask.limit == limit.as_deref());
        let index = at.map_or(gate, |((_, index), _)| *index);
        let block = instances.get(index).map(|instance| &instance.block);
        let refused = block.filter(|block| blocked || block.probe.is_some());
        let shown = at.map(|(_, ask)| self.limit_view(key, ask));
        let (reason, detail) = match refused {
            Some(block) => (
                block.reason.clone().unwrap_or_else(|| "probe".to_owned()),
                match block.probe {
                    Some(_) => "one call probes whether the block is over".to_owned(),
                    None => block.detail.clone().unwrap_or_default(),
                },
            ),
            None => own_count(shown.as_ref()),
        };
        let until = until.map(|until| self.now.to_wall(until));
        Ok(Some(WaitView { turn: Turn::Waiting, limit, until, reason, detail }))
    }
}

/// Units that still count at `now`.
fn used(rolling: &Rolling, entries: &Entries, now: Timestamp) -> u64 {
    let counts = |at: Timestamp| at + rolling.life() > now;
    entries.0.iter().filter(|(at, _)| counts(*at)).map(|(_, units)| units).sum()
}

/// Our own count is what binds.
fn own_count(view: Option<&LimitView>) -> (String, String) {
    let Some(view) = view else { return ("busy".to_owned(), String::new()) };
    let detail = match (view.kind, view.spent) {
        ("budget", Some(spent)) => match view.zone {
            Some(zone) => {
                format!("{spent} of {} are spent in this window ({zone})", view.amount)
            }
            None => format!("{spent} of {} are spent in this window", view.amount),
        },
        ("rolling", Some(spent)) => format!("{spent} of {} are spent in this span", view.amount),
        ("concurrency", Some(spent)) => format!("{spent} of {} are in flight", view.amount),
        _ => match view.effective_rate {
            Some(rate) => format!("paced at {} a second", rounded(rate)),
            None => String::new(),
        },
    };
    (view.kind.to_owned(), detail)
}

fn rounded(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Of two waits the one that ends later; one without an instant ends last.
fn later(a: Option<WaitView>, b: Option<WaitView>) -> Option<WaitView> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let last = |wait: &WaitView| wait.until.unwrap_or(Timestamp::MAX);
            Some(if last(&b) > last(&a) { b } else { a })
        }
        (a, b) => a.or(b),
    }
}

/// A partition with jobs that are queued or running.
struct PartitionRow {
    id: i64,
    key: Columns,
    held: Option<places::HeldRow>,
    /// The reason with which its head was tried last.
    again: Option<String>,
}

impl PartitionRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<PartitionRow> {
        let at: Option<i64> = row.get("held_at")?;
        let held = match at {
            Some(at) => Some(places::HeldRow {
                at: Timestamp::from_nanos(at),
                reason: row.get("held_reason")?,
                detail: row.get::<_, Option<String>>("held_detail")?.unwrap_or_default(),
            }),
            None => None,
        };
        Ok(PartitionRow {
            id: row.get("id")?,
            key: from_json(&row.get::<_, String>("key")?),
            held,
            again: row.get("again")?,
        })
    }
}

/// Jobs that fit the filter, by number, with what they wait for where their upstream is declared.
pub(super) fn jobs(
    conn: &Connection,
    now: Now,
    filter: &Filter,
    declared: &Declared,
) -> rusqlite::Result<Vec<JobView>> {
    let (condition, mut values) = queries::job_filter(filter);
    let most = filter.limit.map_or(-1, super::usage::stored);
    values.push(most.into());
    let mut query = conn.prepare(&queries::jobs_where(&condition))?;
    let rows = query.query_map(params_from_iter(values), |row| job_row(row, now))?;
    let mut views: Vec<(i64, JobView)> = rows.collect::<rusqlite::Result<_>>()?;
    add_waits(conn, now, declared, &mut views)?;
    Ok(views.into_iter().map(|(_, view)| view).collect())
}

fn add_waits(
    conn: &Connection,
    now: Now,
    declared: &Declared,
    views: &mut [(i64, JobView)],
) -> rusqlite::Result<()> {
    let mut partitions: HashMap<i64, Option<WaitView>> = HashMap::new();
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
            partitions.insert(*partition, wait);
        }
        let wait = partitions.get(partition).cloned().flatten();
        let due = now.to_store(view.due_at);
        let own = (due > now.store).then(|| look.scheduled(due, view.reason.as_deref()));
        view.waiting = match wait {
            Some(wait) if wait.turn == Turn::Held => Some(wait),
            wait => later(wait, own),
        };
    }
    Ok(())
}

fn job_row(row: &Row<'_>, now: Now) -> rusqlite::Result<(i64, JobView)> {
    let wall = |nanos: i64| now.to_wall(Timestamp::from_nanos(nanos));
    let at = |nanos: Option<i64>| nanos.map(wall);
    let state: String = row.get("state")?;
    let running: bool = row.get("running")?;
    let fields: Option<String> = row.get("fields")?;
    let view = JobView {
        id: JobId(row.get("id")?),
        upstream: row.get("upstream")?,
        load: row.get("load")?,
        method: row.get("method")?,
        url: row.get("url")?,
        state: if running { JobState::Running } else { state.parse().unwrap_or(JobState::Queued) },
        waiting: None,
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
        reason: row.get("reason")?,
        detail: row.get("detail")?,
        fields: fields.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    };
    Ok((row.get("partition_id")?, view))
}

pub(super) fn attempts(
    conn: &Connection,
    now: Now,
    filter: &AttemptFilter,
) -> rusqlite::Result<Vec<AttemptView>> {
    let (condition, mut values) = queries::attempt_filter(filter, now);
    values.push(filter.limit.map_or(-1, super::usage::stored).into());
    let mut query = conn.prepare(&queries::attempts_where(&condition, filter.after.is_some()))?;
    let rows = query.query_map(params_from_iter(values), |row| attempt_row(row, now))?;
    let mut found: Vec<AttemptView> = rows.collect::<rusqlite::Result<_>>()?;
    if filter.after.is_none() {
        found.reverse();
    }
    if filter.bodies {
        let mut query = conn.prepare_cached(queries::BODY)?;
        for attempt in &mut found {
            attempt.body = query
                .query_row([attempt.call.0], |row| {
                    Ok(KeptBody { bytes: row.get(0)?, cut: row.get(1)? })
                })
                .optional()?;
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
        body: None,
    })
}

/// The bodies that the last attempts of these jobs kept.
pub(super) fn last_bodies(
    conn: &Connection,
    jobs: &[JobId],
) -> rusqlite::Result<BTreeMap<JobId, KeptBody>> {
    let mut query = conn.prepare_cached(queries::LAST_BODY)?;
    let mut bodies = BTreeMap::new();
    for job in jobs {
        let body = query
            .query_row([job.0], |row| Ok(KeptBody { bytes: row.get(0)?, cut: row.get(1)? }))
            .optional()?;
        if let Some(body) = body {
            bodies.insert(*job, body);
        }
    }
    Ok(bodies)
}
