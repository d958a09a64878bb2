//! `results`: answers as CSV or JSON lines, in the order in which their jobs ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use paceline::job::{JobId, JobState};
use paceline::output::CsvOut;
use paceline::quota::{KeepBody, Upstream};
use paceline::report::jobs::{RESULT_FIELDS, RESULT_RESERVED, result};
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::JobView;
use paceline::store::{Cursor, Filter, Store as _};
use serde_json::{Map, Value};

use super::act::check_names;
use crate::args::look::{Format, ResultsArgs};
use crate::context::Context;
use crate::exit::{Exit, Usage, wrong};

/// Results that are read at once.
const PAGE: usize = 1000;

/// Writes answers.
pub async fn run(args: ResultsArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let mut filter = args.select.filter(&[], &context.times(), store.now())?;
    check_names(&filter, &store, context).await?;
    if filter.states.is_empty() {
        filter.states = vec![JobState::Done, JobState::Failed, JobState::Expired, JobState::Unsure];
    }
    check_body(&args, &filter, &store, context).await?;
    let format = args.format.unwrap_or(match context.global.json {
        true => Format::Jsonl,
        false => Format::Csv,
    });
    let names = match (&args.fields, format) {
        (Some(fields), _) => Some(fields.clone()),
        (None, Format::Csv) => Some(all_names(&store, &filter, context).await?),
        (None, Format::Jsonl) => None,
    };
    let out = Sheet::new(format, names, writer(args.output.as_deref(), context)?)?;
    let mut pages = Pages::new(filter, &args);
    let last = write(&mut pages, out, &store).await?;
    // Whoever goes on from a cursor wants the next one; it is in every row besides.
    let wanted = args.after.is_some() || context.global.verbose > 0;
    if let Some(cursor) = last.filter(|_| wanted) {
        context.note(&format!("next: --after {cursor}"));
    }
    Ok(Exit::Done)
}

async fn write(
    pages: &mut Pages,
    mut out: Sheet<'_>,
    store: &SqliteStore,
) -> anyhow::Result<Option<Cursor>> {
    while let Some(page) = pages.next(store).await? {
        for row in page {
            out.row(row)?;
        }
    }
    out.finish()?;
    Ok(pages.last)
}

fn writer<'o>(file: Option<&Path>, context: &'o Context) -> anyhow::Result<Box<dyn Write + 'o>> {
    let Some(path) = file else { return Ok(Box::new(context.out.writer())) };
    let file = File::create(path).map_err(|error| {
        Usage(format!("--output: `{}` cannot be written: {error}", path.display()))
    })?;
    Ok(Box::new(BufWriter::new(file)))
}

/// A field that was asked for and that no quota file keeps is a mistake, not an empty column.
async fn check_body(
    args: &ResultsArgs,
    filter: &Filter,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<()> {
    if !args.fields.iter().flatten().any(|field| field == "body") {
        return Ok(());
    }
    let declared = context.declared(store).await?;
    let concerned = |upstream: &Upstream| {
        filter.upstreams.is_empty() || filter.upstreams.contains(&upstream.name)
    };
    let answered = filter.states.contains(&JobState::Done);
    for upstream in declared.values().filter(|upstream| concerned(upstream)) {
        let kept = match upstream.keep.body {
            KeepBody::All => continue,
            KeepBody::Refusals if !answered => continue,
            KeepBody::Refusals => "refusals",
            KeepBody::None => "none",
        };
        return wrong(format!(
            "the field `body` is not kept: the quota file of {} says [keep] body = \"{kept}\"; with \
             \"all\" the answers to come are kept",
            upstream.name
        ));
    }
    Ok(())
}

/// The header of a CSV file: a result's own fields, extracted ones, columns, the cursor.
async fn all_names(
    store: &SqliteStore,
    filter: &Filter,
    context: &Context,
) -> anyhow::Result<Vec<String>> {
    let found = store.result_names(filter.clone()).await?;
    let mut fields = found.fields;
    for upstream in context.declared(store).await?.values() {
        if filter.upstreams.contains(&upstream.name) {
            fields.extend(upstream.results.keys().cloned());
        }
    }
    let mut names: Vec<String> = RESULT_FIELDS.into_iter().map(str::to_owned).collect();
    for name in fields {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for column in found.columns.into_iter().filter(|column| column != "url") {
        let taken = names.contains(&column) || RESULT_RESERVED.contains(&column.as_str());
        names.push(if taken { format!("columns.{column}") } else { column });
    }
    names.push("cursor".to_owned());
    Ok(names)
}

/// Where results are written to.
enum Sheet<'o> {
    Csv(Box<CsvOut<Box<dyn Write + 'o>>>),
    Jsonl(Box<dyn Write + 'o>, Option<Vec<String>>),
}

impl<'o> Sheet<'o> {
    fn new(
        format: Format,
        names: Option<Vec<String>>,
        to: Box<dyn Write + 'o>,
    ) -> anyhow::Result<Sheet<'o>> {
        Ok(match format {
            Format::Csv => Sheet::Csv(Box::new(CsvOut::new(to, names.unwrap_or_default())?)),
            Format::Jsonl => Sheet::Jsonl(to, names),
        })
    }

    fn row(&mut self, mut row: Map<String, Value>) -> anyhow::Result<()> {
        match self {
            Sheet::Csv(csv) => {
                let columns = row.get("columns").and_then(Value::as_object).cloned();
                for (name, value) in columns.into_iter().flatten() {
                    row.insert(format!("columns.{name}"), value);
                }
                csv.row(&row)?;
            }
            Sheet::Jsonl(to, names) => {
                if let Some(names) = names {
                    let picked = names
                        .iter()
                        .map(|name| (name.clone(), row.get(name).cloned().unwrap_or(Value::Null)));
                    row = picked.collect();
                }
                writeln!(to, "{}", Value::Object(row))?;
            }
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Sheet::Csv(csv) => csv.finish()?.flush()?,
            Sheet::Jsonl(mut to, _) => to.flush()?,
        }
        Ok(())
    }
}

/// Results, page by page.
struct Pages {
    filter: Filter,
    latest_by: Option<String>,
    left: usize,
    /// All that are to come, where they had to be found at once.
    found: Option<std::vec::IntoIter<Cursor>>,
    last: Option<Cursor>,
}

impl Pages {
    fn new(filter: Filter, args: &ResultsArgs) -> Pages {
        let left = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Pages { filter, latest_by: args.latest_by.clone(), left, found: None, last: args.after }
    }

    async fn next(
        &mut self,
        store: &SqliteStore,
    ) -> anyhow::Result<Option<Vec<Map<String, Value>>>> {
        let cursors = self.cursors(store).await?;
        let Some(last) = cursors.last() else { return Ok(None) };
        self.last = Some(*last);
        self.left -= cursors.len();
        let ids: Vec<JobId> = cursors.iter().map(|cursor| cursor.job).collect();
        let bodies = store.last_bodies(ids.clone()).await?;
        let jobs = store.jobs(Filter { ids, ..Filter::default() }, BTreeMap::new()).await?;
        let jobs: BTreeMap<JobId, JobView> = jobs.into_iter().map(|job| (job.id, job)).collect();
        // A job that was pruned or queued again meanwhile has no result any more.
        let rows = cursors.iter().filter_map(|cursor| {
            let job = jobs.get(&cursor.job).filter(|job| job.state.is_final())?;
            Some(result(job, bodies.get(&cursor.job), &cursor.to_string()))
        });
        Ok(Some(rows.collect()))
    }

    /// The next page's places. Who is the latest of its like is asked once: one number a result.
    async fn cursors(&mut self, store: &SqliteStore) -> anyhow::Result<Vec<Cursor>> {
        let most = PAGE.min(self.left);
        if self.latest_by.is_none() {
            let filter = Filter { limit: Some(most as u64), ..self.filter.clone() };
            return Ok(store.ended(filter, self.last, None).await?);
        }
        let found = match &mut self.found {
            Some(found) => found,
            None => {
                let all =
                    store.ended(self.filter.clone(), self.last, self.latest_by.clone()).await?;
                self.found.insert(all.into_iter())
            }
        };
        Ok(found.take(most).collect())
    }
}
