//! A limit in words: what its quota file declares, and what is made of it.

use serde_json::{Value, json};

use super::words::{figure, period, span};
use crate::quota::calendar::Resets;
use crate::quota::rate::{Counted, Rate};
use crate::quota::rolling::Rolling;
use crate::quota::{Cost, Limit, LimitRule};

/// A rule in words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Described {
    /// As its quota file has it.
    pub declared: String,
    /// What is sent at most.
    pub planned: String,
    /// Of a rate: the share of the declared rate that is planned.
    pub share: Option<f64>,
    /// What should be changed, where much of the rate is lost.
    pub warning: Option<String>,
}

/// A rule in words.
///
/// ```
/// use paceline::quota::declare;
/// use paceline::report::limits::describe;
///
/// let text = "name = \"shop\"\n[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\nburst = 10\n";
/// let upstream = declare::parse("shop", "shop.toml", text).unwrap();
/// let told = describe(&upstream.limits[0].rule);
/// assert_eq!(told.declared, "10 a second, burst 10");
/// assert!(told.warning.unwrap().contains("burst"));
/// ```
pub fn describe(rule: &LimitRule) -> Described {
    let plain = |declared: String, planned: String| Described {
        declared,
        planned,
        share: None,
        warning: None,
    };
    match rule {
        LimitRule::Rate(rate) => of_rate(rate),
        LimitRule::Budget(budget) => {
            let (per, resets) = (budget.calendar.resets.per(), budget.calendar.resets);
            let zone = budget.calendar.zone;
            let per = each_time(&per.to_string());
            let begins = match resets {
                Resets::Hourly { minute: 0 } => "on the hour".to_owned(),
                Resets::Hourly { minute } => format!("{minute} min past each hour"),
                other => format!("at {other}"),
            };
            let declared = format!("{} {per}, which begins {begins} in {zone}", budget.amount);
            plain(declared, of_amount(budget.grants(), &per, budget.reserve))
        }
        LimitRule::Rolling(rolling) => {
            let (declared, planned) = of_rolling(rolling);
            plain(declared, planned)
        }
        LimitRule::Concurrency(limit) => {
            plain(format!("{} in flight", limit.amount), "the same".to_owned())
        }
    }
}

fn of_rate(rate: &Rate) -> Described {
    let plan = rate.plan();
    let counted = match rate.counted {
        Counted::Bucket => ", a token bucket",
        Counted::Rolling => "",
    };
    let per = each_time(&period(rate.period));
    let declared = format!("{} {per}, burst {}{counted}", rate.amount, rate.burst);
    let every = std::time::Duration::from_nanos(plan.interval.unsigned_abs());
    let share = rate.share();
    let planned = format!(
        "one in {}, burst {}: {} % of the declared rate",
        exact(every),
        plan.burst,
        figure((share * 1000.0).floor() / 10.0)
    );
    let warning = rate.advice().map(|advice| {
        let lost = "the planned rate is under 98.5 % of the declared one";
        let advice = advice.to_string();
        if advice.is_empty() { lost.to_owned() } else { format!("{lost}: write {advice}") }
    });
    Described { declared, planned, share: Some(share), warning }
}

/// `a day`, `an hour`, `in 10 s`.
fn each_time(period: &str) -> String {
    let article = match period.chars().next() {
        Some('0'..='9') => "in",
        Some('h') => "an",
        _ => "a",
    };
    format!("{article} {period}")
}

/// What a limit counts, and what it counts for itself: `, in points, each host`.
///
/// ```
/// use paceline::quota::declare;
/// use paceline::report::limits::counted;
///
/// let text = "name = \"shop\"\n[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\n\
///     cost = \"points\"\nkey = [\"site\", \"method\"]\n";
/// let upstream = declare::parse("shop", "shop.toml", text).unwrap();
/// assert_eq!(counted(&upstream.limits[0]), ", in points, each site and method");
/// ```
pub fn counted(limit: &Limit) -> String {
    let cost = match &limit.cost {
        Cost::Calls => String::new(),
        Cost::Items => ", in items".to_owned(),
        Cost::Column(column) => format!(", in {column}"),
    };
    match limit.key.as_slice() {
        [] => cost,
        key => format!("{cost}, each {}", key.join(" and ")),
    }
}

/// An interval as exactly as people can use it.
fn exact(every: std::time::Duration) -> String {
    let millis = every.as_secs_f64() * 1000.0;
    if millis < 10_000.0 { format!("{} ms", figure(millis)) } else { span(every) }
}

fn of_rolling(rolling: &Rolling) -> (String, String) {
    let grants = rolling.amount.saturating_sub(rolling.reserve);
    let whole = format!("in any {}", span(rolling.span));
    let declared = match rolling.stands_for {
        Some(per) => {
            format!("{} {} in an unknown zone", rolling.amount, each_time(&per.to_string()))
        }
        None => format!("{} {whole}", rolling.amount),
    };
    (declared, of_amount(grants, &whole, rolling.reserve))
}

fn of_amount(grants: u64, per: &str, reserve: u64) -> String {
    match reserve {
        0 => format!("{grants} {per}"),
        reserve => format!("{grants} {per}; {reserve} are kept for people"),
    }
}

/// A declared limit as JSON.
pub fn limit(limit: &Limit) -> Value {
    let told = describe(&limit.rule);
    let exceptions = limit.exceptions.iter().map(|exception| {
        let told = describe(&exception.rule);
        json!({
            "when": super::columns(&exception.when), "declared": told.declared,
            "planned": told.planned, "planned_share": told.share, "warning": told.warning,
        })
    });
    json!({
        "name": limit.name, "kind": limit.rule.kind(), "key": limit.key, "sure": limit.sure,
        "declared": told.declared, "planned": told.planned, "planned_share": told.share,
        "warning": told.warning, "for": exceptions.collect::<Vec<_>>(),
    })
}
