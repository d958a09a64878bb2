//! What can be typed.
//!
//! | file | noun |
//! | --- | --- |
//! | `global` | flags of all commands, and what stands in for them |
//! | `add`, `run` | the two great commands |
//! | `doors` | calls and commands within the limits |
//! | `gateway` | the door for other programs |
//! | `look` | commands that show |
//! | `act` | commands that change jobs and partitions |
//! | `care` | looking after the store and its surroundings |
//! | `init` | a first quota file |
//! | `tools` | quota files, readings, calendars |
//! | `select` | which jobs |

pub mod act;
pub mod add;
pub mod care;
pub mod doors;
pub mod gateway;
pub mod global;
pub mod init;
pub mod look;
pub mod run;
pub mod select;
pub mod tools;

use clap::{Parser, Subcommand};

pub use global::{Global, SyncRule};

/// Calls somebody else's API within its quota.
///
/// Jobs wait in a queue on disk. Each is sent when every limit of its upstream says yes; every refusal
/// is read into a reason; and `why` says at any moment which limit holds a job back, and until when.
#[derive(Debug, Parser)]
#[command(name = "paceline", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Shared by all commands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  paceline add indexnow https://www.example.com/new-page
  paceline init                                     # a first quota file
  paceline add distributor --csv catalogue.csv
  paceline run
  paceline status
  paceline why distributor

Exit codes of `run`: 0 all done, 1 a fault here, 2 usage or quota file, 3 some jobs failed, 4
held until a person acts, 75 work must wait, 130 interrupted.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Queue jobs: from arguments, lines, CSV, JSON lines or sitemaps
    Add(Box<add::AddArgs>),
    /// Send what may be sent, and wait for what may not yet
    Run(run::RunArgs),
    /// Make one call within the limits, and print what is answered
    Call(Box<doors::CallArgs>),
    /// Run a command within the limits: one permit, held until it ends
    Exec(Box<doors::ExecArgs>),
    /// Let other programs call upstreams within their limits: a proxy on this machine
    Gateway(gateway::GatewayArgs),
    /// Show the queue, the limits, what is not free, and when it goes on
    Status(look::StatusArgs),
    /// Tell what holds a job or an upstream back, and until when
    Why(look::WhyArgs),
    /// List jobs
    Jobs(look::JobsArgs),
    /// Show one job with all its attempts and what was answered
    Show(look::ShowArgs),
    /// List loads: the jobs of one `add`, under a name
    Loads(look::LoadsArgs),
    /// List attempts: when, what, status, reason
    Log(look::LogArgs),
    /// Tell when the queue will be empty, and which limit decides that
    Forecast(look::ForecastArgs),
    /// Tell what was sent and refused, against what is declared
    Report(look::ReportArgs),
    /// Write answers as CSV, JSON lines, or into a SQLite table
    Results(look::ResultsArgs),
    /// Show what budgets have left, or record units spent elsewhere
    Budget(look::BudgetArgs),
    /// Queue jobs again that have ended
    Retry(act::RetryArgs),
    /// Withdraw queued jobs
    Cancel(act::CancelArgs),
    /// Say how jobs ended that may have been sent
    Resolve(act::ResolveArgs),
    /// Change priority, deadline or not-before of queued jobs
    Set(act::SetArgs),
    /// Remove ended jobs with their history
    Prune(act::PruneArgs),
    /// Stop an upstream, or some of its partitions, until `resume`
    Hold(act::HoldArgs),
    /// Let go what was held
    Resume(act::ResumeArgs),
    /// List, show and check quota files
    Quotas(tools::QuotasArgs),
    /// Tell what saved answers mean: JSON lines in, readings out
    Read(tools::ReadArgs),
    /// Tell the calendar window that an instant falls into, and its reset
    Calendar(tools::CalendarArgs),
    /// Copy the store, while others work on it
    Backup(care::BackupArgs),
    /// Make a copy the store
    Restore(care::RestoreArgs),
    /// Tell what is wrong here: store, disk, clocks, quota files, secrets, holds
    Doctor(care::DoctorArgs),
    /// Write a first quota file, from a few questions or flags
    Init(Box<init::InitArgs>),
    /// Play the whole thing against a practice upstream on this machine
    Demo(crate::demo::DemoArgs),
    /// Print what has a shell complete commands and flags
    Completions(tools::CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder
    Man(tools::ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// A command and all of its own.
    fn all(command: &clap::Command) -> Vec<&clap::Command> {
        let own = command.get_subcommands().flat_map(all);
        std::iter::once(command).chain(own).collect()
    }

    #[test]
    fn what_stands_below_the_flags_is_as_it_was_written() {
        let program = Cli::command();
        for command in all(&program) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(text.starts_with("Example"), "{name} has no example first");
            // Wider lines are broken where they are shown, and what is pasted from there with them.
            let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 100).collect();
            assert!(wide.is_empty(), "{name}: {wide:?}");
        }
    }
}
