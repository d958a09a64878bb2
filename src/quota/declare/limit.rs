//! `[[limit]]`: tables to rules.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fields::Fields;
use super::node::Table;
use super::report::Report;
use super::{check, reported, units};
use crate::job::Columns;
use crate::quota::budget::{Budget, Counts};
use crate::quota::calendar::{Calendar, Per};
use crate::quota::concurrency::Concurrency;
use crate::quota::rate::{Counted, Rate};
use crate::quota::rolling::Rolling;
use crate::quota::{Cost, Exception, Limit, LimitRule, Sureness};

/// How late a slot may be used, where nothing is declared: of a rate, and of the margin for the way.
const RATE_SLACK: Duration = Duration::from_millis(5);
/// The same of a span of hours, which a second does not matter to.
const ROLLING_SLACK: Duration = Duration::from_secs(1);

const KIND_FIX: &str = "write kind = \"rate\", \"budget\", \"rolling\" or \"concurrency\"";

/// Fields of a limit that are not part of its rule.
const OUTER: [&str; 7] = ["name", "kind", "key", "cost", "sure", "reported", "for"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rate,
    Budget,
    Rolling,
    Concurrency,
}

const KINDS: [(&str, Kind); 4] = [
    ("rate", Kind::Rate),
    ("budget", Kind::Budget),
    ("rolling", Kind::Rolling),
    ("concurrency", Kind::Concurrency),
];

/// All limits; what is wrong with them is in the report.
pub(super) fn limits(report: &Report, tables: &[&Table]) -> Vec<Limit> {
    let mut names = BTreeSet::new();
    for table in tables {
        if let Some(name) = table.text("name")
            && !names.insert(name)
        {
            let at = table.get("name").map_or(table.at, |field| field.node.at);
            let fix = "give each limit a name of its own";
            report.problem(at, format!("there are two limits named `{name}`"), fix);
        }
    }
    tables.iter().filter_map(|table| limit(report, table)).collect()
}

/// A burst over several connections would use some of them twice while others rest.
pub(super) fn pace_evenly(limit: &mut Limit) {
    let exceptions = limit.exceptions.iter_mut().map(|exception| &mut exception.rule);
    for rule in exceptions.chain([&mut limit.rule]) {
        if let LimitRule::Rate(rate) = rule {
            rate.evenly = true;
        }
    }
}

fn limit(report: &Report, table: &Table) -> Option<Limit> {
    let what = table.text("name").map_or("this limit".to_owned(), |name| format!("limit `{name}`"));
    let mut fields = Fields::new(report, table, what);
    fields.required("name", "write name = \"...\"; messages and spent units go by it");
    let name = fields.words("name").map(str::to_owned);
    fields.required("kind", KIND_FIX);
    let kind = fields.choice("kind", &KINDS);
    let key = key(&mut fields);
    let cost = cost(&mut fields, kind);
    let sure = sureness(&mut fields);
    let reported = reported::reported(&mut fields, kind == Some(Kind::Concurrency));
    let overrides = fields.tables("for");
    // Without its kind no other field can be told right from wrong.
    let rule = rule(&mut fields, kind?);
    fields.finish();
    let (rule, kind) = (rule?, kind?);
    let exception = |of: &&Table| exception(report, table, of, &key, kind);
    let exceptions = overrides.iter().filter_map(exception).collect();
    Some(Limit { name: name?, key, cost, sure, reported, rule, exceptions })
}

fn key(fields: &mut Fields<'_>) -> Vec<String> {
    let mut key: Vec<String> = Vec::new();
    for (name, at) in fields.texts("key") {
        check::column_name(fields.report, at, name);
        if key.iter().any(|known| known == name) {
            fields.report.problem(at, format!("`{name}` is in the key twice"), "name it once");
            continue;
        }
        key.push(name.to_owned());
    }
    key
}

fn cost(fields: &mut Fields<'_>, kind: Option<Kind>) -> Cost {
    let text = fields.words("cost").unwrap_or("calls");
    if kind == Some(Kind::Concurrency) && text != "calls" {
        let fix = "remove `cost`, or use another kind of limit";
        fields.problem("cost", "a concurrency limit counts calls in flight, nothing else", fix);
    }
    match text {
        "calls" => Cost::Calls,
        "items" => Cost::Items,
        column => {
            check::column_name(fields.report, fields.at("cost"), column);
            Cost::Column(column.to_owned())
        }
    }
}

/// `sure`, of limits and of readings.
pub(super) fn sureness(fields: &mut Fields<'_>) -> Sureness {
    let choices = [
        ("documented", Sureness::Documented),
        ("observed", Sureness::Observed),
        ("guess", Sureness::Guess),
    ];
    fields.choice("sure", &choices).unwrap_or_default()
}

/// `[[limit.for]]`: the limit's own fields, overlaid with those given here.
fn exception(
    report: &Report,
    base: &Table,
    of: &Table,
    key: &[String],
    kind: Kind,
) -> Option<Exception> {
    let mut own = Fields::new(report, of, "[[limit.for]]");
    own.required("when", "write when = { COLUMN = \"value\" } with columns of the limit's key");
    let when = own.text_map("when");
    for (column, _, at) in &when {
        if !key.iter().any(|name| name == column) {
            let fix = format!("add it: key = [{}]", quoted(key.iter().map(String::as_str), column));
            report.problem(*at, format!("`{column}` is not in the limit's key"), fix);
        }
    }
    if when.is_empty() && of.get("when").is_some() {
        own.problem(
            "when",
            "`when` is empty and would fit every instance",
            "name a column of the key",
        );
    }
    let inherited = base
        .fields
        .iter()
        .filter(|field| !OUTER.contains(&field.name.as_str()) && of.get(&field.name).is_none());
    let changed = of.fields.iter().filter(|field| field.name != "when");
    let fields = inherited.chain(changed).cloned().collect();
    let merged = Table { at: of.at, fields };
    let mut fields = Fields::new(report, &merged, "[[limit.for]]");
    let rule = rule(&mut fields, kind);
    fields.finish();
    let text = |(column, value, _): (&str, &str, _)| (column.to_owned(), value.to_owned());
    let when: Columns = when.into_iter().map(text).collect();
    Some(Exception { when, rule: rule? })
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>, last: &'a str) -> String {
    let names: Vec<_> = names.chain([last]).map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

fn rule(fields: &mut Fields<'_>, kind: Kind) -> Option<LimitRule> {
    match kind {
        Kind::Rate => rate(fields).map(LimitRule::Rate),
        Kind::Budget => budget(fields),
        Kind::Rolling => rolling(fields).map(LimitRule::Rolling),
        Kind::Concurrency => {
            let amount = amount(fields, "write amount = 4, the calls that may be in flight")?;
            Some(LimitRule::Concurrency(Concurrency { amount }))
        }
    }
}

fn amount(fields: &mut Fields<'_>, fix: &str) -> Option<u64> {
    fields.required("amount", fix);
    fields.positive("amount", "nothing could ever go")
}

fn rate(fields: &mut Fields<'_>) -> Option<Rate> {
    fields.required("rate", "write units/time, such as rate = \"10/s\"");
    let rate = fields.parsed("rate", units::rate);
    let burst = fields.positive("burst", "not even one unit could go").unwrap_or(1);
    let choices = [("rolling", Counted::Rolling), ("bucket", Counted::Bucket)];
    let counted = fields.choice("counted", &choices).unwrap_or_default();
    let slack = fields.duration("slack").unwrap_or(RATE_SLACK);
    let path_jitter = fields.duration("path_jitter").unwrap_or(RATE_SLACK);
    let (amount, period) = rate?;
    if counted == Counted::Rolling && burst > amount {
        let shown = fields.table.text("rate").unwrap_or_default();
        let message = format!("burst {burst} is more than the {amount} units of `{shown}`");
        let fix =
            format!("write at most {amount}, or counted = \"bucket\" where the upstream is one");
        fields.problem("burst", message, fix);
        return None;
    }
    let evenly = false;
    Some(Rate { amount, period, burst, counted, slack, path_jitter, evenly })
}

/// What budgets and rolling limits share.
fn counts_and_reserve(fields: &mut Fields<'_>, amount: Option<u64>) -> (Counts, u64) {
    let choices = [("sent", Counts::Sent), ("accepted", Counts::Accepted)];
    let counts = fields.choice("counts", &choices).unwrap_or_default();
    let reserve = fields.whole("reserve").unwrap_or(0);
    if let Some(amount) = amount
        && reserve >= amount
    {
        let message = format!("reserve {reserve} leaves nothing of {amount}");
        fields.problem("reserve", message, format!("write less than {amount}"));
    }
    (counts, reserve)
}

fn rolling(fields: &mut Fields<'_>) -> Option<Rolling> {
    let amount = amount(fields, "write the units in any span of `per`, such as amount = 1000");
    fields.required("per", "write the length of the span, such as per = \"24h\"");
    let named = fields.table.text("per").is_some_and(|per| units::per(per).is_ok());
    if named {
        let fix = "write a length such as \"24h\"; for calendar days, kind = \"budget\"";
        fields.node("per");
        fields.problem("per", "a rolling limit counts in spans, not in calendar windows", fix);
    }
    let span = if named { None } else { fields.span("per") };
    let (counts, reserve) = counts_and_reserve(fields, amount);
    let (slack, path_jitter) = rolling_margins(fields);
    let (amount, span) = (amount?, span?);
    Some(Rolling { amount, span, stands_for: None, slack, path_jitter, counts, reserve })
}

fn rolling_margins(fields: &mut Fields<'_>) -> (Duration, Duration) {
    let slack = fields.duration("slack").unwrap_or(ROLLING_SLACK);
    (slack, fields.duration("path_jitter").unwrap_or(RATE_SLACK))
}

fn budget(fields: &mut Fields<'_>) -> Option<LimitRule> {
    let amount = amount(fields, "write the units in one window, such as amount = 200");
    fields.required("per", "write per = \"hour\", \"day\", \"week\" or \"month\"");
    let per = fields.parsed("per", units::per);
    let fix = "write the zone the upstream counts in, such as time_zone = \"America/Los_Angeles\", \
        or \"unknown\"";
    fields.required("time_zone", fix);
    let (counts, reserve) = counts_and_reserve(fields, amount);
    if fields.table.text("time_zone") == Some("unknown") {
        return unknown_zone(fields, amount, per, counts, reserve);
    }
    let zone = fields.parsed("time_zone", check::zone);
    let resets = match per {
        Some(per) if fields.table.get("resets_at").is_some() => {
            fields.parsed("resets_at", |text| units::resets(per, Some(text)))
        }
        Some(per) => units::resets(per, None).ok(),
        None => fields.node("resets_at").and(None),
    };
    let spread = fields.flag("spread").unwrap_or(false);
    let settle_after_reset = fields.duration("settle_after_reset").unwrap_or_default();
    fields.node("resets_at");
    let calendar = Calendar { zone: zone?, resets: resets? };
    let amount = amount?;
    let budget = Budget { amount, calendar, counts, reserve, spread, settle_after_reset };
    Some(LimitRule::Budget(budget))
}

/// A budget in a zone that nobody knows: rolling, over a span that holds the window of any zone,
/// whatever its daylight saving.
fn unknown_zone(
    fields: &mut Fields<'_>,
    amount: Option<u64>,
    per: Option<Per>,
    counts: Counts,
    reserve: u64,
) -> Option<LimitRule> {
    fields.node("time_zone");
    for name in ["resets_at", "spread", "settle_after_reset"] {
        if fields.node(name).is_some() {
            let fix = "remove it, or write the zone";
            let message = format!("`{name}` needs a known reset, and the zone is unknown");
            fields.problem(name, message, fix);
        }
    }
    let (slack, path_jitter) = rolling_margins(fields);
    let (amount, per) = (amount?, per?);
    let hours = match per {
        Per::Hour => 2,
        Per::Day => 25,
        Per::Week => 7 * 24 + 1,
        Per::Month => 31 * 24 + 1,
    };
    let span = Duration::from_secs(hours * 3600);
    let stands_for = Some(per);
    Some(LimitRule::Rolling(Rolling {
        amount,
        span,
        stands_for,
        slack,
        path_jitter,
        counts,
        reserve,
    }))
}
