//! Where results are written to.

use std::io::{BufWriter, Write};
use std::path::Path;

use paceline::output::table::{CURSOR, TableError, TableOut};
use paceline::output::{CsvOut, value};
use serde_json::{Map, Value};

use super::names::Names;
use crate::args::look::{Format, ResultsArgs};
use crate::context::Context;
use crate::exit::Usage;
use crate::render::file;

/// CSV, JSON lines, or a table.
pub enum Sheet<'o> {
    Csv(Box<CsvOut<Box<dyn Write + 'o>>>),
    Jsonl(Box<dyn Write + 'o>, Option<Vec<String>>),
    Table(Box<TableOut>),
}

impl<'o> Sheet<'o> {
    pub fn new(
        args: &ResultsArgs,
        format: Format,
        names: Option<Names>,
        context: &'o Context,
    ) -> anyhow::Result<Sheet<'o>> {
        match (&args.sqlite, names, format) {
            (Some(file), Some(names), _) => table(file, args, names, context),
            (_, names, Format::Csv) => {
                let names = names.map(|names| names.all).unwrap_or_default();
                let to = writer(args.output.as_deref(), context)?;
                Ok(Sheet::Csv(Box::new(CsvOut::new(to, names)?)))
            }
            (_, names, Format::Jsonl) => {
                let to = writer(args.output.as_deref(), context)?;
                Ok(Sheet::Jsonl(to, names.map(|names| names.all)))
            }
        }
    }

    pub fn write(&mut self, rows: Vec<Map<String, Value>>) -> anyhow::Result<()> {
        match self {
            Sheet::Csv(csv) => rows.iter().try_for_each(|row| csv.row(row))?,
            Sheet::Jsonl(to, names) => {
                for row in rows {
                    writeln!(to, "{}", Value::Object(picked(row, names.as_deref())))?;
                }
            }
            Sheet::Table(table) => table.write(&rows).map_err(told)?,
        }
        Ok(())
    }

    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Sheet::Csv(csv) => csv.finish()?.flush()?,
            Sheet::Jsonl(mut to, _) => to.flush()?,
            Sheet::Table(_) => {}
        }
        Ok(())
    }
}

fn picked(row: Map<String, Value>, names: Option<&[String]>) -> Map<String, Value> {
    let Some(names) = names else { return row };
    let one = |name: &String| (name.clone(), value(&row, name).cloned().unwrap_or_default());
    names.iter().map(one).collect()
}

fn writer<'o>(file: Option<&Path>, context: &'o Context) -> anyhow::Result<Box<dyn Write + 'o>> {
    let Some(path) = file else { return Ok(Box::new(context.out.writer())) };
    let file = file::make("--output", path, context)?;
    Ok(Box::new(BufWriter::new(file)))
}

fn table<'o>(
    file: &Path,
    args: &ResultsArgs,
    names: Names,
    context: &Context,
) -> anyhow::Result<Sheet<'o>> {
    file::refuse_store("--sqlite", file, context)?;
    let key = args.upsert.as_deref().unwrap_or(CURSOR);
    let table = TableOut::open(file, &args.table, key, &names.columns(key)).map_err(told)?;
    Ok(Sheet::Table(Box::new(table)))
}

fn told(error: TableError) -> anyhow::Error {
    match error.is_usage() {
        true => Usage(error.to_string()).into(),
        false => error.into(),
    }
}
