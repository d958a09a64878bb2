//! Upstreams that refuse or fail for ever: few calls, with growing gaps, and nobody else is touched.

use std::time::{Duration, Instant};

use paceline::practice::{Answer, Config, Manner, Script};

use crate::support::process::until;
use crate::support::trouble::{IN_FLIGHT, Trouble, is_small};
use crate::support::world::{STORE, World};

/// Calls of a fresh partition, and what may still be under way when it is closed.
const HANDFUL: usize = IN_FLIGHT + 6;

const SHORT: &str = "[retry]\nmax_attempts = 3\ninitial = \"20ms\"\nmax_interval = \"10s\"\n";

fn sick(answer: Answer) -> Config {
    Config::new().script(Script::new("/sick/*", answer))
}

/// A thousand jobs of which each is refused, until the seventh refusal in a row.
fn refused_for_ever(answer: Answer) {
    let trouble = Trouble::new(sick(answer), SHORT, 1000);
    let world = &trouble.world;
    let run = world.start(&["run"]);
    let refusals = || world.number("SELECT coalesce(max(refusals), 0) FROM limit_instance");
    until("seven refusals", || world.home.path(STORE).exists() && refusals() >= 7);
    is_small(run.peak().unwrap());
    run.signal("TERM");
    let ran = run.finish();
    assert_eq!(ran.code, 130, "{ran}");
    trouble.nobody_noticed(Duration::from_secs(4));
    assert_eq!(world.jobs(), [("done".to_owned(), 40), ("queued".to_owned(), 1000)].into());
    assert_eq!(world.number("SELECT sum(failures) FROM job"), 0, "being told to wait is none");
    let (calls, refusals) = (trouble.calls(), refusals());
    println!("{calls} calls, {refusals} refusals in a row");
    assert!(calls <= HANDFUL + 7, "{calls} calls");
    let block =
        "SELECT (blocked_until - blocked_at) / 1000000 FROM limit_instance WHERE refusals > 0";
    // 20 ms, 40, 80 ...
    let least = 20 << (refusals - 1);
    assert!(world.number(block) >= least, "closed for {} ms", world.number(block));
    // The last probe kept to the block before its own refusal.
    let arrivals = trouble.sick();
    let [.., before, last] = &arrivals[..] else { panic!("{calls} calls") };
    let gap = last.wall.since(before.wall).as_millis() as i64;
    assert!(gap >= least / 2 - 10, "{gap} ms");
}

#[test]
fn retry_after_zero_for_ever_is_a_few_calls_with_growing_gaps() {
    refused_for_ever(Answer::new(429).header("retry-after", "0"));
}

#[test]
fn a_429_without_a_hint_for_ever_is_a_few_calls_with_growing_gaps() {
    refused_for_ever(Answer::new(429).body("slow down"));
}

#[test]
fn ten_thousand_jobs_that_meet_the_same_403_are_held_after_a_handful_of_calls() {
    let trouble = Trouble::new(sick(Answer::new(403).body("not with this key")), SHORT, 10_000);
    let begun = Instant::now();
    let ran = trouble.run(&["run"]);
    println!("took {:?}", begun.elapsed());
    assert_eq!(ran.code, 4, "{ran}");
    assert!(trouble.calls() <= HANDFUL, "{}", trouble.calls());
    trouble.nobody_noticed(Duration::from_secs(5));
    let world = &trouble.world;
    assert_eq!(world.jobs(), [("done".to_owned(), 40), ("queued".to_owned(), 10_000)].into());
    let why = world.json(&["why", "shop"]);
    assert_eq!(
        (&why[0]["state"], &why[0]["reason"]),
        (&"held".into(), &"forbidden".into()),
        "{why}"
    );
    assert!(why[0]["detail"].as_str().unwrap().contains("not with this key"), "{why}");
}

#[test]
fn a_paced_partition_that_meets_403_is_held_after_two_and_what_was_ahead() {
    let pace = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"50ms\"\n";
    let world = World::with(Config::new().script(Script::new("*", Answer::new(403))), pace);
    world.add(0, 300);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    // Two in a row hold it; what has a slot within the next quarter of a second may be on its way.
    assert!(world.count() <= 8, "{}", world.count());
}

#[test]
fn an_upstream_that_fails_for_ever_fails_its_jobs_after_their_attempts() {
    let trouble = Trouble::new(sick(Answer::new(500)), SHORT, 100);
    let ran = trouble.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(trouble.calls(), 300);
    assert_eq!(trouble.world.jobs(), [("done".to_owned(), 40), ("failed".to_owned(), 100)].into());
    trouble.nobody_noticed(Duration::from_secs(4));
}

#[test]
fn a_poisoned_job_at_the_head_stops_no_other() {
    for status in [404, 403] {
        let config = Config::new().script(Script::new("/0", Answer::new(status)));
        let world = World::with(config, SHORT);
        world.add(0, 20);
        let ran = world.run(&["run"]);
        assert_eq!(ran.code, 3, "{ran}");
        assert_eq!(world.jobs(), [("done".to_owned(), 19), ("failed".to_owned(), 1)].into());
        assert!(world.count() <= 21, "{}", world.count());
    }
}

#[test]
fn a_refusal_that_breaks_off_is_one() {
    let refusal = |status: u16| Answer::new(status).header("retry-after", "1").body("slow down");
    for manner in [Manner::Cut, Manner::Drip(Duration::from_secs(5))] {
        let config = Config::new()
            .script(Script::new("/0", refusal(429).manner(manner)).times(1))
            .script(Script::new("/1", refusal(503).manner(manner)).times(1));
        // Not to be sent twice on a guess: that it was refused is no guess.
        let world = World::with(config, "method = \"POST\"\nbody = 'x'\ntimeout = \"500ms\"\n");
        world.add(0, 2);
        let ran = world.run(&["run"]);
        assert_eq!((ran.code, world.count()), (0, 4), "{ran}");
        for (job, reason) in [("1", "rate_limited"), ("2", "overloaded")] {
            let first = &world.json(&["show", job])["attempts"][0];
            assert_eq!(first["reason"], reason, "{first}");
            assert!(!first["hint_at"].is_null() && !first["status"].is_null(), "{first}");
            assert!(first["detail"].as_str().unwrap().contains("it broke off"), "{first}");
        }
        let arrivals = world.arrivals();
        let early = arrivals[2].wall.since(arrivals[0].wall) < Duration::from_secs(1);
        assert!(!early, "the hint is kept to");
    }
}
