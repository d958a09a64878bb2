//! PURE: may it go?
//!
//! | file | noun |
//! | --- | --- |
//! | [`declare`] | a quota file: TOML text to [`Upstream`], or errors with line and fix |
//! | [`library`] | where quota files are found: folders, the user's, presets |
//! | [`auth`] | where `${token}` comes from |
//! | [`calendar`] | the window an instant falls into, and its reset |
//! | [`rate`] | GCRA over a stored theoretical arrival time |
//! | [`budget`] | units per calendar window |
//! | [`rolling`] | units per sliding span |
//! | [`concurrency`] | calls in flight |
//! | [`reported`] | what the upstream says is left, beside our own count |
//! | [`adapt`] | a pace cut after refusals inside the declared one |
//! | [`decide`] | several limits asked as one |
//! | [`batch`] | many jobs in one call |
//! | [`forecast`] | when a queue will be empty |
//! | [`strict`] | whether what was sent kept to a limit |
//! | [`evidence`] | what answers show of a reset that nobody states |
//!
//! This file holds what a quota file says once it is read and found valid.

pub mod adapt;
pub mod auth;
pub mod batch;
pub mod budget;
pub mod calendar;
pub mod concurrency;
pub mod decide;
pub mod declare;
pub mod evidence;
pub mod forecast;
pub(crate) mod glob;
pub mod library;
pub mod rate;
pub mod reported;
pub mod rolling;
pub mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::job::Columns;
use crate::reading::remaining::ReportedIn;
use crate::reading::rules::Rule;
use auth::Auth;
use calendar::Calendar;

/// A service that is called, and its quota. A value that exists is valid.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The name it is called by; the quota file's name without `.toml`.
    pub name: String,
    /// For people; the name where the file gives none.
    pub title: String,
    /// Where the figures come from.
    pub docs: Option<String>,
    /// The day on which they were last checked, `YYYY-MM-DD`.
    pub checked: Option<String>,
    /// Which calls are this upstream's when a job names none.
    pub matches: Match,
    /// What jobs carry beyond their row, by column name.
    pub columns: BTreeMap<String, ColumnRule>,
    /// Credentials by name.
    pub credentials: BTreeMap<String, Credential>,
    /// Where `${token}` comes from.
    pub auth: Option<Auth>,
    /// Defaults for jobs.
    pub request: RequestRule,
    /// How many jobs go in one call; `None`: each in its own.
    pub batch: Option<batch::Batch>,
    /// The limits, in the file's order; all must grant.
    pub limits: Vec<Limit>,
    /// Where the upstream is asked what is left.
    pub quota_call: Option<QuotaCall>,
    /// Reading rules, in the order in which they are tried.
    pub readings: Vec<Rule>,
    /// How failures and refusals are waited for.
    pub retry: RetryPolicy,
    /// Column name to JSON pointer: taken from an answer when its call settles.
    pub results: BTreeMap<String, String>,
    /// What is kept, and for how long.
    pub keep: Keep,
    /// What goes on when the store cannot answer.
    pub when_store_fails: StoreFailure,
}

impl Upstream {
    /// The columns that name a partition: those of all keys, `credential` where any is declared, and
    /// those that the jobs of a batch must share.
    pub fn partition_columns(&self) -> BTreeSet<&str> {
        let keys = self.limits.iter().flat_map(|limit| limit.key.iter().map(String::as_str));
        let credential = (!self.credentials.is_empty()).then_some("credential");
        let shared = self.batch.iter().flat_map(|batch| batch.shared.iter().map(String::as_str));
        keys.chain(credential).chain(shared).collect()
    }

    /// The body template of jobs that bring none: the batch's, where there is one.
    pub fn body(&self) -> Option<&String> {
        self.batch.as_ref().map(|batch| &batch.body).or(self.request.body.as_ref())
    }

    /// The limit of that name.
    pub fn limit(&self, name: &str) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.name == name)
    }
}

/// `[match]`: glob patterns; an empty list of paths matches every path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Host names, without ports.
    pub hosts: Vec<String>,
    /// Paths, `*` standing for any characters.
    pub paths: Vec<String>,
}

/// `[columns.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnRule {
    /// Where the value is taken from.
    pub from: Option<Derivation>,
    /// The value where nothing else gives one.
    pub default: Option<String>,
    /// The values that are allowed; empty allows all.
    pub one_of: Vec<String>,
    /// Shown where the column is missing.
    pub help: Option<String>,
}

/// A part of the column `url`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Derivation {
    /// `url.host`: without the port.
    Host,
    /// `url.origin`: scheme, host, and port where it is not the scheme's own.
    Origin,
    /// `url.path`.
    Path,
    /// `url.query.NAME`: the first value of that name, decoded.
    Query(String),
}

/// `[credential.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credential {
    /// Columns that a job must have for this credential to be its own; empty fits all.
    pub when: Columns,
    /// Columns that jobs of this credential get.
    pub set: Columns,
    /// Secrets by name: templates such as `${env:KEY}`, for `${secret:NAME}`.
    pub secret: BTreeMap<String, String>,
}

/// `[request]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRule {
    /// Method of jobs that name none.
    pub method: String,
    /// URL template of jobs that name none.
    pub url: Option<String>,
    /// Where a gateway sends to.
    pub base_url: Option<String>,
    /// Header templates, sent with every call.
    pub headers: BTreeMap<String, String>,
    /// Body template.
    pub body: Option<String>,
    /// Longest time from connecting to the last byte.
    pub timeout: Duration,
    /// Whether sending twice does no harm; `None`: by method.
    pub repeatable: Option<bool>,
    /// Header that carries one value for all attempts of a job.
    pub idempotency_header: Option<String>,
    /// Calls go over just so many connections, one at a time on each; `None`: over as many as needed.
    pub connections: Option<usize>,
}

impl RequestRule {
    /// Whether a call by `method` may be sent twice: as declared, else by the method's idempotence
    /// (RFC 9110 section 9.2.2), and always with an idempotency header.
    pub fn is_repeatable(&self, method: &str) -> bool {
        let idempotent = matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE");
        self.repeatable.unwrap_or(idempotent || self.idempotency_header.is_some())
    }
}

/// `[quota_call]`: asked for each instance of its limit that has work, and again every so often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaCall {
    /// URL template; its columns are the limit's key.
    pub url: String,
    /// The method.
    pub method: String,
    /// Header templates: its own, else those of `[request]`.
    pub headers: BTreeMap<String, String>,
    /// How long an answer is good for.
    pub every: Duration,
    /// JSON pointer to the units that are left.
    pub remaining: String,
    /// The limit, by name.
    pub limit: String,
}

/// How sure a figure or a rule is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sureness {
    /// The upstream's own documentation says so.
    #[default]
    Documented,
    /// Users saw it.
    Observed,
    /// Somebody's guess.
    Guess,
}

/// `[[limit]]`: one rule of the quota.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Unique in its upstream.
    pub name: String,
    /// The columns it counts by; empty: one instance for the upstream.
    pub key: Vec<String>,
    /// What one job takes.
    pub cost: Cost,
    /// How sure the figures are.
    pub sure: Sureness,
    /// Where answers tell what is left of it.
    pub reported: Option<ReportedIn>,
    /// The rule.
    pub rule: LimitRule,
    /// Other rules for some instances: the first whose columns all agree is used.
    pub exceptions: Vec<Exception>,
}

impl Limit {
    /// The rule for the instance that `columns` name.
    pub fn rule_for(&self, columns: &Columns) -> &LimitRule {
        let fits = |exception: &&Exception| {
            exception.when.iter().all(|(name, value)| columns.get(name) == Some(value))
        };
        self.exceptions.iter().find(fits).map_or(&self.rule, |exception| &exception.rule)
    }
}

/// `[[limit.for]]`: the limit's rule with other figures, for the instances whose columns agree.
#[derive(Clone, Debug)]
pub struct Exception {
    /// Columns and the values they must have; each is part of the limit's key.
    pub when: Columns,
    /// The whole rule for them.
    pub rule: LimitRule,
}

/// What a limit counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// One unit a call.
    #[default]
    Calls,
    /// One unit a job.
    Items,
    /// The whole number in that column of the job.
    Column(String),
}

impl Cost {
    /// The units that a call takes which carries these jobs. A figure that cannot be read can never be
    /// charged right: it counts as endless.
    pub fn of(&self, jobs: &[&Columns]) -> u64 {
        let figure = |name: &String, columns: &Columns| {
            columns.get(name).map_or(1, |text| text.trim().parse().unwrap_or(u64::MAX))
        };
        match self {
            Cost::Calls => 1,
            Cost::Items => jobs.len() as u64,
            Cost::Column(name) => {
                jobs.iter().fold(0, |units: u64, job| units.saturating_add(figure(name, job)))
            }
        }
    }
}

/// The four kinds of limit.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitRule {
    /// Units per time, paced.
    Rate(rate::Rate),
    /// Units per calendar window.
    Budget(budget::Budget),
    /// Units per sliding span.
    Rolling(rolling::Rolling),
    /// Calls in flight.
    Concurrency(concurrency::Concurrency),
}

impl LimitRule {
    /// `rate`, `budget`, `rolling` or `concurrency`.
    pub const fn kind(&self) -> &'static str {
        match self {
            LimitRule::Rate(_) => "rate",
            LimitRule::Budget(_) => "budget",
            LimitRule::Rolling(_) => "rolling",
            LimitRule::Concurrency(_) => "concurrency",
        }
    }

    /// Units that one call can take of it, at most; `None`: a place is a place, whatever a call costs.
    pub fn most(&self) -> Option<u64> {
        match self {
            LimitRule::Rate(rate) => Some(rate.plan().burst),
            LimitRule::Budget(budget) => Some(budget.grants()),
            LimitRule::Rolling(rolling) => Some(rolling.grants()),
            LimitRule::Concurrency(_) => None,
        }
    }

    /// The rule for those who may use what it keeps for people (`reserve`); `None`: it keeps nothing.
    pub(crate) fn unreserved(&self) -> Option<LimitRule> {
        match self {
            LimitRule::Budget(budget) if budget.reserve > 0 => {
                Some(LimitRule::Budget(budget::Budget { reserve: 0, ..budget.clone() }))
            }
            LimitRule::Rolling(rolling) if rolling.reserve > 0 => {
                Some(LimitRule::Rolling(rolling::Rolling { reserve: 0, ..rolling.clone() }))
            }
            _ => None,
        }
    }

    /// The calendar of a budget whose zone is known.
    pub const fn calendar(&self) -> Option<&Calendar> {
        match self {
            LimitRule::Budget(budget) => Some(&budget.calendar),
            _ => None,
        }
    }
}

/// `[retry]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// First delay.
    pub initial: Duration,
    /// Each further delay is this many times the one before; at least 1.
    pub multiplier: f64,
    /// No delay of our own is longer.
    pub max_interval: Duration,
    /// Failures after which a job is `failed`; being told to wait is not one.
    pub max_attempts: u32,
    /// A hint further away is a hold.
    pub max_hint: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            initial: Duration::from_secs(1),
            multiplier: 2.0,
            max_interval: Duration::from_secs(600),
            max_attempts: 10,
            max_hint: Duration::from_secs(31 * 86_400),
        }
    }
}

/// `[keep]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Whose bodies are kept.
    pub body: KeepBody,
    /// Bytes of a body that are kept.
    pub max_bytes: usize,
    /// Age at which `done` and `cancelled` jobs are pruned.
    pub done: Duration,
    /// Age at which all other ended jobs are pruned.
    pub failed: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        Keep {
            body: KeepBody::Refusals,
            max_bytes: 64 * 1024,
            done: Duration::from_secs(30 * 86_400),
            failed: Duration::from_secs(90 * 86_400),
        }
    }
}

/// Whose bodies are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepBody {
    /// Of answers that were not `ok`.
    Refusals,
    /// Of all answers.
    All,
    /// Of none.
    None,
}

/// `[when_store_fails]`: what becomes of a call that was claimed, where the store cannot say whether it was
/// closed since. Nothing new is sent either way, and no call without its mark that must not be sent twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFailure {
    /// It does not leave.
    #[default]
    Closed,
    /// It leaves all the same.
    Static,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<LimitRule> {
        let upstream = declare::parse("u", "u.toml", &format!("name = \"u\"\n{text}")).unwrap();
        upstream.limits.into_iter().map(|limit| limit.rule).collect()
    }

    #[test]
    fn a_call_costs_what_its_jobs_do() {
        let row = |pages: &str| Columns::from([("pages".to_owned(), pages.to_owned())]);
        let (three, four, odd, none) = (row("3"), row(" 4 "), row("some"), Columns::new());
        let pages = Cost::Column("pages".to_owned());
        assert_eq!(Cost::Calls.of(&[&three, &four]), 1);
        assert_eq!(Cost::Items.of(&[&three, &four]), 2);
        assert_eq!(pages.of(&[&three, &four]), 7);
        assert_eq!(pages.of(&[&none]), 1);
        assert_eq!(pages.of(&[&three, &odd]), u64::MAX, "what cannot be read never goes");
    }

    #[test]
    fn a_reserve_is_kept_from_all_but_people() {
        let kinds = "[[limit]]\nname = \"d\"\nkind = \"budget\"\namount = 9\nreserve = 2\nper = \"day\"\n\
            time_zone = \"UTC\"\n[[limit]]\nname = \"s\"\nkind = \"rolling\"\namount = 8\nreserve = 3\n\
            per = \"1h\"\n[[limit]]\nname = \"r\"\nkind = \"rate\"\nrate = \"9/s\"\nburst = 4\n\
            [[limit]]\nname = \"c\"\nkind = \"concurrency\"\namount = 2\n";
        let most = |rule: &LimitRule| rule.most();
        let kept = rules(kinds);
        assert_eq!(kept.iter().map(most).collect::<Vec<_>>(), [Some(7), Some(5), Some(4), None]);
        let freed: Vec<_> = kept.iter().map(LimitRule::unreserved).collect();
        let all = rules(&kinds.replace("reserve = 2\n", "").replace("reserve = 3\n", ""));
        assert_eq!(freed, [Some(all[0].clone()), Some(all[1].clone()), None, None]);
        assert!(all.iter().all(|rule| rule.unreserved().is_none()), "nothing is kept");
    }
}
