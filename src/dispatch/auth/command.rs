//! `command`: what a program writes is the token. No shell stands between.

use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::{Ask, Failure, Fetched, TIMEOUT, answer};
use crate::reading::shown;

/// Bytes that are read of what it writes.
const READ_CAP: u64 = 64 * 1024;

pub(super) async fn fetch(words: &[String], ask: &Ask<'_>) -> Result<Fetched, Failure> {
    let filled = ask.fill_all(words)?;
    // The name as it is declared: filled in, it may hold a secret.
    let name = words.first().map(String::as_str).unwrap_or_default();
    let Some((program, arguments)) = filled.split_first() else {
        return Err(Failure::Lasting("`command` runs nothing".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(crate::secrets::lacking());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Whoever stops waiting for it ends it.
    let spawned = command.kill_on_drop(true).spawn();
    let unrun = |error| Failure::Lasting(format!("`{name}` cannot be run: {error}"));
    let child = spawned.map_err(unrun)?;
    let written = tokio::select! {
        written = written(child) => written,
        () = ask.timeline.sleep(TIMEOUT) => {
            let detail = format!("`{name}` did not end within {} s", TIMEOUT.as_secs());
            return Err(Failure::Passing { detail, retry_at: None });
        }
    };
    let (status, stdout, stderr) = written.map_err(unrun)?;
    if !status.success() {
        // Before it is cut: half of a secret would not be found any more.
        let stderr = ask.secrets.redactor().redact(&stderr).into_owned();
        let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
        let last = last.map(|line| format!(": {}", shown(line))).unwrap_or_default();
        return Err(Failure::Lasting(format!("`{name}` failed ({status}){last}")));
    }
    let fetched = answer::of_command(&stdout, ask.timeline.now().wall);
    fetched.map_err(|why| {
        let fix = "see that it writes the token alone, or JSON with `access_token`, to its standard output";
        Failure::Lasting(format!("`{name}` gave no token: {why}; {fix}"))
    })
}

async fn written(mut child: Child) -> std::io::Result<(ExitStatus, String, String)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::join!(text(stdout), text(stderr));
    Ok((child.wait().await?, stdout?, stderr?))
}

async fn text(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(READ_CAP).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
