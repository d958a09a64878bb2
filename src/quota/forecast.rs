//! When a queue will be empty: the real decision, asked on a clock that jumps from one answer to the next.
//!
//! Jobs of a partition that nothing tells apart go in runs: as many as its limits grant before any of them
//! changes its answer. Calls are taken to be answered at once, and as wished.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::decide::{Ask, Decision, Gate, Usage, charge, decide};
use super::reported::Reported;
use super::{Cost, Limit, LimitRule, Upstream};
use crate::clock::{Now, Timestamp};
use crate::job::Columns;

/// A run is at most this share of what a partition has left, so that partitions which share limits take
/// turns; but not shorter than [`SHORTEST`].
const RUNS: u64 = 64;
const SHORTEST: u64 = 16;

/// Of what a span of time has left a run takes at most this share: each part comes, or comes back, at its
/// own time.
const PARTS: u64 = 8;

/// And what a run takes of it is entered in so many pieces, at their times.
const PIECES: u64 = 8;

/// Nothing is looked for further off than this.
const HORIZON: Duration = Duration::from_secs(200 * 365 * 86_400);

/// Jobs of one partition that wait.
#[derive(Clone, Debug)]
pub struct Group {
    /// The partition's columns.
    pub columns: Columns,
    /// How many.
    pub jobs: u64,
    /// The sums of the columns that hold costs.
    pub costs: BTreeMap<String, u64>,
    /// When the first of them is due, and the last (store time).
    pub due: (Timestamp, Timestamp),
    /// What refusals did to the partition.
    pub gate: Gate,
    /// For each limit, in the file's order, where its instance stands in [`Backlog::instances`].
    pub instances: Vec<usize>,
    /// How many of its jobs are asked about: the first so many; `None`: all.
    pub asked: Option<u64>,
}

/// A limit instance as it stands.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What was used of it.
    pub usage: Usage,
    /// What refusals did to it.
    pub gate: Gate,
    /// What the upstream told of it.
    pub reported: Reported,
}

/// All that waits of an upstream, and what it waits for.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// The partitions with jobs.
    pub groups: Vec<Group>,
    /// The instances of their limits.
    pub instances: Vec<Instance>,
    /// Jobs that wait for a person, and are not looked at.
    pub held: u64,
}

/// A calendar window in which some of the jobs go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowUse {
    /// The budget.
    pub limit: String,
    /// The columns of its key: of each combination of values the windows are its own.
    pub key: Columns,
    /// The window's start (wall time).
    pub start: Timestamp,
    /// Its end (wall time).
    pub resets_at: Timestamp,
    /// Jobs that go in it.
    pub jobs: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forecast {
    /// The jobs asked about.
    pub jobs: u64,
    /// When the last of them goes (wall time); `None`: there is none, or not within two hundred years.
    pub finish_at: Option<Timestamp>,
    /// The limit that they wait for the longest.
    pub limit: Option<String>,
    /// The windows of budgets, in their order.
    pub windows: Vec<WindowUse>,
    /// Jobs that take more than a limit ever grants: they fail.
    pub never: u64,
}

/// When the backlog's jobs will have gone, from `now` on.
pub fn forecast(upstream: &Upstream, backlog: Backlog, now: Now) -> Forecast {
    let asked = |group: &Group| group.asked.unwrap_or(group.jobs);
    let jobs = backlog.groups.iter().map(asked).sum();
    let mut run = Run::new(upstream, backlog, now);
    run.go();
    let waited = run.waited.iter().max_by_key(|(_, waited)| **waited);
    let mut windows: Vec<WindowUse> = run.windows.into_values().collect();
    windows.sort_by(|a, b| (a.start, &a.limit, &a.key).cmp(&(b.start, &b.limit, &b.key)));
    Forecast {
        jobs,
        finish_at: run.finish_at.filter(|_| !run.endless).map(|at| now.to_wall(at)),
        limit: waited.map(|(name, _)| (*name).to_owned()),
        windows,
        never: run.never,
    }
}

fn key_of(limit: &Limit, columns: &Columns) -> Columns {
    let value = |name: &String| Some((name.clone(), columns.get(name)?.clone()));
    limit.key.iter().filter_map(value).collect()
}

struct Run<'u> {
    upstream: &'u Upstream,
    now: Now,
    groups: Vec<Group>,
    instances: Vec<Instance>,
    /// Groups by when they are asked next; at one instant who has waited longest for a run goes first.
    turns: BinaryHeap<Reverse<(Timestamp, u64, usize)>>,
    /// Runs sent.
    runs: u64,
    finish_at: Option<Timestamp>,
    endless: bool,
    never: u64,
    waited: BTreeMap<&'u str, Duration>,
    windows: BTreeMap<(usize, usize, Timestamp), WindowUse>,
}

impl<'u> Run<'u> {
    fn new(upstream: &'u Upstream, backlog: Backlog, now: Now) -> Run<'u> {
        let Backlog { mut groups, mut instances, .. } = backlog;
        // Calls are answered at once, so none of those that are out is waited for.
        for instance in &mut instances {
            instance.gate.probing = false;
            if let Usage::Concurrency(in_flight) = &mut instance.usage {
                *in_flight = 0;
            }
        }
        for group in &mut groups {
            group.gate.probing = false;
        }
        let first = |group: &Group| group.due.0.max(now.store);
        let waits = groups.iter().enumerate().filter(|(_, group)| group.jobs > 0);
        let turns = waits.map(|(at, group)| Reverse((first(group), 0, at))).collect();
        Run {
            upstream,
            now,
            groups,
            instances,
            turns,
            runs: 0,
            finish_at: None,
            endless: false,
            never: 0,
            waited: BTreeMap::new(),
            windows: BTreeMap::new(),
        }
    }

    fn go(&mut self) {
        let end = self.now.store + HORIZON;
        while let Some(Reverse((at, served, group))) = self.turns.pop() {
            if at >= end {
                self.endless = true;
                return;
            }
            match self.ask(group, at) {
                Decision::Admit { slot } => self.send(group, slot),
                Decision::Wait { until, limit, .. } => {
                    self.note_wait(limit.as_deref(), until.since(at));
                    self.turns.push(Reverse((until.max(at.shifted(1)), served, group)));
                }
                // Nothing is in flight here that could end.
                Decision::Busy { .. } => self.endless = true,
                Decision::Never { .. } => {
                    self.never += self.groups.get(group).map_or(0, |group| group.jobs);
                }
            }
        }
    }

    /// May the group's next call go at `at`?
    fn ask(&self, group: usize, at: Timestamp) -> Decision {
        let Some(group) = self.groups.get(group) else {
            return Decision::Busy { limit: None };
        };
        let limits = self.upstream.limits.iter().zip(&group.instances);
        let asks = limits.filter_map(|(limit, instance)| {
            let instance = self.instances.get(*instance)?;
            Some(Ask {
                limit: Some(&limit.name),
                gate: instance.gate,
                reported: instance.reported,
                rule: Some((limit.rule_for(&group.columns), &instance.usage)),
                cost: group.cost(limit, 1, self.per_call()),
                lookahead: Duration::ZERO,
            })
        });
        let (reported, lookahead) = (Reported::default(), Duration::ZERO);
        let own = Ask { limit: None, gate: group.gate, rule: None, reported, cost: 0, lookahead };
        let asks: Vec<Ask<'_>> = asks.chain([own]).collect();
        let now = Now { store: at, wall: self.now.to_wall(at) };
        decide(&asks, now, at)
    }

    /// Jobs in one call.
    fn per_call(&self) -> u64 {
        self.upstream.batch.as_ref().map_or(1, |batch| batch.max_items as u64).max(1)
    }

    /// Sends a run of the group's jobs, the first of them at `slot`.
    fn send(&mut self, index: usize, slot: Timestamp) {
        let jobs = self.run_length(index, slot);
        let (last, paced_by) = self.last_slot(index, slot, jobs);
        self.charge(index, jobs, slot, last);
        self.note_wait(paced_by, last.since(slot));
        self.runs += 1;
        let Some(group) = self.groups.get_mut(index) else { return };
        let counted = group.asked.is_none_or(|asked| asked > 0);
        group.leave(jobs);
        group.asked = group.asked.map(|asked| asked.saturating_sub(jobs));
        let (left, due, all_asked) = (group.jobs, group.due.1, group.asked == Some(0));
        if counted {
            let done = if left == 0 { last.max(due) } else { last };
            self.finish_at = self.finish_at.max(Some(done));
        }
        if left > 0 && !(all_asked && self.nothing_asked()) {
            self.turns.push(Reverse((last, self.runs, index)));
        }
    }

    /// When the last of so many jobs goes, and the limit that paces them, if one does.
    fn last_slot(&self, group: usize, slot: Timestamp, jobs: u64) -> (Timestamp, Option<&'u str>) {
        let (upstream, mut latest) = (self.upstream, (slot, None));
        let Some(group) = self.groups.get(group) else { return latest };
        let now = Now { store: slot, wall: self.now.to_wall(slot) };
        for (limit, instance) in upstream.limits.iter().zip(&group.instances) {
            let usage = self.instances.get(*instance).map(|instance| &instance.usage);
            let units = |jobs| group.cost(limit, jobs, self.per_call());
            let ends = match (limit.rule_for(&group.columns), usage) {
                (LimitRule::Rate(rate), Some(Usage::Rate(tat))) => {
                    rate.plan().last_slot(*tat, slot, units(jobs))
                }
                (LimitRule::Budget(budget), Some(Usage::Budget(windows))) => {
                    let one = units(jobs.min(self.per_call()));
                    budget.last_slot(windows, now, slot, units(jobs), one)
                }
                _ => continue,
            };
            if ends > latest.0 {
                latest = (ends, Some(limit.name.as_str()));
            }
        }
        latest
    }

    /// Takes what so many jobs cost, the first of them sent at `slot`.
    fn charge(&mut self, group: usize, jobs: u64, slot: Timestamp, last: Timestamp) {
        let per_call = self.per_call();
        let now = Now { store: last, wall: self.now.to_wall(last) };
        let Some(group) = self.groups.get(group) else { return };
        for (position, limit) in self.upstream.limits.iter().enumerate() {
            let Some(instance) = group.instances.get(position) else { continue };
            let Some(Instance { usage, reported, .. }) = self.instances.get_mut(*instance) else {
                continue;
            };
            let units = group.cost(limit, jobs, per_call);
            reported.charge(last, units);
            let rule = limit.rule_for(&group.columns);
            match rule {
                LimitRule::Concurrency(_) => {}
                // A rate's slots begin where the run does.
                LimitRule::Rate(_) => drop(charge(rule, usage, units, slot, now)),
                LimitRule::Rolling(_) => {
                    for (at, units) in pieces(units, slot, last) {
                        drop(charge(rule, usage, units, at, now));
                    }
                }
                LimitRule::Budget(budget) => {
                    drop(charge(rule, usage, units, last, now));
                    let span = budget.calendar.window(now.wall);
                    let used = self.windows.entry((position, *instance, span.start));
                    let used = used.or_insert_with(|| WindowUse {
                        limit: limit.name.clone(),
                        key: key_of(limit, &group.columns),
                        start: span.start,
                        resets_at: span.next_reset,
                        jobs: 0,
                    });
                    used.jobs += jobs;
                }
            }
        }
    }

    fn nothing_asked(&self) -> bool {
        self.groups.iter().all(|group| group.asked == Some(0) || group.jobs == 0)
    }

    /// How many of the group's jobs go from `slot` on before a limit changes its answer.
    fn run_length(&self, group: usize, slot: Timestamp) -> u64 {
        let Some(group) = self.groups.get(group) else { return 1 };
        let now = Now { store: slot, wall: self.now.to_wall(slot) };
        let fair = (group.jobs / RUNS).max(SHORTEST * self.per_call());
        let mut most = group.jobs.min(fair);
        most = group.asked.filter(|asked| *asked > 0).map_or(most, |asked| asked.min(most));
        let mut ends_at = None;
        for (limit, instance) in self.upstream.limits.iter().zip(&group.instances) {
            let Some(instance) = self.instances.get(*instance) else { continue };
            let told = instance.reported.grantable(limit.rule_for(&group.columns), slot);
            most = most.min(group.afford(limit, told, self.per_call()));
            match (limit.rule_for(&group.columns), &instance.usage) {
                (LimitRule::Budget(budget), Usage::Budget(windows)) => {
                    let left = budget.left(windows, now, slot);
                    let left = if budget.spread { left / PARTS } else { left };
                    most = most.min(group.afford(limit, left, self.per_call()));
                    let reset = now.to_store(budget.calendar.window(now.wall).next_reset);
                    let closes = reset - super::budget::RESET_GUARD;
                    ends_at = Some(ends_at.map_or(closes, |known: Timestamp| known.min(closes)));
                }
                (LimitRule::Rolling(rolling), Usage::Rolling(entries)) => {
                    let left = rolling.left(entries, slot) / PARTS;
                    most = most.min(group.afford(limit, left, self.per_call()));
                }
                _ => {}
            }
        }
        for (limit, instance) in self.upstream.limits.iter().zip(&group.instances) {
            let rule = limit.rule_for(&group.columns);
            let usage = self.instances.get(*instance).map(|instance| &instance.usage);
            if let (LimitRule::Rate(rate), Some(Usage::Rate(tat)), Some(end)) =
                (rule, usage, ends_at)
            {
                let units = rate.plan().grantable(*tat, slot, end);
                most = most.min(group.afford(limit, units, self.per_call()));
            }
        }
        most.max(1)
    }

    fn note_wait(&mut self, limit: Option<&str>, span: Duration) {
        let Some(limit) = limit.and_then(|name| self.upstream.limit(name)) else { return };
        *self.waited.entry(&limit.name).or_default() += span;
    }
}

/// Units that follow each other from `first` to `last`, in a few pieces; none is entered too early.
fn pieces(units: u64, first: Timestamp, last: Timestamp) -> impl Iterator<Item = (Timestamp, u64)> {
    let count = units.clamp(1, PIECES);
    let span = last.since(first) / u32::try_from(count).unwrap_or(1);
    (1..=count).map(move |n| {
        let at = first + span * u32::try_from(n).unwrap_or(1);
        let sent = |n: u64| units * n / count;
        (if n == count { last } else { at }, sent(n) - sent(n - 1))
    })
}

impl Group {
    /// So many of its jobs have gone, with their share of the costs.
    fn leave(&mut self, jobs: u64) {
        for sum in self.costs.values_mut() {
            let share = u128::from(*sum) * u128::from(jobs) / u128::from(self.jobs.max(1));
            *sum -= u64::try_from(share).unwrap_or(*sum).min(*sum);
        }
        self.jobs -= jobs;
    }

    /// The units that so many of its jobs take.
    fn cost(&self, limit: &Limit, jobs: u64, per_call: u64) -> u64 {
        match &limit.cost {
            Cost::Calls => jobs.div_ceil(per_call),
            Cost::Items => jobs,
            Cost::Column(name) => {
                let sum = u128::from(self.costs.get(name).copied().unwrap_or(self.jobs));
                let share = (sum * u128::from(jobs)).div_ceil(u128::from(self.jobs.max(1)));
                u64::try_from(share).unwrap_or(u64::MAX)
            }
        }
    }

    /// How many of its jobs so many units are enough for.
    fn afford(&self, limit: &Limit, units: u64, per_call: u64) -> u64 {
        match &limit.cost {
            Cost::Calls => units.saturating_mul(per_call),
            Cost::Items => units,
            Cost::Column(name) => {
                let sum = u128::from(self.costs.get(name).copied().unwrap_or(self.jobs).max(1));
                let jobs = u128::from(units) * u128::from(self.jobs) / sum;
                u64::try_from(jobs).unwrap_or(u64::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests;
