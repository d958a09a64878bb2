//! What a practice upstream declares, and how it answers.

use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;

use super::script::Script;
use crate::clock::{Clock, SystemClock};

/// What a practice upstream enforces and answers.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) port: u16,
    pub(super) rules: Vec<Rule>,
    pub(super) scripts: Vec<Script>,
    pub(super) retry_after: RetryAfter,
    pub(super) latency: Duration,
    pub(super) body: String,
    pub(super) keeps_headers: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config::new()
    }
}

impl Config {
    /// No rules, no scripts: every call is answered 200 at once.
    pub fn new() -> Config {
        Config {
            clock: Arc::new(SystemClock::new()),
            port: 0,
            rules: Vec::new(),
            scripts: Vec::new(),
            retry_after: RetryAfter::default(),
            latency: Duration::ZERO,
            body: r#"{"id": "{last}", "n": {n}}"#.to_owned(),
            keeps_headers: false,
        }
    }

    /// The clock that arrivals and windows are counted by; default: the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Config {
        self.clock = clock;
        self
    }

    /// The port; default: any free one.
    pub fn port(mut self, port: u16) -> Config {
        self.port = port;
        self
    }

    /// One more rule that must grant.
    pub fn rule(mut self, rule: Rule) -> Config {
        self.rules.push(rule);
        self
    }

    /// One more script; the first that applies answers.
    pub fn script(mut self, script: Script) -> Config {
        self.scripts.push(script);
        self
    }

    /// How a rule's refusal tells when to come back; default: whole seconds.
    pub fn retry_after(mut self, form: RetryAfter) -> Config {
        self.retry_after = form;
        self
    }

    /// How long each answer takes; default: no time.
    pub fn latency(mut self, latency: Duration) -> Config {
        self.latency = latency;
        self
    }

    /// The body of a granted call, with status 200: `{last}` in it becomes the last part of the
    /// path, `{n}` the number of the call from 1.
    pub fn body(mut self, body: impl Into<String>) -> Config {
        self.body = body.into();
        self
    }

    /// Keeps every arrival's headers, for tests that look at them.
    pub fn keep_headers(mut self) -> Config {
        self.keeps_headers = true;
        self
    }
}

/// One limit, on the paths that it fits.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) on: String,
    pub(super) by: By,
    pub(super) limit: Limit,
}

impl Rule {
    /// A rule on every path, all calls together.
    pub fn new(name: impl Into<String>, limit: Limit) -> Rule {
        Rule { name: name.into(), on: "*".to_owned(), by: By::All, limit }
    }

    /// Only on paths that fit: exact, or with a `*` at either end.
    pub fn on(mut self, pattern: impl Into<String>) -> Rule {
        self.on = pattern.into();
        self
    }

    /// Counts each path by itself.
    pub fn by_path(mut self) -> Rule {
        self.by = By::Path;
        self
    }

    /// Counts on each of so many copies of the upstream by itself. A balancer before them gives each new
    /// connection to the next copy.
    pub fn by_copy(mut self, copies: usize) -> Rule {
        self.by = By::Copy(copies);
        self
    }

    /// Counts each value of a query parameter, as it stands in the address, by itself.
    pub fn by_query(mut self, name: impl Into<String>) -> Rule {
        self.by = By::Query(name.into());
        self
    }
}

/// What a rule counts apart.
#[derive(Clone, Debug)]
pub(super) enum By {
    All,
    Path,
    Copy(usize),
    Query(String),
}

/// How a rule counts.
#[derive(Clone, Debug)]
pub enum Limit {
    /// `units` tokens flow in every `per`, into a bucket that holds `burst`.
    Bucket {
        /// Tokens in each `per`.
        units: u64,
        /// The time that they take.
        per: Duration,
        /// What the bucket holds; it is full at first.
        burst: u64,
    },
    /// No span of `per`, wherever it begins, holds more than `amount`.
    Rolling {
        /// Calls.
        amount: u64,
        /// The span.
        per: Duration,
    },
    /// No window holds more than `amount`; windows follow each other from the epoch on.
    Fixed {
        /// Calls.
        amount: u64,
        /// The window.
        per: Duration,
    },
    /// No local day, midnight to midnight on the wall clock, holds more than `amount`.
    Day {
        /// Calls.
        amount: u64,
        /// Whose days.
        zone: Tz,
        /// Calls that others made before the server started, on the day it started.
        used: u64,
    },
    /// No more than `amount` calls at once.
    InFlight {
        /// Calls.
        amount: u64,
    },
}

impl Limit {
    /// `amount` calls a local day of `zone`.
    pub fn day(amount: u64, zone: Tz) -> Limit {
        Limit::Day { amount, zone, used: 0 }
    }
}

/// How a refusal tells when to come back. Always rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// `Retry-After: 3`
    #[default]
    Seconds,
    /// `Retry-After: Sun, 06 Nov 1994 08:49:37 GMT`
    Date,
    /// `retry-after-ms: 2512`, beside whole seconds.
    Millis,
    /// Not at all.
    None,
}
