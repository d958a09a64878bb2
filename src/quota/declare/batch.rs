//! `[batch]`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::check::{self, SecretNames};
use super::fields::Fields;
use super::node::Table;
use super::report::Report;
use super::settings;
use crate::quota::RequestRule;
use crate::quota::batch::{Batch, BatchAnswer};
use crate::template::{Place, Template};

const BODY_FIX: &str = "write the body of one call, as in body = '{\"urls\": {items.url}}'";

/// `[batch]`; `None` only where a problem was noted.
pub(super) fn batch(
    report: &Report,
    table: &Table,
    request: &RequestRule,
    secrets: &SecretNames,
) -> Option<Batch> {
    let mut fields = Fields::new(report, table, "[batch]");
    fields.required("max_items", "write how many jobs one call may carry, as in max_items = 500");
    let max_items = fields.positive("max_items", "no job would ever be sent");
    let max_bytes = settings::max_bytes(&mut fields, "leave it out where there is no such limit");
    let linger = fields.duration("linger").unwrap_or(Duration::ZERO);
    fields.required("body", BODY_FIX);
    let body = body(&mut fields, request, secrets);
    let answer = fields.table("answer").and_then(|table| answer(report, table));
    fields.finish();
    let (text, template) = body?;
    Some(Batch {
        max_items: usize::try_from(max_items?).unwrap_or(usize::MAX),
        max_bytes,
        linger,
        body: text,
        shared: shared(request, &template),
        answer,
    })
}

fn body(
    fields: &mut Fields<'_>,
    request: &RequestRule,
    secrets: &SecretNames,
) -> Option<(String, Template)> {
    let text = fields.words("body")?.to_owned();
    let template = check::template(fields.report, fields.at("body"), &text, secrets)?;
    if !template.is_batch() {
        fields.problem("body", "`body` has no `{items.…}`, so it would carry no job", BODY_FIX);
    }
    if matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE") {
        let message = format!("a call by {} carries no body", request.method);
        fields.problem("body", message, "write method = \"POST\" in [request]");
    }
    if place(request, &text) == Place::Xml {
        let fix = "leave [batch] out, or send another format";
        fields.problem("body", "`{items.…}` is no list in XML", fix);
    }
    Some((text, template))
}

fn place(request: &RequestRule, body: &str) -> Place {
    let is_type = |(name, _): &(&String, &String)| name.eq_ignore_ascii_case("content-type");
    let declared = request.headers.iter().find(is_type).map(|(_, value)| value.as_str());
    Place::of_body(declared, body)
}

/// The columns outside `{items.…}`: of address, headers and body.
fn shared(request: &RequestRule, body: &Template) -> BTreeSet<String> {
    let parse = |text: &String| Template::parse(text).ok();
    let others: Vec<_> =
        request.url.iter().chain(request.headers.values()).filter_map(parse).collect();
    let names = others.iter().chain([body]).flat_map(Template::shared_columns);
    names.filter(|name| *name != "method").map(str::to_owned).collect()
}

/// `[batch.answer]`.
fn answer(report: &Report, table: &Table) -> Option<BatchAnswer> {
    let mut fields = Fields::new(report, table, "[batch.answer]");
    fields.required("items", "write the path to the list of items, as in items = \"/results\"");
    let items = fields.text("items").map(str::to_owned);
    if let Some(pointer) = &items {
        check::pointer(report, fields.at("items"), pointer);
    }
    fields.required("key", "write which column an item is known by, as in { \"/url\" = \"url\" }");
    let mut key = BTreeMap::new();
    for (pointer, column, at) in fields.text_map("key") {
        check::pointer(report, at, pointer);
        check::column_name(report, at, column);
        key.insert(pointer.to_owned(), column.to_owned());
    }
    if key.is_empty() && fields.table.get("key").is_some() {
        fields.problem("key", "`key` is empty", "name an item's field and the job's column");
    }
    let status = fields.text("status").map(str::to_owned);
    if let Some(pointer) = &status {
        check::pointer(report, fields.at("status"), pointer);
    }
    fields.finish();
    Some(BatchAnswer { items: items?, key, status })
}
