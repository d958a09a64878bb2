//! Rows become jobs; those that cannot are told and collected.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use paceline::input::csv::REJECTED_BECAUSE;
use paceline::input::{BadRow, Input, Row};
use paceline::job::NewJob;
use paceline::plan::Planner;

use super::source::Rows;
use crate::context::Context;
use crate::exit::{Usage, wrong};
use crate::render::text::{count, cut};

/// Rejected rows told one by one; the others are counted.
const TOLD: u64 = 20;

/// Plans rows.
#[derive(Debug)]
pub struct Intake<'a> {
    planner: Planner<'a>,
    rejects: Rejects<'a>,
}

impl<'a> Intake<'a> {
    /// Makes the file for rejected rows, where one is wanted.
    pub fn new(
        planner: Planner<'a>,
        rows: &Rows,
        file: Option<&Path>,
        context: &'a Context,
    ) -> anyhow::Result<Intake<'a>> {
        Ok(Intake { planner, rejects: Rejects::new(rows, file, context)? })
    }

    /// The next job; `None` at the end of the rows.
    pub fn next(&mut self, rows: &mut Rows) -> anyhow::Result<Option<NewJob>> {
        while let Some(input) = rows.next()? {
            match input {
                Input::Bad(BadRow { line, raw, problem }) => {
                    self.rejects.push(rows, line, &raw, &problem.to_string())?;
                }
                Input::Row(Row { line, columns, raw }) => match self.planner.plan(columns) {
                    Ok(job) => return Ok(Some(job)),
                    Err(error) => self.rejects.push(rows, line, &raw, &with_causes(&error))?,
                },
            }
        }
        Ok(None)
    }

    /// At most so many jobs; none at the end of the rows.
    pub fn chunk(&mut self, rows: &mut Rows, most: usize) -> anyhow::Result<Vec<NewJob>> {
        let mut jobs = Vec::new();
        while jobs.len() < most {
            match self.next(rows)? {
                Some(job) => jobs.push(job),
                None => break,
            }
        }
        Ok(jobs)
    }

    /// How many of the rows are wrong.
    pub fn check(&mut self, mut rows: Rows) -> anyhow::Result<u64> {
        while self.next(&mut rows)?.is_some() {}
        Ok(self.rejects.count)
    }

    /// How many rows were rejected; all of them are in the file.
    pub fn finish(self) -> anyhow::Result<u64> {
        self.rejects.finish()
    }
}

/// An error in one line. Its values came from the user and hold no secret.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let told = next.to_string();
        if !text.contains(&told) {
            text.push_str(&format!(": {told}"));
        }
        cause = next.source();
    }
    text
}

/// Whether both are one file, which making the one would empty.
fn is_same(path: &Path, read: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    read.is_some_and(|read| real(path).is_some() && real(path) == real(read))
}

/// Rows that were not added.
#[derive(Debug)]
struct Rejects<'a> {
    context: &'a Context,
    count: u64,
    file: Option<(PathBuf, BufWriter<File>)>,
    /// Each row is followed by its reason: there is a header that names that column.
    with_reason: bool,
}

impl<'a> Rejects<'a> {
    fn new(rows: &Rows, file: Option<&Path>, context: &'a Context) -> anyhow::Result<Rejects<'a>> {
        let file = match file {
            Some(path) if is_same(path, rows.file.as_deref()) => {
                return wrong("--rejects names the file that is read; choose another");
            }
            Some(path) => {
                let made = File::create(path).map_err(|error| {
                    Usage(format!("--rejects: `{}` cannot be written: {error}", path.display()))
                })?;
                Some((path.to_owned(), BufWriter::new(made)))
            }
            None => None,
        };
        let with_reason = rows.header.is_some();
        let mut rejects = Rejects { context, count: 0, file, with_reason };
        if let Some(header) = &rows.header {
            // A file of rejects that is added again has the column already.
            let known = header.ends_with(REJECTED_BECAUSE.as_bytes());
            let more = (!known).then_some(REJECTED_BECAUSE);
            rejects.write(header, rows.delimiter, more)?;
        }
        Ok(rejects)
    }

    fn push(&mut self, rows: &Rows, line: u64, raw: &[u8], problem: &str) -> anyhow::Result<()> {
        self.count += 1;
        if self.count <= TOLD {
            let name = rows.name(line);
            self.context.complain(&format!("{name}: {}", cut(problem, 500)));
        }
        let problem = format!("\"{}\"", problem.replace('"', "\"\"").replace('\n', " "));
        let reason = self.with_reason.then_some(problem.as_str());
        self.write(raw, rows.delimiter, reason)
    }

    fn write(&mut self, raw: &[u8], delimiter: u8, more: Option<&str>) -> anyhow::Result<()> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let mut line = raw.to_vec();
        if let Some(more) = more {
            line.push(delimiter);
            line.extend_from_slice(more.as_bytes());
        }
        line.push(b'\n');
        let cannot = || format!("--rejects: `{}` cannot be written", path.display());
        file.write_all(&line).with_context(cannot)
    }

    fn finish(self) -> anyhow::Result<u64> {
        if self.count > TOLD {
            let rest = count(self.count - TOLD, "more row");
            let all = match &self.file {
                Some((path, _)) => format!("; all are in {}", path.display()),
                None => "; --rejects FILE collects them all".to_owned(),
            };
            self.context.complain(&format!("and {rest}{all}"));
        }
        if let Some((path, mut file)) = self.file {
            let cannot = || format!("--rejects: `{}` cannot be written", path.display());
            file.flush().with_context(cannot)?;
        }
        Ok(self.count)
    }
}
