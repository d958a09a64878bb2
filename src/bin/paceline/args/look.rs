//! Commands that show.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use paceline::store::{Cursor, NoCursor};

use super::select::{Pair, Select, reason};
use crate::render::time::Moment;

/// Shows how things stand.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  paceline status\n  paceline status distributor --json")]
pub struct StatusArgs {
    /// These upstreams only [default: all that have, or had, jobs]
    #[arg(value_name = "UPSTREAM")]
    pub upstreams: Vec<String>,
}

/// Tells what holds something back.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  paceline why indexnow\n  paceline why 4711\n  paceline why https://www.example.com/new-page"
)]
pub struct WhyArgs {
    /// A job's number, its URL, or an upstream
    #[arg(value_name = "JOB|UPSTREAM")]
    pub what: String,
}

/// Lists jobs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline jobs --state queued --limit 20
  paceline jobs --load autumn --state failed
  paceline jobs --upstream distributor --where isbn=9780000000002 --json")]
pub struct JobsArgs {
    /// These jobs
    #[arg(value_name = "JOB")]
    pub jobs: Vec<i64>,
    /// Of this URL
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Which jobs.
    #[command(flatten)]
    pub select: Select,
}

/// Shows one job.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  paceline show https://www.example.com/new-page\n  paceline show 4711 --json"
)]
pub struct ShowArgs {
    /// A job's number, or a URL (its latest job)
    #[arg(value_name = "JOB|URL")]
    pub what: String,
}

/// Lists loads.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  paceline loads\n  paceline cancel --load 2026-11-30-1")]
pub struct LoadsArgs {}

/// Lists attempts.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline log --since 1h
  paceline log distributor
  paceline log --url https://www.example.com/new-page --since 2d
  paceline log --load autumn --reason rate_limited
  paceline log --since 2026-11-30 --csv > log.csv

A call that got no answer has no status. An attempt that was lost with its process has no reason
either, for nothing was read: `lost` in text, null in JSON (of `show` too), empty in CSV.")]
pub struct LogArgs {
    /// Of this upstream
    pub upstream: Option<String>,
    /// Sent since then: a span such as 2h, an instant, or a local date and time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Moment>,
    /// Of this URL
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Of this load
    #[arg(long, value_name = "NAME")]
    pub load: Option<String>,
    /// That came to this reason, such as not_found
    #[arg(long, value_name = "REASON", value_parser = reason)]
    pub reason: Option<String>,
    /// Of a job whose column has this value; may be given more than once
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub columns: Vec<Pair>,
    /// The latest so many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// As CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// Tells when the queue will be empty.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline forecast
  paceline forecast distributor --load autumn
  paceline forecast google-indexing --count 1200000

The limits are asked as `run` asks them, on a clock that jumps. Calls are taken to be answered at
once and as wished; jobs that wait for a person are left out.")]
pub struct ForecastArgs {
    /// These upstreams only [default: all that have jobs]
    #[arg(value_name = "UPSTREAM")]
    pub upstreams: Vec<String>,
    /// Until the last job of this load has gone
    #[arg(long, value_name = "NAME")]
    pub load: Option<String>,
    /// As if so many jobs more were queued
    #[arg(long, value_name = "N", conflicts_with = "load")]
    pub count: Option<u64>,
    /// A column of these jobs, where limits count by it; as often as needed
    #[arg(long, value_name = "COLUMN=VALUE", requires = "count")]
    pub set: Vec<Pair>,
}

impl ForecastArgs {
    /// What `--set` says.
    pub fn columns(&self) -> paceline::job::Columns {
        self.set.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect()
    }
}

/// Tells what was sent and what was refused.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline report
  paceline report distributor --since 1d --json

A refusal counts as within the declared limits where all that was sent up to then, refused calls
too, kept to each of them as it is declared. The last sentence can be mailed.")]
pub struct ReportArgs {
    /// Of this upstream [default: all that were called]
    pub upstream: Option<String>,
    /// Sent since then: a span such as 2h, an instant, or a local date and time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Moment>,
}

/// Writes answers.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline results > results.csv
  paceline results --upstream distributor --format jsonl --after \"$(cat cursor)\"
  paceline results --upstream distributor --latest-by isbn --fields isbn,stock,finished_at
  paceline results --load autumn --field pages=/volume/pages
  paceline results --upstream distributor --sqlite stock.db --table stock --upsert isbn

Results come in the order in which their jobs ended. Each has a `cursor`; `--after CURSOR` goes
on from there, and tells the next one on stderr (with -v also the first time). Cancelled jobs
have no result, unless --state asks for them. Values are written as they are, line breaks and
control characters too; only on a terminal these are escaped. A column with the name of another
field is `columns.NAME` in CSV and in tables, and in JSON found in `columns`: `id` is the job's
number, so that a column `id` of your rows is `columns.id`, with --upsert too.

--sqlite makes the table and the columns that it lacks. Without --upsert a row is told from others
by its `cursor`: the same command again writes no row twice. An older result replaces no newer one.")]
pub struct ResultsArgs {
    /// How they are written [default: csv, with --json jsonl]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Only these fields: a result's own, extracted ones, columns, `body`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub fields: Option<Vec<String>>,
    /// One more field, taken by JSON pointer from answers that were kept: `[keep] body = "all"`
    #[arg(long, value_name = "NAME=/POINTER")]
    pub field: Vec<Pair>,
    /// Of several jobs with the same value of this column only the one that ended last
    #[arg(long, value_name = "COLUMN")]
    pub latest_by: Option<String>,
    /// Only what ended after this cursor; an empty one is before all
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<After>,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// To this file instead of stdout; what was there is replaced
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Into a table of this SQLite file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "output"])]
    pub sqlite: Option<PathBuf>,
    /// The table
    #[arg(long, value_name = "NAME", default_value = "results", requires = "sqlite")]
    pub table: String,
    /// In place of the row with the same value in this column; `columns.id` for a column `id` of yours
    #[arg(long, value_name = "COLUMN", requires = "sqlite")]
    pub upsert: Option<String>,
    /// Which jobs.
    #[command(flatten)]
    pub select: Select,
}

/// A cursor as typed.
#[derive(Clone, Copy, Debug)]
pub struct After(Option<Cursor>);

impl std::str::FromStr for After {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<After, NoCursor> {
        let is_first = text.trim().is_empty();
        Ok(After(if is_first { None } else { Some(text.parse()?) }))
    }
}

impl ResultsArgs {
    /// The cursor to go on from.
    pub fn after(&self) -> Option<Cursor> {
        self.after.and_then(|after| after.0)
    }
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A header and one row a result
    Csv,
    /// One JSON object a line
    Jsonl,
}

/// Shows budgets, or records what was spent.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  paceline budget
  paceline budget google-indexing --json
  paceline budget spend google-indexing 12")]
pub struct BudgetArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<BudgetCommand>,
    /// These upstreams only [default: all that have, or had, jobs]
    #[arg(value_name = "UPSTREAM")]
    pub upstreams: Vec<String>,
}

/// What `budget` does.
#[derive(Debug, Subcommand)]
pub enum BudgetCommand {
    /// Show what is spent and left, and the reset
    #[command(after_help = "Example:\n  paceline budget show")]
    Show {
        /// These upstreams only
        #[arg(value_name = "UPSTREAM")]
        upstreams: Vec<String>,
    },
    /// Record units that were spent elsewhere; fewer with a negative number
    #[command(after_help = "Examples:
  paceline budget spend google-request-indexing 3 --key siteUrl=https://www.example.com/
  paceline budget spend shop -3 --limit daily")]
    Spend {
        /// The upstream
        upstream: String,
        /// Units
        #[arg(value_name = "N", allow_negative_numbers = true)]
        units: i64,
        /// The limit [default: the only budget or rolling limit]
        #[arg(long, value_name = "NAME")]
        limit: Option<String>,
        /// A column of its key; as often as the key has columns
        #[arg(long, value_name = "COLUMN=VALUE")]
        key: Vec<Pair>,
    },
}
