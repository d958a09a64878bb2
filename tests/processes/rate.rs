//! Promises 1 and 5: no span holds more than B + r·t, and the plan is used, whoever shares it.

use std::time::Duration;

use paceline::practice::{Config, Limit, Rule};

use crate::support::process::Process;
use crate::support::world::World;

/// Calls a second: few enough for a machine that has other work to do. `PACELINE_RATE=200` asks for more.
fn rate() -> u32 {
    std::env::var("PACELINE_RATE").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Burst 20, with room for calls that are late by up to 13 of its intervals: the plan keeps its full
/// rate, and gives up most of its burst instead.
fn quota() -> String {
    let interval = 1000 / rate();
    format!(
        "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"{}/s\"\nburst = 20\ncounted = \"bucket\"\n\
         slack = \"{}ms\"\npath_jitter = \"{}ms\"\n",
        rate(),
        5 * interval,
        8 * interval
    )
}

fn strict() -> Config {
    let (units, per) = (rate().into(), Duration::from_secs(1));
    Config::new().rule(Rule::new("plan", Limit::Bucket { units, per, burst: 20 }))
}

/// Runs so many processes over one load, and holds what they did against the upstream's book.
fn share(processes: usize) {
    let jobs = usize::try_from(3 * rate()).unwrap() + 20;
    let world = World::with(strict(), &quota());
    world.add(0, jobs);
    let runs: Vec<Process> = (0..processes).map(|_| world.start(&["run"])).collect();
    for run in runs {
        let ran = run.finish();
        assert_eq!(ran.code, 0, "{ran}");
    }
    let stats = world.stats();
    // The plan's own burst is what 13 intervals of lateness leave of 20: 6.
    let ideal = (jobs as f64 - 6.0) / f64::from(rate());
    let used = ideal / stats.span_s;
    let forfeited = world.number("SELECT call_seq FROM store") - i64::try_from(jobs).unwrap();
    println!(
        "{processes} processes: {:.1} % of the plan, {forfeited} slots forfeited",
        used * 100.0
    );
    assert_eq!((stats.count, stats.refused), (jobs as u64, 0));
    let plan = stats.rule("plan").unwrap();
    assert!(plan.excess_offered <= 0.0, "{plan:?}");
    assert_eq!(world.jobs(), [("done".to_owned(), jobs as u64)].into());
    world.nothing_is_left_over();
    assert!(used >= 0.9, "{processes} processes used {:.1} % of the plan", used * 100.0);
}

#[test]
fn one_process_keeps_the_rate_and_uses_it() {
    share(1);
}

#[test]
fn two_processes_share_one_rate() {
    share(2);
}

#[test]
fn four_processes_share_one_rate() {
    share(4);
}

#[test]
fn a_process_that_was_stopped_fires_nothing_it_missed() {
    let text = r#"
[[limit]]
name = "plan"
kind = "rate"
rate = "50/s"
burst = 10
counted = "bucket"
slack = "25ms"
path_jitter = "60ms"
"#;
    let second = Duration::from_secs(1);
    let rule = Rule::new("plan", Limit::Bucket { units: 50, per: second, burst: 10 });
    let world = World::with(Config::new().rule(rule), text);
    world.add(0, 150);
    let run = world.start(&["run"]);
    crate::support::process::until("40 arrivals", || world.count() >= 40);
    world.stop(&run);
    std::thread::sleep(Duration::from_secs(3));
    let stopped_at = world.count();
    run.signal("CONT");
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    let stats = world.stats();
    let plan = stats.rule("plan").unwrap();
    assert!(stopped_at < 140, "it had nothing left to miss");
    assert_eq!((stats.count, stats.refused), (150, 0), "{plan:?}");
    assert!(plan.excess_offered <= 0.0, "{plan:?}");
    assert_eq!(world.jobs(), [("done".to_owned(), 150)].into());
}
