//! What the demo says, in calm lines that read the same on a terminal and in a log.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono_tz::Tz;
use paceline::clock::{Now, Timestamp};
use paceline::dispatch::{Event, Report};
use paceline::job::JobState;
use paceline::practice::Stats;
use paceline::quota::{LimitRule, Upstream};
use paceline::report::words::span;
use paceline::store::Store as _;
use paceline::store::views::UpstreamView;

use crate::render::time::Times;

use super::catalogue::Addition;
use super::stage::{BURST, CALLS_PER_DAY, CALLS_PER_SECOND, DAILY, PLAN, Stage, UPSTREAM};
use super::{DemoStore, limit};

/// A line of progress at most so often.
const PROGRESS: Duration = Duration::from_secs(2);

/// Where the story is told.
#[derive(Clone, Copy, Debug)]
pub enum Story {
    /// On stdout.
    Out,
    /// On stderr: stdout is for JSON.
    Beside,
    /// Nowhere.
    Untold,
}

impl Story {
    /// Says one line. A reader that has gone away is no reason to stop counting.
    fn say(self, line: &str) {
        use std::io::Write as _;
        let _ = match self {
            Story::Out => writeln!(std::io::stdout(), "{line}"),
            Story::Beside => writeln!(std::io::stderr(), "{line}"),
            Story::Untold => Ok(()),
        };
    }

    /// What there is.
    pub fn opening(self, stage: &Stage) {
        self.say(&format!(
            "A practice upstream listens on {}. It counts each call, and refuses",
            stage.practice.addr()
        ));
        self.say("whatever goes over its limits:");
        self.say(&format!("  {PLAN:<6} {CALLS_PER_SECOND} calls a second, {BURST} at once"));
        self.say(&format!(
            "  {DAILY:<6} {CALLS_PER_DAY} calls a day, from midnight to midnight in {}",
            stage.zone
        ));
        self.say(
        "Once, at its hundredth call, it asks for three seconds of peace, as real ones do on a whim.",
    );
        self.say(
        "examples/practice.toml declares the limits to Paceline, which reads it as any quota file.",
    );
    }

    /// What became of the catalogue.
    pub fn added(self, addition: &Addition) {
        self.say("");
        self.say("add practice --csv examples/catalogue.csv");
        for (line, problem) in &addition.rejected {
            self.say(&format!("  line {line} is not added: {problem}"));
        }
        self.say(&format!("  {} jobs are queued", addition.jobs));
    }

    /// That nothing is queued twice.
    pub fn added_again(self, addition: &Addition) {
        self.say(&format!(
            "  the same file again: {} added, {} are there already",
            addition.jobs, addition.duplicates
        ));
    }

    /// What is about to begin.
    pub fn sending(self, upstream: &Upstream) {
        self.say("");
        self.say("run practice");
        if let Some(LimitRule::Rate(rate)) = upstream.limit(PLAN).map(|limit| &limit.rule) {
            let plan = rate.plan();
            self.say(&format!(
                "  planned: {:.1} calls a second, {} at once, so that none can come too soon",
                plan.per_second(),
                plan.burst
            ));
        }
    }

    /// What the run came to.
    pub fn sent(self, report: &Report, took: Duration) {
        self.say(&format!(
            "  {} calls in {:.1} s: {} done, {} failed, {} wait",
            report.sent,
            took.as_secs_f64(),
            report.done,
            report.failed,
            report.waiting
        ));
    }

    /// What the other side counted.
    pub fn upstream_saw(self, stats: &Stats, zone: &Tz) {
        self.say("");
        self.say("What the upstream saw");
        self.say(&format!("  {} calls on {} connections", stats.count, stats.connections));
        self.say(&format!("  refusals of Paceline's making: {}", stats.refused));
        self.say(&format!(
            "  refusals of its own whim: {}; calls before its Retry-After was over: {}",
            stats.whims, stats.early
        ));
        if let Some(rule) = stats.rule(PLAN) {
            self.say(&format!(
                "  busiest second: {} calls, where {} may come",
                rule.busiest, rule.allowed
            ));
        }
        if let Some(rule) = stats.rule(DAILY) {
            self.say(&format!(
                "  today in {zone}: {} calls, where {} may come",
                rule.busiest, rule.allowed
            ));
        }
    }

    /// What must wait: for what, and until when, there and here.
    pub fn still_waiting(self, stage: &Stage, report: &Report, view: &UpstreamView) {
        self.say("");
        self.say("What still waits");
        let Some(until) = report.next_at else {
            self.say("  nothing");
            return;
        };
        let name = report.limit.as_deref().unwrap_or("its own turn");
        self.say(&format!("  {} jobs wait for `{name}`", report.waiting));
        if let Some(limit) = limit(view, name) {
            let spent = limit.spent.unwrap_or(0);
            let over = limit.zone.map(|zone| format!(" today in {zone}")).unwrap_or_default();
            self.say(&format!("  {spent} of its {} units are spent{over}", limit.amount));
        }
        let times = Times::new(stage.store.now().wall);
        self.say(&format!("  the next can go at {}", times.both(until, Some(stage.zone))));
        self.say(
            "  A user's run would wait, or end with 75 and be started again: the queue is on disk.",
        );
    }

    /// Whether it was as promised, and what to look at.
    pub fn closing(self, stage: &Stage, broken: &[String]) {
        self.say("");
        for what in broken {
            self.say(&format!("NOT AS PROMISED: {what}"));
        }
        if broken.is_empty() {
            self.say("All was as promised.");
        }
        let Some(folder) = &stage.kept else { return };
        let folder = folder.display();
        self.say("Look at it with");
        for command in ["status", &format!("why {UPSTREAM}"), &format!("log {UPSTREAM}")] {
            self.say(&format!(
                "  paceline --store {folder}/paceline.db --quotas {folder}/quotas {command}"
            ));
        }
    }
}

/// Hears what happens, and says the little of it that is news.
pub struct Listener {
    story: Story,
    store: DemoStore,
    began_at: Timestamp,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    sent: u64,
    done: u64,
    said_at: Timestamp,
    waits: BTreeSet<Option<String>>,
}

impl Listener {
    /// Begins to listen.
    pub fn new(story: Story, store: DemoStore) -> Listener {
        let began_at = store.now().store;
        let heard = Heard { said_at: began_at, ..Heard::default() };
        Listener { story, store, began_at, heard: Mutex::new(heard) }
    }

    /// Something happened.
    pub fn hear(&self, event: &Event) {
        let now = self.store.now();
        // Counts stay counts, whatever happened to another listener.
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Sent { .. } => heard.sent += 1,
            Event::Answered { state: JobState::Failed, url, status, detail, .. } => {
                let status = status.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
                let isbn = url.rsplit('/').next().unwrap_or(url);
                self.say(now, &format!("ISBN {isbn} failed: {status}, {detail}"));
            }
            Event::Answered { state, .. } => {
                heard.done += u64::from(*state == JobState::Done);
                if now.store.since(heard.said_at) >= PROGRESS {
                    heard.said_at = now.store;
                    self.say(now, &format!("{} sent, {} done", heard.sent, heard.done));
                }
            }
            Event::Blocked { until, reason, .. } => self.blocked(now, *until, reason),
            Event::Waiting { until, limit, .. } => {
                let left = until.since(now.wall);
                if left > PROGRESS * 5 && heard.waits.insert(limit.clone()) {
                    let limit = limit.as_deref().unwrap_or("nobody");
                    self.say(now, &format!("`{limit}` lets nothing more go for {}", span(left)));
                }
            }
            Event::Held { reason, detail, .. } => {
                self.say(now, &format!("held, {reason}: {detail}"));
            }
            Event::Draining { in_flight: 1.. } => {
                self.say(now, "leaving; what is in flight is awaited");
            }
            _ => {}
        }
    }

    fn blocked(&self, now: Now, until: Timestamp, reason: &paceline::reading::Reason) {
        let left = until.since(now.wall).as_secs_f64();
        self.say(now, &format!("the upstream says {reason}: nothing goes for {left:.1} s"));
    }

    fn say(&self, now: Now, what: &str) {
        self.story
            .say(&format!("  {:>4.1} s  {what}", now.store.since(self.began_at).as_secs_f64()));
    }
}
