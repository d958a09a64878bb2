//! The answer's body on its way out: kept until it is known to be the last one, or too long to be kept.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline::dispatch::transport::Spool;

use crate::context::Context;
use crate::exit::wrong;

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

    /// Refuses a file that cannot be made, before anything is sent for it.
    pub fn check(&self) -> anyhow::Result<()> {
        let Some(path) = &self.to else { return Ok(()) };
        if path.is_dir() {
            return wrong(format!("`{}` is a folder; -o takes a file", path.display()));
        }
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => wrong(format!(
                "`{}` cannot be written: there is no folder `{}`",
                path.display(),
                folder.display()
            )),
            _ => Ok(()),
        }
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
                    state.file = Some(File::create(path).map_err(|error| unwritten(path, error))?);
                }
                let Some(file) = &mut state.file else { return Ok(()) };
                let written = parts.iter().try_for_each(|part| file.write_all(part));
                written.map_err(|error| unwritten(path, error))
            }
            None => {
                let mut out = io::stdout().lock();
                parts.iter().try_for_each(|part| out.write_all(part))?;
                out.flush()
            }
        }
    }
}

/// The same error, with the file's name.
fn unwritten(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}` cannot be written: {error}", path.display()))
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
