//! An upstream that has less than it declares refuses few; and when it has all again, all is used.

use std::time::Duration;

use paceline::practice::{Config, Limit, RetryAfter, Rule};

use crate::support::world::World;

const DECLARED: f64 = 40.0;

/// The pace that `status` tells, in calls a second.
fn pace(world: &World) -> f64 {
    world.json(&["status"])["upstreams"][0]["limits"][0]["effective_rate"].as_f64().unwrap()
}

#[test]
fn a_stricter_upstream_refuses_few_and_is_used_again_when_it_relents() {
    let strict = Limit::Bucket { units: 20, per: Duration::from_secs(1), burst: 4 };
    let config = Config::new().rule(Rule::new("strict", strict).on("/strict/*"));
    let world = World::new(config.retry_after(RetryAfter::None));
    let plan = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"40/s\"\nburst = 4\n\
        counted = \"bucket\"\n[retry]\ninitial = \"200ms\"\n";
    world.quota("shop", "/{path}/{id}", plan);
    world.add_to("shop", 0, 150, &["--set", "path=strict"]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let stats = world.stats();
    println!("{} of {} refused in {:.1} s", stats.refused, stats.count, stats.span_s);
    assert!(stats.refused > 0, "it was faster than it may be");
    assert!(stats.refused * 10 < stats.count, "{} of {} refused", stats.refused, stats.count);
    let slowed = pace(&world);
    assert!(slowed <= DECLARED * 0.7, "{slowed} a second after refusals");
    for command in [&["status"][..], &["why", "shop"]] {
        let told = world.run(command).stdout;
        assert!(told.contains(" a second after refusals"), "{told}");
        assert!(told.contains("full pace again in "), "{told}");
    }

    // What is not on that path is not refused any more.
    let before = world.count();
    world.add_to("shop", 1_000, 300, &["--set", "path=kind"]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.stats().refused, stats.refused);
    let sent: Vec<_> =
        world.arrivals().into_iter().skip(before).map(|arrival| arrival.at).collect();
    let seconds = |part: &[_]| -> f64 {
        let span = |part: &[paceline::clock::Timestamp]| part[part.len() - 1].since(part[0]);
        span(part).as_secs_f64()
    };
    let (first, last) = (seconds(&sent[..50]), seconds(&sent[250..]));
    println!("50 calls took {first:.2} s, then {last:.2} s");
    assert!(last < first * 0.9, "it climbed: {first:.2} s, then {last:.2} s");
    assert!(pace(&world) > slowed);
}
