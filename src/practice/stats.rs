//! What the upstream saw, in numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::config::{Config, Limit};
use super::count::{date, window};
use super::ledger::{Instance, Ledger, Verdict};
use crate::clock::{Now, Timestamp};

/// What a practice upstream saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that arrived.
    pub count: u64,
    /// Of these, granted ones that got the usual answer.
    pub ok: u64,
    /// Refused by a rule: the caller went too fast.
    pub refused: u64,
    /// Answered by a script.
    pub scripted: u64,
    /// Of the scripted ones, refusals: the upstream's own whim.
    pub whims: u64,
    /// Came while a scripted refusal had told callers to stay away.
    pub early: u64,
    /// Connections that were used.
    pub connections: u64,
    /// The most calls at once.
    pub max_in_flight: u64,
    /// Seconds from the first arrival to the last.
    pub span_s: f64,
    /// The most arrivals in any span of that length: `1s`, `10s`, `60s`.
    pub busiest: BTreeMap<&'static str, u64>,
    /// Arrivals by path.
    pub by_path: BTreeMap<String, u64>,
    /// Each rule.
    pub rules: Vec<RuleStats>,
}

/// What one rule saw; of several instances the worst.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RuleStats {
    /// Its name.
    pub name: String,
    /// Instances: values that it counted apart.
    pub instances: u64,
    /// Calls that it granted.
    pub granted: u64,
    /// Calls that it refused.
    pub refused: u64,
    /// The most calls in one of its windows: a second for a bucket, its own otherwise; at once, of
    /// calls in flight.
    pub busiest: u64,
    /// What its windows allow: of a bucket what a full one lets go in a second; else the amount.
    pub allowed: u64,
    /// By how many calls the worst span was over what the rule allows (for a bucket B + r·t), of all
    /// that arrived. Never above 0 where the caller kept to the rule.
    pub excess_offered: f64,
    /// The same of what was granted: above 0 the server itself would be at fault.
    pub excess_granted: f64,
}

impl Stats {
    /// The rule of that name.
    pub fn rule(&self, name: &str) -> Option<&RuleStats> {
        self.rules.iter().find(|rule| rule.name == name)
    }
}

pub(super) fn stats(config: &Config, ledger: &Ledger) -> Stats {
    let mut stats = Stats { max_in_flight: ledger.most_open, ..Stats::default() };
    let mut connections = std::collections::BTreeSet::new();
    for arrival in &ledger.arrivals {
        stats.count += 1;
        match &arrival.verdict {
            Verdict::Granted => stats.ok += 1,
            Verdict::Refused(_) => stats.refused += 1,
            Verdict::Scripted(status) => {
                stats.scripted += 1;
                stats.whims += u64::from(matches!(status, 429 | 503));
            }
        }
        stats.early += u64::from(arrival.early);
        connections.insert(arrival.connection);
        *stats.by_path.entry(arrival.path.clone()).or_default() += 1;
    }
    stats.connections = count(connections.len());
    let arrivals: Vec<Timestamp> = ledger.arrivals.iter().map(|arrival| arrival.at).collect();
    if let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) {
        stats.span_s = last.since(*first).as_secs_f64();
    }
    for (name, seconds) in [("1s", 1), ("10s", 10), ("60s", 60)] {
        stats.busiest.insert(name, busiest(&arrivals, Duration::from_secs(seconds)));
    }
    stats.rules = config
        .rules
        .iter()
        .enumerate()
        .map(|(number, rule)| {
            let instances = ledger.instances.iter().filter(|((of, _), _)| *of == number);
            rule_stats(&rule.name, &rule.limit, instances.map(|(_, instance)| instance))
        })
        .collect();
    stats
}

fn rule_stats<'a>(
    name: &str,
    limit: &Limit,
    instances: impl Iterator<Item = &'a Instance>,
) -> RuleStats {
    let mut stats = RuleStats {
        name: name.to_owned(),
        instances: 0,
        granted: 0,
        refused: 0,
        busiest: 0,
        allowed: allowed(limit),
        excess_offered: f64::NEG_INFINITY,
        excess_granted: f64::NEG_INFINITY,
    };
    for instance in instances {
        stats.instances += 1;
        stats.granted += count(instance.granted.len());
        stats.refused += instance.refused;
        let (most, over) = worst(limit, &instance.offered, instance.most_open);
        stats.busiest = stats.busiest.max(most);
        stats.excess_offered = stats.excess_offered.max(over);
        let (_, over) = worst(limit, &instance.granted, 0);
        stats.excess_granted = stats.excess_granted.max(over);
    }
    // JSON knows no infinity; with no calls nothing is over.
    for excess in [&mut stats.excess_offered, &mut stats.excess_granted] {
        if excess.is_infinite() {
            *excess = -figure(stats.allowed);
        }
    }
    stats
}

fn allowed(limit: &Limit) -> u64 {
    match limit {
        Limit::Bucket { units, per, burst } => {
            let second = Duration::from_secs(1).as_nanos();
            let flow = u128::from(*units) * second / per.as_nanos().max(1);
            burst.saturating_add(u64::try_from(flow).unwrap_or(u64::MAX))
        }
        Limit::Rolling { amount, .. }
        | Limit::Fixed { amount, .. }
        | Limit::Day { amount, .. }
        | Limit::InFlight { amount } => *amount,
    }
}

/// The most calls in one window of the limit, and by how many the worst span is over it.
fn worst(limit: &Limit, calls: &[Now], most_open: u64) -> (u64, f64) {
    let at: Vec<Timestamp> = calls.iter().map(|call| call.store).collect();
    let over = |most: u64, amount: u64| (most, figure(most) - figure(amount));
    match limit {
        Limit::Bucket { units, per, burst } => {
            (busiest(&at, Duration::from_secs(1)), over_line(&at, *units, *per, *burst))
        }
        Limit::Rolling { amount, per } => over(busiest(&at, *per), *amount),
        Limit::Fixed { amount, per } => {
            over(fullest(at.iter().map(|at| window(*at, *per))), *amount)
        }
        Limit::Day { amount, zone, used } => {
            let days = calls.iter().map(|call| date(call.wall, *zone));
            let first = calls.first().map(|call| date(call.wall, *zone));
            let before = usize::try_from(*used).unwrap_or(usize::MAX);
            over(
                fullest(
                    days.chain(first.into_iter().flat_map(|day| std::iter::repeat_n(day, before))),
                ),
                *amount,
            )
        }
        Limit::InFlight { amount } => over(most_open, *amount),
    }
}

/// The most of `at` in any half-open span of that length.
fn busiest(at: &[Timestamp], span: Duration) -> u64 {
    let mut most = 0;
    let mut first = at.iter().enumerate().peekable();
    for (number, last) in at.iter().enumerate() {
        while first.next_if(|(_, first)| last.since(**first) >= span).is_some() {}
        let gone = first.peek().map_or(number, |(number, _)| *number);
        most = most.max(count(number + 1 - gone));
    }
    most
}

/// The most equal values.
fn fullest<K: Ord>(keys: impl Iterator<Item = K>) -> u64 {
    let mut calls = BTreeMap::<K, u64>::new();
    for key in keys {
        *calls.entry(key).or_default() += 1;
    }
    calls.into_values().max().unwrap_or(0)
}

/// By how many calls the worst span, of whatever length, is over B + r·t.
///
/// Over the span from call i to call j there are j - i + 1 calls, and B + r·(tj - ti) are allowed:
/// so one pass finds the worst, by the lowest i - r·ti that came before each j.
fn over_line(at: &[Timestamp], units: u64, per: Duration, burst: u64) -> f64 {
    let Some(start) = at.first() else { return f64::NEG_INFINITY };
    let rate = figure(units) / per.as_secs_f64();
    let (mut lowest, mut worst) = (f64::INFINITY, f64::NEG_INFINITY);
    for (number, at) in at.iter().enumerate() {
        let ahead = figure(count(number)) - rate * at.since(*start).as_secs_f64();
        lowest = lowest.min(ahead);
        worst = worst.max(ahead - lowest + 1.0 - figure(burst));
    }
    // A span that is full to the brim must not count as over it by a rounding error.
    if worst.abs() < 1e-6 { 0.0 } else { worst }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "no server here sees 2^53 calls")]
fn figure(number: u64) -> f64 {
    number as f64
}
