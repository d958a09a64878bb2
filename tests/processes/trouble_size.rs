//! Answers that are too large, or become so once unpacked: bounded in memory and on the disk.

use std::time::{Duration, Instant};

use paceline::practice::{Answer, Config, Manner, Script};

use crate::support::trouble::Trouble;
use crate::support::world::World;

/// A hundred answers of that manner at once, kept as far as the file says.
fn endure(status: u16, manner: Manner) -> Trouble {
    let config = Config::new().script(Script::new("/sick/*", Answer::new(status).manner(manner)));
    let trouble = Trouble::new(config, "[keep]\nbody = \"all\"\n", 100);
    let begun = Instant::now();
    let ran = trouble.run(&["run"]);
    println!("took {:?}", begun.elapsed());
    assert_eq!(ran.code, if status == 200 { 0 } else { 3 }, "{ran}");
    assert_eq!(trouble.calls(), 100);
    trouble.nobody_noticed(Duration::from_secs(5));
    let body = trouble.world.json(&["show", "1"])["attempts"][0]["body"].clone();
    assert_eq!(body.as_str().unwrap().len(), 64 * 1024);
    assert!(trouble.world.number("SELECT max(length(bytes)) FROM body") < 1024, "it is packed");
    assert_eq!(trouble.world.number("SELECT count(*) FROM body WHERE cut = 1"), 100);
    trouble
}

#[test]
fn error_pages_of_five_megabytes_cost_no_memory() {
    let trouble = endure(404, Manner::Huge(5 << 20));
    let attempt = &trouble.world.json(&["show", "1"])["attempts"][0];
    assert_eq!((&attempt["reason"], &attempt["body_cut"]), (&"not_found".into(), &true.into()));
}

#[test]
fn bodies_that_unpack_to_a_gigabyte_are_read_to_the_cap_only() {
    // Read to their ends these would be 10 GiB.
    let trouble = endure(200, Manner::Bomb(1 << 30));
    let body = trouble.world.json(&["show", "1"])["attempts"][0]["body"].clone();
    assert!(body.as_str().unwrap().starts_with("xxxx"), "it was unpacked");
}

#[test]
fn an_answer_that_is_too_long_for_its_fields_says_so() {
    let long = format!("{{\"stock\": 3, \"more\": \"{}\"}}", "x".repeat(300 * 1024));
    let config = Config::new().script(Script::new("/0", Answer::new(200).body(long)));
    let world = World::with(config, "[results]\nfields = { stock = \"/stock\"  }\n");
    world.add(0, 2);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let job = world.json(&["show", "1"]);
    assert!(job["detail"].as_str().unwrap().contains("no fields were taken"), "{job}");
    assert_eq!(job["fields"], serde_json::json!({}));
}

#[test]
fn refusals_that_unpack_to_a_gigabyte_are_read_all_the_same() {
    endure(404, Manner::Bomb(1 << 30));
}
