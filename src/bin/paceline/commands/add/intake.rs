//! Rows become jobs; those that cannot are told and collected.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use paceline::clock::Timestamp;
use paceline::input::Row;
use paceline::input::csv::REJECTED_BECAUSE;
use paceline::job::NewJob;
use paceline::plan::{LASTMOD, Lastmod, Planner};

use super::progress::Progress;
use super::source::{Item, Rows};
use crate::context::Context;
use crate::exit::wrong;
use crate::render::file;
use crate::render::text::{count, cut};
use crate::render::time::Times;

/// Rows of one transaction, where a runner waits meanwhile for the store.
pub const CHUNK: usize = 2000;

/// The same where none does: keys in no order fall on pages all over their index, and of so many several
/// fall on one, which is written once.
pub const CHUNK_ALONE: usize = 20_000;

/// Bytes of the rows of one transaction: so that memory stays flat however large they are.
const CHUNK_BYTES: usize = 8 << 20;

/// Rejected rows told one by one; the others are counted.
const TOLD: u64 = 20;

/// Jobs of one transaction, by upstream.
#[derive(Debug)]
pub struct Chunk {
    pub jobs: Vec<Vec<NewJob>>,
}

impl Chunk {
    /// Whether the rows have ended.
    pub fn is_empty(&self) -> bool {
        self.jobs.iter().all(Vec::is_empty)
    }
}

/// Rows that were not added.
#[derive(Debug)]
pub struct Left {
    /// Rows that are wrong, for one upstream or for all.
    pub rejected: u64,
    /// The same by upstream.
    pub by_upstream: Vec<u64>,
    /// Rows left out by `--since`.
    pub older: u64,
}

/// What `--since` lets through.
#[derive(Debug)]
pub struct Since {
    pub at: Timestamp,
    pub times: Times,
}

impl Since {
    /// Whether the row was changed since then; what does not say so was not.
    fn lets_through(&self, row: &Row) -> Result<bool, String> {
        let text = row.columns.get(LASTMOD).map_or("", |text| text.trim());
        if text.is_empty() {
            return Ok(false);
        }
        let Some(lastmod) = Lastmod::parse(text) else {
            return Err(format!("the lastmod `{text}` is no date, and --since must know it"));
        };
        Ok(lastmod.ends_at(|local| self.times.here.instant(local)) > self.at)
    }
}

/// Plans rows.
#[derive(Debug)]
pub struct Intake<'a> {
    planners: Vec<(&'a str, Planner<'a>)>,
    since: Option<Since>,
    rejects: Rejects<'a>,
    by_upstream: Vec<u64>,
    seen: u64,
    older: u64,
}

impl<'a> Intake<'a> {
    /// Plans for these upstreams, by name.
    pub fn new(
        planners: Vec<(&'a str, Planner<'a>)>,
        since: Option<Since>,
        rejects: Rejects<'a>,
    ) -> Intake<'a> {
        let by_upstream = vec![0; planners.len()];
        Intake { planners, since, rejects, by_upstream, seen: 0, older: 0 }
    }

    /// The next row's job for each upstream, where it can be one, and the bytes of the row; `None` at the
    /// end of the rows.
    pub fn next(
        &mut self,
        rows: &mut Rows,
    ) -> anyhow::Result<Option<(Vec<Option<NewJob>>, usize)>> {
        while let Some(item) = rows.next()? {
            self.seen += 1;
            let row = match item {
                Item::Bad { line, raw, problem } => {
                    self.reject(rows, line, &raw, &problem)?;
                    continue;
                }
                Item::Row(row) => row,
            };
            match self.since.as_ref().map_or(Ok(true), |since| since.lets_through(&row)) {
                Ok(true) => {}
                Ok(false) => {
                    self.older += 1;
                    continue;
                }
                Err(problem) => {
                    self.reject(rows, row.line, &row.raw, &problem)?;
                    continue;
                }
            }
            let size = row.raw.len();
            let jobs = self.plan(rows, row)?;
            if jobs.iter().any(Option::is_some) {
                return Ok(Some((jobs, size)));
            }
        }
        Ok(None)
    }

    fn reject(&mut self, rows: &Rows, line: u64, raw: &[u8], problem: &str) -> anyhow::Result<()> {
        self.by_upstream.iter_mut().for_each(|count| *count += 1);
        self.rejects.push(rows, line, raw, problem)
    }

    /// The row's job for each upstream. One that some cannot have is told once, with whose it cannot be.
    fn plan(&mut self, rows: &Rows, row: Row) -> anyhow::Result<Vec<Option<NewJob>>> {
        let Row { line, columns, own, raw } = row;
        let several = self.planners.len() > 1;
        let (mut jobs, mut problems) = (Vec::new(), Vec::new());
        let copies = std::iter::repeat_n((columns, own), self.planners.len());
        let counts = self.by_upstream.iter_mut();
        for (((name, planner), rejected), (columns, own)) in
            self.planners.iter().zip(counts).zip(copies)
        {
            match planner.plan_own(columns, own) {
                Ok(job) => jobs.push(Some(job)),
                Err(error) => {
                    let problem = with_causes(&error);
                    problems.push(if several { format!("{name}: {problem}") } else { problem });
                    *rejected += 1;
                    jobs.push(None);
                }
            }
        }
        if !problems.is_empty() {
            self.rejects.push(rows, line, &raw, &problems.join("; "))?;
        }
        Ok(jobs)
    }

    /// The jobs of one transaction, of so many rows at most; none at the end of the rows.
    pub fn chunk(&mut self, rows: &mut Rows, most: usize) -> anyhow::Result<Chunk> {
        let mut jobs: Vec<Vec<NewJob>> = self.planners.iter().map(|_| Vec::new()).collect();
        let (mut count, mut bytes) = (0, 0);
        while count < most && bytes < CHUNK_BYTES {
            let Some((planned, size)) = self.next(rows)? else { break };
            count += 1;
            bytes += size;
            for (jobs, job) in jobs.iter_mut().zip(planned) {
                jobs.extend(job);
            }
        }
        Ok(Chunk { jobs })
    }

    /// How many of the rows are wrong.
    pub fn check(&mut self, mut rows: Rows) -> anyhow::Result<u64> {
        while self.next(&mut rows)?.is_some() {}
        Ok(self.rejects.count)
    }

    /// The rows are read a second time.
    pub fn begin_again(&mut self) {
        (self.seen, self.older) = (0, 0);
    }

    /// Rows that were read so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What was not added; all rejected rows are in their file.
    pub fn finish(self) -> anyhow::Result<Left> {
        let (older, by_upstream) = (self.older, self.by_upstream);
        Ok(Left { rejected: self.rejects.finish()?, by_upstream, older })
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

/// Rows that were rejected.
#[derive(Debug)]
pub struct Rejects<'a> {
    context: &'a Context,
    progress: Progress,
    count: u64,
    file: Option<(PathBuf, BufWriter<File>)>,
    /// Each row is followed by its reason: there is a header that names that column.
    with_reason: bool,
}

impl<'a> Rejects<'a> {
    /// Makes the file for them, where one is wanted.
    pub fn new(
        rows: &Rows,
        file: Option<&Path>,
        progress: &Progress,
        context: &'a Context,
    ) -> anyhow::Result<Rejects<'a>> {
        let file = match file {
            Some(path) if is_same(path, rows.file.as_deref()) => {
                return wrong("--rejects names the file that is read; choose another");
            }
            Some(path) => {
                let made = file::make("--rejects", path, context)?;
                Some((path.to_owned(), BufWriter::new(made)))
            }
            None => None,
        };
        let with_reason = rows.header.is_some();
        let progress = progress.clone();
        let mut rejects = Rejects { context, progress, count: 0, file, with_reason };
        if let Some(header) = &rows.header {
            rejects.write(header, rows.delimiter, Some(REJECTED_BECAUSE))?;
        }
        Ok(rejects)
    }

    fn push(&mut self, rows: &Rows, line: u64, raw: &[u8], problem: &str) -> anyhow::Result<()> {
        self.count += 1;
        if self.count <= TOLD {
            let name = rows.name(line);
            let told = format!("{name}: {}", cut(problem, 500));
            self.progress.beside(|| self.context.complain(&told));
        }
        // What is wrong with a whole sitemap has no row.
        if raw.is_empty() {
            return Ok(());
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
            self.progress.beside(|| self.context.complain(&format!("and {rest}{all}")));
        }
        if let Some((path, mut file)) = self.file {
            let cannot = || format!("--rejects: `{}` cannot be written", path.display());
            file.flush().with_context(cannot)?;
        }
        Ok(self.count)
    }
}
