//! The names of a table's columns: a result's own fields, extracted ones, the row's columns, the cursor.

use std::collections::{BTreeMap, BTreeSet};

use paceline::output::table::{CURSOR, Kind};
use paceline::quota::declare::meant;
use paceline::report::jobs::{RESULT_FIELDS, RESULT_RESERVED};
use paceline::store::sqlite::SqliteStore;
use paceline::store::{Filter, Store as _};

use super::bodies::Bodies;
use crate::args::look::ResultsArgs;
use crate::context::Context;
use crate::exit::wrong;

/// Names in their order.
#[derive(Debug)]
pub struct Names {
    /// All of them.
    pub all: Vec<String>,
    /// Those taken from answers.
    fields: Vec<String>,
    /// Columns of the rows that bear the name of a field which every result has.
    shadowed: Vec<String>,
}

impl Names {
    /// Those asked for, else all that there are.
    pub async fn new(
        args: &ResultsArgs,
        bodies: &Bodies,
        filter: &Filter,
        store: &SqliteStore,
        context: &Context,
    ) -> anyhow::Result<Names> {
        let taken = bodies.fields.iter().map(|(name, _)| name.clone());
        if let Some(asked) = &args.fields {
            check(asked, bodies, filter, store, context).await?;
        }
        if let (Some(asked), None) = (&args.fields, &args.sqlite) {
            return Ok(Names {
                all: joined(asked.clone(), taken),
                fields: Vec::new(),
                shadowed: Vec::new(),
            });
        }
        let found = store.result_names(filter.clone()).await?;
        let own = |name: &&String| name.as_str() != "url" && is_own(name);
        let shadowed = found.columns.iter().filter(own).cloned().collect();
        let mut fields = found.fields;
        for upstream in context.declared(store).await?.values() {
            if filter.upstreams.contains(&upstream.name) {
                fields = joined(fields, upstream.results.keys().cloned());
            }
        }
        let fields = joined(fields, taken);
        let all = match &args.fields {
            Some(asked) => {
                joined(asked.clone(), fields.iter().filter(|f| is_taken(bodies, f)).cloned())
            }
            None => {
                let own = RESULT_FIELDS.into_iter().map(str::to_owned).collect();
                let mut all = joined(own, fields.iter().cloned());
                let known = found.columns.clone();
                let columns = found.columns.into_iter().filter(|column| column != "url");
                for column in columns {
                    all.push(column_name(column, &all, &known, args.sqlite.is_some()));
                }
                if bodies.whole {
                    all.push("body".to_owned());
                }
                all.push(CURSOR.to_owned());
                all
            }
        };
        Ok(Names { all, fields, shadowed })
    }

    /// What to say where a row's column was meant, perhaps, by a name that is a field of every result.
    pub fn misunderstood(&self, name: &str) -> Option<String> {
        if !self.shadowed.iter().any(|column| column == name) {
            return None;
        }
        let what = match name {
            "id" => "`id` is the job's number, of which no two rows have the same".to_owned(),
            _ => format!("`{name}` is the result's own"),
        };
        Some(format!("{what}; the column `{name}` of your rows is `columns.{name}`"))
    }

    /// With what each column of a SQLite table holds; `key` and the cursor are among them.
    pub fn columns(self, key: &str) -> Vec<(String, Kind)> {
        let fields = self.fields;
        let all = joined(self.all, [key.to_owned(), CURSOR.to_owned()]);
        let kind = |name: &str| match name {
            "id" | "status" | "attempts" => Kind::Integer,
            name if RESULT_RESERVED.contains(&name) => Kind::Text,
            // Of `url` the user's own text is shown, which may be no address.
            name if RESULT_FIELDS.contains(&name) && name != "url" => Kind::Text,
            name if fields.iter().any(|field| field == name) => Kind::Any,
            _ => Kind::Verbatim,
        };
        all.into_iter().map(|name| (name.clone(), kind(&name))).collect()
    }
}

/// Refuses a name that no result has: an empty column would say that the answers had no such field.
async fn check(
    asked: &[String],
    bodies: &Bodies,
    filter: &Filter,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<()> {
    let one = Filter { limit: Some(1), ..filter.clone() };
    let Some(first) = store.ended(one, None, None).await?.pop() else { return Ok(()) };
    let first = Filter { ids: vec![first.job], ..Filter::default() };
    let mut known: BTreeSet<String> =
        RESULT_FIELDS.into_iter().chain(RESULT_RESERVED).map(str::to_owned).collect();
    known.extend(bodies.fields.iter().map(|(name, _)| name.clone()));
    for upstream in context.declared(store).await?.into_values() {
        known.extend(upstream.results.keys().cloned());
    }
    for job in store.jobs(first, BTreeMap::new()).await? {
        known.extend(job.columns.into_keys());
        known.extend(job.fields.into_keys());
    }
    let is_unknown = |known: &BTreeSet<String>, name: &&String| {
        let column = name.strip_prefix("columns.").unwrap_or(name);
        !known.contains(*name) && !known.contains(column)
    };
    if !asked.iter().any(|name| is_unknown(&known, &name)) {
        return Ok(());
    }
    // Most have all that is asked for: only now is it worth a look at each.
    let found = store.result_names(filter.clone()).await?;
    known.extend(found.fields.into_iter().chain(found.columns));
    let Some(name) = asked.iter().find(|name| is_unknown(&known, name)) else { return Ok(()) };
    let meant = meant(name, known.iter().map(String::as_str));
    wrong(format!(
        "no result has a field `{name}`{meant}: it is no column of these jobs, and was not taken from their \
         answers by [results]; `--field {name}=/POINTER` takes it from answers that were kept"
    ))
}

/// Refuses a column that none of these jobs has: no two of them would be of one kind.
pub async fn check_column(name: &str, filter: &Filter, store: &SqliteStore) -> anyhow::Result<()> {
    let known = store.result_names(filter.clone()).await?.columns;
    if known.is_empty() || known.iter().any(|column| column == name) {
        return Ok(());
    }
    let meant = meant(name, known.iter().map(String::as_str));
    wrong(format!(
        "--latest-by: no result has a column `{name}`{meant}; there are: {}",
        known.join(", ")
    ))
}

fn is_own(name: &str) -> bool {
    RESULT_FIELDS.into_iter().chain(RESULT_RESERVED).any(|own| own == name)
}

fn is_taken(bodies: &Bodies, name: &str) -> bool {
    bodies.fields.iter().any(|(taken, _)| taken == name)
}

/// What a row's column is called beside `others`. SQLite does not tell small letters from capitals. The
/// name `columns.id` is that of a column `id`, where the rows have one.
fn column_name(column: String, others: &[String], known: &[String], folds: bool) -> String {
    let shadows = column.strip_prefix("columns.");
    if shadows.is_some_and(|other| known.iter().any(|column| column == other)) {
        return format!("columns.{column}");
    }
    let same = |other: &str| other == column || folds && other.eq_ignore_ascii_case(&column);
    let taken = others.iter().any(|other| same(other)) || RESULT_RESERVED.into_iter().any(same);
    if taken { format!("columns.{column}") } else { column }
}

/// The names, and those of `more` that are not among them.
fn joined(mut names: Vec<String>, more: impl IntoIterator<Item = String>) -> Vec<String> {
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
