//! The answer's body on its way out: kept until it is known to be the last one, or too long to be kept.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline::dispatch::transport::Spool;

use crate::context::Context;

/// Bytes that are kept back: what reading an answer looks at. What is longer, and a success, goes out as
/// it comes.
const KEPT: usize = 256 * 1024;

/// Where the body goes, and what of it is still here.
#[derive(Debug)]
pub struct Printed {
    to: Option<PathBuf>,
    include: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The status line and header, where they are wanted.
    head: Vec<u8>,
    kept: Vec<u8>,
    /// A success, which goes out before its end.
    streams: bool,
    file: Option<File>,
    /// Something is out.
    begun: bool,
    /// It could not be put out: that is told at the end, and is no reason to call again.
    trouble: Option<io::Error>,
}

impl Printed {
    /// To that file, or to stdout; with status and header before it.
    pub fn new(to: Option<&Path>, include: bool) -> Printed {
        Printed { to: to.map(Path::to_owned), include, state: Mutex::default() }
    }

    /// Puts out what is still here: the answer was the last one.
    pub fn finish(&self, context: &Context) -> io::Result<()> {
        let mut state = self.state();
        if let Some(trouble) = state.trouble.take() {
            return Err(trouble);
        }
        if self.to.is_some() || state.begun {
            return self.put(&mut state);
        }
        // A terminal is spared what it would take for commands.
        let mut out = context.out.writer();
        out.write_all(&state.head)?;
        out.write_all(&state.kept)?;
        context.out.flush()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, state: &mut State) -> io::Result<()> {
        state.begun = true;
        let parts = [std::mem::take(&mut state.head), std::mem::take(&mut state.kept)];
        match &self.to {
            Some(path) => {
                if state.file.is_none() {
                    state.file = Some(File::create(path)?);
                }
                let Some(file) = &mut state.file else { return Ok(()) };
                parts.iter().try_for_each(|part| file.write_all(part))
            }
            None => {
                let mut out = io::stdout().lock();
                parts.iter().try_for_each(|part| out.write_all(part))?;
                out.flush()
            }
        }
    }
}

impl Spool for Printed {
    fn begin(&self, status: u16, headers: &[(String, String)]) -> io::Result<()> {
        let mut state = self.state();
        if state.begun {
            let told = "a part of an earlier answer is out already";
            state.trouble = Some(io::Error::other(told));
        }
        state.kept.clear();
        state.head.clear();
        if self.include {
            state.head.extend(format!("HTTP {status}\r\n").into_bytes());
            for (name, value) in headers {
                state.head.extend(format!("{name}: {value}\r\n").into_bytes());
            }
            state.head.extend(b"\r\n");
        }
        state.streams = (200..300).contains(&status);
        Ok(())
    }

    fn write(&self, part: &[u8]) -> io::Result<bool> {
        let mut state = self.state();
        if state.trouble.is_some() {
            return Ok(true);
        }
        state.kept.extend_from_slice(part);
        if state.kept.len() <= KEPT {
            return Ok(false);
        }
        if !state.streams {
            // A refusal is not printed at any length.
            return Ok(true);
        }
        state.trouble = self.put(&mut state).err();
        Ok(state.trouble.is_some())
    }
}
