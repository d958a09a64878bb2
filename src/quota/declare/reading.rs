//! `[[reading]]`: tables to rules.

use std::collections::BTreeMap;

use regex::Regex;

use super::check;
use super::fields::Fields;
use super::limit::sureness;
use super::node::{Node, Table, Value};
use super::report::Report;
use super::suggest::nearest;
use super::units::Wrong;
use crate::quota::calendar::{Calendar, Per};
use crate::reading::Reason;
use crate::reading::rules::{
    Place, ResetHeader, ResetUnit, Rule, StatusPattern, ValuePattern, When,
};

const WHEN_FIX: &str = "write when = { status = 403 }, or with json, header or body";

const PART_FIX: &str = "write what the answer must have there, or leave the part out";

/// One rule; what is wrong with it is in the report.
pub(super) fn rule(report: &Report, table: &Table, limits: &[&str]) -> Option<Rule> {
    let mut fields = Fields::new(report, table, "[[reading]]");
    fields.required("when", WHEN_FIX);
    let when = fields.table("when").map(|table| when(report, table));
    fields
        .required("reason", "write reason = \"rate_limited\", or another of `docs/quota-files.md`");
    let reason = fields.parsed("reason", reason_named);
    let then = fields.parsed("then", reason_named);
    let hint_until = hint_until(&mut fields);
    let rule = Rule {
        when: when.unwrap_or_default(),
        reason: reason.unwrap_or(Reason::Unknown),
        wait: fields.span("wait"),
        hint: if hint_until.is_some() { None } else { fields.span("hint") },
        hint_until,
        wait_pattern: wait_pattern(&mut fields),
        reset: fields.table("reset").and_then(|table| reset(report, table)),
        for_at_most: fields.span("for_at_most"),
        then,
        retryable: fields.flag("retryable"),
        limit: limit(&mut fields, limits),
        says: fields.words("says").map(str::to_owned),
        sure: sureness(&mut fields),
        place: Some(place(report, table)),
    };
    pair(
        &fields,
        "then",
        "for_at_most",
        "write how long it may stand, such as for_at_most = \"15m\"",
    );
    pair(&fields, "for_at_most", "then", "write what it becomes, such as then = \"misconfigured\"");
    fields.finish();
    reason.map(|_| rule)
}

fn place(report: &Report, table: &Table) -> Place {
    let (file, line, column) = report.place(table.at);
    Place { file, line, column }
}

/// `given` means nothing without `needed`.
fn pair(fields: &Fields<'_>, given: &str, needed: &str, fix: &str) {
    if fields.table.get(given).is_some() && fields.table.get(needed).is_none() {
        fields.problem(given, format!("`{given}` without `{needed}`"), fix);
    }
}

fn reason_named(text: &str) -> Result<Reason, Wrong> {
    text.parse().map_err(|_| {
        let names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        let all = names.join(", ");
        let fix = match nearest(text, names) {
            Some(near) => format!("did you mean \"{near}\"? there are {all}"),
            None => format!("there are {all}"),
        };
        Wrong { message: format!("`{text}` is no reason"), fix }
    })
}

pub(super) fn limit(fields: &mut Fields<'_>, limits: &[&str]) -> Option<String> {
    let name = fields.words("limit")?;
    if !limits.contains(&name) {
        let fix = match nearest(name, limits.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if limits.is_empty() => "declare it, or remove the field".to_owned(),
            None => format!("write \"{}\"", limits.join("\" or \"")),
        };
        fields.problem("limit", format!("there is no limit `{name}`"), fix);
        return None;
    }
    Some(name.to_owned())
}

/// `hint = "next month"`: until the next one begins, in UTC.
fn hint_until(fields: &mut Fields<'_>) -> Option<Calendar> {
    let Value::Text(text) = &fields.node("hint")?.value else { return None };
    let per = Per::parse(text.strip_prefix("next ")?).ok()?;
    Calendar::parse("UTC", per, per.default_resets_at()).ok()
}

/// A pattern that must name at least one part of a duration.
fn wait_pattern(fields: &mut Fields<'_>) -> Option<Regex> {
    let text = fields.text("wait_pattern")?;
    let regex = check::pattern(fields.report, fields.at("wait_pattern"), text)?;
    let part = |name: &str| matches!(name, "h" | "m" | "s" | "ms" | "at" | "date");
    if !regex.capture_names().flatten().any(part) {
        let fix = "name the groups that hold hours, minutes, seconds or milliseconds: \
            'again in (?<s>[0-9.]+) ?s' with h, m, s or ms; or an instant: at, or date and time";
        fields.problem("wait_pattern", "`wait_pattern` has no group for a duration", fix);
    }
    Some(regex)
}

pub(super) fn reset(report: &Report, table: &Table) -> Option<ResetHeader> {
    let units = [
        ("epoch-s", ResetUnit::EpochSeconds),
        ("epoch-ms", ResetUnit::EpochMillis),
        ("delta-s", ResetUnit::DeltaSeconds),
        ("duration", ResetUnit::Duration),
        ("rfc3339", ResetUnit::Rfc3339),
    ];
    let mut fields = Fields::new(report, table, "`reset`");
    fields
        .required("header", "write the header that holds the reset, such as header = \"x-reset\"");
    let header = header_name(&mut fields, "header");
    let remaining = header_name(&mut fields, "remaining");
    let unit = fields.choice("unit", &units);
    fields.finish();
    Some(ResetHeader { header: header?, remaining, unit })
}

pub(super) fn header_name(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let header = fields.words(name)?;
    check::header_name(fields.report, fields.at(name), header);
    Some(header.to_owned())
}

pub(super) fn when(report: &Report, table: &Table) -> When {
    let mut fields = Fields::new(report, table, "`when`");
    let status = fields.node("status").map(|node| statuses(report, node));
    let json = fields.table("json").map(|table| values(report, table, check::pointer));
    let header = fields.table("header").map(|table| values(report, table, check::header_name));
    let body = fields.text("body");
    let body = body.and_then(|text| check::pattern(report, fields.at("body"), text));
    if table.fields.is_empty() {
        report.problem(table.at, "an empty `when` would take every answer", WHEN_FIX);
    }
    for name in ["status", "json", "header"] {
        if fields.node(name).is_some_and(|node| is_empty(&node.value)) {
            fields.problem(name, format!("an empty `{name}` would take every answer"), PART_FIX);
        }
    }
    // What is found in nothing and in anything is found everywhere; `^$` is the empty body.
    if body.as_ref().is_some_and(|body| body.is_match("") && body.is_match("\u{1}")) {
        fields.problem("body", "this `body` is found in every answer", PART_FIX);
    }
    fields.finish();
    When {
        status: status.unwrap_or_default(),
        json: json.unwrap_or_default(),
        header: header.unwrap_or_default(),
        body,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Table(table) => table.fields.is_empty(),
        _ => false,
    }
}

/// One status or an array of them.
fn statuses(report: &Report, node: &Node) -> Vec<StatusPattern> {
    let one = |node: &Node| {
        let status = status(&node.value);
        if status.is_none() {
            let fix = "write a status such as 403, or a class such as \"5xx\"";
            report.problem(node.at, "this is no HTTP status", fix);
        }
        status
    };
    match &node.value {
        Value::Array(items) => items.iter().filter_map(one).collect(),
        _ => one(node).into_iter().collect(),
    }
}

fn status(value: &Value) -> Option<StatusPattern> {
    match value {
        Value::Integer(status @ 100..=599) => u16::try_from(*status).ok().map(StatusPattern::Exact),
        Value::Text(text) => {
            let class = text.strip_suffix("xx").and_then(|class| class.parse::<u16>().ok());
            class.filter(|class| (1..=5).contains(class)).map(StatusPattern::Class)
        }
        _ => None,
    }
}

/// Names that `check` accepts, and what must stand there.
fn values(
    report: &Report,
    table: &Table,
    check: impl Fn(&Report, super::node::At, &str),
) -> BTreeMap<String, ValuePattern> {
    let mut values = BTreeMap::new();
    for field in &table.fields {
        check(report, field.at, &field.name);
        if let Some(pattern) = value(report, &field.node) {
            values.insert(field.name.clone(), pattern);
        }
    }
    values
}

fn value(report: &Report, node: &Node) -> Option<ValuePattern> {
    match &node.value {
        Value::Text(text) | Value::Number(text) => Some(ValuePattern::Equals(text.clone())),
        Value::Integer(number) => Some(ValuePattern::Equals(number.to_string())),
        Value::Boolean(flag) => Some(ValuePattern::Equals(flag.to_string())),
        Value::Table(table) => pattern(report, table),
        Value::Date(_) | Value::Array(_) => {
            let fix = "write a value, { matches = \"regex\" } or { present = true }";
            report.problem(node.at, format!("this is {}", node.value.kind()), fix);
            None
        }
    }
}

/// `{ matches = "regex" }` or `{ present = true }`.
fn pattern(report: &Report, table: &Table) -> Option<ValuePattern> {
    let mut fields = Fields::new(report, table, "a value's pattern");
    let present = fields.flag("present");
    let matches = fields.text("matches");
    let regex = matches.and_then(|text| check::pattern(report, fields.at("matches"), text));
    if table.fields.len() != 1 {
        let fix = "write { matches = \"regex\" } or { present = true }";
        report.problem(table.at, "a value's pattern has exactly one field", fix);
    }
    fields.finish();
    regex.map(ValuePattern::Matches).or(present.map(ValuePattern::Present))
}
