//! Connections: an upstream of many copies, each of which counts by itself, behind a balancer.

use std::time::Duration;

use paceline::practice::{Answer, Config, Limit, Rule, Script, Stats};

use crate::support::world::World;

/// 48 copies, each allowing one call in half a second; a plan of twenty a second.
fn distributor(connections: &str, copies: usize) -> World {
    let limit = Limit::Bucket { units: 1, per: Duration::from_millis(500), burst: 1 };
    let config = Config::new().rule(Rule::new("copy", limit).by_copy(copies));
    let text = format!(
        "{connections}\n[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\nburst = 20\n\
         counted = \"bucket\"\nslack = \"60ms\"\n[retry]\ninitial = \"200ms\"\nmax_interval = \"1s\"\n"
    );
    World::with(config, &text)
}

fn spread(stats: &Stats) -> u64 {
    stats.connections
}

#[test]
fn over_twelve_connections_nothing_is_refused() {
    let world = distributor("connections = 12", 48);
    world.add(0, 200);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let stats = world.stats();
    assert_eq!(stats.refused, 0, "{stats:?}");
    assert_eq!(spread(&stats), 12, "{stats:?}");
    let mut calls = std::collections::BTreeMap::<u16, u32>::new();
    for arrival in world.arrivals() {
        *calls.entry(arrival.connection).or_default() += 1;
    }
    assert!(calls.values().all(|calls| (16..=17).contains(calls)), "each in its turn: {calls:?}");
}

#[test]
fn over_one_connection_most_is_refused_and_told() {
    let world = distributor("connections = 1", 48);
    world.add(0, 200);
    let ran = world.run(&["run", "--for", "3s"]);
    assert_eq!(ran.code, 75, "{ran}");
    let refused = world.stats().refused;
    assert!(refused > 0, "{:?}", world.stats());
    let report = world.json(&["report", "shop"]);
    assert_eq!(report["refused"], refused, "{report}");
    assert_eq!(report["refused_inside_limit"], refused, "none was our fault: {report}");
    assert!(report["busiest"]["1s"].as_u64().unwrap() <= 24, "{report}");
    assert_eq!(report["by_connection"]["1"]["refused"], refused, "{report}");
    let told = world.run(&["report", "shop"]);
    assert!(told.stdout.contains("All went over one connection."), "{told}");
    assert!(told.stdout.contains("first refusal:"), "{told}");
}

#[test]
fn many_connections_make_it_no_faster() {
    let world = distributor("connections = 120", 48);
    world.add(0, 100);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let report = world.json(&["report", "shop"]);
    // One by one, whatever the burst: twenty, and what the slack lets come late.
    assert!(report["busiest"]["1s"].as_u64().unwrap() <= 22, "{report}");
    assert!(spread(&world.stats()) > 50);
}

#[test]
fn one_that_was_refused_is_given_up_for_another() {
    let refusal = Answer::new(429).header("retry-after-ms", "20");
    let config = Config::new().script(Script::new("*", refusal).from(3).times(1));
    let world = World::with(config, "connections = 1\n");
    world.add(0, 5);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let used: Vec<u16> = world.arrivals().iter().map(|arrival| arrival.connection).collect();
    assert_eq!(used.len(), 6, "{used:?}");
    assert!(used[..3].iter().all(|one| *one == used[0]), "{used:?}");
    assert!(used[3..].iter().all(|one| *one == used[3] && *one != used[0]), "{used:?}");
}
