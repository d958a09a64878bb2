//! stdout: data, and nothing else.

use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write};

use serde::Serialize;
use serde_json::Value;

use super::text;

/// stdout. Errors are told, so that a pipe that nobody reads ends the program quietly.
#[derive(Debug)]
pub struct Out {
    to: RefCell<BufWriter<Stdout>>,
    terminal: bool,
}

impl Out {
    /// stdout, buffered.
    pub fn new() -> Out {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        Out { to: RefCell::new(BufWriter::new(stdout)), terminal }
    }

    /// Lines of text for people; control characters are escaped.
    pub fn text(&self, lines: &str) -> io::Result<()> {
        writeln!(self.to.borrow_mut(), "{}", text::visible_lines(lines))
    }

    /// One value: in many lines on a terminal, else in one.
    pub fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = match self.terminal {
            true => serde_json::to_string_pretty(value)?,
            false => serde_json::to_string(value)?,
        };
        Ok(self.line(&text)?)
    }

    /// One value in one line.
    pub fn json_line(&self, value: &Value) -> io::Result<()> {
        self.line(&value.to_string())
    }

    /// An array whose items come one by one.
    pub fn array(&self) -> Array<'_> {
        Array { out: self, begun: false }
    }

    /// Bytes as they are, unless a terminal would take them for commands.
    pub fn writer(&self) -> Writer<'_> {
        Writer { out: self }
    }

    /// Writes out what is buffered.
    pub fn flush(&self) -> io::Result<()> {
        self.to.borrow_mut().flush()
    }

    fn line(&self, json: &str) -> io::Result<()> {
        let mut to = self.to.borrow_mut();
        match self.terminal {
            true => writeln!(to, "{}", text::visible_json(json)),
            false => writeln!(to, "{json}"),
        }
    }
}

/// An array that is written while its items are found.
#[derive(Debug)]
pub struct Array<'o> {
    out: &'o Out,
    begun: bool,
}

impl Array<'_> {
    /// The next item.
    pub fn push(&mut self, value: &Value) -> io::Result<()> {
        let before = if self.begun { "," } else { "[" };
        self.begun = true;
        write!(self.out.to.borrow_mut(), "{before}")?;
        self.out.json_line(value)
    }

    /// The end.
    pub fn finish(self) -> io::Result<()> {
        let end = if self.begun { "]" } else { "[]" };
        writeln!(self.out.to.borrow_mut(), "{end}")
    }
}

/// Lets others write to stdout.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o Out,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut to = self.out.to.borrow_mut();
        match self.out.terminal {
            true => {
                to.write_all(text::visible_lines(&String::from_utf8_lossy(bytes)).as_bytes())?
            }
            false => to.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
