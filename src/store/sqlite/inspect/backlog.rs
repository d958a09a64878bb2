//! What waits of an upstream, and the limits that it waits for.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, named_params};

use crate::clock::{Now, Timestamp};
use crate::job::Columns;
use crate::quota::decide::Gate;
use crate::quota::forecast::{Backlog, Group, Instance};
use crate::quota::{Cost, Upstream};
use crate::store::sqlite::instances::{Index, Instances, from_json};
use crate::store::sqlite::{places, queries};

pub(in crate::store::sqlite) fn backlog(
    conn: &Connection,
    now: Now,
    upstream: &Upstream,
    load: Option<&str>,
) -> rusqlite::Result<Backlog> {
    let mut backlog = Backlog::default();
    let Some(row) = places::upstream(conn, &upstream.name)? else { return Ok(backlog) };
    // Where all that is queued is of the load, there is nothing to count apart.
    let load = load.map(|load| is_part(conn, row.id, load).map(|part| part.then_some(load)));
    let asked = load.transpose()?.flatten().map(|load| asked(conn, row.id, load)).transpose()?;
    let mut costs = costs(conn, row.id, upstream)?;
    let mut instances = Instances::new(conn, now, row.id, upstream);
    let mut known: HashMap<Index, usize> = HashMap::new();
    let mut query = conn.prepare_cached(queries::BACKLOG)?;
    let mut rows = query.query([row.id])?;
    while let Some(found) = rows.next()? {
        let (partition, jobs): (i64, i64) = (found.get("id")?, found.get("jobs")?);
        let jobs = u64::try_from(jobs).unwrap_or(0);
        if row.held.is_some() || found.get::<_, String>("place")? == "held" {
            backlog.held += jobs;
            continue;
        }
        let at = |name| found.get(name).map(Timestamp::from_nanos);
        let columns: Columns = from_json(&found.get::<_, String>("key")?);
        let mut group = Group {
            jobs,
            costs: costs.remove(&partition).unwrap_or_default(),
            due: (at("first_due")?, at("last_due")?),
            gate: Gate::default(),
            instances: Vec::with_capacity(upstream.limits.len()),
            asked: asked.as_ref().map(|asked| asked.get(&partition).copied().unwrap_or(0)),
            columns,
        };
        for limit in 0..upstream.limits.len() {
            let index = instances.of_limit(limit, &group.columns)?;
            let place = known.entry(index).or_insert_with(|| {
                backlog.instances.extend(instances.get(index).and_then(|instance| {
                    let (usage, gate) = (instance.usage()?.clone(), instance.block.gate());
                    Some(Instance { usage, gate, reported: instance.heard.reported })
                }));
                backlog.instances.len().saturating_sub(1)
            });
            group.instances.push(*place);
        }
        if found.get::<_, Option<i64>>("gate_id")?.is_some() {
            let gate = instances.own_gate(&group.columns)?;
            group.gate = instances.get(gate).map(|gate| gate.block.gate()).unwrap_or_default();
        }
        backlog.groups.push(group);
    }
    Ok(backlog)
}

/// Whether jobs of other loads are queued too.
fn is_part(conn: &Connection, upstream: i64, load: &str) -> rusqlite::Result<bool> {
    let mut query = conn.prepare_cached(queries::BACKLOG_OTHERS)?;
    query.exists(named_params! { ":upstream": upstream, ":load": load })
}

/// How many jobs of each partition go until the last of the load has gone.
fn asked(conn: &Connection, upstream: i64, load: &str) -> rusqlite::Result<HashMap<i64, u64>> {
    let mut query = conn.prepare_cached(queries::BACKLOG_LOAD)?;
    let rows = query.query_map(named_params! { ":upstream": upstream, ":load": load }, |row| {
        Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0)))
    })?;
    rows.collect()
}

/// The sums of the columns that hold costs, by partition.
fn costs(
    conn: &Connection,
    upstream_id: i64,
    upstream: &Upstream,
) -> rusqlite::Result<HashMap<i64, BTreeMap<String, u64>>> {
    let mut costs: HashMap<i64, BTreeMap<String, u64>> = HashMap::new();
    let names = upstream.limits.iter().filter_map(|limit| match &limit.cost {
        Cost::Column(name) => Some(name),
        Cost::Calls | Cost::Items => None,
    });
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let mut query = conn.prepare_cached(queries::BACKLOG_COSTS)?;
        let path = queries::column_path(name);
        let params = named_params! { ":upstream": upstream_id, ":path": path };
        let mut rows = query.query(params)?;
        while let Some(row) = rows.next()? {
            let sum = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
            costs.entry(row.get(0)?).or_default().insert(name.clone(), sum);
        }
    }
    Ok(costs)
}
