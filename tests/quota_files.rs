//! Quota files: what is wrong is told with its place and its fix.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::NaiveTime;
use paceline::plan::{AddOptions, Planner};
use paceline::quota::auth::{Auth, ClientAuth, Grant};
use paceline::quota::budget::Counts;
use paceline::quota::calendar::{Per, Resets};
use paceline::quota::concurrency::Concurrency;
use paceline::quota::declare;
use paceline::quota::rate::{Counted, Rate};
use paceline::quota::{Cost, Derivation, KeepBody, LimitRule, Sureness, Upstream};
use paceline::reading::Reason;
use paceline::reading::remaining::Figure;
use paceline::reading::rules::{ResetUnit, StatusPattern, ValuePattern};
use proptest::prelude::*;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/quotas").join(folder)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// Beside each bad file stands the text of its error. `ACCEPT=1` writes what it is now.
#[test]
fn every_problem_has_its_place_and_fix() {
    for path in files(&data("bad")) {
        let text = fs::read_to_string(&path).unwrap();
        let shown = format!("{}.toml", stem(&path));
        let error = declare::parse(stem(&path), &shown, &text).unwrap_err();
        let told = format!("{error}\n");
        let expected = path.with_extension("txt");
        if std::env::var_os("ACCEPT").is_some() {
            fs::write(&expected, &told).unwrap();
        }
        assert_eq!(told, fs::read_to_string(&expected).unwrap_or_default(), "{shown}");
    }
}

fn full() -> Upstream {
    let path = data("good").join("full.toml");
    declare::parse("full", "full.toml", &fs::read_to_string(path).unwrap()).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn every_field_of_the_request_is_read() {
    let full = full();
    assert_eq!((full.title.as_str(), full.checked.as_deref()), ("Everything", Some("2026-11-30")));
    assert_eq!(full.matches.hosts, ["api.full.example", "*.full.example"]);
    assert_eq!(full.columns["siteUrl"].from, Some(Derivation::Origin));
    assert_eq!(full.columns["page"].from, Some(Derivation::Query("page".to_owned())));
    assert_eq!(full.credentials["main"].secret["pair"], "user:${file:/run/pair}");
    let request = &full.request;
    assert_eq!((request.method.as_str(), request.timeout), ("PUT", 10 * SECOND));
    assert_eq!(request.repeatable, Some(false));
    assert_eq!(request.idempotency_header.as_deref(), Some("Idempotency-Key"));
    assert_eq!(request.headers["Authorization"], "Basic ${secret:pair}");
    let names: Vec<_> = full.partition_columns().into_iter().collect();
    assert_eq!(names, ["credential", "siteUrl"]);
    assert_eq!(full.results["stock"], "/stock");
    assert_eq!((full.keep.body, full.keep.max_bytes), (KeepBody::All, 1 << 20));
    assert_eq!((full.retry.max_attempts, full.retry.multiplier), (3, 1.5));
}

fn declared(text: &str) -> Upstream {
    declare::parse("x", "x.toml", text).unwrap()
}

fn problem(text: &str) -> String {
    declare::parse("x", "x.toml", text).unwrap_err().to_string()
}

fn places(name: &str) -> String {
    format!("[[limit]]\nname = \"{name}\"\nkind = \"concurrency\"\namount = 2\n")
}

#[test]
fn what_lies_on_a_bound_is_taken() {
    let same = declared("[retry]\ninitial = \"10m\"\n").retry;
    assert_eq!(same.initial, same.max_interval);
    let text = "[retry]\ninitial = \"2s\"\nmultiplier = 1\nmax_interval = \"2s\"\n";
    let steady = declared(text).retry;
    assert_eq!((steady.multiplier, steady.max_interval), (1.0, 2 * SECOND));
    let hint = |hint: &str| {
        format!(
            "[retry]\nmax_hint = \"1h\"\n[[reading]]\nwhen = {{ status = 429 }}\n\
            reason = \"rate_limited\"\nhint = \"{hint}\"\n"
        )
    };
    assert_eq!(declared(&hint("1h")).readings[0].hint, Some(3_600 * SECOND));
    assert!(problem(&hint("61m")).contains("a `hint` beyond `max_hint`"));
}

#[test]
fn numbers_that_make_no_sense_are_told() {
    let reading = "[[reading]]\nwhen = { status = 429 }\nreason = \"rate_limited\"\n";
    for (text, told) in [
        ("schema = 0", "there is no schema 0; write schema = 1"),
        ("[retry]\nmax_attempts = -1", "`max_attempts` is negative; write a whole number from 0"),
        ("[retry]\nmax_attempts = 0", "zero `max_attempts`"),
        ("[keep]\nmax_bytes = \"64\"", "no unit in size `64`"),
        (&format!("{reading}limit = \"day\""), "there is no limit `day`; declare it"),
        (
            &format!("{}{reading}limit = \"day\"", places("in-flight") + &places("others")),
            "there is no limit `day`; write \"in-flight\" or \"others\"",
        ),
        ("[request]\nurl = \"${env:HOST}/x\"", "a secret cannot bring the scheme and host"),
        (
            "[[reading]]\nwhen = { status = 400, body = \"x?\" }\nreason = \"gone\"",
            "found in every answer",
        ),
    ] {
        assert!(problem(text).contains(told), "{text}: {}", problem(text));
    }
    assert_eq!(declared("[keep]\nmax_bytes = \"2KB\"").keep.max_bytes, 2_000);
    assert_eq!(declared("[request]\nurl = \"{url}\"").request.url.as_deref(), Some("{url}"));
    let empty = "[[reading]]\nwhen = { status = 400, body = \"^$\" }\nreason = \"gone\"";
    assert_eq!(declared(empty).readings.len(), 1);
}

#[test]
fn a_budget_whose_zone_nobody_knows_lasts_longer_than_any_of_its_windows() {
    for (per, hours) in [("hour", 2), ("day", 25), ("week", 7 * 24 + 1), ("month", 31 * 24 + 1)] {
        let text = format!(
            "[[limit]]\nname = \"b\"\nkind = \"budget\"\namount = 9\nper = \"{per}\"\n\
            time_zone = \"unknown\"\n"
        );
        let LimitRule::Rolling(rolling) = &declared(&text).limits[0].rule else { panic!("{per}") };
        assert_eq!(rolling.span, 3_600 * hours * SECOND, "{per}");
        assert_eq!(rolling.stands_for.map(Per::name), Some(per));
    }
}

#[test]
fn over_several_connections_every_rate_is_even() {
    let even = |connections: usize| {
        let text = format!(
            "[request]\nconnections = {connections}\n[[limit]]\nname = \"r\"\nkind = \"rate\"\n\
            rate = \"9/s\"\nburst = 3\nkey = [\"site\"]\n[[limit.for]]\nwhen = {{ site = \"a\" }}\n\
            rate = \"5/s\"\n"
        );
        let upstream = declared(&text);
        ["a", "b"].map(|site| {
            let columns = [("site".to_owned(), site.to_owned())].into();
            let LimitRule::Rate(rate) = upstream.limits[0].rule_for(&columns) else { panic!() };
            (rate.amount, rate.evenly)
        })
    };
    assert_eq!(even(1), [(5, false), (9, false)]);
    assert_eq!(even(2), [(5, true), (9, true)]);
}

#[test]
fn jobs_of_a_batch_share_what_stands_outside_its_items() {
    let upstream = declared(
        "[columns.path]\nfrom = \"url.path\"\n[request]\nmethod = \"POST\"\n\
        url = \"https://api.example/{site}/{method}\"\nheaders = { X-User = \"{user}\" }\n\
        [batch]\nmax_items = 5\nbody = '{\"lang\": \"{lang}\", \"list\": {items.url}}'\n",
    );
    assert_eq!(upstream.columns["path"].from, Some(Derivation::Path));
    let shared: Vec<_> = upstream.partition_columns().into_iter().collect();
    assert_eq!(shared, ["lang", "site", "user"]);
}

#[test]
fn every_field_of_auth_is_read() {
    let Some(Auth::OAuth(oauth)) = full().auth else { panic!("another kind") };
    assert_eq!(oauth.token_url, "https://login.full.example/${env:FULL_TENANT}/token");
    assert_eq!((oauth.client_id.as_str(), oauth.client_secret.as_str()), ("full", "${secret:key}"));
    assert_eq!((oauth.grant, oauth.client_auth), (Grant::Client, ClientAuth::Basic));
    assert_eq!(oauth.scopes, ["one", "two"]);
    assert_eq!(oauth.form["audience"], "https://api.full.example");
    let auth = |text: &str| {
        declare::parse("x", "x.toml", &format!("[auth]\n{text}")).unwrap().auth.unwrap()
    };
    let google = "kind = \"google-service-account\"\nkey_file = \"${env:KEY}\"\nscopes = [\"a\"]\n";
    let Auth::ServiceAccount(account) = auth(google) else { panic!("another kind") };
    assert_eq!((account.key_file.as_str(), account.token_url), ("${env:KEY}", None));
    let refresh = "kind = \"oauth-refresh\"\ntoken_url = \"http://127.0.0.1:1/t\"\nclient_id = \"a\"\n\
        client_secret = \"b\"\nrefresh_token = \"c\"\n";
    let Auth::OAuth(oauth) = auth(refresh) else { panic!("another kind") };
    assert_eq!(oauth.grant, Grant::Refresh { refresh_token: "c".to_owned() });
    assert_eq!(oauth.client_auth, ClientAuth::Body);
    let command = auth("kind = \"command\"\ncommand = [\"a\", \"${env:B}\"]\n");
    assert_eq!(command, Auth::Command(vec!["a".to_owned(), "${env:B}".to_owned()]));
    assert_eq!(command.templates(), ["a", "${env:B}"]);
    assert_eq!(auth(refresh).templates(), ["http://127.0.0.1:1/t", "a", "b", "c"]);
    assert!(!command.is_per_credential() && full().auth.unwrap().is_per_credential());
}

#[test]
fn every_field_of_the_limits_is_read() {
    let full = full();
    let rule = |name: &str| full.limit(name).unwrap().rule.clone();
    let ms = Duration::from_millis;
    let rate = Rate {
        amount: 10,
        period: SECOND,
        burst: 12,
        counted: Counted::Bucket,
        slack: ms(1),
        path_jitter: ms(2),
        evenly: full.request.connections.is_some_and(|count| count > 1),
    };
    assert_eq!(rule("plan"), LimitRule::Rate(rate));
    let LimitRule::Budget(budget) = rule("daily") else { panic!("no budget") };
    let time = NaiveTime::from_hms_opt(6, 30, 0).unwrap();
    assert_eq!(budget.calendar.resets, Resets::Monthly { day: 31, time });
    assert_eq!(budget.calendar.zone, chrono_tz::America::Los_Angeles);
    assert_eq!((budget.amount, budget.reserve, budget.spread), (200, 5, true));
    assert_eq!((budget.counts, budget.settle_after_reset), (Counts::Accepted, 120 * SECOND));
    let big = [("siteUrl".to_owned(), "https://b.example/".to_owned())].into();
    let LimitRule::Budget(other) = full.limit("daily").unwrap().rule_for(&big).clone() else {
        panic!("no budget")
    };
    assert_eq!((other.amount, other.reserve, other.spread), (10_000, 0, true));
    let LimitRule::Rolling(unknown) = rule("somewhere") else { panic!("not rolling") };
    assert_eq!((unknown.span, unknown.stands_for), (90_000 * SECOND, Some(Per::Day)));
    assert_eq!((unknown.slack, unknown.path_jitter), (SECOND, ms(5)));
    let LimitRule::Rolling(rolling) = rule("rolling") else { panic!("not rolling") };
    assert_eq!((rolling.span, rolling.stands_for), (86_400 * SECOND, None));
    assert_eq!(full.limit("daily").unwrap().cost, Cost::Items);
    assert_eq!(full.limit("rolling").unwrap().cost, Cost::Column("tokens".to_owned()));
    assert_eq!(rule("in-flight"), LimitRule::Concurrency(Concurrency { amount: 4 }));
}

#[test]
fn every_field_of_a_reading_is_read() {
    let full = full();
    let rule = &full.readings[0];
    assert_eq!(rule.when.status, [StatusPattern::Exact(403), StatusPattern::Class(5)]);
    assert!(matches!(&rule.when.json["/n"], ValuePattern::Equals(text) if text == "4"));
    assert!(matches!(&rule.when.json["/b"], ValuePattern::Equals(text) if text == "true"));
    assert!(matches!(rule.when.header["x-block"], ValuePattern::Present(true)));
    assert!(matches!(rule.when.header["x-why"], ValuePattern::Matches(_)));
    assert_eq!((rule.reason, rule.then), (Reason::KeyPending, Some(Reason::Misconfigured)));
    assert_eq!((rule.wait, rule.hint), (Some(60 * SECOND), Some(30 * SECOND)));
    assert_eq!(rule.reset.as_ref().unwrap().unit, Some(ResetUnit::EpochMillis));
    assert_eq!((rule.retryable, rule.limit.as_deref()), (Some(true), Some("daily")));
    assert_eq!((rule.for_at_most, rule.sure), (Some(900 * SECOND), Sureness::Guess));
}

#[test]
fn where_an_upstream_tells_what_is_left_is_read() {
    let full = full();
    let reported = |name: &str| full.limit(name).unwrap().reported.clone().unwrap();
    let daily = reported("daily");
    assert!(matches!(&daily.figure, Figure::Header(name) if name == "x-left"));
    assert!(matches!(daily.when.header["x-resource"], ValuePattern::Equals(_)));
    assert_eq!(daily.amount.as_deref(), Some("x-limit"));
    assert_eq!(daily.reset.unwrap().unit, Some(ResetUnit::DeltaSeconds));
    assert!(matches!(reported("rolling").figure, Figure::Json(pointer) if pointer == "/d/left"));
    assert!(matches!(reported("somewhere").figure, Figure::Body(_)));
    let quota = full.quota_call.as_ref().unwrap();
    assert_eq!((quota.limit.as_str(), quota.remaining.as_str()), ("daily", "/left"));
    assert_eq!((quota.method.as_str(), quota.every), ("POST", 1_800 * SECOND));
    assert_eq!(quota.url, "https://api.full.example/left?site={siteUrl}");
    assert_eq!(quota.headers["X-Key"], "${secret:pair}");
    let text = "[request]\nheaders = { A = \"b\" }\n[[limit]]\nname = \"a\"\nkind = \"rate\"\n\
        rate = \"1/s\"\n[quota_call]\nurl = \"https://a.example\"\nlimit = \"a\"\nremaining = \"/a\"\n";
    let quota = declare::parse("x", "x.toml", text).unwrap().quota_call.unwrap();
    assert_eq!((quota.method.as_str(), quota.every), ("GET", 3_600 * SECOND));
    assert_eq!(quota.headers["A"], "b", "those of the jobs");
}

#[test]
fn a_file_may_be_nearly_empty() {
    let upstream = declare::parse("x", "x.toml", "").unwrap();
    assert_eq!((upstream.name.as_str(), upstream.title.as_str()), ("x", "x"));
    assert_eq!((upstream.request.method.as_str(), upstream.limits.len()), ("GET", 0));
    let rate = "[[limit]]\nname = \"a\"\nkind = \"rate\"\nrate = \"1/s\"";
    let upstream = declare::parse("x", "x.toml", rate).unwrap();
    let LimitRule::Rate(rate) = &upstream.limits[0].rule else { panic!("no rate") };
    let margin = Duration::from_millis(5);
    assert_eq!((rate.burst, rate.slack, rate.path_jitter), (1, margin, margin));
}

#[test]
fn the_example_is_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/distributor.toml");
    let text = fs::read_to_string(path).unwrap();
    let upstream = declare::parse("distributor", "distributor.toml", &text).unwrap();
    let planner = Planner::new(&upstream, AddOptions::default()).unwrap();
    let job = planner.plan([("isbn".to_owned(), "9780000000002".to_owned())].into()).unwrap();
    assert_eq!(job.request.url, "https://api.distributor.example/v1/stock/9780000000002");
    assert_eq!(job.partition["credential"], "main");
}

/// The reference names every field that a file may have.
#[test]
fn the_reference_is_complete() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/quota-files.md");
    let reference = fs::read_to_string(path).unwrap();
    let text = "x = 1\n[match]\nx = 1\n[columns.a]\nx = 1\n[credential.a]\nx = 1\n[request]\nx = 1\n\
        [[limit]]\nname = \"a\"\nkind = \"rate\"\nrate = \"1/s\"\nx = 1\n\
        [[limit]]\nname = \"b\"\nkind = \"budget\"\namount = 1\nper = \"day\"\ntime_zone = \"UTC\"\n\
        x = 1\n[[limit]]\nname = \"c\"\nkind = \"rolling\"\namount = 1\nper = \"1h\"\nx = 1\n\
        reported = { header = \"a\", x = 1 }\n[[reading]]\nwhen = { x = 1 }\nreason = \"ok\"\nreset = { header = \"a\", x = 1 }\nx = 1\n\
        [retry]\nx = 1\n[results]\nx = 1\n[keep]\nx = 1\n[when_store_fails]\nx = 1\n\
        [quota_call]\nx = 1\n";
    let kinds = ["google-service-account", "oauth-refresh", "client-credentials", "command"];
    let mut problems = declare::parse("x", "x.toml", text).unwrap_err().problems;
    for kind in kinds {
        let text = format!("[auth]\nkind = \"{kind}\"\nx = 1\n");
        problems.extend(declare::parse("x", "x.toml", &text).unwrap_err().problems);
    }
    for problem in &problems {
        let Some((_, all)) = problem.fix.split_once("there are ") else { continue };
        for field in all.split(", ") {
            assert!(reference.contains(&format!("`{field}`")), "{field}: {}", problem.message);
        }
    }
    for reason in Reason::ALL {
        assert!(reference.contains(&format!("`{reason}`")), "{reason}");
    }
}

proptest! {
    /// Whatever was done to a file, it is read or refused with places inside it.
    #[test]
    fn a_damaged_file_is_refused_in_place(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, "[\\[\\]{}\"=a0. \n${/]{0,3}"), 1..4),
    ) {
        let path = data("good").join("full.toml");
        let mut text: Vec<char> = fs::read_to_string(path).unwrap().chars().collect();
        for (at, length, instead) in cuts {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, instead.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = declare::parse("full", "full.toml", &text) {
            prop_assert!(!error.problems.is_empty());
            for problem in &error.problems {
                prop_assert!(problem.line >= 1 && problem.line <= text.lines().count() + 1);
                prop_assert!(problem.column >= 1 && !problem.message.is_empty());
            }
        }
    }
}
