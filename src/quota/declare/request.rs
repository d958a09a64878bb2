//! `[match]`, `[columns]`, `[credential]` and `[request]`: which calls, and what jobs send.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::check::{self, SecretNames};
use super::fields::Fields;
use super::node::{At, Table, Value};
use super::report::Report;
use super::suggest::nearest;
use super::units::Wrong;
use crate::job::Columns;
use crate::quota::{ColumnRule, Credential, Derivation, Match, RequestRule};
use crate::template::{Secret, Template};

/// The time of one call where none is declared.
const TIMEOUT: Duration = Duration::from_secs(30);

/// `[match]`.
pub(super) fn matches(report: &Report, table: &Table) -> Match {
    let mut fields = Fields::new(report, table, "[match]");
    fields.required("hosts", "write hosts = [\"api.example.com\"]");
    let hosts = fields.texts("hosts");
    for (host, at) in &hosts {
        if host.is_empty() || host.contains(['/', ':', ' ', '@']) {
            let fix = "write a bare name such as \"api.example.com\" or \"*.example.com\"";
            report.problem(*at, format!("`{host}` is no host name"), fix);
        }
    }
    let paths = fields.texts("paths");
    for (path, at) in &paths {
        if !path.starts_with(['/', '*']) {
            let fix = "begin it with a slash, as in \"/v1/*\"";
            report.problem(*at, format!("`{path}` is no path"), fix);
        }
    }
    fields.finish();
    let own = |texts: Vec<(&str, At)>| texts.into_iter().map(|(text, _)| text.to_owned()).collect();
    Match { hosts: own(hosts), paths: own(paths) }
}

/// `[columns.NAME]`.
pub(super) fn columns(report: &Report, tables: &Table) -> BTreeMap<String, ColumnRule> {
    let mut columns = BTreeMap::new();
    for field in &tables.fields {
        check::column_name(report, field.at, &field.name);
        if matches!(field.name.as_str(), "url" | "host" | "method" | "credential") {
            let fix = "the call gives it its value; choose another name";
            report.problem(field.at, format!("`{}` is a built-in column", field.name), fix);
        }
        if let Some(table) = sub_table(report, "columns", field) {
            columns.insert(field.name.clone(), column(report, table, &field.name));
        }
    }
    columns
}

fn column(report: &Report, table: &Table, name: &str) -> ColumnRule {
    let mut fields = Fields::new(report, table, format!("[columns.{name}]"));
    let from = fields.parsed("from", derivation);
    let default = fields.text("default").map(str::to_owned);
    let one_of: Vec<String> =
        fields.texts("one_of").into_iter().map(|(text, _)| text.to_owned()).collect();
    if table.get("one_of").is_some() && one_of.is_empty() {
        fields.problem("one_of", "`one_of` allows nothing", "list the values, or remove it");
    }
    if let Some(default) = &default
        && !one_of.is_empty()
        && !one_of.contains(default)
    {
        let fix = format!("write \"{}\"", one_of.join("\" or \""));
        fields.problem("default", format!("the default `{default}` is not in `one_of`"), fix);
    }
    let help = fields.words("help").map(str::to_owned);
    fields.finish();
    ColumnRule { from, default, one_of, help }
}

fn derivation(text: &str) -> Result<Derivation, Wrong> {
    Ok(match text {
        "url.host" => Derivation::Host,
        "url.origin" => Derivation::Origin,
        "url.path" => Derivation::Path,
        _ => match text.strip_prefix("url.query.").filter(|name| !name.is_empty()) {
            Some(name) => Derivation::Query(name.to_owned()),
            None => {
                let all = "url.host, url.origin, url.path or url.query.NAME";
                let known = ["url.host", "url.origin", "url.path"];
                let fix = match nearest(text, known) {
                    Some(near) => format!("did you mean \"{near}\"? there are {all}"),
                    None => format!("write {all}"),
                };
                return Err(Wrong { message: format!("nothing derives `{text}`"), fix });
            }
        },
    })
}

/// `[credential.NAME]`.
pub(super) fn credentials(report: &Report, tables: &Table) -> BTreeMap<String, Credential> {
    let mut credentials = BTreeMap::new();
    for field in &tables.fields {
        if let Some(table) = sub_table(report, "credential", field) {
            credentials.insert(field.name.clone(), credential(report, table, &field.name));
        }
    }
    credentials
}

fn credential(report: &Report, table: &Table, name: &str) -> Credential {
    let mut fields = Fields::new(report, table, format!("[credential.{name}]"));
    let when = named_columns(&mut fields, "when");
    let set = named_columns(&mut fields, "set");
    let mut secret = BTreeMap::new();
    for (name, text, at) in fields.text_map("secret") {
        secret_template(report, at, text);
        secret.insert(name.to_owned(), text.to_owned());
    }
    fields.finish();
    Credential { when, set, secret }
}

fn named_columns(fields: &mut Fields<'_>, name: &'static str) -> Columns {
    let mut columns = Columns::new();
    for (column, value, at) in fields.text_map(name) {
        check::column_name(fields.report, at, column);
        columns.insert(column.to_owned(), value.to_owned());
    }
    columns
}

/// A secret comes from outside: it can name neither another secret nor a column.
fn secret_template(report: &Report, at: At, text: &str) {
    let Some(template) = check::template(report, at, text, &any_named(text)) else { return };
    let inner = |secret| matches!(secret, &Secret::Named(_) | &Secret::Token);
    if template.secrets().into_iter().any(inner) || !template.columns().is_empty() {
        let fix = "write \"${env:NAME}\" or \"${file:PATH}\"";
        report.problem(at, "a secret can come only from the environment or a file", fix);
    }
}

/// The names that `text` itself uses, so that they are judged once, by the caller.
fn any_named(text: &str) -> SecretNames {
    let template = Template::parse(text);
    let secrets = template.iter().flat_map(Template::secrets);
    let named = secrets.filter_map(|secret| match secret {
        Secret::Named(name) => Some((name.clone(), Vec::new())),
        _ => None,
    });
    SecretNames { named: named.collect(), has_token: true }
}

/// The names of all secrets, each with the credentials that do not have it.
pub(super) fn secret_names(
    credentials: &BTreeMap<String, Credential>,
    has_token: bool,
) -> SecretNames {
    let names = credentials.values().flat_map(|credential| credential.secret.keys());
    let lacking = |name: &String| {
        let without = credentials.iter().filter(|(_, one)| !one.secret.contains_key(name));
        without.map(|(credential, _)| credential.clone()).collect()
    };
    let named = names.map(|name| (name.clone(), lacking(name))).collect();
    SecretNames { named, has_token }
}

/// `[request]`.
pub(super) fn request(report: &Report, table: &Table, secrets: &SecretNames) -> RequestRule {
    let mut fields = Fields::new(report, table, "[request]");
    let method = fields.text("method");
    if let Some(method) = method
        && !check::is_method(method)
    {
        let fix = format!("write it in capitals, as in \"{}\"", fixed_method(method));
        fields.problem("method", format!("`{method}` is no method"), fix);
    }
    let url = fields.words("url");
    if let Some(url) = url {
        check::url(report, fields.at("url"), url, secrets);
    }
    let base_url = fields.words("base_url");
    if let Some(base) = base_url {
        check::fixed_url(report, fields.at("base_url"), base);
    }
    let headers = headers(&mut fields, secrets);
    let body = body(&mut fields, secrets);
    let timeout = fields.span("timeout").unwrap_or(TIMEOUT);
    let repeatable = fields.flag("repeatable");
    let idempotency_header = fields.words("idempotency_header");
    if let Some(name) = idempotency_header {
        check::header_name(report, fields.at("idempotency_header"), name);
    }
    let connections = fields.positive("connections", "no call could ever leave");
    fields.finish();
    RequestRule {
        method: method.unwrap_or("GET").to_owned(),
        url: url.map(str::to_owned),
        base_url: base_url.map(str::to_owned),
        headers,
        body,
        timeout,
        repeatable,
        idempotency_header: idempotency_header.map(str::to_owned),
        connections: connections.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
    }
}

fn fixed_method(method: &str) -> String {
    let upper = method.trim().to_ascii_uppercase();
    if check::is_method(&upper) { upper } else { "POST".to_owned() }
}

pub(super) fn headers(fields: &mut Fields<'_>, secrets: &SecretNames) -> BTreeMap<String, String> {
    let mut seen = BTreeSet::new();
    let mut headers = BTreeMap::new();
    for (name, value, at) in fields.text_map("headers") {
        check::header(fields.report, at, name, value, secrets);
        if !seen.insert(name.to_ascii_lowercase()) {
            fields.report.problem(at, format!("header `{name}` is given twice"), "write it once");
        }
        headers.insert(name.to_owned(), value.to_owned());
    }
    headers
}

fn body(fields: &mut Fields<'_>, secrets: &SecretNames) -> Option<String> {
    let body = fields.text("body")?;
    check::single(fields.report, fields.at("body"), body, secrets);
    if fields.table.get("method").is_none() {
        let fix = "write method = \"POST\"";
        fields.problem("body", "`body` without a `method` would never be sent by GET", fix);
    }
    Some(body.to_owned())
}

/// A field of `[columns]` or `[credential]` that must be a table.
fn sub_table<'a>(report: &Report, of: &str, field: &'a super::node::Field) -> Option<&'a Table> {
    match &field.node.value {
        Value::Table(table) => Some(table),
        other => {
            let message = format!("`{}` is {}", field.name, other.kind());
            report.problem(field.node.at, message, format!("write [{of}.{}]", field.name));
            None
        }
    }
}
