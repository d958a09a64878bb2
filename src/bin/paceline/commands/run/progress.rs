//! What a run tells while it is at work: a bar on a terminal, elsewhere one line a notable event.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline::clock::{Clock as _, SystemClock, Timestamp};
use paceline::dispatch::Event;
use paceline::job::JobState;
use paceline::report::status;
use paceline::report::words::span;
use paceline::store::Store as _;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::UpstreamView;

use super::lines::told;
use super::pace::{Pace, words};
use crate::context::Context;
use crate::render::text::{grouped, visible, visible_lines};
use crate::render::time::Times;

/// How often a bar is drawn anew.
const DRAWN: Duration = Duration::from_secs(1);

/// The store is asked what is left each time, unless an answer took longer than this share of the time
/// until the next: then the bar counts on in between.
const SHARE: u32 = 20;

/// A wait that is worth a line.
const LONG: Duration = Duration::from_secs(5);

/// All that is said of a run that sends nothing new: what is in flight comes back when it does.
const LEAVING: &str = "leaving";

/// Listens to a run.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    verbose: bool,
    clock: SystemClock,
    named: Vec<String>,
    seen: Mutex<Seen>,
}

/// What was heard so far.
#[derive(Debug, Default)]
struct Seen {
    ended: u64,
    /// When calls left, lately.
    sent: Pace,
    /// Nothing new is sent any more.
    leaving: bool,
    /// Upstreams that gave no answer lately: told once.
    silent: BTreeSet<String>,
    /// The wait told last, so that it is told once.
    waiting: Option<(String, Timestamp)>,
}

impl Progress {
    /// Nothing is drawn yet.
    pub fn new(context: &Context, named: &[String]) -> Progress {
        let global = &context.global;
        let wanted = !global.quiet && !global.json && console_is_terminal();
        Progress {
            bar: wanted.then(bar),
            quiet: global.quiet,
            verbose: global.verbose > 0,
            clock: SystemClock::new(),
            named: named.to_vec(),
            seen: Mutex::default(),
        }
    }

    /// Only lines, whatever stderr is.
    pub fn in_lines(context: &Context) -> Progress {
        Progress { bar: None, ..Progress::new(context, &[]) }
    }

    /// Does the work, drawing while it goes on.
    pub async fn beside<T>(
        &self,
        work: impl Future<Output = T>,
        store: &SqliteStore,
        context: &Context,
    ) -> T {
        tokio::pin!(work);
        let Some(bar) = &self.bar else { return work.await };
        let result = tokio::select! {
            result = &mut work => result,
            never = self.draw(bar, store, context) => match never {},
        };
        bar.finish_and_clear();
        result
    }

    async fn draw(
        &self,
        bar: &ProgressBar,
        store: &SqliteStore,
        context: &Context,
    ) -> std::convert::Infallible {
        let mut views = Vec::new();
        let mut ask_at = Timestamp::EPOCH;
        loop {
            let asked_at = self.clock.wall();
            if asked_at >= ask_at {
                // A store that cannot answer is told of as an event.
                views = self.views(store, context).await.unwrap_or(views);
                let open: u64 = views.iter().map(|view| status::open(&view.jobs)).sum();
                bar.set_length(self.seen().ended + open);
                let now = self.clock.wall();
                ask_at = now + now.since(asked_at) * SHARE;
            }
            bar.set_position(self.seen().ended);
            bar.set_message(visible(&self.message(bar, &views)).into_owned());
            self.clock.sleep(DRAWN).await;
        }
    }

    async fn views(
        &self,
        store: &SqliteStore,
        context: &Context,
    ) -> anyhow::Result<Vec<UpstreamView>> {
        let mut views = Vec::new();
        for (name, upstream) in context.declared(store).await? {
            if self.named.is_empty() || self.named.contains(&name) {
                views.push(store.upstream(upstream).await?);
            }
        }
        Ok(views)
    }

    /// Rate, budget left, and an honest time left.
    fn message(&self, bar: &ProgressBar, views: &[UpstreamView]) -> String {
        let now = self.clock.wall();
        if self.seen().leaving {
            return LEAVING.to_owned();
        }
        let mut parts = Vec::new();
        let rate = self.seen().sent.rate(now);
        parts.extend(rate.map(words));
        let budgets = views.iter().flat_map(|view| &view.limits).filter(|l| l.kind == "budget");
        for budget in budgets.take(2) {
            let left = budget.amount.saturating_sub(budget.spent.unwrap_or(0));
            let left = budget.remaining.map_or(left, |reported| reported.min(left));
            parts.push(format!("{} left of {}", grouped(left), budget.name));
        }
        let todo = bar.length().unwrap_or(0).saturating_sub(bar.position());
        let waits = self.seen().waiting.clone().filter(|(_, until)| *until > now);
        match waits {
            Some((text, until)) => parts.push(format!("{text}, {}", span(until.since(now)))),
            None if todo > 0 => parts.extend(rate.map(|rate| left(views, rate, todo, now))),
            None => {}
        }
        parts.join(", ")
    }

    /// Hears an event.
    pub fn hear(&self, event: &Event) {
        self.count(event);
        let line = match event {
            Event::Sent { .. } => None,
            Event::Answered { .. } if !self.verbose => self.silence(event),
            // The user's zone is looked up only for what is told: there are events of each call.
            event => self.worth(event).then(|| told(event, &self.times())).flatten(),
        };
        if let Some(line) = line {
            self.line(&line);
        }
    }

    fn count(&self, event: &Event) {
        match event {
            Event::Sent { .. } if self.bar.is_some() => {
                let now = self.clock.wall();
                self.seen().sent.note(now);
            }
            Event::Draining { .. } => {
                self.seen().leaving = true;
                self.bar.iter().for_each(|bar| bar.set_message(LEAVING));
            }
            Event::Answered { state, .. } if state.is_final() => self.seen().ended += 1,
            Event::Expired { jobs, .. } => self.seen().ended += jobs,
            _ => {}
        }
    }

    /// Whether the event is news. With `--quiet` only what ends neither in 0 nor in 75 is.
    fn worth(&self, event: &Event) -> bool {
        let Event::Waiting { upstream, until, limit } = event else { return !self.quiet };
        let text = match limit {
            Some(limit) => format!("{upstream} waits for {limit}"),
            None => format!("{upstream} waits"),
        };
        let news = Some((text, *until));
        let mut seen = self.seen();
        let told = seen.waiting == news;
        seen.waiting = news;
        !told && !self.quiet && self.bar.is_none() && until.since(self.clock.wall()) > LONG
    }

    fn times(&self) -> Times {
        Times::new(self.clock.wall())
    }

    /// The program ends at once: what it drew goes, and a line says what is left behind.
    pub fn abandon(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if !self.quiet {
            eprintln_quietly("left at once; the next run finds what was in flight");
        }
    }

    /// That an upstream gives no answer, where it gave one before.
    fn silence(&self, event: &Event) -> Option<String> {
        let Event::Answered { upstream, status, detail, .. } = event else { return None };
        if status.is_some() {
            self.seen().silent.remove(upstream);
            return None;
        }
        let news = self.seen().silent.insert(upstream.clone()) && !self.quiet;
        news.then(|| format!("{upstream} gives no answer: {}", visible(detail)))
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln_quietly(line)),
            None => eprintln_quietly(line),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Counts stay counts after any panic.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn console_is_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal()
}

fn eprintln_quietly(line: &str) {
    use std::io::Write as _;
    // Where nobody listens there is nothing left to do.
    let _ = writeln!(std::io::stderr(), "{}", visible_lines(line));
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {human_pos}/{human_len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// About how long it takes still: at the pace seen, unless a budget will not let all go today.
fn left(views: &[UpstreamView], rate: f64, todo: u64, now: Timestamp) -> String {
    let short = views.iter().flat_map(|view| {
        // What runs has its units already.
        let queued = view.jobs.get(&JobState::Queued).copied().unwrap_or(0);
        view.limits.iter().filter_map(move |limit| {
            let left = limit.amount.saturating_sub(limit.spent.unwrap_or(0));
            let beyond = queued.saturating_sub(left);
            (limit.kind == "budget" && limit.key.is_empty() && beyond > 0)
                .then_some((limit, beyond))
        })
    });
    if let Some((limit, beyond)) = short.max_by_key(|(_, beyond)| *beyond) {
        let reset = limit.resets_at.map(|at| span(at.since(now))).unwrap_or_default();
        return format!("{} will wait for {}, {reset}", grouped(beyond), limit.name);
    }
    let todo = f64::from(u32::try_from(todo).unwrap_or(u32::MAX));
    let secs = Duration::try_from_secs_f64((todo / rate).ceil());
    format!("about {} left", secs.map(span).unwrap_or_else(|_| "very long".to_owned()))
}
