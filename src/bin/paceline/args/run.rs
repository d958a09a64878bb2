//! `run`.

use std::time::Duration;

use clap::Args;

use crate::exit::FailOn;
use crate::render::time::{Moment, duration};

/// Sends what may be sent.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// These upstreams only [default: all that have jobs]
    #[arg(value_name = "UPSTREAM")]
    pub upstreams: Vec<String>,
    /// Leave when the next job can go only later than this [default: wait as long as it takes]
    #[arg(long, value_name = "SPAN", value_parser = duration)]
    pub max_wait: Option<Duration>,
    /// Leave after this long
    #[arg(long = "for", value_name = "SPAN", value_parser = duration)]
    pub bound: Option<Duration>,
    /// Leave then: an instant, or a local date and time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<Moment>,
    /// Send at most this many calls
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Stay for jobs that are added later
    #[arg(long)]
    pub follow: bool,
    /// Leave at once, with exit code 0, where another runner serves already
    #[arg(long)]
    pub single: bool,
    /// Exit with 3 where jobs ended so, even if others must wait
    #[arg(long, value_enum, value_name = "ENDS", value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Calls in flight at once, at most [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  paceline run                                # until nothing is left to do
  paceline run distributor --max-wait 10m     # leave when it would have to wait longer
  paceline run --max-wait 0 || test $? = 75   # what may go now
  */10 * * * *  paceline run --single --quiet --max-wait 5m    # a line for cron

Ctrl-C and SIGTERM let the calls in flight finish; a second Ctrl-C leaves at once.

Exit codes, the first that applies: 1 a fault of Paceline or its machine; 2 usage or quota file;
130 interrupted; 4 something is held and a person is needed; 75 work remains and must wait; 3
nothing remains, but some jobs failed, expired or are unsure; 0 all done. --fail-on gives 3
before 75.";
