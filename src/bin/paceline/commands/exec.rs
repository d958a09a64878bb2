//! `exec`: a command under a permit.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use paceline::Permit;
use paceline::client::{Error, Refusal};
use paceline::reading::{Answer, Reason, read};

use super::call::{deadline, handle};
use super::refused;
use crate::args::doors::ExecArgs;
use crate::args::select::columns;
use crate::child::{NotStarted, code_of, passing_signals, start};
use crate::commands::run::leave::Signals;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::visible;

/// Waits for a permit, runs the command, tells how it ended.
pub async fn run(args: ExecArgs, context: &Context) -> anyhow::Result<Exit> {
    context.upstream(&args.upstream)?;
    let paceline = handle(&args.terms, true, context)?;
    let name = args.command.first().map(name_of).unwrap_or_default();
    let mut acquire = paceline
        .acquire(args.upstream.as_str())
        .method("EXEC")
        .named(format!("exec:{name}"))
        .load("exec")
        .columns(columns(&args.key))
        .units(args.cost)
        .use_reserve(args.terms.use_reserve);
    if let Some(credential) = &args.terms.credential {
        acquire = acquire.credential(credential);
    }
    if let Some(span) = args.terms.max_wait {
        acquire = acquire.max_wait(span);
    }
    if let Some(at) = deadline(&args.terms, context)? {
        acquire = acquire.deadline(at);
    }
    let permit = {
        let mut signals = Signals::new()?;
        tokio::select! {
            permit = acquire => Some(permit),
            () = signals.next() => None,
        }
    };
    let ended = match permit {
        Some(Ok(permit)) => under(permit, &args, context).await,
        Some(Err(error)) => refused::tell(error, &args.upstream, context),
        None => Ok(Exit::Interrupted),
    };
    paceline.close().await;
    ended
}

/// The program's own name: its arguments, and where it lies, may tell more than anybody should keep.
fn name_of(program: &OsString) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    visible(&name.to_string_lossy()).into_owned()
}

async fn under(permit: Permit, args: &ExecArgs, context: &Context) -> anyhow::Result<Exit> {
    // The command holds this process's lock as well, so that its place is taken until it ends.
    let lifeline = permit.lifeline()?;
    let child = start(&args.command, &[]);
    drop(lifeline);
    let mut child = match child {
        Ok(child) => child,
        Err(NotStarted { told, code }) => {
            permit.cancel();
            context.complain(&format!("error: {told}"));
            return Ok(Exit::Command(code));
        }
    };
    let status = passing_signals(&mut child).await?;
    let code = code_of(status);
    if let Err(error) = settle(permit, status, code, args, context).await {
        let name = args.command.first().map(name_of).unwrap_or_default();
        context.complain(&format!("what `{name}` came to is not recorded: {error}"));
    }
    Ok(Exit::Command(code))
}

async fn settle(
    permit: Permit,
    status: ExitStatus,
    code: u8,
    args: &ExecArgs,
    context: &Context,
) -> Result<(), Error> {
    let told = match status.signal() {
        Some(number) => {
            let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
            format!("it was ended by {name}")
        }
        None => format!("it ended with status {code}"),
    };
    if args.refused_status.contains(&code) {
        let retry_at = args.retry_after_from.as_deref().and_then(|file| hint(file, context));
        let refusal = Refusal {
            reason: Some(Reason::RateLimited),
            retry_at,
            detail: format!("{told}, which is a refusal"),
            status: Some(code.into()),
            ..Refusal::default()
        };
        permit.refused(refusal).await?;
    } else if status.success() {
        permit.done(0).await?;
    } else {
        permit.failed(code.into(), told).await?;
    }
    Ok(())
}

/// When to come back, as the command wrote it: read as a `Retry-After`.
fn hint(file: &Path, context: &Context) -> Option<paceline::clock::Timestamp> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            context.complain(&format!(
                "`{}` cannot be read: {error}; the pause is our own",
                file.display()
            ));
            return None;
        }
    };
    let headers = [("Retry-After".to_owned(), text.trim().to_owned())];
    let reading = read(
        None,
        &Answer {
            method: "EXEC",
            url: "exec:",
            received_at: context.wall(),
            status: 429,
            headers: &headers,
            body: b"",
        },
    );
    if reading.retry_at.is_none() {
        let shown = visible(text.trim()).into_owned();
        let file = file.display();
        context.complain(&format!(
            "`{file}` holds no seconds or date to come: `{shown}`; the pause is our own"
        ));
    }
    reading.retry_at
}
