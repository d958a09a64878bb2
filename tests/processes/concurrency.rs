//! Promise 1, of calls in flight: what is leased anywhere counts.

use std::time::Duration;

use paceline::practice::{Config, Limit, Rule};

use crate::support::world::World;

#[test]
fn two_processes_never_have_five_in_flight_where_four_may_be() {
    let config = Config::new()
        .rule(Rule::new("places", Limit::InFlight { amount: 4 }))
        .latency(Duration::from_millis(150));
    let text = "[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = 4\n";
    let world = World::with(config, text);
    world.add(0, 60);
    let runs = [world.start(&["run"]), world.start(&["run"])];
    for run in runs {
        let ran = run.finish();
        assert_eq!(ran.code, 0, "{ran}");
    }
    let stats = world.stats();
    println!("60 calls of 150 ms, 4 at once: {:.2} s, at best 2.25 s", stats.span_s + 0.15);
    assert_eq!((stats.count, stats.refused), (60, 0));
    assert_eq!(stats.max_in_flight, 4);
    assert_eq!(world.jobs(), [("done".to_owned(), 60)].into());
    world.nothing_is_left_over();
}
