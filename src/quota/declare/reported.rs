//! `[limit.reported]`: where answers tell what is left of a limit.

use regex::Regex;

use super::check;
use super::fields::Fields;
use super::reading::{header_name, reset, when};
use crate::reading::remaining::{Figure, ReportedIn};

const FIX: &str = "write header = \"x-ratelimit-remaining\", json = \"/left\", or \
    body = 'left: (?<remaining>[0-9]+)'";

/// The table in a limit's fields, where it is there. Calls in flight are nobody's to report.
pub(super) fn reported(limit: &mut Fields<'_>, is_concurrency: bool) -> Option<ReportedIn> {
    let table = limit.table("reported")?;
    if is_concurrency {
        let fix = "remove it; the calls in flight are counted here";
        limit.problem("reported", "a concurrency limit has nothing that could be reported", fix);
    }
    let mut fields = Fields::new(limit.report, table, "`reported`");
    let when = fields.table("when").map(|table| when(limit.report, table)).unwrap_or_default();
    let figures = [
        header_name(&mut fields, "header").map(Figure::Header),
        pointer(&mut fields).map(Figure::Json),
        body(&mut fields).map(Figure::Body),
    ];
    let amount = header_name(&mut fields, "amount");
    let reset = fields.table("reset").and_then(|table| reset(limit.report, table));
    if reset.as_ref().is_some_and(|reset| reset.remaining.is_some()) {
        fields.problem("reset", "`remaining` has no meaning here", "write it as `header`");
    }
    let given = ["header", "json", "body"].iter().filter(|name| table.get(name).is_some()).count();
    if given != 1 {
        let message = "`reported` has exactly one of `header`, `json` and `body`";
        limit.report.problem(table.at, message, FIX);
    }
    fields.finish();
    let figure = figures.into_iter().flatten().next()?;
    Some(ReportedIn { when, figure, amount, reset })
}

fn pointer(fields: &mut Fields<'_>) -> Option<String> {
    let pointer = fields.text("json")?;
    check::pointer(fields.report, fields.at("json"), pointer);
    Some(pointer.to_owned())
}

fn body(fields: &mut Fields<'_>) -> Option<Regex> {
    let text = fields.text("body")?;
    let pattern = check::pattern(fields.report, fields.at("body"), text)?;
    if !pattern.capture_names().flatten().any(|name| name == "remaining") {
        fields.problem("body", "`body` has no group for the figure", FIX);
    }
    Some(pattern)
}
