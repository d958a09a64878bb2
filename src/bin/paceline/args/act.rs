//! Commands that change jobs and partitions.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::select::{Pair, Select};
use crate::render::time::{Moment, duration};

/// Jobs to act on: by number, or by a filter.
#[derive(Args, Debug)]
pub struct Targets {
    /// These jobs
    #[arg(value_name = "JOB")]
    pub jobs: Vec<i64>,
    /// Act on many without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Which jobs.
    #[command(flatten)]
    pub select: Select,
}

/// Queues jobs again.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline retry --reason transient --yes
  paceline retry --load autumn
  paceline retry 4711

A filter without --state takes failed and expired jobs.")]
pub struct RetryArgs {
    /// Which.
    #[command(flatten)]
    pub targets: Targets,
}

/// Withdraws queued jobs.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  paceline cancel --upstream indexnow --yes\n  paceline cancel --load autumn\n  paceline cancel 4711"
)]
pub struct CancelArgs {
    /// Which.
    #[command(flatten)]
    pub targets: Targets,
}

/// Ends unsure jobs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline resolve --upstream indexnow --as queued --yes
  paceline resolve 4711 --as done")]
pub struct ResolveArgs {
    /// How they ended: `queued` sends them again
    #[arg(long = "as", value_enum, value_name = "END")]
    pub end: End,
    /// Which.
    #[command(flatten)]
    pub targets: Targets,
}

/// How an unsure job ends, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// It was done
    Done,
    /// It was not, and shall not be
    Failed,
    /// It was not: send it
    Queued,
}

/// Changes queued jobs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline set --upstream indexnow --priority 9 --yes
  paceline set 4711 --priority 9
  paceline set --load autumn --deadline 2026-12-24 --yes
  paceline set --load autumn --deadline none --yes")]
pub struct SetArgs {
    /// 0 to 9; higher goes first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub priority: Option<u8>,
    /// Worthless after this: a span such as 2h, an instant, a local date and time; `none` removes it
    #[arg(long, value_name = "WHEN")]
    pub deadline: Option<Deadline>,
    /// Not to be sent before this
    #[arg(long, value_name = "WHEN")]
    pub not_before: Option<Moment>,
    /// Which.
    #[command(flatten)]
    pub targets: Targets,
}

/// A deadline, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub Option<Moment>);

impl std::str::FromStr for Deadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Deadline, String> {
        match text {
            "none" => Ok(Deadline(None)),
            text => text.parse().map(Some).map(Deadline),
        }
    }
}

/// Removes ended jobs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline prune                              # what the quota files' [keep] no longer keeps
  paceline prune --dry-run                    # how many that are
  paceline prune --load autumn --yes
  paceline prune --state done --older-than 7d --yes")]
pub struct PruneArgs {
    /// That ended longer ago than this
    #[arg(long, value_name = "SPAN", value_parser = duration)]
    pub older_than: Option<Duration>,
    /// Only count
    #[arg(long)]
    pub dry_run: bool,
    /// Which.
    #[command(flatten)]
    pub targets: Targets,
}

/// Stops something until a person acts.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline hold indexnow --why 'the site is being moved'
  paceline hold bing-webmaster --key siteUrl=https://www.example.com/ --why 'site moved'")]
pub struct HoldArgs {
    /// The upstream
    pub upstream: String,
    /// Only its partitions with this column's value; may be given more than once
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub key: Vec<Pair>,
    /// Why: shown wherever its jobs are
    #[arg(long, value_name = "TEXT", default_value = "held by hand", hide_default_value = true)]
    pub why: String,
}

/// Lets go what was held.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline resume indexnow
  paceline resume bing-webmaster --key siteUrl=https://www.example.com/

Each partition sends one call before the rest goes.")]
pub struct ResumeArgs {
    /// The upstream
    pub upstream: String,
    /// Only its partitions with this column's value; may be given more than once
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub key: Vec<Pair>,
}
