//! Limit instances within one transaction: read once, decided on by the pure rules, written back where
//! they changed.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, named_params};

use super::queries;
use crate::clock::{Now, Timestamp};
use crate::job::{CallId, Columns};
use crate::quota::budget::{Window, Windows};
use crate::quota::decide::{Ask, Gate, HORIZON, NEAR, Taken, Usage, charge, give_back};
use crate::quota::rolling::Entries;
use crate::quota::{Limit, LimitRule, Upstream};

/// The name under which a partition's own gate is kept.
pub(super) const OWN_GATE: &str = "";

/// A limit instance, or a partition's own gate.
#[derive(Debug)]
pub(super) struct Instance {
    /// Its row; `None` until something is to be written.
    pub id: Option<i64>,
    pub limit: String,
    pub key: String,
    pub block: Block,
    usage: Option<Usage>,
    before: Option<Usage>,
}

/// What refusals did to an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub at: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub since: Option<Timestamp>,
    pub refusals: u32,
    pub probe: Option<CallId>,
}

impl Block {
    /// As decisions see it: closed until an instant, and then for all but one probe.
    pub fn gate(&self) -> Gate {
        Gate { blocked_until: self.until, probing: self.probe.is_some() }
    }

    /// Whether the next call through it is its probe.
    pub fn is_half_open(&self) -> bool {
        self.refusals > 0 && self.probe.is_none()
    }
}

/// What a call took from one instance.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct TakenFrom {
    pub instance: i64,
    pub what: Taken,
}

/// The instances that a transaction has looked at.
#[derive(Debug)]
pub(super) struct Instances<'t> {
    conn: &'t Connection,
    now: Now,
    upstream_id: i64,
    upstream: &'t Upstream,
    found: HashMap<(usize, String), usize>,
    list: Vec<Instance>,
}

/// Where an instance stands in its transaction's list.
pub(super) type Index = usize;

/// The key of a limit for these columns: a JSON object, names in order.
pub(super) fn key_of(limit: &Limit, columns: &Columns) -> String {
    let key: Columns = limit
        .key
        .iter()
        .map(|name| (name.clone(), columns.get(name).cloned().unwrap_or_default()))
        .collect();
    to_json(&key)
}

pub(super) fn to_json(columns: &Columns) -> String {
    serde_json::to_string(columns).unwrap_or_default()
}

pub(super) fn from_json(text: &str) -> Columns {
    serde_json::from_str(text).unwrap_or_default()
}

impl<'t> Instances<'t> {
    pub fn new(conn: &'t Connection, now: Now, upstream_id: i64, upstream: &'t Upstream) -> Self {
        Instances { conn, now, upstream_id, upstream, found: HashMap::new(), list: Vec::new() }
    }

    /// The instance of a limit for a partition's columns.
    pub fn of_limit(&mut self, limit: usize, columns: &Columns) -> rusqlite::Result<Index> {
        let Some(declared) = self.upstream.limits.get(limit) else {
            return self.gate(OWN_GATE, columns);
        };
        let key = key_of(declared, columns);
        if let Some(index) = self.found.get(&(limit, key.clone())) {
            return Ok(*index);
        }
        let mut instance = self.load(&declared.name, &key)?;
        let usage = self.usage(&instance, declared.rule_for(columns))?;
        instance.before = Some(usage.clone());
        instance.usage = Some(usage);
        Ok(self.enter(limit, key, instance))
    }

    /// A partition's own gate.
    pub fn own_gate(&mut self, partition: &Columns) -> rusqlite::Result<Index> {
        self.gate(OWN_GATE, partition)
    }

    fn gate(&mut self, name: &str, columns: &Columns) -> rusqlite::Result<Index> {
        let key = to_json(columns);
        if let Some(index) = self.found.get(&(usize::MAX, key.clone())) {
            return Ok(*index);
        }
        let instance = self.load(name, &key)?;
        Ok(self.enter(usize::MAX, key, instance))
    }

    fn enter(&mut self, limit: usize, key: String, instance: Instance) -> Index {
        self.list.push(instance);
        let index = self.list.len() - 1;
        self.found.insert((limit, key), index);
        index
    }

    fn load(&self, limit: &str, key: &str) -> rusqlite::Result<Instance> {
        let mut query = self.conn.prepare_cached(queries::INSTANCE)?;
        let at = |nanos: Option<i64>| nanos.map(Timestamp::from_nanos);
        let found = query
            .query_row(
                named_params! { ":upstream": self.upstream_id, ":limit": limit, ":key": key },
                |row| {
                    let tat: Option<i64> = row.get("tat")?;
                    let block = Block {
                        at: at(row.get("blocked_at")?),
                        until: at(row.get("blocked_until")?),
                        reason: row.get("block_reason")?,
                        detail: row.get("block_detail")?,
                        since: at(row.get("reason_since")?),
                        refusals: row.get("refusals")?,
                        probe: row.get::<_, Option<i64>>("probe_call")?.map(CallId),
                    };
                    Ok((row.get::<_, i64>("id")?, at(tat), block))
                },
            )
            .optional()?;
        let (id, tat, block) = match found {
            Some((id, tat, block)) => (Some(id), tat, block),
            None => (None, None, Block::default()),
        };
        let usage = tat.map(|tat| Usage::Rate(Some(tat)));
        let (limit, key) = (limit.to_owned(), key.to_owned());
        Ok(Instance { id, limit, key, block, usage, before: None })
    }

    fn usage(&self, instance: &Instance, rule: &LimitRule) -> rusqlite::Result<Usage> {
        let Some(id) = instance.id else { return Ok(Usage::none(rule)) };
        match rule {
            LimitRule::Rate(_) => Ok(instance.usage.clone().unwrap_or(Usage::Rate(None))),
            LimitRule::Budget(budget) => {
                let windows = budget.windows_at(self.now, self.now.store);
                let from = windows.into_iter().min().unwrap_or(Timestamp::EPOCH);
                windows_since(self.conn, id, from).map(Usage::Budget)
            }
            LimitRule::Rolling(_) => entries(self.conn, id).map(Usage::Rolling),
            LimitRule::Concurrency(_) => {
                let mut count = self.conn.prepare_cached(queries::IN_FLIGHT_COUNT)?;
                let in_flight: i64 = count.query_row([id], |row| row.get(0))?;
                Ok(Usage::Concurrency(u64::try_from(in_flight).unwrap_or(0)))
            }
        }
    }

    pub fn get(&self, index: Index) -> Option<&Instance> {
        self.list.get(index)
    }

    /// The question to a limit's instance.
    pub fn ask(&self, limit: usize, index: Index, columns: &Columns, cost: u64) -> Option<Ask<'_>> {
        let declared = self.upstream.limits.get(limit)?;
        let instance = self.list.get(index)?;
        Some(Ask {
            limit: Some(&declared.name),
            gate: instance.block.gate(),
            rule: Some((declared.rule_for(columns), instance.usage.as_ref()?)),
            cost,
            lookahead: lookahead(self.upstream, declared),
        })
    }

    /// The question to a partition's own gate.
    pub fn ask_gate(&self, index: Index) -> Option<Ask<'_>> {
        let instance = self.list.get(index)?;
        let gate = instance.block.gate();
        Some(Ask { limit: None, gate, rule: None, cost: 0, lookahead: NEAR })
    }

    /// Takes a call's units from a limit's instance, and its probe where it is half open.
    pub fn charge(
        &mut self,
        limit: usize,
        index: Index,
        columns: &Columns,
        cost: u64,
        slot: Timestamp,
    ) -> rusqlite::Result<Option<TakenFrom>> {
        let id = self.row(index)?;
        let Some(declared) = self.upstream.limits.get(limit) else { return Ok(None) };
        let now = self.now;
        let Some(usage) = self.list.get_mut(index).and_then(|instance| instance.usage.as_mut())
        else {
            return Ok(None);
        };
        let what = charge(declared.rule_for(columns), usage, cost, slot, now);
        Ok(Some(TakenFrom { instance: id, what }))
    }

    /// Makes `call` the probe of an instance that a block has just left half open.
    pub fn take_probe(&mut self, index: Index, call: CallId) -> rusqlite::Result<()> {
        let Some(instance) = self.list.get_mut(index) else { return Ok(()) };
        if !instance.block.is_half_open() {
            return Ok(());
        }
        instance.block.probe = Some(call);
        let mut probe = self.conn.prepare_cached(queries::INSTANCE_PROBE)?;
        probe.execute(named_params! { ":id": instance.id, ":call": call.0 })?;
        Ok(())
    }

    /// The instance's row, made where there is none.
    pub fn row(&mut self, index: Index) -> rusqlite::Result<i64> {
        let Some(instance) = self.list.get_mut(index) else { return Ok(0) };
        if let Some(id) = instance.id {
            return Ok(id);
        }
        let mut insert = self.conn.prepare_cached(queries::INSTANCE_ADD)?;
        let id = insert.query_row(
            named_params! {
                ":upstream": self.upstream_id, ":limit": instance.limit, ":key": instance.key,
            },
            |row| row.get(0),
        )?;
        instance.id = Some(id);
        Ok(id)
    }

    /// Writes back what changed.
    pub fn save(&self) -> rusqlite::Result<()> {
        for instance in &self.list {
            if let (Some(id), Some(after)) = (instance.id, &instance.usage) {
                save_usage(self.conn, id, instance.before.as_ref(), after)?;
            }
        }
        Ok(())
    }
}

/// How far ahead a slot that this limit binds may lie. Where another rate is shared by more partitions
/// than this limit, taking a far slot would push that rate's arrival time ahead of what others could
/// still use: there, and with a concurrency limit, only near slots are taken.
pub(super) fn lookahead(upstream: &Upstream, limit: &Limit) -> std::time::Duration {
    let wider = |other: &Limit| {
        matches!(other.rule, LimitRule::Rate(_))
            && limit.key.iter().any(|column| !other.key.contains(column))
    };
    let counted = |other: &Limit| matches!(other.rule, LimitRule::Concurrency(_));
    if upstream.limits.iter().any(|other| wider(other) || counted(other)) { NEAR } else { HORIZON }
}

pub(super) fn windows_since(
    conn: &Connection,
    id: i64,
    from: Timestamp,
) -> rusqlite::Result<Windows> {
    let mut query = conn.prepare_cached(queries::BUDGET_WINDOWS)?;
    let rows = query.query_map(named_params! { ":id": id, ":from": from.as_nanos() }, |row| {
        let window = Window {
            spent: units(row.get("spent")?),
            last_at: row.get::<_, Option<i64>>("last_at")?.map(Timestamp::from_nanos),
            remaining: row.get::<_, Option<i64>>("remaining")?.map(units),
        };
        Ok((Timestamp::from_nanos(row.get("window_start")?), window))
    })?;
    rows.collect::<rusqlite::Result<_>>().map(Windows)
}

pub(super) fn entries(conn: &Connection, id: i64) -> rusqlite::Result<Entries> {
    let mut query = conn.prepare_cached(queries::ROLLING_ENTRIES)?;
    let rows = query
        .query_map([id], |row| Ok((Timestamp::from_nanos(row.get(0)?), units(row.get(1)?))))?;
    rows.collect::<rusqlite::Result<_>>().map(Entries)
}

/// Units as SQLite keeps them: a figure beyond its integers is as good as endless.
pub(super) fn stored(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

fn units(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

pub(super) fn save_usage(
    conn: &Connection,
    id: i64,
    before: Option<&Usage>,
    after: &Usage,
) -> rusqlite::Result<()> {
    if before == Some(after) {
        return Ok(());
    }
    match (before, after) {
        (_, Usage::Rate(tat)) => {
            let mut update = conn.prepare_cached(queries::INSTANCE_TAT)?;
            let tat = tat.map(Timestamp::as_nanos);
            update.execute(named_params! { ":id": id, ":tat": tat })?;
        }
        (before, Usage::Budget(after)) => {
            let empty = Windows::default();
            let before = if let Some(Usage::Budget(before)) = before { before } else { &empty };
            let mut upsert = conn.prepare_cached(queries::BUDGET_SET)?;
            for (start, window) in
                after.0.iter().filter(|(start, w)| before.0.get(start) != Some(w))
            {
                upsert.execute(named_params! {
                    ":id": id, ":start": start.as_nanos(), ":spent": stored(window.spent),
                    ":last": window.last_at.map(Timestamp::as_nanos),
                    ":remaining": window.remaining.map(stored),
                })?;
            }
        }
        (before, Usage::Rolling(after)) => {
            let empty = Entries::default();
            let before = if let Some(Usage::Rolling(before)) = before { before } else { &empty };
            let mut delete = conn.prepare_cached(queries::ROLLING_REMOVE)?;
            for (at, _) in before.0.iter().filter(|entry| !after.0.contains(entry)) {
                delete.execute(named_params! { ":id": id, ":at": at.as_nanos() })?;
            }
            let mut insert = conn.prepare_cached(queries::ROLLING_ADD)?;
            for (at, taken) in after.0.iter().filter(|entry| !before.0.contains(entry)) {
                let (at, taken) = (at.as_nanos(), stored(*taken));
                insert.execute(named_params! { ":id": id, ":at": at, ":units": taken })?;
            }
        }
        // Places in flight are rows of their own, beside their call.
        (_, Usage::Concurrency(_)) => {}
    }
    Ok(())
}

/// Gives back what a call took, newest first, so that slots taken one after another unwind.
pub(super) fn give_back_all(conn: &Connection, taken: &[TakenFrom]) -> rusqlite::Result<()> {
    for TakenFrom { instance, what } in taken.iter().rev() {
        let before = match what {
            Taken::Rate { .. } => {
                let mut query = conn.prepare_cached(queries::INSTANCE_TAT_GET)?;
                let tat: Option<Option<i64>> =
                    query.query_row([instance], |row| row.get(0)).optional()?;
                Usage::Rate(tat.flatten().map(Timestamp::from_nanos))
            }
            Taken::Budget { windows, .. } => {
                let from = windows.iter().copied().min().unwrap_or(0);
                Usage::Budget(windows_since(conn, *instance, Timestamp::from_nanos(from))?)
            }
            Taken::Rolling { .. } => Usage::Rolling(entries(conn, *instance)?),
            Taken::Concurrency => continue,
        };
        let mut after = before.clone();
        give_back(&mut after, what);
        save_usage(conn, *instance, Some(&before), &after)?;
    }
    Ok(())
}
