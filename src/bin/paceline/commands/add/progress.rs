//! How far an `add` has come, on a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use super::source::Rows;
use crate::context::Context;
use crate::render::text::grouped;

/// A bar, where somebody looks.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Nothing is drawn yet.
    pub fn new(context: &Context) -> Progress {
        let global = &context.global;
        let wanted = !global.quiet && !global.json && std::io::stderr().is_terminal();
        Progress { bar: wanted.then(ProgressBar::no_length) }
    }

    /// Shows how many rows were seen, and of a file how much of it is left.
    pub fn show(&self, rows: &Rows, added: u64, seen: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.length().is_none() && bar.position() == 0 {
            let known = rows.reach.total.is_some();
            let template =
                if known { "{bar:20} {percent}% {msg}, {eta} left" } else { "{spinner} {msg}" };
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            if let Some(total) = rows.reach.total {
                bar.set_length(total);
            }
        }
        bar.set_message(format!("{} rows, {} added", grouped(seen), grouped(added)));
        bar.set_position(rows.reach.read.get().max(1));
    }

    /// Says something without spoiling the bar.
    pub fn beside(&self, say: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
