//! Ctrl-C while rows enter the queue: what is there already is told before the program ends.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::progress::Progress;
use crate::commands::run::leave::Signals;
use crate::exit::Exit;
use crate::render::text::visible_lines;

/// What is to be told.
pub type Told = Arc<Mutex<String>>;

/// Ends the program with the first signal. On a thread of its own, for the command's may wait for the next
/// row as long as its sender likes; the store is whole wherever a chunk is on its way.
pub fn on_signal(told: Told, progress: Progress) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        Signals::new()
    };
    let mut signals = signals?;
    std::thread::spawn(move || {
        runtime.block_on(signals.next());
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        progress.beside(|| eprintln!("{}", visible_lines(&format!("interrupted: {told}"))));
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    Ok(())
}
