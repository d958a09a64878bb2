//! Ctrl-C and SIGTERM: leave in good order; at once on another Ctrl-C.

use std::io;

use paceline::dispatch::Leave;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;

/// Becomes true with the first signal. A Ctrl-C after it ends the program, once `last` was called: what
/// was in flight is found by the next runner. Another SIGTERM does not: `timeout`, for one, sends it to
/// the process and to its group.
pub fn on_signals(last: impl Fn() + Send + 'static) -> io::Result<Leave> {
    let (tell, leave) = watch::channel(false);
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        // The run may be over already.
        let _ = tell.send(true);
        signals.again().await;
        last();
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    Ok(leave)
}

/// Those that ask the program to leave.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Must be called inside a runtime.
    pub fn new() -> io::Result<Signals> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    /// The next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    async fn again(&mut self) {
        self.interrupt.recv().await;
    }
}
