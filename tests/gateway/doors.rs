//! Two copies of a script that knows nothing of quotas, a `run` and an `exec`: four doors, one store, and
//! no limit exceeded, as measured at the upstream.

use std::time::Duration;

use chrono_tz::Tz;
use paceline::practice::{Config, Limit, Rule};

use crate::support::gateway::Gateway;
use crate::support::process::Process;
use crate::support::world::World;

const QUOTA: &str = "repeatable = true\n\
    [[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"5/s\"\npath_jitter = \"300ms\"\n\
    [[limit]]\nname = \"minute\"\nkind = \"rate\"\nrate = \"60/min\"\nburst = 10\npath_jitter = \"300ms\"\n\
    [[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 11\nper = \"day\"\ntime_zone = \"Asia/Kathmandu\"\n";

#[test]
fn all_doors_share_one_quota() {
    let per = Duration::from_secs;
    let config = Config::new()
        .rule(Rule::new("plan", Limit::Rolling { amount: 5, per: per(1) }))
        .rule(Rule::new("minute", Limit::Rolling { amount: 60, per: per(60) }))
        .rule(Rule::new("daily", Limit::day(11, Tz::Asia__Kathmandu)));
    let world = World::with(config, QUOTA);
    world.add(0, 20);
    let gateway = Gateway::start(&world, &[]);
    let script = |first: u32| {
        let mut command = world.home.command("python3");
        command.arg("examples/within_quota.py").env("PACELINE_GATEWAY", &gateway.url);
        command.args((first..first + 8).map(|n| n.to_string()));
        Process::start(command)
    };
    let scripts = [script(100), script(200)];
    let run = world.start(&["run", "--max-wait", "30s"]);
    let url = world.url("/exec");
    let call = format!("import urllib.request; print(urllib.request.urlopen('{url}').status)");
    let exec = ["exec", "shop", "--max-wait", "30s", "--", "python3", "-c", &call];
    let exec: Vec<i32> = (0..4).map(|_| world.run(&exec).code).collect();
    let ran: Vec<_> = scripts.into_iter().map(Process::finish).collect();
    let run = run.finish();
    let stats = world.stats();
    assert_eq!(
        (stats.ok, stats.refused),
        (11, 0),
        "{stats:?}\n{exec:?}\n{}\n{}\n{run}",
        ran[0],
        ran[1]
    );
    // Eleven are less than any two of them want: each is told to come back tomorrow.
    assert_eq!(run.code, 75, "{run}");
    assert!(exec.iter().all(|code| [0, 75].contains(code)), "{exec:?}");
    for script in &ran {
        assert_eq!(script.code, 1, "{script}");
        assert!(script.stderr.contains("\"limit\": \"daily\""), "{script}");
    }
}
