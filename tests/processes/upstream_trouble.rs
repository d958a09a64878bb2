//! Upstreams in trouble: each kind is bounded in calls and in memory, and nobody else notices.

use std::time::Duration;

use paceline::practice::{Answer, Config, Manner, Script};
use serde_json::Value;

use crate::support::process::until;
use crate::support::world::World;

const SMALL: &str = r#"
[retry]
max_attempts = 3
initial = "20ms"
max_interval = "60ms"
"#;

fn attempts(world: &World, job: &str) -> Vec<Value> {
    world.json(&["show", job])["attempts"].as_array().unwrap().clone()
}

#[test]
fn a_refused_connection_gives_its_unit_back_and_counts_as_a_failure() {
    let world = World::new(Config::new());
    let daily = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 50\nper = \"day\"\ntime_zone = \"UTC\"\n";
    world
        .home
        .quota("gone", &format!("[request]\nurl = \"http://127.0.0.1:1/{{id}}\"\n{SMALL}{daily}"));
    world.add_to("gone", 0, 2, &[]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.jobs(), [("failed".to_owned(), 2)].into());
    assert_eq!(world.spent(), 0, "it never left");
    let attempts = attempts(&world, "1");
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    assert!(attempts.iter().all(|one| one["reason"] == "transient" && one["status"].is_null()));
    let text = attempts[0]["detail"].as_str().unwrap();
    assert!(text.to_lowercase().contains("refused"), "{text}");
}

#[test]
fn an_upstream_that_never_answers_is_given_up_after_the_timeout() {
    let config = Config::new().script(Script::new("*", Answer::new(200).manner(Manner::Hang)));
    let world = World::with(config, &format!("timeout = \"300ms\"\n{SMALL}"));
    world.add(0, 2);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!((world.count(), world.jobs()), (6, [("failed".to_owned(), 2)].into()));
    let attempts = attempts(&world, "1");
    assert!(attempts[0]["detail"].as_str().unwrap().contains("0.3 s"), "{attempts:?}");
}

#[test]
fn an_unrepeatable_call_without_an_answer_is_unsure_and_not_sent_again() {
    let config = Config::new()
        .script(Script::new("/0", Answer::new(200).manner(Manner::Hang)))
        .script(Script::new("/1", Answer::new(200).body("half of this").manner(Manner::Cut)));
    let text = format!("method = \"POST\"\nbody = 'x'\ntimeout = \"300ms\"\n{SMALL}");
    let world = World::with(config, &text);
    world.add(0, 3);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.count(), 3);
    assert_eq!(world.jobs(), [("done".to_owned(), 1), ("unsure".to_owned(), 2)].into());
    let unsure = world.json(&["jobs", "--state", "unsure"]);
    let why = world.run(&["why", &unsure[0]["id"].to_string()]);
    assert!(why.stdout.contains("unsure since ") && why.stdout.contains("(transient: "), "{why}");
    assert!(why.stdout.contains(" --as done`, `--as failed`, or `--as queued`"), "{why}");
    assert!(ran.stderr.contains("`paceline resolve` ends it"), "{ran}");
}

#[test]
fn an_answer_that_is_cut_is_no_answer_and_is_tried_again() {
    let cut = Answer::new(200).body("half of this").manner(Manner::Cut);
    let world = World::with(Config::new().script(Script::new("/0", cut).times(2)), SMALL);
    world.add(0, 1);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.count(), 3);
    let attempts = attempts(&world, "1");
    assert_eq!(attempts[0]["reason"], "transient", "{attempts:?}");
    assert_eq!(attempts[2]["reason"], "ok", "{attempts:?}");
}

#[test]
fn an_answer_in_drops_is_given_up_at_the_timeout() {
    let slow =
        Answer::new(200).body("drop by drop by drop").manner(Manner::Drip(Duration::from_secs(1)));
    let text = "timeout = \"500ms\"\n[retry]\nmax_attempts = 1\n";
    let world = World::with(Config::new().script(Script::new("*", slow)), text);
    world.add(0, 1);
    let begun = std::time::Instant::now();
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.count(), 1);
    println!("given up after {:?}", begun.elapsed());
}

#[test]
fn a_huge_error_page_costs_no_memory_and_little_of_the_disk() {
    let huge = Answer::new(404).manner(Manner::Huge(5 << 20));
    let world = World::with(Config::new().script(Script::new("/0*", huge)), SMALL);
    // The same program, the same way, without the page: what that takes is the floor.
    world.add(100, 1);
    let floor = peak(&world);
    world.home.write("huge.csv", "id\n01\n02\n03\n04\n05\n06\n07\n08\n");
    let ran = world.run(&["add", "shop", "--csv", "huge.csv"]);
    assert_eq!(ran.code, 0, "{ran}");
    let peak = peak(&world);
    println!("peak memory: {floor} KiB without, {peak} KiB with eight pages of 5 MiB at once");
    assert!(peak - floor < 50 * 1024, "{floor} KiB grew to {peak} KiB");
    assert_eq!(world.jobs(), [("done".to_owned(), 1), ("failed".to_owned(), 8)].into());
    let kept = world.number("SELECT max(length(bytes)) FROM body");
    assert_eq!(kept, 64 * 1024);
    assert_eq!(attempts(&world, "2")[0]["body_cut"], true);
}

/// The most memory that a run took, in KiB. It stays for more, so that it can be asked.
fn peak(world: &World) -> i64 {
    let run = world.start(&["run", "--follow"]);
    until("all done", || world.jobs().keys().all(|state| state == "done" || state == "failed"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    run.signal("TERM");
    run.finish();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn what_no_job_can_get_past_holds_the_partition_after_a_handful_of_calls() {
    let forbidden = Script::new("/shop/*", Answer::new(403).body("not with this key"));
    let world = World::new(Config::new().latency(Duration::from_millis(5)).script(forbidden));
    let pace = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"50ms\"\n";
    world.quota("shop", "/shop/{id}", pace);
    world.quota("other", "/other/{id}", "");
    world.add_to("shop", 0, 300, &[]);
    world.add_to("other", 0, 20, &[]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    let came = |path: &str| world.arrivals().iter().filter(|a| a.path.starts_with(path)).count();
    println!("calls before the hold: {}", came("/shop/"));
    // Two in a row hold it; what has a slot within the next quarter of a second may be on its way.
    assert!(came("/shop/") <= 8, "{}", came("/shop/"));
    assert_eq!(came("/other/"), 20);
    assert_eq!(world.jobs(), [("done".to_owned(), 20), ("queued".to_owned(), 300)].into());
    let why = world.json(&["why", "shop"]);
    assert_eq!(
        (why[0]["state"].as_str(), why[0]["reason"].as_str()),
        (Some("held"), Some("forbidden")),
        "{why}"
    );
    assert!(why[0]["detail"].as_str().unwrap().contains("not with this key"), "{why}");
}

#[test]
fn an_upstream_that_fails_for_ever_fails_its_jobs_after_their_attempts() {
    let world = World::with(Config::new().script(Script::new("*", Answer::new(500))), SMALL);
    world.add(0, 4);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!((world.count(), world.jobs()), (12, [("failed".to_owned(), 4)].into()));
    assert_eq!(world.number("SELECT max(attempts) FROM job"), 3);
}

#[test]
fn a_poisoned_job_at_the_head_stops_no_other() {
    let world = World::with(Config::new().script(Script::new("/0", Answer::new(404))), SMALL);
    world.add(0, 20);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.count(), 20);
    assert_eq!(world.jobs(), [("done".to_owned(), 19), ("failed".to_owned(), 1)].into());
}
