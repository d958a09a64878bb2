//! Rows go out: as CSV, as one JSON object a line, or ([`table`]) into a table of a SQLite file.
//!
//! ```
//! use paceline::output::CsvOut;
//! use serde_json::json;
//!
//! let mut out = CsvOut::new(Vec::new(), ["id", "stock", "body"])?;
//! out.row(json!({"id": 7, "stock": null, "body": "a,b"}).as_object().unwrap())?;
//! assert_eq!(out.finish()?, b"id,stock,body\n7,,\"a,b\"\n");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod table;

use std::io::{self, Write};

use serde_json::{Map, Value};

/// Writes rows as CSV; the header is the first thing written.
#[derive(Debug)]
pub struct CsvOut<W: Write> {
    writer: csv::Writer<W>,
    columns: Vec<String>,
}

impl<W: Write> CsvOut<W> {
    /// Writes the header.
    ///
    /// # Errors
    ///
    /// Where `out` cannot be written.
    pub fn new<N: Into<String>>(
        out: W,
        columns: impl IntoIterator<Item = N>,
    ) -> io::Result<CsvOut<W>> {
        let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(&columns).map_err(io_error)?;
        Ok(CsvOut { writer, columns })
    }

    /// Writes a row; what is missing or null is an empty value.
    ///
    /// # Errors
    ///
    /// Where the output cannot be written.
    pub fn row(&mut self, row: &Map<String, Value>) -> io::Result<()> {
        let cells = self.columns.iter().map(|name| value(row, name).map(cell).unwrap_or_default());
        self.writer.write_record(cells).map_err(io_error)
    }

    /// Writes out what is buffered and gives the output back.
    ///
    /// # Errors
    ///
    /// Where the output cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(|error| io_error(error.into_error().into()))
    }
}

/// A row's value of that name; `columns.NAME` is found in its object `columns`, where that has it.
pub fn value<'r>(row: &'r Map<String, Value>, name: &str) -> Option<&'r Value> {
    let column = name.strip_prefix("columns.").and_then(|name| row.get("columns")?.get(name));
    column.or_else(|| row.get(name))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The cause as the system told it, so that a broken pipe stays one.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
