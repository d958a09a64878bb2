//! One value a line.
//!
//! ```
//! use paceline::input::Input;
//! use paceline::input::lines::Lines;
//!
//! let text = "https://www.example.com/a\n\nhttps://www.example.com/b\n";
//! let rows = Lines::new(text.as_bytes(), "url").collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(rows.len(), 2); // blank lines are none
//! let Some(Input::Row(row)) = rows.last() else { unreachable!() };
//! assert_eq!((row.line, row.columns["url"].as_str()), (3, "https://www.example.com/b"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, BufRead};

use super::{BadRow, Input, Row, RowProblem, SourceLines};
use crate::job::{Columns, Own};

/// Reads lines; each is the value of one column. Blank ones are passed over, and so is the white
/// space around a value.
#[derive(Debug)]
pub struct Lines<R> {
    lines: SourceLines<R>,
    column: String,
}

impl<R: BufRead> Lines<R> {
    /// Reads `input`; each line is the value of `column`.
    pub fn new(input: R, column: &str) -> Lines<R> {
        Lines::after(input, column, 0)
    }

    /// As [`Lines::new`], where so many lines were read already.
    pub(super) fn after(input: R, column: &str, passed: u64) -> Lines<R> {
        let lines = SourceLines { input, line: passed };
        Lines { lines, column: column.to_owned() }
    }

    fn row(&self, line: u64, raw: Vec<u8>, cut: bool) -> Input {
        if cut {
            return Input::Bad(BadRow { line, raw, problem: RowProblem::TooLong });
        }
        let Ok(text) = std::str::from_utf8(&raw) else {
            let problem = RowProblem::NotText { column: self.column.clone() };
            return Input::Bad(BadRow { line, raw, problem });
        };
        let columns = Columns::from([(self.column.clone(), text.trim().to_owned())]);
        Input::Row(Row { line, columns, own: Own::default(), raw })
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Input>;

    fn next(&mut self) -> Option<io::Result<Input>> {
        let read = self.lines.next()?;
        Some(read.map(|(line, raw, cut)| self.row(line, raw, cut)))
    }
}
