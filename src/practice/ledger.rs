//! What arrived, and what each rule and script made of it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;

use super::config::{By, Config, Rule};
use super::count::Counter;
use super::script::{Answer, fits};
use crate::clock::{Now, Timestamp};

/// Calls that were on their way when a scripted refusal went out are not early.
const GRACE: Duration = Duration::from_millis(500);

/// A call that reached the upstream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// When its head had been read (store time of the server's own timeline).
    pub at: Timestamp,
    /// The wall clock then.
    pub wall: Timestamp,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, as it stood in the address.
    pub query: Option<String>,
    /// A number that is the same for the same headers with the same values.
    pub headers_hash: u64,
    /// The headers, where [`Config::keep_headers`] asked for them.
    pub headers: Option<HeaderMap>,
    /// The body, up to 1 MiB.
    pub body: Bytes,
    /// The client's port: one number a connection.
    pub connection: u16,
    /// What it was answered.
    pub verdict: Verdict,
    /// Whether it came while a scripted refusal had told callers to stay away.
    pub early: bool,
}

/// What a call was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Every rule granted it.
    Granted,
    /// The rule of that name refused it.
    Refused(String),
    /// A script answered with that status.
    Scripted(u16),
}

/// What is to be sent back.
#[derive(Debug)]
pub(super) enum Ruling {
    /// The usual answer, to the call of that number.
    Usual(u64),
    /// A rule's refusal, with the time to wait.
    Refuse(Duration),
    /// A script's answer.
    Script(Answer),
}

/// One instance of a rule.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) counter: Counter,
    /// Every call that came, granted or not.
    pub(super) offered: Vec<Now>,
    pub(super) granted: Vec<Now>,
    pub(super) refused: u64,
    /// Offered and not yet answered, and the most of them at once.
    pub(super) open: u64,
    pub(super) most_open: u64,
}

/// Which instances a call is in, so that its end can be told to them.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    /// The instances, and whether they granted it.
    entries: Vec<((usize, String), bool)>,
}

/// Everything that arrived.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) arrivals: Vec<Arrival>,
    pub(super) instances: BTreeMap<(usize, String), Instance>,
    /// Connections, in the order in which they came.
    connections: BTreeMap<u16, usize>,
    /// How many calls fitted each script.
    fitted: BTreeMap<usize, u64>,
    /// Paths that a scripted refusal closed, from and until when.
    closed: Vec<(String, Timestamp, Timestamp)>,
    pub(super) open: u64,
    pub(super) most_open: u64,
}

impl Ledger {
    /// Decides on a call and writes it down. Its verdict and earliness are filled in here.
    pub(super) fn rule(
        &mut self,
        config: &Config,
        now: Now,
        mut arrival: Arrival,
    ) -> (Ruling, Ticket) {
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
        arrival.early = self.is_early(&arrival);
        let script = self.script(config, now, &arrival.path);
        let whim = script.as_ref().is_some_and(Answer::is_refusal);
        let (ticket, refused) = self.ask(config, now, &arrival, !whim);
        let (verdict, ruling) = match (refused, script) {
            (_, Some(answer)) if whim => (Verdict::Scripted(answer.status), Ruling::Script(answer)),
            (Some((name, wait)), _) => (Verdict::Refused(name), Ruling::Refuse(wait)),
            (None, Some(answer)) => (Verdict::Scripted(answer.status), Ruling::Script(answer)),
            (None, None) => {
                let before = u64::try_from(self.arrivals.len()).unwrap_or(u64::MAX);
                (Verdict::Granted, Ruling::Usual(before.saturating_add(1)))
            }
        };
        arrival.verdict = verdict;
        self.arrivals.push(arrival);
        (ruling, ticket)
    }

    /// A call was answered, or its connection is gone.
    pub(super) fn end(&mut self, ticket: &Ticket) {
        self.open = self.open.saturating_sub(1);
        for (key, granted) in &ticket.entries {
            if let Some(instance) = self.instances.get_mut(key) {
                instance.open = instance.open.saturating_sub(1);
                if *granted {
                    instance.counter.end();
                }
            }
        }
    }

    /// Asks every rule that the path fits: all grant, or none is charged. `charge` false: the call
    /// is only written down. Gives the refusal of the rule that has it wait longest.
    fn ask(
        &mut self,
        config: &Config,
        now: Now,
        arrival: &Arrival,
        charge: bool,
    ) -> (Ticket, Option<(String, Duration)>) {
        let mut refused: Option<(String, Duration)> = None;
        let mut ticket = Ticket::default();
        for (number, rule) in config.rules.iter().enumerate() {
            if !fits(&rule.on, &arrival.path) {
                continue;
            }
            let nth = self.connections.len();
            let nth = *self.connections.entry(arrival.connection).or_insert(nth);
            let key = (number, instance_key(rule, arrival, nth));
            let fresh = || Instance::new(Counter::new(&rule.limit, now));
            let instance = self.instances.entry(key.clone()).or_insert_with(fresh);
            instance.arrive(now);
            ticket.entries.push((key, false));
            let Some(wait) = instance.counter.wait(&rule.limit, now).filter(|_| charge) else {
                continue;
            };
            instance.refused += 1;
            if refused.as_ref().is_none_or(|(_, longest)| wait > *longest) {
                refused = Some((rule.name.clone(), wait));
            }
        }
        if charge && refused.is_none() {
            for (key, granted) in &mut ticket.entries {
                let rule = config.rules.get(key.0);
                if let (Some(instance), Some(rule)) = (self.instances.get_mut(key), rule) {
                    instance.counter.grant(&rule.limit, now);
                    instance.granted.push(now);
                    *granted = true;
                }
            }
        }
        (ticket, refused)
    }

    /// The answer of the first script that covers this call. Closes what it closes.
    fn script(&mut self, config: &Config, now: Now, path: &str) -> Option<Answer> {
        let mut found = None;
        for (number, script) in config.scripts.iter().enumerate() {
            if !fits(&script.on, path) {
                continue;
            }
            let nth = self.fitted.entry(number).or_default();
            *nth += 1;
            if found.is_none() && script.covers(*nth) {
                found = Some(script);
            }
        }
        let script = found?;
        if let (Some(paths), Some(wait)) = (&script.closes, script.answer.wait) {
            self.closed.push((paths.clone(), now.store + GRACE, now.store + wait));
        }
        Some(script.answer.clone())
    }

    fn is_early(&self, arrival: &Arrival) -> bool {
        let closed = |(paths, from, until): &(String, Timestamp, Timestamp)| {
            fits(paths, &arrival.path) && (*from..*until).contains(&arrival.at)
        };
        self.closed.iter().any(closed)
    }
}

impl Instance {
    fn new(counter: Counter) -> Instance {
        let (offered, granted) = (Vec::new(), Vec::new());
        Instance { counter, offered, granted, refused: 0, open: 0, most_open: 0 }
    }

    fn arrive(&mut self, now: Now) {
        self.offered.push(now);
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
    }
}

fn instance_key(rule: &Rule, arrival: &Arrival, nth: usize) -> String {
    match &rule.by {
        By::All => String::new(),
        By::Path => arrival.path.clone(),
        By::Copy(copies) => (nth % copies.max(&1)).to_string(),
        By::Query(name) => {
            let pairs = arrival.query.as_deref().unwrap_or_default().split('&');
            let value = pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| key == name);
            value.map(|(_, value)| value.to_owned()).unwrap_or_default()
        }
    }
}
