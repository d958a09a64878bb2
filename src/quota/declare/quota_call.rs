//! `[quota_call]`: where the upstream is asked what is left of a limit.

use std::time::Duration;

use super::check::{self, SecretNames};
use super::fields::Fields;
use super::node::Table;
use super::reading;
use super::report::Report;
use super::request;
use crate::quota::{Limit, LimitRule, QuotaCall};
use crate::template::Template;

const EVERY: Duration = Duration::from_secs(3_600);

/// The table; `headers` are those of `[request]`.
pub(super) fn quota_call(
    report: &Report,
    table: &Table,
    limits: &[Limit],
    usual: &std::collections::BTreeMap<String, String>,
    secrets: &SecretNames,
) -> Option<QuotaCall> {
    let mut fields = Fields::new(report, table, "[quota_call]");
    fields.required("limit", "write limit = \"daily\", the limit that is asked about");
    let names: Vec<&str> = limits.iter().map(|limit| limit.name.as_str()).collect();
    let name = reading::limit(&mut fields, &names);
    let limit = limits.iter().find(|limit| Some(&limit.name) == name.as_ref());
    if limit.is_some_and(|limit| matches!(limit.rule, LimitRule::Concurrency(_))) {
        let fix = "name a budget, a rolling limit or a rate";
        fields.problem("limit", "of calls in flight nobody else knows what is left", fix);
    }
    fields.required("url", "write url = \"https://...\", the address that tells what is left");
    let url = fields.words("url");
    fields.required("remaining", "write remaining = \"/left\", where the answer has the figure");
    let remaining = fields.text("remaining");
    if let Some(pointer) = remaining {
        check::pointer(report, fields.at("remaining"), pointer);
    }
    let every = fields.span("every").unwrap_or(EVERY);
    let method = fields.text("method").unwrap_or("GET").to_owned();
    if !check::is_method(&method) {
        fields.problem("method", format!("`{method}` is no method"), "write method = \"GET\"");
    }
    let own = table.get("headers").is_some();
    let headers = request::headers(&mut fields, secrets);
    let headers = if own { headers } else { usual.clone() };
    if let (Some(url), Some(limit)) = (url, limit) {
        address(&fields, url, secrets);
        let at = if own { "headers" } else { "url" };
        columns(&fields, "url", url, limit);
        headers.values().for_each(|header| columns(&fields, at, header, limit));
    }
    fields.finish();
    Some(QuotaCall {
        url: url?.to_owned(),
        method,
        headers,
        every,
        remaining: remaining?.to_owned(),
        limit: name?,
    })
}

/// No column may say whom the headers' secrets go to.
fn address(fields: &Fields<'_>, url: &str, secrets: &SecretNames) {
    check::url(fields.report, fields.at("url"), url, secrets);
    let host = |template: &Template| {
        let (_, after) = template.prefix().split_once("://")?;
        Some(template.prefix() == url || after.contains('/'))
    };
    let is_fixed = Template::parse(url).ok().as_ref().and_then(host);
    if is_fixed != Some(true) {
        let fix = "write them, as in url = \"https://api.example.com/left?site={site}\"";
        fields.problem("url", "scheme and host must be written out", fix);
    }
}

/// It is asked once for all that the limit counts together: only its key's columns are known then.
fn columns(fields: &Fields<'_>, at: &str, template: &str, limit: &Limit) {
    let Ok(template) = Template::parse(template) else { return };
    for column in template.columns() {
        if column != "credential" && !limit.key.iter().any(|key| key == column) {
            let message = format!("`{{{column}}}` is not in the key of the limit `{}`", limit.name);
            let fix = "use columns of its key only; `headers` may be given here anew";
            fields.problem(at, message, fix);
        }
    }
}
