//! `results`: answers in the order in which their jobs ended, as CSV, JSON lines, or into a table.

mod bodies;
mod names;
mod pages;
mod sheet;

use paceline::job::JobState;
use paceline::store::Store as _;
use serde_json::json;

use super::act::check_names;
use crate::args::look::{Format, ResultsArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::grouped;
use bodies::Bodies;
use names::Names;
use pages::Pages;
use sheet::Sheet;

/// Writes answers.
pub async fn run(args: ResultsArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = context.look()?;
    let mut filter = args.select.filter(&[], &context.times(), store.now())?;
    check_names(&filter, &store, context).await?;
    if filter.states.is_empty() {
        filter.states = vec![JobState::Done, JobState::Failed, JobState::Expired, JobState::Unsure];
    }
    let format = args.format.unwrap_or(match context.global.json {
        true => Format::Jsonl,
        false => Format::Csv,
    });
    if let Some(column) = &args.latest_by {
        names::check_column(column, &filter, &store).await?;
    }
    let bodies = Bodies::new(&args, format, &filter, &store, context).await?;
    let lines = args.sqlite.is_none() && format == Format::Jsonl;
    let names = match (&args.fields, lines) {
        (None, true) => None,
        _ => Some(Names::new(&args, &bodies, &filter, &store, context).await?),
    };
    let meant = args.upsert.as_ref().zip(names.as_ref());
    if let Some(note) = meant.and_then(|(upsert, names)| names.misunderstood(upsert)) {
        context.note(&format!("--upsert: {note}"));
    }
    let mut sheet = Sheet::new(&args, format, names, context)?;
    let mut pages = Pages::new(filter, &args, bodies);
    let mut written = 0;
    while let Some(mut page) = pages.next(&store).await? {
        while let Some(rows) = page.rows(&store).await? {
            written += rows.len() as u64;
            sheet.write(rows)?;
        }
    }
    sheet.finish()?;
    let last = pages.last.map(|cursor| cursor.to_string());
    if let Some(file) = &args.sqlite {
        if context.global.json {
            context.out.json(&json!({ "written": written, "cursor": last }))?;
        } else if !context.global.quiet {
            let (rows, file) = (grouped(written), file.display());
            let noun = if written == 1 { "row" } else { "rows" };
            context.out.text(&format!("{rows} {noun} written to `{}` in {file}", args.table))?;
        }
    }
    // Whoever goes on from a cursor wants the next one; it is in every row besides.
    let wanted = args.after.is_some() || context.global.verbose > 0;
    if let Some(cursor) = last.filter(|_| wanted) {
        context.note(&format!("next: --after {cursor}"));
    }
    Ok(Exit::Done)
}
