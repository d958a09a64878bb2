//! Upstreams that take their time: no answer, in drops, cut off. Each is given up at the timeout.

use std::time::{Duration, Instant};

use paceline::practice::{Answer, Config, Manner, Script};
use serde_json::Value;

use crate::support::process::until;
use crate::support::trouble::Trouble;
use crate::support::world::World;

const TIMEOUT: Duration = Duration::from_secs(2);

const JOBS: usize = 8;

const PATIENT: &str = "timeout = \"2s\"\n[retry]\nmax_attempts = 2\ninitial = \"20ms\"\n";

fn attempts(world: &World, job: &str) -> Vec<Value> {
    world.json(&["show", job])["attempts"].as_array().unwrap().clone()
}

/// Eight jobs of a partition in trouble of this manner, tried twice each: while nothing was ever answered,
/// four are out at a time.
fn endure(manner: Manner, at_most: Duration) -> Trouble {
    let answer = Answer::new(200).body("drop by drop by drop").manner(manner);
    let config = Config::new().script(Script::new("/sick/*", answer));
    let trouble = Trouble::new(config, PATIENT, JOBS);
    let begun = Instant::now();
    let ran = trouble.run(&["run"]);
    assert!(begun.elapsed() < at_most, "{:?}", begun.elapsed());
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(trouble.calls(), JOBS * 2);
    let jobs = [("done".to_owned(), 40), ("failed".to_owned(), JOBS as u64)];
    assert_eq!(trouble.world.jobs(), jobs.into());
    trouble.nobody_noticed(TIMEOUT);
    trouble
}

#[test]
fn who_never_answers_is_given_up_at_the_timeout() {
    let trouble = endure(Manner::Hang, TIMEOUT * 7);
    let attempts = attempts(&trouble.world, "1");
    assert!(attempts[0]["detail"].as_str().unwrap().contains("no whole answer within 2 s"));
}

#[test]
fn who_answers_in_drops_is_given_up_at_the_timeout() {
    // Each drop comes in time; the timeout is for all of them.
    let trouble = endure(Manner::Drip(TIMEOUT / 4), TIMEOUT * 7);
    let attempts = attempts(&trouble.world, "1");
    assert!(attempts[0]["detail"].as_str().unwrap().contains("no whole answer within 2 s"));
}

#[test]
fn however_many_are_never_answered_the_well_ones_go_on() {
    let config =
        Config::new().script(Script::new("/sick/*", Answer::new(200).manner(Manner::Hang)));
    let trouble = Trouble::new(config, PATIENT, 200);
    trouble.world.add_to("shop", 100, 300, &["--set", "site=well"]);
    let mut run = trouble.world.start(&["run"]);
    let came =
        || trouble.world.arrivals().into_iter().filter(|call| call.path.starts_with("/well/"));
    until("the well ones are sent", || came().count() == 320);
    run.kill();
    let (first, last) = (came().next().unwrap().wall, came().last().unwrap().wall);
    assert!(last.since(first) < TIMEOUT, "they took {:?}", last.since(first));
}

#[test]
fn an_answer_that_is_cut_is_no_answer() {
    endure(Manner::Cut, TIMEOUT * 4);
}

#[test]
fn an_answer_that_is_cut_is_tried_again() {
    let cut = Answer::new(200).body("half of this").manner(Manner::Cut);
    let text = "[retry]\ninitial = \"20ms\"\n";
    let world = World::with(Config::new().script(Script::new("/0", cut).times(2)), text);
    world.add(0, 1);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.count()), (0, 3), "{ran}");
    let attempts = attempts(&world, "1");
    assert_eq!(attempts[0]["reason"], "transient", "{attempts:?}");
    assert_eq!(attempts[2]["reason"], "ok", "{attempts:?}");
}

#[test]
fn an_unrepeatable_call_without_an_answer_is_unsure_and_not_sent_again() {
    let config = Config::new()
        .script(Script::new("/0", Answer::new(200).manner(Manner::Hang)))
        .script(Script::new("/1", Answer::new(200).body("half of this").manner(Manner::Cut)));
    let text = "method = \"POST\"\nbody = 'x'\ntimeout = \"300ms\"\n";
    let world = World::with(config, text);
    world.add(0, 3);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.count()), (3, 3), "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 1), ("unsure".to_owned(), 2)].into());
    let unsure = world.json(&["jobs", "--state", "unsure"]);
    let why = world.run(&["why", &unsure[0]["id"].to_string()]);
    assert!(why.stdout.contains("unsure since ") && why.stdout.contains("(transient: "), "{why}");
    assert!(why.stdout.contains(" --as done`, `--as failed`, or `--as queued`"), "{why}");
    assert!(ran.stderr.contains("`paceline resolve` ends it"), "{ran}");
}

#[test]
fn an_answer_that_came_while_the_process_was_stopped_is_read() {
    let late = Answer::new(200).delay(Duration::from_millis(600));
    let text = "method = \"POST\"\nbody = 'x'\ntimeout = \"1500ms\"\n";
    let world = World::with(Config::new().script(Script::new("*", late)), text);
    world.add(0, 1);
    let run = world.start(&["run"]);
    until("it arrived", || world.count() == 1);
    world.stop(&run);
    // Beyond the timeout.
    std::thread::sleep(Duration::from_millis(2500));
    run.signal("CONT");
    let ran = run.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 1)].into());
}
