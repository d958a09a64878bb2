//! What was meant, perhaps, where rows and quota file do not fit each other.

use paceline::plan::PlanError;
use paceline::quota::Upstream;
use paceline::template::Template;

use super::source::Rows;
use crate::args::add::AddArgs;
use crate::exit::Usage;

/// Columns of a file that are told.
const TOLD: usize = 30;

/// What else may stand between the values of a row.
const DELIMITERS: [(char, &str); 4] = [(';', "';'"), ('\t', "tab"), ('|', "'|'"), (',', "','")];

/// A file that lacks a column: with those that it has, and with the delimiter that it seems to have; and
/// for which of several upstreams that is.
pub fn misfit(error: PlanError, rows: &Rows, upstream: Option<&str>) -> anyhow::Error {
    let error = misfit_of_one(error, rows);
    match upstream {
        Some(name) => error.context(Usage(format!("these rows are not for {name}"))),
        None => error,
    }
}

fn misfit_of_one(error: PlanError, rows: &Rows) -> anyhow::Error {
    if !matches!(error, PlanError::Missing(_)) || rows.names.is_empty() {
        return error.into();
    }
    let some: Vec<_> = rows.names.iter().take(TOLD).map(|name| format!("`{name}`")).collect();
    let more = if rows.names.len() > TOLD { ", ..." } else { "" };
    let noun = if rows.names.len() == 1 { "column" } else { "columns" };
    let mut text = format!("{error}\n  the {noun}{}: {}{more}", rows.place(), some.join(", "));
    if let [only] = rows.names.as_slice()
        && let Some((_, flag)) = DELIMITERS.iter().find(|(delimiter, _)| only.contains(*delimiter))
    {
        text.push_str(&format!("\n  that looks like several: say --delimiter {flag}"));
    }
    Usage(text).into()
}

/// Lines or arguments that are no URLs, for an upstream that is called by other columns.
pub fn no_urls(upstream: &Upstream, args: &AddArgs) -> Option<String> {
    let text = args.url.as_ref().or(upstream.request.url.as_ref())?;
    let template = Template::parse(text).ok()?;
    let columns = template.columns();
    if args.has_file() || columns.is_empty() || columns.contains(&"url") {
        return None;
    }
    let name = &upstream.name;
    let how = match args.urls().as_slice() {
        [dash] if dash == "-" => {
            format!(
                "lines of values are read by `paceline add {name} --csv - --columns {}`",
                columns.join(",")
            )
        }
        _ => {
            let set: Vec<_> =
                columns.iter().map(|column| format!("--set {column}=VALUE")).collect();
            format!("one job is added by `paceline add {name} {}`", set.join(" "))
        }
    };
    let are = if columns.len() == 1 { "column" } else { "columns" };
    let columns: Vec<_> = columns.iter().map(|column| format!("`{column}`")).collect();
    Some(format!("{name} is called by the {are} {}, not by a URL: {how}", columns.join(" and ")))
}
