//! What the demo plays on: a practice upstream, a folder with a quota file, a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use chrono::Offset as _;
use chrono_tz::Tz;
use paceline::clock::{Clock, SystemClock, Timestamp};
use paceline::practice::{Answer, Config, Limit, Practice, Rule, Script};
use paceline::quota::calendar::{Calendar, Per};
use paceline::quota::library::Library;
use paceline::store::sqlite::{Options, SqliteStore};

/// The upstream's name.
pub const UPSTREAM: &str = "practice";
/// Its rate.
pub const PLAN: &str = "plan";
/// Its budget.
pub const DAILY: &str = "daily";

/// What the practice upstream enforces; `examples/practice.toml` declares the same.
pub const CALLS_PER_SECOND: u64 = 40;
/// The tokens that its bucket holds.
pub const BURST: u64 = 10;
/// Its calls a day.
pub const CALLS_PER_DAY: u64 = 250;

/// The call that it refuses out of its own whim, and for how long.
const WHIM: (u64, Duration) = (100, Duration::from_secs(3));
/// The book that it does not know.
const UNKNOWN: &str = "*/9780000015433";

const QUOTA_FILE: &str = include_str!("../../../../examples/practice.toml");
/// What the quota file says, and the stage must fill in.
const SAYS: (&str, &str) = ("http://127.0.0.1:8080", "America/Los_Angeles");

/// Whose days the budget counts: the first that is not this machine's and is not about to end.
const ZONES: [Tz; 4] =
    [Tz::America__Los_Angeles, Tz::Asia__Tokyo, Tz::Europe__Berlin, Tz::Pacific__Auckland];
const LEAST_LEFT: Duration = Duration::from_secs(3600);

/// Everything that the demo needs.
pub struct Stage {
    /// The practice upstream.
    pub practice: Practice,
    /// Whose days its budget counts.
    pub zone: Tz,
    /// Where quota files are found.
    pub library: Arc<Library>,
    /// The queue.
    pub store: SqliteStore,
    /// The folder, where it is kept.
    pub kept: Option<PathBuf>,
    /// Removes the folder at the end, where it is not.
    _folder: Option<tempfile::TempDir>,
}

impl Stage {
    /// Sets everything up; in `keep`, or in a folder that goes with the stage.
    pub async fn set(keep: Option<&Path>) -> anyhow::Result<Stage> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let zone = foreign_zone(clock.wall());
        let practice = Practice::start(upstream(zone, Arc::clone(&clock)))
            .await
            .context("cannot listen on 127.0.0.1")?;
        let (path, folder) = match keep {
            Some(path) => (prepare(path)?, None),
            None => {
                let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let quotas = path.join("quotas");
        let file = QUOTA_FILE.replace(SAYS.0, &practice.url("")).replace(SAYS.1, zone.name());
        write(&quotas.join(format!("{UPSTREAM}.toml")), &file)?;
        if keep.is_some() {
            write(&path.join("catalogue.csv"), super::catalogue::CATALOGUE)?;
        }
        let library = Arc::new(Library::new(vec![quotas]));
        let store = SqliteStore::open(Options::new(path.join("paceline.db"), clock))?;
        let kept = keep.map(|_| path);
        Ok(Stage { practice, zone, library, store, kept, _folder: folder })
    }
}

/// A strict server with a whim.
fn upstream(zone: Tz, clock: Arc<dyn Clock>) -> Config {
    let second = Duration::from_secs(1);
    let rate = Limit::Bucket { units: CALLS_PER_SECOND, per: second, burst: BURST };
    let whim = Answer::refusal(WHIM.1).body(r#"{"error": "tidying up, please come back later"}"#);
    Config::new()
        .clock(clock)
        .rule(Rule::new(PLAN, rate))
        .rule(Rule::new(DAILY, Limit::day(CALLS_PER_DAY, zone)))
        .script(Script::new("*", whim).from(WHIM.0).times(1).closing("*"))
        .script(Script::new(UNKNOWN, Answer::new(404).body(r#"{"error": "no such ISBN"}"#)))
        .latency(Duration::from_millis(20))
        .body(r#"{"isbn": "{last}", "stock": 7}"#)
}

/// A folder that holds no other demo's store: its jobs would be counted with ours.
fn prepare(path: &Path) -> anyhow::Result<PathBuf> {
    let used = path.join("paceline.db").exists();
    ensure!(!used, "{} holds a store already; give --keep a new folder", path.display());
    Ok(path.to_owned())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = written.and_then(|()| std::fs::write(path, text));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A zone whose clock shows another time than ours, and whose day does not end during the demo.
fn foreign_zone(now: Timestamp) -> Tz {
    let here = now.to_utc().with_timezone(&chrono::Local).offset().fix();
    let suits = |zone: &&Tz| {
        let there = now.to_utc().with_timezone(*zone).offset().fix();
        there != here && time_left(**zone, now) > LEAST_LEFT
    };
    ZONES.iter().find(suits).copied().unwrap_or(Tz::UTC)
}

fn time_left(zone: Tz, now: Timestamp) -> Duration {
    let calendar = Calendar::parse(zone.name(), Per::Day, "00:00");
    calendar.map_or(Duration::ZERO, |calendar| calendar.window(now).next_reset.since(now))
}
