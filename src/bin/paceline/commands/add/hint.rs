//! What was meant, perhaps, where rows and quota file do not fit each other.

use paceline::plan::{AddOptions, PlanError};
use paceline::quota::Upstream;
use paceline::secrets::names_a_credential;
use paceline::template::Template;

use super::source::Rows;
use crate::args::add::{AddArgs, Header};
use crate::exit::{Usage, wrong};

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

/// Tells of a column that a template seems to mean by a name that no placeholder can have: it would be sent
/// as it stands there.
pub fn check_names(upstream: &Upstream, options: &AddOptions, rows: &Rows) -> anyhow::Result<()> {
    let request = &upstream.request;
    let own = [&options.url, &options.body, &options.dedupe_key];
    let own = own.into_iter().chain([&request.url]).flatten().map(String::as_str);
    let headers = options.headers.values().chain(request.headers.values()).map(String::as_str);
    let texts: Vec<&str> = own.chain(headers).chain(upstream.body().map(String::as_str)).collect();
    let is_odd = |name: &&String| {
        Template::parse(&format!("{{{name}}}")).is_ok_and(|text| text.columns().is_empty())
    };
    let is_meant = |name: &&String| {
        let forms = [format!("{{{name}}}"), format!("{{items.{name}}}")];
        let literal = format!("{{{{{name}}}}}");
        texts.iter().any(|text| {
            let text = text.replace(&literal, "");
            forms.iter().any(|form| text.contains(form))
        })
    };
    match rows.names.iter().filter(is_odd).find(is_meant) {
        None => Ok(()),
        Some(name) => wrong(format!(
            "`{{{name}}}` is no placeholder, for a column's name in a template has only letters, digits, `_`, `-` and \
             `.`: rename the column{}",
            rows.place()
        )),
    }
}

/// Headers given word for word that look like credentials: a job is sent later, so its headers are stored.
pub fn kept_credentials(args: &AddArgs) -> impl Iterator<Item = String> {
    let is_kept = |header: &&Header| {
        let template = Template::parse(&header.value);
        let is_free =
            template.is_ok_and(|value| value.secrets().is_empty() && value.columns().is_empty());
        // An idempotency key is no secret.
        let is_idempotency = header.name.to_ascii_lowercase().contains("idempotency");
        is_free && !is_idempotency && names_a_credential(&header.name)
    };
    args.header.iter().filter(is_kept).map(|Header { name, .. }| {
        format!(
            "note: the value of `{name}` is kept in the store, as it stands. Where it is a secret, write \
             --header '{name}: ${{env:NAME}}': that is filled in only when a call is sent"
        )
    })
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
