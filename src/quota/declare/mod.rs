//! Quota files: TOML text to an [`Upstream`], or all that is wrong with it.
//!
//! Every field of the format is documented in `docs/quota-files.md`. A file is read whole: each
//! problem is told with its file, line, column and the fix, and an unknown field is one of them.
//!
//! ```
//! use paceline::quota::declare;
//!
//! let text = r#"
//! schema = 1
//! name = "distributor"
//!
//! [request]
//! url = "https://api.distributor.example/v1/stock/{isbn}"
//!
//! [[limit]]
//! name = "plan"
//! kind = "rate"
//! rate = "0/s"
//! "#;
//! let error = declare::parse("distributor", "quotas/distributor.toml", text).unwrap_err();
//! assert!(error.to_string().starts_with("quotas/distributor.toml:11:8: zero rate"));
//! ```
//!
//! | file | noun |
//! | --- | --- |
//! | `node` | values that know where they were written |
//! | `report` | problems, and the error they become |
//! | `fields` | a table's fields, taken one by one |
//! | `units` | rates, durations, sizes, reset labels |
//! | `check` | templates, patterns, pointers, names |
//! | `merge` | `extends` |
//! | `auth`, `limit`, `reported`, `reading`, `request`, `batch`, `quota_call`, `settings` | the tables |
//! | `whole` | what a reading says and waits, against all of the file |
//! | `lines` | the merged file as text, with the origin of each line |

mod auth;
mod batch;
mod check;
mod fields;
mod limit;
mod lines;
mod merge;
mod node;
mod quota_call;
mod reading;
mod report;
mod reported;
mod request;
mod settings;
mod suggest;
mod units;
mod whole;

use toml::de::DeTable;

use super::Upstream;
use fields::Fields;
use node::{At, Table};
use report::Report;

pub(crate) use check::{is_framing, is_method, is_token};
pub use lines::{Line, lines};
pub use report::{DeclareError, Problem, Source};
pub use suggest::{meant, nearest};

/// The version of the format that this program reads.
pub const SCHEMA: u64 = 1;

/// How the file that `extends` names is found: from the file that names it and the name, the text;
/// or what to do about it not being there.
pub type FindBase<'a> = &'a dyn Fn(&Source, &str) -> Result<Source, String>;

/// An upstream, and the files that it was read from: its own first, then what it extends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Declared {
    /// What they say.
    pub upstream: Upstream,
    /// The files.
    pub sources: Vec<Source>,
}

/// A duration as quota files write it: `30s`, `1h30m`, `250us`.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(paceline::quota::declare::duration("1h30m"), Ok(Duration::from_secs(5_400)));
/// ```
///
/// # Errors
///
/// What is wrong with it, and what to write instead.
pub fn duration(text: &str) -> Result<std::time::Duration, DurationError> {
    units::duration(text).map_err(|wrong| DurationError { message: wrong.message, fix: wrong.fix })
}

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {fix}")]
pub struct DurationError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

/// Reads a quota file that extends nothing. `stem` is its name without `.toml`, `file` what it is
/// called in messages.
///
/// # Errors
///
/// All that is wrong with it.
pub fn parse(stem: &str, file: &str, text: &str) -> Result<Upstream, DeclareError> {
    let source = Source { file: file.to_owned(), text: text.to_owned() };
    let alone = |_: &Source, _: &str| Err("only a file in a quotas folder can extend".to_owned());
    read(stem, source, &alone).map(|declared| declared.upstream)
}

/// Reads a quota file and what it extends. `stem` is its name without `.toml`.
///
/// # Errors
///
/// All that is wrong with them.
pub fn read(stem: &str, own: Source, base: FindBase<'_>) -> Result<Declared, DeclareError> {
    let mut report = Report::new();
    let tree = tree(&mut report, own, base)?;
    let upstream = settings::upstream(&report, &tree, stem);
    report.finish()?;
    let sources = report.sources().to_vec();
    let empty = || DeclareError { file: stem.to_owned(), problems: Vec::new() };
    Ok(Declared { upstream: upstream.ok_or_else(empty)?, sources })
}

/// The merged tree. Where any of the files is no TOML there is none.
fn tree(report: &mut Report, own: Source, base: FindBase<'_>) -> Result<Table, DeclareError> {
    let mut tables = vec![document(report, own)];
    while let Some(source) = next_base(report, tables.last(), base) {
        tables.push(document(report, source));
    }
    if !report.is_clean() {
        report.finish()?;
    }
    let merged = tables.into_iter().rev().reduce(|below, own| {
        let stays = |field: &node::Field| inherited(field) && !is_replaced(field, &own);
        let below = Table { fields: below.fields.into_iter().filter(stays).collect(), ..below };
        merge::over(report, below, own)
    });
    Ok(merged.unwrap_or(Table { at: At { file: 0, start: 0 }, fields: Vec::new() }))
}

/// A body of its own for each job is meant instead of the batches of what is extended.
fn is_replaced(field: &node::Field, own: &Table) -> bool {
    let request = own.get("request").map(|request| &request.node.value);
    let has_body =
        matches!(request, Some(node::Value::Table(table)) if table.get("body").is_some());
    field.name == "batch" && has_body && own.get("batch").is_none()
}

/// What a file says about itself is not passed on.
fn inherited(field: &node::Field) -> bool {
    !matches!(field.name.as_str(), "schema" | "name" | "extends")
}

fn document(report: &mut Report, source: Source) -> Table {
    let text = source.text.clone();
    let file = report.add(source);
    let (document, errors) = DeTable::parse_recoverable(&text);
    for error in errors {
        let span = error.span().unwrap_or_default();
        let at = At { file, start: span.start };
        match (error.message(), text.get(span)) {
            ("duplicate key", Some(key)) => {
                report.problem(at, format!("`{key}` stands twice"), once(key));
            }
            (message, _) => {
                report.problem(at, message, "see https://toml.io for the form of a file")
            }
        }
    }
    node::from_document(file, &document)
}

/// What to do about a name that TOML finds a second time.
fn once(key: &str) -> String {
    match key.trim() {
        "limit" | "reading" => format!("write [[{key}]], with two brackets, for each of them"),
        _ => "leave one of them out".to_owned(),
    }
}

/// The file that `table` extends, if it names one that can be found.
fn next_base(report: &Report, table: Option<&Table>, base: FindBase<'_>) -> Option<Source> {
    let mut fields = Fields::new(report, table?, "the file");
    let name = fields.words("extends")?;
    let from = report.sources().last()?;
    match base(from, name) {
        Ok(source) if report.sources().iter().any(|known| known.file == source.file) => {
            let message = format!("`{}` extends itself by way of `{name}`", source.file);
            fields.problem("extends", message, "extend another file");
            None
        }
        Ok(source) => Some(source),
        Err(fix) => {
            fields.problem("extends", format!("cannot extend `{name}`"), fix);
            None
        }
    }
}
