//! Batches: many jobs in one call, each with an end of its own.

use std::collections::BTreeSet;

use paceline::practice::Config;

use crate::support::batches::{Batches, Taking};
use crate::support::world::World;

/// A world whose `shop` sends batches of at most `most` to that upstream.
fn world(upstream: &Batches, most: usize, more: &str) -> World {
    let world = World::new(Config::new());
    let text = format!(
        "[request]\nmethod = \"POST\"\nurl = \"{}\"\nrepeatable = true\n\
         [batch]\nmax_items = {most}\nbody = '{{\"urlList\": [\"{{items.url}}\"]}}'\n{more}",
        upstream.url
    );
    world.home.quota("shop", &text);
    world
}

fn urls(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("https://www.example.com/{n:05}")).collect()
}

fn add(world: &World, urls: &[String]) {
    world.home.write("urls.csv", &format!("url\n{}\n", urls.join("\n")));
    let added = world.run(&["add", "shop", "--csv", "urls.csv", "--load", "l"]);
    assert_eq!(added.code, 0, "{added}");
}

const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 200\nper = \"day\"\ntime_zone = \"UTC\"\ncost = \"items\"\n";

#[test]
fn twenty_five_thousand_addresses_go_in_three_calls() {
    let upstream = Batches::start(Taking::default());
    let world = world(&upstream, 10_000, "");
    let urls = urls(25_000);
    add(&world, &urls);
    let ran = world.run(&["run", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(upstream.sizes(200), [10_000, 10_000, 5_000]);
    assert_eq!(upstream.taken(), urls);
    assert!(ran.stdout.contains("\"sent\":3,"), "{ran}");
    assert!(ran.stdout.contains("\"done\":25000"), "{ran}");
    assert_eq!(world.json(&["status"])["jobs"]["done"], 25_000);
}

#[test]
fn what_is_left_of_a_budget_of_items_trims_a_batch() {
    let upstream = Batches::start(Taking::default());
    let world = world(&upstream, 150, DAILY);
    add(&world, &urls(500));
    let ran = world.run(&["run", "--max-wait", "1s", "--json"]);
    assert_eq!(ran.code, 75, "{ran}");
    assert_eq!(upstream.sizes(200), [150, 50]);
    let status = world.json(&["status"]);
    assert_eq!(status["upstreams"][0]["limits"][0]["spent"], 200, "{status}");
    assert_eq!(status["jobs"]["queued"], 300, "{status}");
}

#[test]
fn each_item_of_an_answer_settles_its_own_job() {
    let upstream = Batches::start(Taking { each: true, ..Taking::default() });
    let world = world(
        &upstream,
        100,
        "[batch.answer]\nitems = \"/results\"\nkey = { \"/url\" = \"url\" }\nstatus = \"/status\"\n\
         [results]\nfields = { n = \"/n\" }\n[retry]\ninitial = \"50ms\"\n",
    );
    let mut all = urls(20);
    all.extend([
        "https://www.example.com/x-gone".to_owned(),
        "https://www.example.com/y-busy".to_owned(),
    ]);
    add(&world, &all);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    let jobs = world.json(&["status"])["jobs"].clone();
    assert_eq!((&jobs["done"], &jobs["failed"]), (&21.into(), &1.into()), "{jobs}");
    assert_eq!(upstream.sizes(200), [22, 1], "only what was refused goes again");
    let gone = world.json(&["jobs", "--state", "failed"])[0].clone();
    assert_eq!(gone["url"], "https://www.example.com/x-gone", "{gone}");
    let attempts = world.json(&["show", &gone["id"].to_string()])["attempts"].clone();
    assert_eq!(
        (&attempts[0]["status"], &attempts[0]["reason"]),
        (&404.into(), &"not_found".into())
    );
    assert!(attempts[0]["body"].as_str().unwrap().contains("x-gone"), "{attempts}");
    let results = world.run(&["results", "--format", "csv", "--state", "done"]);
    assert!(results.stdout.contains("00007,") && results.stdout.contains(",29"), "{results}");
}

#[test]
fn too_many_at_a_time_is_found_out_and_loses_nothing() {
    let upstream = Batches::start(Taking { most: Some(100), ..Taking::default() });
    let world = world(&upstream, 1_000, "");
    let urls = urls(2_000);
    add(&world, &urls);
    let ran = world.run(&["run", "--verbose"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(upstream.taken(), urls, "each once");
    assert!(upstream.sizes(413).len() <= 30, "{:?}", upstream.sizes(413));
    assert!(upstream.sizes(200).len() <= 40, "{:?}", upstream.sizes(200));
    assert!(ran.stderr.contains("a batch of 1,000 jobs was refused"), "{ran}");
}

#[test]
fn one_bad_address_fails_alone() {
    let urls = urls(300);
    let bad = urls[123].clone();
    let upstream =
        Batches::start(Taking { bad: BTreeSet::from([bad.clone()]), ..Taking::default() });
    let world = world(&upstream, 300, "");
    add(&world, &urls);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    let failed = world.json(&["jobs", "--state", "failed"]);
    assert_eq!(failed.as_array().unwrap().len(), 1, "{failed}");
    assert_eq!(failed[0]["url"], bad.as_str());
    assert_eq!(upstream.taken().len(), 299);
    assert!(upstream.calls().len() <= 40, "{}", upstream.calls().len());
}

#[test]
fn a_killed_run_loses_no_job_of_a_batch() {
    let upstream = Batches::start(Taking::default());
    let world = world(&upstream, 50, "[[limit]]\nname = \"r\"\nkind = \"rate\"\nrate = \"20/s\"\n");
    let urls = urls(1_000);
    add(&world, &urls);
    let mut run = world.start(&["run"]);
    while upstream.calls().len() < 5 {
        std::thread::yield_now();
    }
    run.kill();
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let mut taken = upstream.taken();
    taken.dedup();
    assert_eq!(taken, urls);
    assert_eq!(world.json(&["status"])["jobs"]["done"], 1_000);
}

#[test]
fn hostile_values_arrive_as_they_are() {
    let upstream = Batches::start(Taking::default());
    let world = world(&upstream, 100, "");
    let odd = ["a\"b", "{items.url}", "{url}", "${env:HOME}", "100%", "ü😀", "a,b", "\\n"];
    let urls: Vec<String> =
        odd.iter().map(|odd| format!("https://www.example.com/{odd}")).collect();
    let rows: String =
        urls.iter().map(|url| format!("\"{}\"\n", url.replace('"', "\"\""))).collect();
    world.home.write("urls.csv", &format!("url\n{rows}"));
    let added = world.run(&["add", "shop", "--csv", "urls.csv"]);
    assert_eq!(added.code, 0, "{added}");
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let mut sorted = urls;
    sorted.sort();
    assert_eq!(upstream.taken(), sorted);
}

#[test]
fn a_batch_over_what_is_left_is_trimmed_to_it() {
    let reported = "reported = { body = 'Quota remaining for today: (?<remaining>[0-9]+)' }\n\
        [[reading]]\nwhen = { body = \"Quota remaining\" }\nreason = \"quota_exhausted\"\nlimit = \"daily\"\n";
    // Of the words alone the same is known, where there is one limit that they can be meant of.
    let accepted = "counts = \"accepted\"\n";
    for more in [reported, "", accepted] {
        let upstream = Batches::start(Taking { left: Some(10), ..Taking::default() });
        // Our own budget, too, is no more than the batch that is refused.
        let daily = DAILY.replace("200", "32");
        let world = world(&upstream, 100, &format!("{daily}{more}"));
        add(&world, &urls(64));
        let ran = world.run(&["run", "--max-wait", "1s"]);
        assert_eq!(ran.code, 75, "{more}: {ran}");
        assert_eq!(upstream.sizes(400), [32], "{more}: told once that ten are left");
        assert_eq!(upstream.sizes(200), [10], "{more}: and they go");
        let status = world.json(&["status"]);
        assert_eq!((&status["jobs"]["done"], &status["jobs"]["queued"]), (&10.into(), &54.into()));
        let daily = &status["upstreams"][0]["limits"][0];
        assert_eq!((&daily["remaining"], &daily["spent"]), (&0.into(), &10.into()), "{status}");
        let why = world.run(&["why", "shop"]);
        assert!(why.stdout.contains("daily"), "{why}");
    }
}

#[test]
fn a_batch_over_what_is_left_shows_no_reset() {
    let upstream = Batches::start(Taking { left: Some(10), ..Taking::default() });
    let daily = DAILY.replace("\"UTC\"", "\"unknown\"");
    let world = world(&upstream, 100, &daily);
    add(&world, &urls(32));
    let ran = world.run(&["run", "--max-wait", "1s"]);
    assert_eq!((ran.code, upstream.sizes(200)), (75, vec![10]), "{ran}");
    let why = world.run(&["why", "shop"]);
    let unseen = "nobody states when its day begins, and no answer has shown it yet";
    assert!(why.stdout.contains("daily") && why.stdout.contains(unseen), "{why}");
}

#[test]
fn a_resume_risks_one_address_before_it_sends_thousands() {
    let upstream = Batches::start(Taking { closed: 3, ..Taking::default() });
    let text = "[retry]\ninitial = \"50ms\"\n[[limit]]\nname = \"one\"\nkind = \"concurrency\"\namount = 1\n";
    let world = world(&upstream, 1_000, text);
    let urls = urls(2_500);
    add(&world, &urls);
    assert_eq!(world.run(&["run"]).code, 4, "held at the second refusal in a row");
    assert_eq!(upstream.sizes(403), [1_000, 1_000]);
    let resumed = world.run(&["resume", "shop"]);
    assert!(
        resumed.stdout.contains("where it was refused, one job goes before the rest"),
        "{resumed}"
    );
    assert_eq!(world.run(&["run"]).code, 4, "it is not mended");
    assert_eq!(upstream.sizes(403), [1_000, 1_000, 1]);
    assert_eq!(world.run(&["resume", "shop"]).code, 0);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let carried: Vec<usize> = upstream.calls()[3..].iter().map(|call| call.items.len()).collect();
    assert_eq!(carried, [1, 1_000, 1_000, 499], "whole again once one got through");
    assert_eq!(upstream.taken(), urls);
}

#[test]
fn a_long_answer_that_speaks_of_each_job_is_read_whole() {
    let upstream = Batches::start(Taking { each: true, ..Taking::default() });
    let world = world(
        &upstream,
        1_000,
        "[batch.answer]\nitems = \"/results\"\nkey = { \"/url\" = \"url\" }\nstatus = \"/status\"\n",
    );
    let long = "x".repeat(400);
    let urls: Vec<String> = urls(1_000).iter().map(|url| format!("{url}/{long}")).collect();
    add(&world, &urls);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(upstream.sizes(200), [1_000]);
    assert_eq!(world.json(&["status"])["jobs"]["done"], 1_000);
}
