//! The file as a whole, and its small tables: `[retry]`, `[results]`, `[keep]`, `[when_store_fails]`.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::fields::Fields;
use super::node::{Table, Value};
use super::report::Report;
use super::{SCHEMA, auth, batch, check, limit, quota_call, reading, request, units, whole};
use crate::quota::{Keep, KeepBody, RetryPolicy, StoreFailure, Upstream};

/// Names that a result has of its own; a field of `[results]` would be a second one.
const RESULT_NAMES: [&str; 6] = ["id", "url", "status", "reason", "finished_at", "body"];

/// The whole file. `None` only where a problem was noted.
pub(super) fn upstream(report: &Report, table: &Table, stem: &str) -> Option<Upstream> {
    let mut fields = Fields::new(report, table, "the file");
    if !schema(&mut fields) {
        return None;
    }
    name(&mut fields, stem);
    fields.node("extends");
    let credentials = fields.table("credential").map(|table| request::credentials(report, table));
    let credentials = credentials.unwrap_or_default();
    let auth_table = fields.table("auth");
    let secrets = request::secret_names(&credentials, auth_table.is_some());
    let limit_tables = fields.tables("limit");
    let limit_names: Vec<_> = limit_tables.iter().filter_map(|table| table.text("name")).collect();
    let rule = |table| Some((table, reading::rule(report, table, &limit_names)?));
    let (rule_tables, readings): (Vec<_>, _) =
        fields.tables("reading").into_iter().filter_map(rule).unzip();
    let none = Table { at: table.at, fields: Vec::new() };
    let request = request::request(report, fields.table("request").unwrap_or(&none), &secrets);
    let batch = fields.table("batch");
    let mut limits = limit::limits(report, &limit_tables);
    if request.connections.is_some_and(|count| count > 1) {
        limits.iter_mut().for_each(limit::pace_evenly);
    }
    let quota_call = fields.table("quota_call").and_then(|table| {
        quota_call::quota_call(report, table, &limits, &request.headers, &secrets)
    });
    let upstream = Upstream {
        name: stem.to_owned(),
        title: fields.words("title").unwrap_or(stem).to_owned(),
        docs: fields.words("docs").map(str::to_owned),
        checked: checked(&mut fields),
        matches: fields.table("match").map(|t| request::matches(report, t)).unwrap_or_default(),
        columns: fields.table("columns").map(|t| request::columns(report, t)).unwrap_or_default(),
        credentials,
        auth: auth_table.and_then(|table| auth::auth(report, table, &secrets)),
        batch: batch.and_then(|table| batch::batch(report, table, &request, &secrets)),
        request,
        limits,
        quota_call,
        readings,
        retry: fields.table("retry").map(|t| retry(report, t)).unwrap_or_default(),
        results: fields.table("results").map(|t| results(report, t)).unwrap_or_default(),
        keep: fields.table("keep").map(|t| keep(report, t)).unwrap_or_default(),
        when_store_fails: store_failure(report, &mut fields),
    };
    fields.finish();
    for (table, rule) in rule_tables.into_iter().zip(&upstream.readings) {
        whole::reading(report, table, rule, &upstream);
    }
    Some(upstream)
}

/// Whether the rest of the file can be read at all.
fn schema(fields: &mut Fields<'_>) -> bool {
    match fields.whole("schema") {
        Some(schema) if schema > SCHEMA => {
            let message =
                format!("schema {schema} is newer than this program, which reads {SCHEMA}");
            fields.problem("schema", message, "use a newer paceline");
            false
        }
        Some(0) => {
            fields.problem("schema", "there is no schema 0", format!("write schema = {SCHEMA}"));
            false
        }
        _ => true,
    }
}

fn name(fields: &mut Fields<'_>, stem: &str) {
    if let Some(name) = fields.words("name")
        && name != stem
    {
        let message = format!("the name `{name}` is not the file's name `{stem}.toml`");
        fields.problem("name", message, format!("write name = \"{stem}\", or rename the file"));
    }
}

/// A date, as TOML's own or as text.
fn checked(fields: &mut Fields<'_>) -> Option<String> {
    let text = match &fields.node("checked")?.value {
        Value::Date(text) | Value::Text(text) => text.clone(),
        other => other.kind().to_owned(),
    };
    if NaiveDate::parse_from_str(&text, "%Y-%m-%d").is_err() {
        fields.problem("checked", "`checked` is no day", "write a date such as 2026-11-30");
        return None;
    }
    Some(text)
}

fn retry(report: &Report, table: &Table) -> RetryPolicy {
    let mut fields = Fields::new(report, table, "[retry]");
    let usual = RetryPolicy::default();
    let initial = fields.span("initial").unwrap_or(usual.initial);
    let multiplier = fields.number("multiplier").unwrap_or(usual.multiplier);
    if !multiplier.is_finite() || multiplier < 1.0 {
        let fix = "write a number from 1.0, such as 2.0";
        fields.problem("multiplier", "delays would shrink from try to try", fix);
    }
    let given = fields.span("max_interval");
    let max_interval = given.unwrap_or(usual.max_interval);
    if given.is_none() && initial > max_interval {
        let fix = "write a `max_interval` that is as long, or a shorter `initial`";
        let message = "`initial` is longer than `max_interval`, which is 10m where it is not given";
        fields.problem("initial", message, fix);
    } else if max_interval < initial {
        let fix = "write a longer `max_interval`, or a shorter `initial`";
        fields.problem("max_interval", "`max_interval` is shorter than `initial`", fix);
    }
    let attempts = fields.positive("max_attempts", "no job would ever be sent");
    let attempts = attempts.map_or(usual.max_attempts, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let max_hint = fields.span("max_hint").unwrap_or(usual.max_hint);
    fields.finish();
    RetryPolicy { initial, multiplier, max_interval, max_attempts: attempts, max_hint }
}

fn results(report: &Report, table: &Table) -> BTreeMap<String, String> {
    let mut fields = Fields::new(report, table, "[results]");
    let mut results = BTreeMap::new();
    for (name, pointer, at) in fields.text_map("fields") {
        check::pointer(report, at, pointer);
        if RESULT_NAMES.contains(&name) {
            let fix = "choose another name for it";
            report.problem(at, format!("every result has a `{name}` of its own"), fix);
        }
        results.insert(name.to_owned(), pointer.to_owned());
    }
    fields.finish();
    results
}

fn keep(report: &Report, table: &Table) -> Keep {
    let mut fields = Fields::new(report, table, "[keep]");
    let usual = Keep::default();
    let bodies =
        [("refusals", KeepBody::Refusals), ("all", KeepBody::All), ("none", KeepBody::None)];
    let body = fields.choice("body", &bodies).unwrap_or(usual.body);
    let nothing = "write body = \"none\" to keep nothing";
    let max_bytes = max_bytes(&mut fields, nothing).unwrap_or(usual.max_bytes);
    let done = fields.span("done").unwrap_or(usual.done);
    let failed = fields.span("failed").unwrap_or(usual.failed);
    fields.finish();
    Keep { body, max_bytes, done, failed }
}

/// A size with its unit, or a bare number of bytes.
pub(super) fn max_bytes(fields: &mut Fields<'_>, where_zero: &str) -> Option<usize> {
    let bytes = match fields.node("max_bytes")?.value {
        Value::Integer(_) => usize::try_from(fields.whole("max_bytes")?).ok(),
        _ => fields.parsed("max_bytes", units::bytes),
    };
    if bytes == Some(0) {
        fields.problem("max_bytes", "zero `max_bytes`", where_zero);
    }
    bytes
}

fn store_failure(report: &Report, file: &mut Fields<'_>) -> StoreFailure {
    let Some(table) = file.table("when_store_fails") else { return StoreFailure::default() };
    let mut fields = Fields::new(report, table, "[when_store_fails]");
    let choices = [("closed", StoreFailure::Closed), ("static", StoreFailure::Static)];
    let policy = fields.choice("policy", &choices).unwrap_or_default();
    fields.finish();
    policy
}
