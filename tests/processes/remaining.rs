//! What the upstream says is left: however many share it, none is refused, and all of it is used.

use paceline::practice::{Answer, Config, Limit, Rule, Script};

use crate::support::process::Process;
use crate::support::world::World;

/// Declared is more than the upstream grants.
const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 60\nper = \"day\"\ntime_zone = \"UTC\"\n";

/// Twenty-five a day on the paths of jobs: others have used the rest.
fn strict() -> Config {
    let limit = Limit::Day { amount: 40, zone: chrono_tz::UTC, used: 15 };
    Config::new().rule(Rule::new("day", limit).on("/j/*"))
}

fn all_is_used_and_nothing_refused(world: &World) {
    let stats = world.stats();
    let jobs = world.by_path().iter().filter(|(path, _)| path.starts_with("/j/")).count();
    assert_eq!((jobs, stats.refused), (25, 0));
    assert_eq!(world.jobs(), [("done".to_owned(), 25), ("queued".to_owned(), 15)].into());
    world.nothing_is_left_over();
}

#[test]
fn several_processes_keep_to_what_answers_tell() {
    let mut config = strict();
    for nth in 1..=25 {
        let left = (25 - nth).to_string();
        let answer = Answer::new(200).header("x-left", left).body("{}");
        config = config.script(Script::new("/j/*", answer).from(nth).times(1));
    }
    let world = World::new(config);
    let limits = format!("{DAILY}reported = {{ header = \"X-Left\" }}\n");
    world.quota("shop", "/j/{id}", &limits);
    world.add(0, 40);
    // The first answers tell; what is claimed before they came is no more than four calls a process.
    let runs: Vec<Process> = (0..3).map(|_| world.start(&["run", "--max-wait", "1s"])).collect();
    for run in runs {
        let ran = run.finish();
        assert_eq!(ran.code, 75, "{ran}");
    }
    all_is_used_and_nothing_refused(&world);
    let status = world.json(&["status"]);
    let limit = &status["upstreams"][0]["limits"][0];
    assert_eq!((limit["spent"].as_u64(), limit["remaining"].as_u64()), (Some(25), Some(0)));
    let why = world.run(&["why", "shop"]).stdout;
    assert!(why.contains("the upstream says 0 are left (we count 25 of 60)"), "{why}");
    let budget = world.run(&["budget"]).stdout;
    assert!(budget.contains("REPORTED LEFT") && budget.contains("25"), "{budget}");
}

#[test]
fn it_is_asked_once_for_all_processes() {
    let left = Answer::new(200).body(r#"{"d": {"left": 25}}"#);
    let world = World::new(strict().script(Script::new("/left", left)));
    let asked = format!(
        "{DAILY}[quota_call]\nurl = \"{}\"\nlimit = \"daily\"\nremaining = \"/d/left\"\n",
        world.url("/left?key=${env:SHOP_KEY}")
    );
    world.quota("shop", "/j/{id}", &asked);
    world.add(0, 40);
    let start = || world.start_with(&["run", "--max-wait", "1s"], &[("SHOP_KEY", "s3cr3t-key")]);
    let runs: Vec<Process> = (0..3).map(|_| start()).collect();
    let mut told = 0;
    for run in runs {
        let ran = run.finish();
        assert_eq!(ran.code, 75, "{ran}");
        told += ran.stderr.matches("the upstream says 25 are left").count();
        assert!(!ran.stderr.contains("s3cr3t"), "{ran}");
    }
    assert_eq!((told, world.by_path()["/left"]), (1, 1), "one of them asked");
    all_is_used_and_nothing_refused(&world);
    let arrivals = world.arrivals();
    assert_eq!(arrivals[0].path, "/left", "before the first job");
    assert_eq!(arrivals[0].query.as_deref(), Some("key=s3cr3t-key"));
}

#[test]
fn a_question_that_fails_blocks_nobody() {
    let sick = Answer::new(403).body(r#"{"message": "you may not know s3cr3t-key"}"#);
    let world = World::new(Config::new().script(Script::new("/left", sick)));
    let asked = format!(
        "{DAILY}[quota_call]\nurl = \"{}\"\nlimit = \"daily\"\nremaining = \"/left\"\n",
        world.url("/left?key=${env:SHOP_KEY}")
    );
    world.quota("shop", "/j/{id}", &asked);
    world.add(0, 30);
    let ran = world.start_with(&["run"], &[("SHOP_KEY", "s3cr3t-key")]).finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(
        ran.stderr.contains("the upstream does not say what is left, our own count stands"),
        "{ran}"
    );
    assert!(!ran.stderr.contains("s3cr3t"), "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 30)].into());
    assert_eq!(world.by_path()["/left"], 1);
    world.nothing_is_left_over();
}
