//! A command that runs in our stead: it gets the signals that we get, and we end with its status.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;

/// What is passed on.
const PASSED: [(Signal, fn() -> SignalKind); 6] = [
    (Signal::SIGTERM, SignalKind::terminate),
    (Signal::SIGHUP, SignalKind::hangup),
    (Signal::SIGINT, SignalKind::interrupt),
    (Signal::SIGQUIT, SignalKind::quit),
    (Signal::SIGUSR1, SignalKind::user_defined1),
    (Signal::SIGUSR2, SignalKind::user_defined2),
];

/// A command that did not start: why, and the status that shells give for that.
#[derive(Debug)]
pub struct NotStarted {
    /// Why.
    pub told: String,
    /// 127: it is not there; 126: it cannot be run.
    pub code: u8,
}

/// Starts a command, with more in its environment. It shares our terminal.
pub fn start(command: &[OsString], environment: &[(&str, &str)]) -> Result<Child, NotStarted> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| NotStarted { told: "there is no command".to_owned(), code: 127 })?;
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied());
    command.spawn().map_err(|error| NotStarted {
        told: format!("`{}` cannot be run: {error}", program.display()),
        code: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
    })
}

/// The status as shells tell it: 128 and its number for a signal.
pub fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Waits for the command's end, and passes on what this process is told meanwhile.
pub async fn passing_signals(child: &mut Child) -> io::Result<ExitStatus> {
    let (tell, mut told) = unbounded_channel();
    for (passed, kind) in PASSED {
        let mut heard = signal(kind())?;
        let tell = tell.clone();
        tokio::spawn(
            async move { while heard.recv().await.is_some() && tell.send(passed).is_ok() {} },
        );
    }
    loop {
        tokio::select! {
            status = child.wait() => return status,
            Some(signal) = told.recv() => {
                let pid = child.id().and_then(|id| i32::try_from(id).ok());
                if let Some(pid) = pid.filter(|_| !has_it_already(signal)) {
                    // It may have ended this very moment.
                    let _ = kill(Pid::from_raw(pid), signal);
                }
            }
        }
    }
}

/// What is typed at a terminal goes to all processes in its foreground, the command too.
fn has_it_already(signal: Signal) -> bool {
    if !matches!(signal, Signal::SIGINT | Signal::SIGQUIT) {
        return false;
    }
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp())
}
