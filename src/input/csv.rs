//! A CSV file's rows by column.
//!
//! ```
//! use paceline::input::Input;
//! use paceline::input::csv::{CsvRows, Format};
//!
//! let text = "isbn,title\n9780000000002,\"A, B\"\n9780000000019\n";
//! let rows = CsvRows::new(text.as_bytes(), &Format::default())?;
//! assert_eq!(rows.columns(), ["isbn", "title"]);
//! let read = rows.collect::<Result<Vec<_>, _>>()?;
//! assert!(matches!(&read[0], Input::Row(row) if row.columns["title"] == "A, B"));
//! assert!(matches!(&read[1], Input::Bad(bad) if bad.line == 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, BufRead, Read};

use super::frames::{Frame, Frames};
pub use super::rejects::REJECTED_BECAUSE;
use super::{BadRow, Input, Row, RowProblem, rejects};
use crate::job::Own;

/// What the first column is called where the header does not name it.
pub(crate) const FIRST: &str = "unnamed";

/// How a CSV file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Between the values of a row.
    pub delimiter: u8,
    /// The columns; `None`: the first row names them.
    pub columns: Option<Vec<String>>,
}

impl Default for Format {
    fn default() -> Self {
        Format { delimiter: b',', columns: None }
    }
}

/// Why no row of a CSV file can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// The file cannot be read.
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    /// There is no header row.
    #[error("it is empty; its first row must name the columns, or --columns must")]
    Empty,
    /// The header row cannot be read.
    #[error("line {line}, which names the columns, cannot be read: {problem}")]
    Header {
        /// Its line.
        line: u64,
        /// Why.
        problem: RowProblem,
    },
    /// A column without a name.
    #[error("column {0} has no name")]
    Nameless(usize),
    /// Two columns of one name.
    #[error("the column `{0}` is named twice")]
    Twice(String),
}

/// Reads rows. Lines are counted from 1, the header included.
#[derive(Debug)]
pub struct CsvRows<R> {
    frames: Frames<R>,
    parser: csv::Reader<Fed>,
    record: csv::ByteRecord,
    columns: Vec<String>,
    header: Option<Vec<u8>>,
    delimiter: u8,
    /// Which column tells why the row was rejected before.
    because: Option<usize>,
}

fn parser(delimiter: u8) -> csv::Reader<Fed> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(Fed::default())
}

/// What the parser is given, one record at a time.
#[derive(Debug, Default)]
struct Fed {
    bytes: io::Cursor<Vec<u8>>,
}

impl Read for Fed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header row, where the format does not name the columns.
    ///
    /// # Errors
    ///
    /// Where the columns cannot be told.
    pub fn new(input: R, format: &Format) -> Result<CsvRows<R>, CsvError> {
        let mut rows = CsvRows {
            frames: Frames::new(input, format.delimiter),
            parser: parser(format.delimiter),
            record: csv::ByteRecord::new(),
            columns: Vec::new(),
            header: None,
            delimiter: format.delimiter,
            because: None,
        };
        rows.columns = match &format.columns {
            Some(columns) => columns.clone(),
            None => rows.read_header()?,
        };
        check_columns(&rows.columns)?;
        rows.because = rows.columns.iter().position(|name| name == REJECTED_BECAUSE);
        rows.header = rows.header.take().map(|header| rows.of_the_row(header, true));
        Ok(rows)
    }

    /// The names of the columns, in the file's order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The header row's bytes, without [`REJECTED_BECAUSE`]; `None` where the columns were named by the format.
    pub fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    /// Between the values of a row: what the file says of it goes before the format.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    fn first_record(&mut self) -> Result<(u64, Vec<u8>), CsvError> {
        match self.frames.next()? {
            Some(Frame::Record(line, raw)) => Ok((line, raw)),
            Some(Frame::Bad(bad)) => Err(CsvError::Header { line: bad.line, problem: bad.problem }),
            None => Err(CsvError::Empty),
        }
    }

    fn read_header(&mut self) -> Result<Vec<String>, CsvError> {
        let (mut line, mut raw) = self.first_record()?;
        if let Some(delimiter) = told_delimiter(&raw) {
            self.delimiter = delimiter;
            self.frames.set_delimiter(delimiter);
            self.parser = parser(delimiter);
            (line, raw) = self.first_record()?;
        }
        self.parse(&raw)?;
        let names = self.record.iter().enumerate().map(|(at, name)| {
            let column = (at + 1).to_string();
            // Tables are often written with such a column of row numbers.
            if at == 0 && name.trim_ascii().is_empty() && self.record.len() > 1 {
                return Ok(FIRST.to_owned());
            }
            let not_text = |_| CsvError::Header { line, problem: RowProblem::NotText { column } };
            let name = std::str::from_utf8(name).map_err(not_text)?;
            Ok(name.trim().to_owned())
        });
        let names = names.collect::<Result<_, CsvError>>()?;
        self.header = Some(raw);
        Ok(names)
    }

    /// Parses one record. It ends in a break, so that the parser never asks for more.
    fn parse(&mut self, raw: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(raw.len() + 1);
        bytes.extend_from_slice(raw);
        bytes.push(b'\n');
        self.parser.get_mut().bytes = io::Cursor::new(bytes);
        self.parser.read_byte_record(&mut self.record).map(|_| ()).map_err(io::Error::other)
    }

    /// A row's bytes without what is said of it. It `is_whole` where the last record is what it holds.
    fn of_the_row(&self, raw: Vec<u8>, is_whole: bool) -> Vec<u8> {
        match self.because {
            None => raw,
            Some(at) if at + 1 == self.columns.len() => {
                rejects::without_last(&raw, self.delimiter, is_whole).to_vec()
            }
            Some(at) if is_whole => rejects::without(&self.record, self.delimiter, at),
            Some(_) => raw,
        }
    }

    fn row(&mut self, line: u64, raw: Vec<u8>) -> io::Result<Input> {
        self.parse(&raw)?;
        let (found, expected) = (self.record.len(), self.columns.len());
        let raw = self.of_the_row(raw, found == expected);
        if found != expected {
            let problem = RowProblem::Count { found, expected };
            return Ok(Input::Bad(BadRow { line, raw, problem }));
        }
        let mut columns = std::collections::BTreeMap::new();
        for (name, value) in self.columns.iter().zip(&self.record) {
            let Ok(value) = std::str::from_utf8(value) else {
                let problem = RowProblem::NotText { column: name.clone() };
                return Ok(Input::Bad(BadRow { line, raw, problem }));
            };
            if name != REJECTED_BECAUSE {
                columns.insert(name.clone(), value.to_owned());
            }
        }
        Ok(Input::Row(Row { line, columns, own: Own::default(), raw }))
    }
}

/// What a line before the header says that values are parted by: `sep=;`, as spreadsheets write it.
fn told_delimiter(line: &[u8]) -> Option<u8> {
    match line {
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] if *delimiter != b'"' => {
            Some(*delimiter)
        }
        _ => None,
    }
}

fn check_columns(columns: &[String]) -> Result<(), CsvError> {
    for (at, name) in columns.iter().enumerate() {
        if name.is_empty() {
            return Err(CsvError::Nameless(at + 1));
        }
        if columns.iter().take(at).any(|earlier| earlier == name) {
            return Err(CsvError::Twice(name.clone()));
        }
    }
    Ok(())
}

impl<R: BufRead> Iterator for CsvRows<R> {
    type Item = io::Result<Input>;

    fn next(&mut self) -> Option<io::Result<Input>> {
        match self.frames.next() {
            Ok(Some(Frame::Record(line, raw))) => Some(self.row(line, raw)),
            Ok(Some(Frame::Bad(BadRow { line, raw, problem }))) => {
                let raw = self.of_the_row(raw, false);
                Some(Ok(Input::Bad(BadRow { line, raw, problem })))
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Input> {
        let rows = CsvRows::new(text, &Format::default()).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn told(input: &Input) -> String {
        match input {
            Input::Row(row) => {
                let values: Vec<&str> = row.columns.values().map(String::as_str).collect();
                format!("{}: {}", row.line, values.join("|"))
            }
            Input::Bad(bad) => format!("{}: {}", bad.line, bad.problem),
        }
    }

    fn tell(text: &[u8]) -> Vec<String> {
        read(text).iter().map(told).collect()
    }

    #[test]
    fn rows_have_their_line_and_values() {
        let text = b"\xef\xbb\xbfa,b\r\n1,\"x,\"\"y\"\"\nz\"\r\n\r\n2,\"\"\n";
        assert_eq!(tell(text), ["2: 1|x,\"y\"\nz", "5: 2|"]);
    }

    #[test]
    fn a_bad_row_takes_no_other_with_it() {
        let text = b"a,b\n1,\"open\n2,two\n3,\"x\"y\n4\n5,\xff\n6,six";
        assert_eq!(
            tell(text),
            [
                "2: text follows a closing quote; a quote inside a value is written twice",
                "3: 2|two",
                "4: text follows a closing quote; a quote inside a value is written twice",
                "5: it has 1 value, and there are 2 columns",
                NOT_TEXT,
                "7: 6|six",
            ]
        );
    }

    #[test]
    fn an_open_quote_ends_with_its_line() {
        assert_eq!(
            tell(b"a,b\n1,\"open\n2,two\n"),
            ["2: a quote in it is never closed", "3: 2|two"]
        );
    }

    #[test]
    fn a_row_too_long_is_passed_over() {
        let mut text = b"a\n".to_vec();
        text.extend(vec![b'x'; LONGEST * 2]);
        text.extend(b"\nend\n");
        assert_eq!(tell(&text), ["2: it is longer than 1048576 bytes", "3: end"]);
    }

    #[test]
    fn a_quoted_value_too_long_is_one_row() {
        let long = |line: &str| line.repeat(LONGEST / line.len() * 2);
        // In short lines, in one long one, and with quotes that are doubled.
        for inner in [long("777,evil\n"), long("x") + "\n777,evil\n", long("\"\"7,x\n")] {
            let text = format!("a,b\n1,one\n2,\"{inner}\"\n3,three\n");
            let lines = inner.matches('\n').count();
            let last = format!("{}: 3|three", lines + 4);
            assert_eq!(
                tell(text.as_bytes()),
                ["2: 1|one", "3: it is longer than 1048576 bytes", &last]
            );
        }
        let open = format!("a,b\n2,\"{}\n3,three\n", long("x"));
        assert_eq!(
            tell(open.as_bytes()),
            ["2: it is longer than 1048576 bytes", "3: 3|three"],
            "a quote that is never closed takes its line alone"
        );
        let long_line = format!("a\n{}\n{}\nend\n", "x".repeat(LONGEST * 20), "\r".repeat(LONGEST));
        let told = tell(long_line.as_bytes());
        assert_eq!(told.first().map(String::as_str), Some("2: it is longer than 1048576 bytes"));
        assert_eq!(told.last().map(String::as_str), Some("4: end"));
    }

    const NOT_TEXT: &str = "6: its value in the column `b` is no UTF-8 text; if the file is of another \
        encoding, say so, as in --encoding windows-1252";
    const LONGEST: usize = super::super::LONGEST_ROW;

    #[test]
    fn columns_are_named_once() {
        let refused = |text: &[u8]| CsvRows::new(text, &Format::default()).unwrap_err().to_string();
        assert_eq!(refused(b"a,b,a\n"), "the column `a` is named twice");
        assert_eq!(refused(b"a,,b\n"), "column 2 has no name");
        assert_eq!(refused(b",unnamed\n"), "the column `unnamed` is named twice");
        let rows = CsvRows::new(&b",isbn\n0,1\n"[..], &Format::default()).unwrap();
        assert_eq!(rows.columns(), ["unnamed", "isbn"], "a column of row numbers");
        assert!(refused(b"").starts_with("it is empty"));
    }

    #[test]
    fn a_line_before_the_header_can_tell_the_delimiter() {
        let rows =
            CsvRows::new(&b"\xef\xbb\xbfsep=;\r\na;b\r\n1;\"2;3\"\r\n"[..], &Format::default());
        let rows = rows.unwrap();
        assert_eq!((rows.columns().join("|"), rows.delimiter()), ("a|b".to_owned(), b';'));
        let told: Vec<String> = rows.map(|row| told(&row.unwrap())).collect();
        assert_eq!(told, ["3: 1|2;3"]);
    }

    #[test]
    fn a_file_of_rejects_can_be_read_again() {
        let format = Format { delimiter: b';', columns: None };
        let rows = CsvRows::new(&b"a;rejected_because\n1;bad\n"[..], &format).unwrap();
        let rows: Vec<Input> = rows.map(Result::unwrap).collect();
        assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), ["2: 1"]);
    }
}
