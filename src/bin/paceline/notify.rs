//! Tells a person of what is newly held, by a program of theirs (`[notify] command`): once, whichever
//! process finds it. Nothing waits for it but the very end of a run.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline::dispatch::Event;
use paceline::job::Columns;
use paceline::report::why::{key, way_out, when_over};
use paceline::store::Store as _;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::HoldNews;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::render::text::{complain, count, visible};

/// A program that takes longer is ended, and the hold told again by the next run.
const PATIENCE: Duration = Duration::from_secs(30);

/// The task that tells; none where no program is declared.
pub struct Notifier {
    bell: Bell,
    task: Option<JoinHandle<()>>,
}

/// Rings where something may be held.
#[derive(Clone, Default)]
pub struct Bell {
    rung: Arc<Notify>,
    last: Arc<AtomicBool>,
}

impl Bell {
    /// Hears an event of a run.
    pub fn hear(&self, event: &Event) {
        if matches!(event, Event::Held { .. }) {
            self.rung.notify_one();
        }
    }
}

impl Notifier {
    /// Begins with what was held before, and nobody was told of.
    pub fn start(store: &SqliteStore, context: &Context) -> Notifier {
        let bell = Bell::default();
        bell.rung.notify_one();
        let task = context.settings.notify.clone().map(|notify| {
            let teller = Teller { command: notify.command, store: store.clone() };
            tokio::spawn(teller.work(bell.clone()))
        });
        Notifier { bell, task }
    }

    /// Rings where something may be held.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Has what was held last told too.
    pub async fn finish(self) {
        self.bell.last.store(true, Ordering::Relaxed);
        self.bell.rung.notify_one();
        if let Some(task) = self.task {
            // It has a patience of its own.
            let _ = task.await;
        }
    }
}

struct Teller {
    command: Vec<String>,
    store: SqliteStore,
}

impl Teller {
    async fn work(self, bell: Bell) {
        loop {
            bell.rung.notified().await;
            let last = bell.last.load(Ordering::Relaxed);
            // Trouble with the store is told by the run.
            let holds = self.store.tell_holds().await.unwrap_or_default();
            if !holds.is_empty()
                && let Err(why) = self.tell(&holds).await
            {
                let next = match self.store.holds_untold(holds).await {
                    Ok(()) => "what is held is told again by the next run".to_owned(),
                    Err(error) => format!("that nobody was told cannot be noted: {error}"),
                };
                complain(&format!("warning: the [notify] command {why}; {next}"));
            }
            if last {
                return;
            }
        }
    }

    /// Runs the program; `Err`: what became of it.
    async fn tell(&self, holds: &[HoldNews]) -> Result<(), String> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(()) };
        let mut command = tokio::process::Command::new(program);
        let spawned = command
            .args(arguments)
            .env("PACELINE_STORE", absolute(self.store.path()))
            .env("PACELINE_HELD", holds.len().to_string())
            .env("PACELINE_MESSAGE", message(holds))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let name = visible(program).into_owned();
        let mut child = spawned.map_err(|error| format!("`{name}` cannot be run: {error}"))?;
        let told = holds.iter().map(json).collect::<Value>().to_string();
        let stdin = child.stdin.take();
        let done = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read has what it needs.
                let _ = stdin.write_all(told.as_bytes()).await;
            }
            child.wait().await
        };
        match tokio::time::timeout(PATIENCE, done).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("`{name}` failed ({status})")),
            Ok(Err(error)) => Err(format!("`{name}` cannot be awaited: {error}")),
            Err(_) => Err(format!("`{name}` did not end within {} s", PATIENCE.as_secs())),
        }
    }
}

fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn json(news: &HoldNews) -> Value {
    json!({
        "upstream": news.upstream,
        "key": news.key,
        "reason": news.hold.reason,
        "detail": news.hold.detail,
        "since": news.hold.at.to_rfc3339(),
        "until": news.until.map(|until| until.to_rfc3339()),
        "jobs": news.jobs,
        "way_out": out(news),
    })
}

fn out(news: &HoldNews) -> String {
    let none = Columns::new();
    let key = news.key.as_ref().unwrap_or(&none);
    match news.until {
        Some(_) => when_over(&news.upstream, key),
        None => way_out(&news.upstream, key, &news.hold.reason, &news.hold.detail),
    }
}

/// Holds that are written out; a thousand sites with one wrong key are one mail that can be read.
const WRITTEN_OUT: usize = 20;

fn message(holds: &[HoldNews]) -> String {
    let line = |news: &HoldNews| {
        let of = match news.key.as_ref().map(key).filter(|key| !key.is_empty()) {
            Some(key) => format!("{} [{key}]", news.upstream),
            None => news.upstream.clone(),
        };
        let (reason, detail) = (&news.hold.reason, &news.hold.detail);
        let text = format!("{of} is held ({reason}): {detail}; {} queued", count(news.jobs, "job"));
        format!("{}\n    {}", visible(&text), out(news))
    };
    let mut lines: Vec<String> = holds.iter().take(WRITTEN_OUT).map(line).collect();
    let more = holds.len().saturating_sub(WRITTEN_OUT) as u64;
    if more > 0 {
        lines.push(format!("and {}: `paceline status` says more", count(more, "more hold")));
    }
    lines.join("\n")
}
