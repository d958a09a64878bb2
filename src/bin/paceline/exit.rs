//! How the program ends.

use std::io;
use std::process::ExitCode;

use paceline::client;
use paceline::dispatch::Report;
use paceline::dispatch::RunError;
use paceline::plan::PlanError;
use paceline::quota::calendar::CalendarError;
use paceline::quota::declare::DeclareError;
use paceline::quota::library::LibraryError;
use paceline::store::StoreError;
use paceline::store::sqlite::CopyError;

use crate::render::text::complain;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Done,
    /// A fault of Paceline or of its machine.
    Fault,
    /// A usage error, or a quota file that is wrong.
    Usage,
    /// Nothing remains, but some jobs or rows were not taken or not answered as wished.
    Failed,
    /// Something is held, and a person is needed.
    Held,
    /// Work remains and must wait.
    Waiting,
    /// Somebody asked the program to leave.
    Interrupted,
    /// The status of a command that was run.
    Command(u8),
}

impl Exit {
    /// The number that the system is told.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Fault => 1,
            Exit::Usage => 2,
            Exit::Failed => 3,
            Exit::Held => 4,
            Exit::Waiting => 75,
            Exit::Interrupted => 130,
            Exit::Command(status) => status,
        }
    }

    /// How a run ends; `fail_on` are the ends that count before work that must wait.
    pub fn of_run(report: &Report, fail_on: &[FailOn]) -> Exit {
        let any = |kind: FailOn| match kind {
            FailOn::Failed => report.failed > 0,
            FailOn::Expired => report.expired > 0,
            FailOn::Unsure => report.unsure > 0,
        };
        if !report.unserved.is_empty() {
            Exit::Usage
        } else if report.interrupted {
            Exit::Interrupted
        } else if report.held > 0 {
            Exit::Held
        } else if fail_on.iter().any(|kind| any(*kind)) {
            Exit::Failed
        } else if report.waiting > 0 {
            Exit::Waiting
        } else if FailOn::ALL.into_iter().any(any) {
            Exit::Failed
        } else {
            Exit::Done
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An end of a job that `--fail-on` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// It cannot be answered as wished.
    Failed,
    /// Its deadline passed.
    Expired,
    /// It may have been sent, and must not be sent twice.
    Unsure,
}

impl FailOn {
    const ALL: [FailOn; 3] = [FailOn::Failed, FailOn::Expired, FailOn::Unsure];
}

/// What the user must do otherwise.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// An error that the user can mend by another command line.
pub fn wrong<T>(message: impl Into<String>) -> anyhow::Result<T> {
    Err(Usage(message.into()).into())
}

/// Prints what clap says: help to stdout, complaints to stderr.
pub fn usage(told: &clap::Error) -> ExitCode {
    // A pipe that nobody reads is no reason to complain.
    let _ = told.print();
    if told.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

/// Prints an error with its causes, once.
pub fn fail(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return Exit::Done.into();
    }
    complain(&with_causes(error));
    of_error(error).into()
}

fn with_causes(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}");
    let mut last = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // A transparent error says what its cause says.
        if !last.contains(&cause) {
            text.push_str(&format!("\n  because: {cause}"));
        }
        last = cause;
    }
    text
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| {
        let json = cause.downcast_ref::<serde_json::Error>();
        cause.downcast_ref::<io::Error>().is_some_and(broken)
            || json.is_some_and(|json| json.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}

fn of_error(error: &anyhow::Error) -> Exit {
    if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(CopyError::Interrupted))) {
        return Exit::Interrupted;
    }
    let usage = error.chain().any(|cause| {
        let store = cause.downcast_ref::<StoreError>();
        let copy = cause.downcast_ref::<CopyError>();
        cause.is::<Usage>()
            || matches!(copy, Some(CopyError::Missing(_) | CopyError::Exists(_)))
            || cause.is::<LibraryError>()
            || cause.is::<DeclareError>()
            || cause.is::<PlanError>()
            || cause.is::<CalendarError>()
            || matches!(cause.downcast_ref(), Some(RunError::Library(_)))
            || matches!(
                cause.downcast_ref(),
                Some(client::Error::Library(_) | client::Error::Plan(_))
            )
            || matches!(store, Some(StoreError::NoSuchLimit { .. } | StoreError::WrongKey { .. }))
    });
    if usage { Exit::Usage } else { Exit::Fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_applies_counts() {
        let report = Report { failed: 1, waiting: 1, held: 1, ..Report::default() };
        let interrupted = Report { interrupted: true, ..report.clone() };
        assert_eq!(Exit::of_run(&interrupted, &[]), Exit::Interrupted);
        assert_eq!(Exit::of_run(&report, &[FailOn::Failed]), Exit::Held);
        let report = Report { held: 0, ..report };
        assert_eq!(Exit::of_run(&report, &[]), Exit::Waiting);
        assert_eq!(Exit::of_run(&report, &[FailOn::Expired]), Exit::Waiting);
        assert_eq!(Exit::of_run(&report, &[FailOn::Expired, FailOn::Failed]), Exit::Failed);
        let report = Report { waiting: 0, ..report };
        assert_eq!(Exit::of_run(&report, &[]), Exit::Failed);
        assert_eq!(Exit::of_run(&Report::default(), &FailOn::ALL), Exit::Done);
    }
}
