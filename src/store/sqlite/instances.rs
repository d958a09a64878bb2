//! Limit instances within one transaction: read once, decided on by the pure rules, written back where
//! they changed.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, named_params};

use super::fields::Fields;
use super::heard::{self, Asked, Heard};
use super::places::{Line, Side};
use super::restored::Restored;
use super::{queries, usage};
use crate::clock::{Now, Timestamp};
use crate::job::{CallId, Columns};
use crate::quota::decide::{Ask, Gate, HORIZON, NEAR, Taken, Usage, charge};
use crate::quota::reported::Reported;
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
    pub heard: Heard,
    usage: Option<Usage>,
    /// The limit's rule, where it is paced more slowly than declared.
    slowed: Option<LimitRule>,
    /// The rule for those who may use what it keeps for people, where it keeps any.
    unreserved: Option<LimitRule>,
    /// Who took of it last.
    pub side: Side,
    /// As they are stored.
    before: Option<Usage>,
    reported_before: Reported,
}

/// What refusals did to an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub at: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub reason: Option<String>,
    pub detail: Option<String>,
    /// A reason that may stand for a time only, and since when it does.
    pub stands: Option<(String, Timestamp)>,
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

/// What an instance's row holds.
#[derive(Default)]
struct Stored {
    id: Option<i64>,
    tat: Option<Timestamp>,
    block: Block,
    heard: Heard,
    side: Side,
}

impl Stored {
    fn read(row: &Fields<'_, '_>) -> rusqlite::Result<Stored> {
        let at = || -> rusqlite::Result<Option<Timestamp>> {
            Ok(row.next::<Option<i64>>()?.map(Timestamp::from_nanos))
        };
        Ok(Stored {
            id: row.next()?,
            tat: at()?,
            block: Block {
                at: at()?,
                until: at()?,
                reason: row.next()?,
                detail: row.next()?,
                stands: row.next::<Option<String>>()?.zip(at()?),
                refusals: row.next()?,
                probe: row.next::<Option<i64>>()?.map(CallId),
            },
            heard: Heard::read(row)?,
            side: Side::of(row.next()?),
        })
    }
}

impl Instance {
    fn new(limit: &str, key: &str, stored: Stored) -> Instance {
        let Stored { id, tat, block, heard, side } = stored;
        let usage = tat.map(|tat| Usage::Rate(Some(tat)));
        Instance {
            id,
            limit: limit.to_owned(),
            key: key.to_owned(),
            block,
            heard,
            usage,
            slowed: None,
            unreserved: None,
            side,
            before: None,
            reported_before: heard.reported,
        }
    }

    /// What was used of it; `None`: of a partition's own gate.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }
}

/// What a call took from one instance.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct TakenFrom {
    pub instance: i64,
    pub units: u64,
    /// [`Reported::silent`] of it, then.
    #[serde(default)]
    pub silent: u64,
    pub what: Taken,
}

impl Instance {
    /// As decisions see it: closed by a block, or while the upstream is being asked what is left.
    fn gate(&self) -> Gate {
        let gate = self.block.gate();
        Gate { blocked_until: gate.blocked_until.max(self.heard.asked.until), ..gate }
    }

    /// The rule as it is paced now.
    fn rule<'a>(&'a self, declared: &'a Limit, columns: &Columns, line: Line) -> &'a LimitRule {
        let unreserved = self.unreserved.as_ref().filter(|_| line == Line::Reserve);
        let paced = unreserved.or(self.slowed.as_ref());
        paced.unwrap_or_else(|| declared.rule_for(columns))
    }
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
    restored: Option<Option<Restored>>,
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
        let (found, list, restored) = Default::default();
        Instances { conn, now, upstream_id, upstream, found, list, restored }
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
        let rule = declared.rule_for(columns);
        let (before, usage) = self.usage(&instance, rule)?;
        instance.slowed = instance.heard.slowed_rule(rule, self.now.store);
        instance.unreserved = instance.slowed.as_ref().unwrap_or(rule).unreserved();
        instance.before = Some(before);
        instance.usage = Some(usage);
        Ok(self.enter(limit, key, instance))
    }

    /// A partition's own gate.
    pub fn own_gate(&mut self, partition: &Columns) -> rusqlite::Result<Index> {
        self.gate(OWN_GATE, partition)
    }

    /// A partition's own gate that was never closed, so that it need not be looked for.
    pub fn open_gate(&mut self, partition: &Columns) -> Index {
        let key = to_json(partition);
        let gate = Instance::new(OWN_GATE, &key, Stored::default());
        self.enter(usize::MAX, key, gate)
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
        let params = named_params! { ":upstream": self.upstream_id, ":limit": limit, ":key": key };
        let found = query.query_row(params, |row| Stored::read(&Fields::of(row))).optional()?;
        Ok(Instance::new(limit, key, found.unwrap_or_default()))
    }

    /// As it is stored, and as it counts. What counts as spent because the store was restored is in both,
    /// so that it is not written down.
    fn usage(&mut self, instance: &Instance, rule: &LimitRule) -> rusqlite::Result<(Usage, Usage)> {
        let (mut before, mut usage) = match (instance.id, rule, &instance.usage) {
            (None, ..) => (Usage::none(rule), Usage::none(rule)),
            (_, LimitRule::Rate(_), Some(tat)) => (tat.clone(), tat.clone()),
            (Some(id), ..) => usage::load(self.conn, id, rule, self.now)?,
        };
        if let Some(restored) = self.restored()? {
            restored.count(rule, &mut before);
            restored.count(rule, &mut usage);
        }
        Ok((before, usage))
    }

    /// When the store was restored, where that matters still.
    fn restored(&mut self) -> rusqlite::Result<Option<Restored>> {
        match self.restored {
            Some(known) => Ok(known),
            None => Ok(*self.restored.insert(Restored::read(self.conn, self.now)?)),
        }
    }

    pub fn get(&self, index: Index) -> Option<&Instance> {
        self.list.get(index)
    }

    /// The question to a limit's instance, by the queue or callers without a claim on its reserve.
    pub fn ask(&self, limit: usize, index: Index, columns: &Columns, cost: u64) -> Option<Ask<'_>> {
        self.ask_in(Line::Queue, limit, index, columns, cost)
    }

    /// The question to a limit's instance, by who stands in that line.
    pub fn ask_in(
        &self,
        line: Line,
        limit: usize,
        index: Index,
        columns: &Columns,
        cost: u64,
    ) -> Option<Ask<'_>> {
        let declared = self.upstream.limits.get(limit)?;
        let instance = self.list.get(index)?;
        Some(Ask {
            limit: Some(&declared.name),
            gate: instance.gate(),
            rule: Some((instance.rule(declared, columns, line), instance.usage.as_ref()?)),
            reported: instance.heard.reported,
            cost,
            lookahead: lookahead(self.upstream, declared),
        })
    }

    /// The question to a partition's own gate.
    pub fn ask_gate(&self, index: Index) -> Option<Ask<'_>> {
        let instance = self.list.get(index)?;
        let (gate, reported) = (instance.block.gate(), Reported::default());
        Some(Ask { limit: None, gate, rule: None, reported, cost: 0, lookahead: NEAR })
    }

    /// Takes a call's units from a limit's instance, and its probe where it is half open.
    pub fn charge(
        &mut self,
        limit: usize,
        index: Index,
        columns: &Columns,
        cost: u64,
        slot: Timestamp,
        side: Side,
    ) -> rusqlite::Result<Option<TakenFrom>> {
        let id = self.row(index)?;
        self.turn(index, id, side)?;
        let Some(declared) = self.upstream.limits.get(limit) else { return Ok(None) };
        let Some(instance) = self.list.get_mut(index) else { return Ok(None) };
        let rule = instance.slowed.as_ref().unwrap_or_else(|| declared.rule_for(columns));
        let Some(usage) = instance.usage.as_mut() else { return Ok(None) };
        let what = charge(rule, usage, cost, slot, self.now);
        instance.heard.reported.charge(slot, cost);
        let silent = instance.heard.reported.silent;
        Ok(Some(TakenFrom { instance: id, units: cost, silent, what }))
    }

    /// Notes who took of an instance last.
    fn turn(&mut self, index: Index, id: i64, side: Side) -> rusqlite::Result<()> {
        let Some(instance) = self.list.get_mut(index) else { return Ok(()) };
        if std::mem::replace(&mut instance.side, side) == side {
            return Ok(());
        }
        let mut set = self.conn.prepare_cached(queries::INSTANCE_SIDE)?;
        set.execute(named_params! { ":id": id, ":side": side.number() }).map(drop)
    }

    /// Notes when the upstream is asked what is left.
    pub fn set_asked(&mut self, index: Index, asked: Asked) -> rusqlite::Result<()> {
        let id = self.row(index)?;
        if let Some(instance) = self.list.get_mut(index) {
            instance.heard.asked = asked;
        }
        heard::save_asked(self.conn, id, &asked)
    }

    /// What is stored of a limit's instance, to be changed by hand.
    pub fn usage_mut(&mut self, index: Index) -> Option<&mut Usage> {
        self.list.get_mut(index)?.usage.as_mut()
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
                usage::save(self.conn, id, instance.before.as_ref(), after)?;
                if instance.heard.reported != instance.reported_before {
                    heard::save_reported(self.conn, id, &instance.heard.reported)?;
                }
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
