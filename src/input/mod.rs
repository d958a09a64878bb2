//! Rows come in: from CSV, or from lines of one value each.
//!
//! | file | noun |
//! | --- | --- |
//! | [`csv`] | a CSV file's rows by column |
//! | `frames` | where a CSV record begins and ends, and which line cannot be one |
//! | [`lines`] | one value a line |
//!
//! Readers hold one row at a time. A row that cannot be read is told with its line, and reading goes
//! on with the next one.

pub mod csv;
mod frames;
pub mod lines;

use std::io::{self, BufRead, Read as _};

use crate::job::Columns;

/// Bytes of one row; a longer one is refused, so that memory stays flat.
pub const LONGEST_ROW: usize = 1 << 20;

/// What one row turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Values by column.
    Row(Row),
    /// It cannot be read.
    Bad(BadRow),
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line that it begins on, from 1.
    pub line: u64,
    /// Its values.
    pub columns: Columns,
    /// Its bytes, without the line break at its end.
    pub raw: Vec<u8>,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The line that it begins on, from 1.
    pub line: u64,
    /// Its bytes, without the line break at its end; cut where it is too long.
    pub raw: Vec<u8>,
    /// Why.
    pub problem: RowProblem,
}

/// Why a row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// More or fewer values than columns.
    #[error("it has {}, and there {}", some(.found, "value"), are(.expected, "column"))]
    Count {
        /// The values.
        found: usize,
        /// The columns.
        expected: usize,
    },
    /// Bytes that are no UTF-8.
    #[error("its value in the column `{column}` is no UTF-8 text")]
    NotText {
        /// The column.
        column: String,
    },
    /// The file ends, or too much follows, before a quote is closed.
    #[error("a quote in it is never closed")]
    OpenQuote,
    /// Something other than a delimiter follows a closing quote.
    #[error("text follows a closing quote; a quote inside a value is written twice")]
    AfterQuote,
    /// More than [`LONGEST_ROW`] bytes.
    #[error("it is longer than {} bytes", LONGEST_ROW)]
    TooLong,
}

fn some(count: &usize, one: &str) -> String {
    format!("{count} {one}{}", if *count == 1 { "" } else { "s" })
}

fn are(count: &usize, one: &str) -> String {
    format!("{} {}", if *count == 1 { "is" } else { "are" }, some(count, one))
}

/// One line with its break, and whether it was cut at [`LONGEST_ROW`]; `None` at the end.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, bool)>> {
    let mut line = Vec::new();
    let most = u64::try_from(LONGEST_ROW).unwrap_or(u64::MAX);
    if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let cut = line.len() >= LONGEST_ROW && !line.ends_with(b"\n");
    if cut {
        skip_line(input)?;
    }
    Ok(Some((line, cut)))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        let done = end.is_some() || buffer.is_empty();
        input.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// The line without its break.
fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
