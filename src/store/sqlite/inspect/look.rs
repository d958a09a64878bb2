//! An upstream's limits, and what its partitions wait for.

use rusqlite::{Connection, Row, named_params};

use crate::clock::{Now, Timestamp};
use crate::job::{Columns, JobState};
use crate::quota::adapt::WHOLE;
use crate::quota::decide::{Ask, Decision, Usage, decide};
use crate::quota::rolling::{Entries, Rolling};
use crate::quota::{Limit, LimitRule, Upstream};
use crate::store::sqlite::instances::{Block, Instance, Instances, from_json};
use crate::store::sqlite::places::{self, Head, UpstreamRow};
use crate::store::sqlite::queries;
use crate::store::sqlite::restored::Restored;
use crate::store::sqlite::usage::units;
use crate::store::views::{
    HoldView, LimitView, PartitionView, SHOWN, Turn, UpstreamView, WaitView,
};

/// Looking at one upstream.
pub(super) struct Look<'t> {
    conn: &'t Connection,
    now: Now,
    row: Option<&'t UpstreamRow>,
    declared: &'t Upstream,
    restored: Option<Restored>,
}

impl<'t> Look<'t> {
    pub(super) fn new(
        conn: &'t Connection,
        now: Now,
        row: Option<&'t UpstreamRow>,
        declared: &'t Upstream,
    ) -> Self {
        // Trouble with the store is told by whoever reads on.
        let restored = Restored::read(conn, now).ok().flatten();
        Look { conn, now, row, declared, restored }
    }

    fn id(&self) -> i64 {
        self.row.map_or(0, |row| row.id)
    }

    pub(super) fn instances(&self) -> Instances<'t> {
        Instances::new(self.conn, self.now, self.id(), self.declared)
    }

    pub(super) fn hold_view(&self, held: &places::HeldRow) -> HoldView {
        HoldView {
            at: self.now.to_wall(held.at),
            reason: held.reason.clone(),
            detail: held.detail.clone(),
        }
    }

    pub(super) fn limits(&self, view: &mut UpstreamView) -> rusqlite::Result<()> {
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
                self.slow(&mut shown, limit, &key, instances.get(index));
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
            reserve: 0,
            remaining: None,
            resets_at: None,
            zone: None,
            next_at: next.map(|at| self.now.to_wall(at)),
            blocked_until: None,
            reason: None,
            detail: None,
            effective_rate: None,
            slowed: None,
            full_at: None,
            declared_rate: None,
            restored: false,
        };
        if let Some((rule, usage)) = ask.rule {
            self.fill(&mut view, rule, usage);
            view.restored = self.restored.is_some_and(|restored| restored.covers(rule, self.now));
            view.remaining = ask.reported.at(self.now.store).map(|told| told.free());
        }
        view
    }

    /// At which share of its declared pace an instance goes now, where that was cut, and for how long.
    fn slow(
        &self,
        view: &mut LimitView,
        limit: &Limit,
        key: &Columns,
        instance: Option<&Instance>,
    ) {
        let rule = limit.rule_for(key);
        if let LimitRule::Rate(rate) = rule {
            view.declared_rate = Some(rate.plan().per_second());
        }
        let Some(heard) = instance.map(|instance| &instance.heard) else { return };
        let share = heard.share(rule, self.now.store);
        view.slowed = share.map(|share| f64::from(share) / f64::from(WHOLE));
        view.full_at = share.and(heard.full_at(rule)).map(|at| self.now.to_wall(at));
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
                (view.amount, view.reserve) = (budget.amount, budget.reserve);
                view.spent = Some(count.spent);
                view.resets_at = Some(window.next_reset);
                view.zone = Some(budget.calendar.zone);
            }
            (LimitRule::Rolling(rolling), Usage::Rolling(entries)) => {
                (view.amount, view.reserve) = (rolling.amount, rolling.reserve);
                view.spent = Some(used(rolling, entries, self.now.store));
            }
            (LimitRule::Concurrency(limit), Usage::Concurrency(in_flight)) => {
                view.amount = limit.amount;
                view.spent = Some(*in_flight);
            }
            _ => {}
        }
    }

    pub(super) fn partitions(&self, view: &mut UpstreamView) -> rusqlite::Result<()> {
        let mut query = self.conn.prepare_cached(queries::PARTITIONS_BUSY)?;
        let rows = query.query_map([self.id()], PartitionRow::read)?;
        // All that are queued are the only one's, and counted already: they may be a million.
        let mut lone = self.conn.prepare_cached(queries::PARTITION_IS_LONE)?;
        let is_lone: bool = lone.query_row([self.id()], |row| row.get(0))?;
        let mut instances = self.instances();
        let mut next = None;
        for row in rows {
            if view.partitions.len() >= SHOWN {
                view.omitted += 1;
                continue;
            }
            let row = row?;
            let wait = self.partition_wait(&mut instances, &row)?;
            next = next.into_iter().chain(self.goes_at(wait.as_ref())).min();
            let Some(wait) = wait else { continue };
            let jobs = if is_lone { view.jobs.get(&JobState::Queued).copied() } else { None };
            let jobs = jobs.map_or_else(|| self.jobs_of(row.id), Ok)?;
            view.partitions.push(PartitionView { key: row.key, jobs, wait });
        }
        view.next_at = next;
        if let Some(held) = self.row.and_then(|row| row.held.as_ref())
            && view.partitions.is_empty()
        {
            // Held while it has no job: what is added next will wait.
            let (key, wait) = (Columns::new(), self.held(held));
            view.partitions.push(PartitionView { key, jobs: 0, wait });
        }
        Ok(())
    }

    fn jobs_of(&self, partition: i64) -> rusqlite::Result<u64> {
        let mut count = self.conn.prepare_cached(queries::PARTITION_JOBS)?;
        count.query_row([partition], |row| row.get(0)).map(units)
    }

    /// When what waits so can go by itself.
    fn goes_at(&self, wait: Option<&WaitView>) -> Option<Timestamp> {
        match wait {
            None => Some(self.now.wall),
            Some(wait) if wait.turn == Turn::Held => None,
            Some(wait) => wait.until,
        }
    }

    /// Why the partition's head cannot go now; `None`: it can.
    pub(super) fn partition_wait(
        &self,
        instances: &mut Instances<'_>,
        row: &PartitionRow,
    ) -> rusqlite::Result<Option<WaitView>> {
        let held = self.row.and_then(|row| row.held.as_ref()).or(row.held.as_ref());
        if let Some(held) = held {
            return Ok(Some(self.held(held)));
        }
        let limits = self.limits_wait(instances, &row.key, 1)?;
        let scheduled = match places::head(self.conn, row.id, self.now.store)? {
            Head::Later { at, .. } => {
                Some(self.scheduled(at, row.again.as_deref(), row.again_detail.as_deref()))
            }
            Head::Due { .. } => self.lingering(row),
            Head::None => None,
        };
        Ok(later(limits, scheduled))
    }

    fn held(&self, held: &places::HeldRow) -> WaitView {
        WaitView {
            turn: Turn::Held,
            limit: None,
            until: held.until.map(|until| self.now.to_wall(until)),
            reason: held.reason.clone(),
            detail: held.detail.clone(),
        }
    }

    /// What a job that is due waits for in a batch that is not full; `None`: for nothing.
    pub(super) fn lingering(&self, row: &PartitionRow) -> Option<WaitView> {
        self.declared.batch.as_ref().filter(|batch| !batch.linger.is_zero())?;
        let until = row.wake_at.filter(|at| *at > self.now.store)?;
        Some(WaitView {
            turn: Turn::Scheduled,
            limit: None,
            until: Some(self.now.to_wall(until)),
            reason: "linger".to_owned(),
            detail: "its batch is not full, and waits for more jobs".to_owned(),
        })
    }

    /// `again` is the reason with which it was tried last, `said` that answer in a sentence.
    pub(super) fn scheduled(
        &self,
        at: Timestamp,
        again: Option<&str>,
        said: Option<&str>,
    ) -> WaitView {
        if at == Timestamp::MAX {
            let detail = "its process let its turn pass: it is stopped, or busy".to_owned();
            let (turn, limit, until, reason) = (Turn::Waiting, None, None, "away".to_owned());
            return WaitView { turn, limit, until, reason, detail };
        }
        let (reason, detail) = match (again, said) {
            (Some(reason), Some(said)) if !said.is_empty() => {
                ("backoff", format!("its last attempt ended with {reason}: {said}"))
            }
            (Some(reason), _) => ("backoff", format!("its last attempt ended with {reason}")),
            (None, _) => ("not_before", "it was added to go later".to_owned()),
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
    pub(super) fn limits_wait(
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
        let shown = at.and_then(|((position, index), ask)| {
            let limit = self.declared.limits.get(*position)?;
            let mut shown = self.limit_view(key, ask);
            self.slow(&mut shown, limit, key, instances.get(*index));
            Some(shown)
        });
        let instance = instances.get(index);
        let is_asked = until.is_some() && instance.and_then(|one| one.heard.asked.until) == until;
        let refused = instance.map(|instance| &instance.block);
        let refused = refused.filter(|block| blocked || block.probe.is_some());
        let (reason, detail) = match refused {
            _ if is_asked => {
                ("asking".to_owned(), "the upstream is being asked what is left".to_owned())
            }
            Some(block) => of_block(block),
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

/// A refusal is what binds.
fn of_block(block: &Block) -> (String, String) {
    let detail = match block.probe {
        Some(_) => "one call probes whether the block is over".to_owned(),
        None => block.detail.clone().unwrap_or_default(),
    };
    (block.reason.clone().unwrap_or_else(|| "probe".to_owned()), detail)
}

/// Our own count is what binds, or what the upstream told beside it.
fn own_count(view: Option<&LimitView>) -> (String, String) {
    let Some(view) = view else { return ("busy".to_owned(), String::new()) };
    if let Some(detail) = told(view) {
        return (view.kind.to_owned(), detail);
    }
    let kept = match view.reserve {
        0 => String::new(),
        reserve => format!("; {reserve} are kept in reserve"),
    };
    let detail = match (view.kind, view.spent) {
        ("budget", Some(spent)) => match view.zone {
            Some(zone) => {
                format!("{spent} of {} are spent in this window ({zone}){kept}", view.amount)
            }
            None => format!("{spent} of {} are spent in this window{kept}", view.amount),
        },
        ("rolling", Some(spent)) => {
            format!("{spent} of {} are spent in this span{kept}", view.amount)
        }
        ("concurrency", Some(spent)) => format!("{spent} of {} are in flight", view.amount),
        _ => match view.effective_rate {
            Some(rate) => {
                let declared = view.declared_rate.filter(|_| view.slowed.is_some());
                let slowed = declared.map(|whole| format!(" of {}", rounded(whole)));
                let after = if slowed.is_some() { " after refusals" } else { "" };
                let slowed = slowed.unwrap_or_default();
                format!("paced at {}{slowed} a second{after}", rounded(rate))
            }
            None => String::new(),
        },
    };
    let detail = match view.restored {
        true => format!("{detail}; it counts as spent, because the store was restored in it"),
        false => detail,
    };
    (view.kind.to_owned(), detail)
}

/// What the upstream told is what binds: it is less than our own count leaves.
fn told(view: &LimitView) -> Option<String> {
    let left = view.remaining?;
    let ours = match view.spent {
        Some(spent) if left < view.amount.saturating_sub(spent) => {
            format!(" (we count {spent} of {})", view.amount)
        }
        Some(_) => return None,
        None if left == 0 => String::new(),
        None => return None,
    };
    Some(format!("the upstream says {left} are left{ours}"))
}

fn rounded(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Of two waits the one that ends later; one without an instant ends last.
pub(super) fn later(a: Option<WaitView>, b: Option<WaitView>) -> Option<WaitView> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let last = |wait: &WaitView| wait.until.unwrap_or(Timestamp::MAX);
            Some(if last(&b) > last(&a) { b } else { a })
        }
        (a, b) => a.or(b),
    }
}

/// A partition with jobs that are queued or running.
pub(super) struct PartitionRow {
    id: i64,
    pub key: Columns,
    pub held: Option<places::HeldRow>,
    /// When it is looked at next, where nothing of it is ready.
    wake_at: Option<Timestamp>,
    /// The reason with which its head was tried last.
    pub again: Option<String>,
    /// That answer in a sentence.
    again_detail: Option<String>,
}

impl PartitionRow {
    pub fn read(row: &Row<'_>) -> rusqlite::Result<PartitionRow> {
        let until = row.get::<_, Option<i64>>("held_until")?.map(Timestamp::from_nanos);
        let held = places::HeldRow::read(row, until)?;
        Ok(PartitionRow {
            id: row.get("id")?,
            key: from_json(&row.get::<_, String>("key")?),
            held,
            wake_at: row.get::<_, Option<i64>>("wake_at")?.map(Timestamp::from_nanos),
            again: row.get("again")?,
            again_detail: row.get("again_detail")?,
        })
    }
}
