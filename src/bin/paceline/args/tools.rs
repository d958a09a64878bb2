//! Commands about quota files, readings and calendars.

use clap::{Args, Subcommand};
use paceline::quota::calendar::Per;

use crate::render::time::Moment;

/// Quota files.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline quotas list
  paceline quotas show indexnow --origin
  paceline quotas check")]
pub struct QuotasArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: QuotasCommand,
}

/// What `quotas` does.
#[derive(Debug, Subcommand)]
pub enum QuotasCommand {
    /// List upstreams with their limits and where they are declared
    #[command(after_help = "Example:\n  paceline quotas list")]
    List,
    /// Print an upstream's quota file
    #[command(after_help = "Example:\n  paceline quotas show indexnow --origin")]
    Show {
        /// The upstream
        name: String,
        /// Say before each line which file it comes from
        #[arg(long)]
        origin: bool,
    },
    /// Check quota files: all that is wrong, and the rate that each limit comes to
    #[command(
        after_help = "Examples:\n  paceline quotas check\n  paceline quotas check distributor ./new/shop.toml"
    )]
    Check {
        /// Upstreams or files [default: all upstreams]
        #[arg(value_name = "NAME|FILE")]
        what: Vec<String>,
    },
}

/// Readings.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  echo '{\"url\":\"https://a.example\",\"status\":429,\"headers\":[[\"Retry-After\",\"120\"]]}' | paceline read

In, one object a line: {\"id\"?, \"upstream\"?, \"method\", \"url\", \"received_at\",
\"status\", \"headers\": [[name, value]...], \"body\"}. Out: {\"id\", \"reason\", \"retryable\",
\"retry_at\", \"source\", \"limit\", \"detail\"}. Rules come from the upstream named in the line
or by --upstream, else from the one whose [match] fits the URL; where none does, only the
built-in readers are asked.

--explain tells who was asked, in their order, who decided, and why the others did not: as text, or
with --json as \"explain\": [{\"about\": \"reason\"|\"hint\", \"reader\", \"looked_at\", \"said\", \"decided\",
\"why\", \"file\", \"line\"}]. It shows header values and words of the body.

Reasons: ok, accepted_pending, rate_limited, quota_exhausted, concurrency_limited, overloaded,
transient, key_pending, auth_expired, misconfigured, forbidden, blocked, invalid_request,
not_found, gone, too_large, unprocessable, unknown.")]
pub struct ReadArgs {
    /// The upstream of lines that name none
    #[arg(long, value_name = "NAME")]
    pub upstream: Option<String>,
    /// Tell how each reading came about
    #[arg(long)]
    pub explain: bool,
}

/// Calendars.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  paceline calendar --time-zone America/Los_Angeles --per day --at 2026-09-01T05:35:00Z")]
pub struct CalendarArgs {
    /// An IANA time zone
    #[arg(long, value_name = "ZONE")]
    pub time_zone: String,
    /// hour, day, week or month
    #[arg(long, value_name = "PER", value_parser = per)]
    pub per: Per,
    /// When windows begin: 00:00, of a week `mon 00:00`, of a month `1 00:00` [default: these]
    #[arg(long, value_name = "LABEL")]
    pub resets_at: Option<String>,
    /// The instant [default: now]
    #[arg(long, value_name = "WHEN")]
    pub at: Option<Moment>,
}

fn per(text: &str) -> Result<Per, String> {
    Per::parse(text).map_err(|error| error.to_string())
}

/// Shell completions.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  source <(paceline completions bash)                    # in ~/.bashrc, for ever
  paceline completions zsh > ~/.zfunc/_paceline          # a folder that is in $fpath
  paceline completions fish > ~/.config/fish/completions/paceline.fish")]
pub struct CompletionsArgs {
    /// Whose
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Manual pages.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline man | man -l -                     # read it now
  paceline man ~/.local/share/man/man1        # then: man paceline-add")]
pub struct ManArgs {
    /// Write `paceline.1`, `paceline-add.1` and so on here
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub folder: Option<std::path::PathBuf>,
}
