//! What a `[[reading]]` says and waits, against the file as a whole.

use std::collections::BTreeSet;

use regex::Regex;

use super::node::Table;
use super::report::Report;
use super::suggest::nearest;
use crate::quota::{RetryPolicy, Upstream};
use crate::reading::rules::{Rule, ValuePattern};
use crate::reading::{FURTHEST, placeholders};
use crate::template::Template;

/// Notes what no answer could make good.
pub(super) fn reading(report: &Report, table: &Table, rule: &Rule, upstream: &Upstream) {
    hint(report, table, rule, &upstream.retry);
    let Some((says, field)) = rule.says.as_deref().zip(table.get("says")) else { return };
    let known = names(rule, upstream);
    for name in placeholders(says).filter(|name| !known.contains(*name)) {
        let message = format!("`says` names `{{{name}}}`, which nothing gives a value");
        let fix = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{{{near}}}`?"),
            None => {
                format!("name a column, or a group of the rule's patterns as `(?<{name}>...)` does")
            }
        };
        report.problem(field.node.at, message, fix);
    }
}

/// A hint that is too far off holds: one that always is would never be waited for.
fn hint(report: &Report, table: &Table, rule: &Rule, retry: &RetryPolicy) {
    let longest = retry.max_hint.min(FURTHEST);
    let Some(field) = table.get("hint").filter(|_| rule.hint > Some(longest)) else { return };
    let message =
        "a `hint` beyond `max_hint`, which is at most 31d, holds: nobody would wait for it";
    let fix = "write a shorter one, or `retryable = false` in its place";
    report.problem(field.node.at, message, fix);
}

/// What a sentence can name: groups of the rule's patterns, and columns.
fn names(rule: &Rule, upstream: &Upstream) -> BTreeSet<String> {
    let in_json = rule.when.json.values().filter_map(|value| match value {
        ValuePattern::Matches(pattern) => Some(pattern),
        _ => None,
    });
    let patterns = rule.when.body.iter().chain(in_json);
    let groups = patterns.flat_map(Regex::capture_names).flatten();
    let request = &upstream.request;
    let texts = request.url.iter().chain(&request.body).chain(request.headers.values());
    let templates: Vec<_> = texts.filter_map(|text| Template::parse(text).ok()).collect();
    let own = ["url", "host", "method", "credential"];
    let set = upstream.credentials.values().flat_map(|credential| credential.set.keys());
    let columns = upstream.columns.keys().chain(set).map(String::as_str);
    let columns = columns.chain(upstream.partition_columns()).chain(own);
    let used = templates.iter().flat_map(Template::columns);
    groups.chain(columns).chain(used).map(str::to_owned).collect()
}
