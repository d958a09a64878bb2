//! `call`, `exec`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::add::Header;
use super::select::Pair;
use crate::render::time::{Moment, duration};

/// How long somebody waits, and as whom.
#[derive(Args, Debug)]
pub struct Terms {
    /// Wait no longer than this, refusals included; not at all where it is known to take longer
    /// [default: as long as it takes]
    #[arg(long, value_name = "SPAN", value_parser = duration, help_heading = "Waiting")]
    pub max_wait: Option<Duration>,
    /// Worthless after this: a span such as 2h, an instant, or a local date and time
    #[arg(long, value_name = "WHEN", help_heading = "Waiting")]
    pub deadline: Option<Moment>,
    /// Take of what budgets keep for people (`reserve`), too
    #[arg(long, help_heading = "Waiting")]
    pub use_reserve: bool,
    /// The credential of the quota file
    #[arg(long, value_name = "NAME")]
    pub credential: Option<String>,
}

/// Makes one call within the upstream's limits, and prints what is answered.
#[derive(Args, Debug)]
#[command(after_help = CALL_EXAMPLES)]
pub struct CallArgs {
    /// Whose limits it keeps: the name of a quota file (`paceline quotas list`). A URL alone is a
    /// call of the upstream whose `[match]` has it
    pub upstream: String,
    /// What is called; or what fills `{url}` where the quota file's own address or body uses that. None:
    /// the file's own address, where no column is missing
    pub url: Option<String>,
    /// The method [default: the quota file's; POST with --data]
    #[arg(short = 'X', long = "request", visible_alias = "method", value_name = "METHOD")]
    pub method: Option<String>,
    /// A header, its value a template; may be given more than once
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub header: Vec<Header>,
    /// The body, word for word; `@FILE` is what is in a file, `@-` what stands on stdin; several are
    /// joined by `&`
    #[arg(short, long, value_name = "DATA")]
    pub data: Vec<OsString>,
    /// A column, for templates and limits that count by one; may be given more than once
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub set: Vec<Pair>,
    /// How long to wait, and as whom.
    #[command(flatten)]
    pub terms: Terms,
    /// Write the answer's body to this file; `-` is stdout
    #[arg(short, long, value_name = "FILE", help_heading = "The answer")]
    pub output: Option<PathBuf>,
    /// Print the answer's status and header before its body
    #[arg(short, long, help_heading = "The answer")]
    pub include: bool,
    /// Print nothing of an answer that is none as wished, but why
    #[arg(short, long, help_heading = "The answer")]
    pub fail: bool,
}

const CALL_EXAMPLES: &str = "\
Examples:
  paceline call github https://api.github.com/repos/rust-lang/rust
  paceline call shop https://api.shop.example/v1/items/7 -o item.json --max-wait 10s
  paceline call shop https://api.shop.example/v1/items -d '{\"name\": \"x\"}' --fail
  paceline call indexnow https://www.example.com/new-page --json
  paceline call https://api.github.com/rate_limit   # github's, as its [match] says

The call is a job like any other, under the load `call`: `log` and `show` have it. A refusal is
waited out and the call made again, until --deadline or --max-wait is over. What is typed as --data
or --header is not kept; without a header of its own a body is sent as JSON where it is that, else
as a form.

Exit codes: 0 answered as wished; 3 not so, or its deadline passed; 4 held until a person acts;
75 it must wait longer than --max-wait: which limit, and until when, stands on stderr;
130 interrupted.";

/// Takes one permit of the upstream and runs a command under it.
#[derive(Args, Debug)]
#[command(after_help = EXEC_EXAMPLES)]
pub struct ExecArgs {
    /// Whose limits it keeps: the name of a quota file (`paceline quotas list`)
    pub upstream: String,
    /// What the command takes of each limit that counts calls or items
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub cost: u64,
    /// A column that limits count by; may be given more than once
    #[arg(long, visible_alias = "set", value_name = "COLUMN=VALUE")]
    pub key: Vec<Pair>,
    /// How long to wait, and as whom.
    #[command(flatten)]
    pub terms: Terms,
    /// The command was refused where it ends with this status; may be given more than once
    #[arg(long, value_name = "STATUS", value_delimiter = ',', help_heading = "The command's end")]
    pub refused_status: Vec<u8>,
    /// When to come back after a refusal: the command writes it there, as a number of seconds or a date
    #[arg(
        long,
        value_name = "FILE",
        requires = "refused_status",
        help_heading = "The command's end"
    )]
    pub retry_after_from: Option<PathBuf>,
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  paceline exec open-library -- echo \"whatever calls it\"
  paceline exec shop -- curl -fsS https://api.shop.example/v1/items/7
  paceline exec shop --cost 10 --max-wait 5m -- ./send-ten-orders.sh
  paceline exec bing-webmaster --key siteUrl=https://www.example.com/ -- python3 submit.py
  paceline exec shop --refused-status 75 --retry-after-from wait.txt -- ./ask.sh

The limits hold while the command runs: it has its place of a concurrency limit until it ends, also
when `paceline exec` itself is killed, and nothing need be renewed however long it takes. A refusal
closes the upstream for all until the time in the file, or for a growing pause. It is a job like any
other, under the load `exec`; of the command only its name is kept.

SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the command, whose own status
is the exit code: 128 and the signal's number where one ended it, 126 or 127 where it cannot be run.
Where it has not run: 3 its deadline passed, or no limit ever grants its cost; 4 held until a person
acts; 75 it must wait longer than --max-wait; 130 interrupted.";
