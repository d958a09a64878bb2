//! Ctrl-C and SIGTERM: leave in good order; at once on another Ctrl-C.

use std::io;
use std::time::Duration;

use paceline::dispatch::Leave;
use tokio::sync::watch;

use crate::exit::Exit;

/// Who sends a signal may send it twice, to the process and to its group: as `timeout` does. A person
/// takes longer than this to press Ctrl-C again.
const ONE_WISH: Duration = Duration::from_millis(300);

/// Becomes true with the first signal. A later Ctrl-C ends the program, after `last` was called: what
/// was in flight is found by the next runner.
pub fn on_signals(last: impl Fn() + Send + 'static) -> io::Result<Leave> {
    let (tell, leave) = watch::channel(false);
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        // The run may be over already.
        let _ = tell.send(true);
        tokio::time::sleep(ONE_WISH).await;
        signals.again().await;
        last();
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    Ok(leave)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Another Ctrl-C; those that came already do not count.
    async fn again(&mut self) {
        while futures_util::FutureExt::now_or_never(self.interrupt.recv()).is_some() {}
        self.interrupt.recv().await;
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        // Without a handler there is no signal to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn again(&mut self) {
        self.next().await;
    }
}
