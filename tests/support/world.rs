//! A practice upstream, a home whose quota file `shop` calls it, and processes that share the store.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use paceline::practice::{Arrival, Config, Practice, Stats};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::process::{Process, until};
use super::terminal::Terminal;
use super::{Home, Ran};

/// One test's world. The upstream answers on a thread of its own.
pub struct World {
    pub home: Home,
    /// What every process is started with.
    pub environment: Vec<(String, String)>,
    practice: Option<Practice>,
    runtime: Runtime,
}

/// A process on the test's store.
pub const STORE: &str = "store.db";

impl World {
    /// An upstream that answers 200 to everything, or does as `config` says.
    pub fn new(config: Config) -> World {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let practice = runtime.block_on(Practice::start(config)).unwrap();
        World { home: Home::new(), environment: Vec::new(), practice: Some(practice), runtime }
    }

    /// A further upstream, on a host of its own (another port).
    pub fn another(&self, config: Config) -> Practice {
        self.runtime.block_on(Practice::start(config)).unwrap()
    }

    /// With the quota file `shop`: its `[request]` calls `/{id}`, `text` follows.
    pub fn with(config: Config, text: &str) -> World {
        let world = World::new(config);
        world.quota("shop", "/{id}", text);
        world
    }

    /// As [`World::with`], on a machine that does as `shim` says; the upstream goes by the true time.
    #[cfg(target_os = "linux")]
    pub fn on(shim: &super::shim::Shim, config: Config, text: &str) -> World {
        let world = World::with(config.clock(shim.truth()), text);
        World { environment: shim.environment(), ..world }
    }

    /// A quota file whose calls go to `path`; `text` begins within `[request]`.
    pub fn quota(&self, name: &str, path: &str, text: &str) {
        self.home.quota(name, &format!("[request]\nurl = \"{}\"\n{text}", self.url(path)));
    }

    /// A quota file that is a preset but for its address, which is `path` here; `text` begins within
    /// `[request]`.
    pub fn extends(&self, name: &str, preset: &str, path: &str, text: &str) {
        let url = self.url(path);
        let text = format!("extends = \"{preset}\"\n[request]\nurl = \"{url}\"\n{text}");
        self.home.quota(name, &text);
    }

    pub fn url(&self, path: &str) -> String {
        self.practice().url(path)
    }

    fn practice(&self) -> &Practice {
        self.practice.as_ref().unwrap()
    }

    pub fn stats(&self) -> Stats {
        self.practice().stats()
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.practice().arrivals()
    }

    pub fn count(&self) -> usize {
        usize::try_from(self.stats().count).unwrap()
    }

    /// Arrivals by path.
    pub fn by_path(&self) -> BTreeMap<String, u64> {
        self.stats().by_path
    }

    /// Runs a command to its end, on the test's store.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.start(arguments).finish()
    }

    /// As [`World::run`]; its answer in JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
    }

    /// Starts a command on the test's store.
    pub fn start(&self, arguments: &[&str]) -> Process {
        self.start_with(arguments, &[])
    }

    /// As [`World::start`], with more in its environment.
    pub fn start_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut command = self.command(arguments);
        command.envs(environment.iter().copied());
        Process::start(command)
    }

    /// A command on the test's store.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.paceline(arguments);
        command.env("PACELINE_STORE", self.home.path(STORE));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts a command on the test's store, on a terminal.
    pub fn watch(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(self.command(arguments))
    }

    /// Queues `jobs` rows of a CSV file for `shop`, numbered from `first`.
    pub fn add(&self, first: usize, jobs: usize) {
        self.add_to("shop", first, jobs, &[]);
    }

    /// Queues `jobs` rows for an upstream, with more arguments.
    pub fn add_to(&self, upstream: &str, first: usize, jobs: usize, arguments: &[&str]) {
        let mut rows = "id\n".to_owned();
        (first..first + jobs).for_each(|id| rows.push_str(&format!("{id}\n")));
        self.home.write("rows.csv", &rows);
        let ran =
            self.run(&[&["add", upstream, "--csv", "rows.csv", "--quiet"], arguments].concat());
        assert_eq!(ran.code, 0, "{ran}");
    }

    /// Jobs by state.
    pub fn jobs(&self) -> BTreeMap<String, u64> {
        let told = self.json(&["status"]);
        let jobs = told["jobs"].as_object().unwrap();
        let jobs = jobs.iter().map(|(state, n)| (state.clone(), n.as_u64().unwrap()));
        jobs.filter(|(_, n)| *n > 0).collect()
    }

    /// The store's file, opened beside the program.
    pub fn sql(&self) -> rusqlite::Connection {
        let conn = rusqlite::Connection::open(self.home.path(STORE)).unwrap();
        conn.busy_timeout(Duration::from_secs(10)).unwrap();
        conn
    }

    /// One number out of the store.
    pub fn number(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Stops a process where it holds no lock of the store, which nobody could take from it.
    pub fn stop(&self, process: &Process) {
        until("it is stopped outside a transaction", || {
            process.signal("STOP");
            let conn = self.sql();
            conn.busy_timeout(Duration::from_millis(200)).unwrap();
            let is_free = conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
            if !is_free {
                process.signal("CONT");
            }
            is_free
        });
    }

    /// Calls of one job each, of one attempt each, that ended or may leave without another commit.
    pub fn recorded(&self) -> usize {
        let ended = "SELECT count(*) FROM job WHERE state <> 'queued'";
        let leaving = "SELECT count(*) FROM running JOIN call ON call.id = call_id
            WHERE call.repeatable OR call.marked";
        usize::try_from(self.number(&format!("SELECT ({ended}) + ({leaving})"))).unwrap()
    }

    /// Units spent on budgets, ever.
    pub fn spent(&self) -> i64 {
        self.number("SELECT coalesce(sum(spent), 0) FROM budget_window")
    }

    /// Nothing of a runner is left: no call, no lease, no runner.
    pub fn nothing_is_left_over(&self) {
        for table in ["call", "running", "in_flight", "runner"] {
            assert_eq!(self.number(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
        }
    }
}
