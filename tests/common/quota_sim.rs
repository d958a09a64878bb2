//! Jobs, processes, clocks and refusals on virtual time, and upstreams that count without mercy.
//!
//! The simulation only does what the dispatcher does: it asks, takes, sends a little late, gives
//! back or crashes. What was sent is then counted by plain loops that know nothing of how it was
//! decided.

use std::collections::HashMap;
use std::time::Duration;

use chrono::NaiveDate;
use chrono_tz::Tz;
use paceline::clock::{Now, Timestamp, nanos};
use paceline::quota::LimitRule;
use paceline::quota::decide::{self, Ask, Decision, Gate, Taken, Usage};
use paceline::quota::rate::{Counted, Rate};
use paceline::quota::reported::Reported;

/// What happens next.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passes.
    Pass(Duration),
    /// Somebody sets the wall clock to this many nanoseconds ahead of store time.
    SetWall(i64),
    /// A refusal closes a limit (by number, as far as there are so many) for so long.
    Block(usize, Duration),
    /// A process asks for a call.
    Claim(Claim),
    /// A call that was kept back is released unsent: the one of that number, as far as there is.
    Release(usize),
}

/// How a process goes about a call.
#[derive(Clone, Debug)]
pub struct Claim {
    pub cost: u64,
    /// Not before this long from now.
    pub lead: Duration,
    /// It waits at most this long to be admitted.
    pub patience: Duration,
    /// It is sent after this many thousandths of the margin.
    pub lateness: u32,
    pub fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Sent,
    /// Released at once.
    Released,
    /// Neither sent nor released until [`Event::Release`], if ever: a slow process or a dead one.
    Kept,
}

/// One call as the upstream sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub slot: Timestamp,
    /// Store time, which in the simulation is the true time.
    pub at: Timestamp,
    /// What the wall clock showed.
    pub wall: Timestamp,
    pub units: u64,
}

/// Some limits that every call must pass, and all that was sent.
pub struct World {
    rules: Vec<LimitRule>,
    usages: Vec<Usage>,
    blocked_until: Vec<Option<Timestamp>>,
    lookahead: Duration,
    now: Now,
    kept: Vec<Vec<Taken>>,
    pub sent: Vec<Arrival>,
    /// Instants of sends that a block forbade.
    pub sent_while_blocked: Vec<Timestamp>,
}

impl World {
    pub fn new(rules: Vec<LimitRule>, start: Timestamp, lookahead: Duration) -> World {
        let usages = rules.iter().map(Usage::none).collect();
        let blocked_until = vec![None; rules.len()];
        let now = Now::same(start);
        let (kept, sent, sent_while_blocked) = Default::default();
        World { rules, usages, blocked_until, lookahead, now, kept, sent, sent_while_blocked }
    }

    pub fn now(&self) -> Timestamp {
        self.now.store
    }

    pub fn usages(&self) -> &[Usage] {
        &self.usages
    }

    pub fn pass(&mut self, span: Duration) {
        self.now = Now { store: self.now.store + span, wall: self.now.wall + span };
    }

    pub fn play(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Pass(span) => self.pass(*span),
                Event::SetWall(ahead) => self.now.wall = self.now.store.shifted(*ahead),
                Event::Block(limit, span) => {
                    let until = self.now.store + *span;
                    if let Some(blocked) = self.blocked_until.get_mut(*limit) {
                        *blocked = (*blocked).max(Some(until));
                    }
                }
                Event::Claim(claim) => self.claim(claim),
                Event::Release(number) if *number < self.kept.len() => {
                    let taken = self.kept.swap_remove(*number);
                    self.give_back(&taken);
                }
                Event::Release(_) => {}
            }
        }
    }

    pub fn decide(&self, cost: u64, earliest: Timestamp) -> Decision {
        let limits = self.rules.iter().zip(&self.usages).zip(&self.blocked_until);
        let asks: Vec<Ask<'_>> = limits
            .map(|(rule, blocked_until)| Ask {
                limit: Some(rule.0.kind()),
                gate: Gate { blocked_until: *blocked_until, probing: false },
                rule: Some(rule),
                reported: Reported::default(),
                cost,
                lookahead: self.lookahead,
            })
            .collect();
        decide::decide(&asks, self.now, earliest)
    }

    /// How late every call may be: as late as the strictest limit allows.
    fn margin(&self) -> Duration {
        let margins = self.rules.iter().filter_map(|rule| match rule {
            LimitRule::Rate(rate) => Some(rate.margin()),
            LimitRule::Rolling(rolling) => Some(rolling.slack + rolling.path_jitter),
            _ => None,
        });
        margins.min().unwrap_or(Duration::ZERO)
    }

    fn claim(&mut self, claim: &Claim) {
        let patient_until = self.now.store + claim.patience;
        for _ in 0..20 {
            match self.decide(claim.cost, self.now.store + claim.lead) {
                Decision::Admit { slot } => return self.go(claim, slot),
                Decision::Wait { until, .. } if until <= patient_until => {
                    // As a runner does: it comes back when the slot is near enough to be taken.
                    let back_at = (until - self.lookahead).max(self.now.store.shifted(1));
                    self.pass(back_at.since(self.now.store));
                }
                _ => return,
            }
        }
    }

    fn go(&mut self, claim: &Claim, slot: Timestamp) {
        let now = self.now;
        let taken: Vec<Taken> = (self.rules.iter().zip(&mut self.usages))
            .map(|(rule, usage)| decide::charge(rule, usage, claim.cost, slot, now))
            .collect();
        match claim.fate {
            Fate::Released => self.give_back(&taken),
            Fate::Kept => self.kept.push(taken),
            Fate::Sent => {
                let at = slot + self.margin() * claim.lateness / 1_000;
                self.sent.push(Arrival { slot, at, wall: now.to_wall(at), units: claim.cost });
                if self.blocked_until.iter().any(|until| *until > Some(at)) {
                    self.sent_while_blocked.push(at);
                }
            }
        }
    }

    fn give_back(&mut self, taken: &[Taken]) {
        for (usage, taken) in self.usages.iter_mut().zip(taken) {
            decide::give_back(usage, taken);
        }
    }

    fn in_order(&self) -> Vec<Arrival> {
        let mut arrivals = self.sent.clone();
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }

    /// The most units in any half-open span of that length.
    pub fn most_in_span(&self, span: Duration) -> u64 {
        let arrivals = self.in_order();
        let from = |first: usize| {
            let inside = |arrival: &&Arrival| arrival.at < arrivals[first].at + span;
            arrivals[first..].iter().take_while(inside).map(|arrival| arrival.units).sum()
        };
        (0..arrivals.len()).map(from).max().unwrap_or(0)
    }

    /// Units refused by a token bucket of exactly the declared rate and burst, full at first. It
    /// counts in parts: one unit is as many parts as the period has nanoseconds.
    pub fn refused_by_bucket(&self, rate: &Rate) -> u64 {
        let period = i128::from(nanos(rate.period));
        let (full, amount) = (i128::from(rate.burst) * period, i128::from(rate.amount));
        let (mut level, mut last, mut refused) = (full, Timestamp::EPOCH, 0);
        for arrival in self.in_order() {
            let refill = i128::from(nanos(arrival.at.since(last))) * amount;
            level = full.min(level + refill);
            last = arrival.at;
            let price = i128::from(arrival.units) * period;
            if price <= level { level -= price } else { refused += arrival.units }
        }
        refused
    }

    /// Units that an upstream which declared that rate refuses.
    pub fn refused(&self, rate: &Rate) -> u64 {
        match rate.counted {
            Counted::Rolling => self.most_in_span(rate.period).saturating_sub(rate.amount),
            Counted::Bucket => self.refused_by_bucket(rate),
        }
    }

    /// The most units on any local date, by the clock that `clock` picks.
    pub fn most_in_day(&self, zone: Tz, clock: impl Fn(&Arrival) -> Timestamp) -> u64 {
        let mut days = HashMap::<NaiveDate, u64>::new();
        for arrival in &self.sent {
            let local = clock(arrival).to_utc().with_timezone(&zone);
            *days.entry(local.date_naive()).or_default() += arrival.units;
        }
        days.into_values().max().unwrap_or(0)
    }
}
