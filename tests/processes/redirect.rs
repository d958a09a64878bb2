//! Redirects: each hop is a call with a permit and an attempt of its own; no credential leaves its host.

use paceline::practice::{Answer, Config, Script};
use serde_json::Value;
use std::time::Duration;

use crate::support::trouble::Trouble;
use crate::support::world::World;

fn to(status: u16, location: &str) -> Answer {
    Answer::new(status).header("location", location).body("moved")
}

fn attempts(world: &World, job: &str) -> Vec<Value> {
    world.json(&["show", job])["attempts"].as_array().unwrap().clone()
}

fn paths(world: &World) -> Vec<String> {
    let arrivals = world.arrivals();
    arrivals.iter().map(|arrival| format!("{} {}", arrival.method, arrival.path)).collect()
}

#[test]
fn one_hop_is_a_call_of_its_own_and_is_told() {
    let config = Config::new().script(Script::new("/0", to(301, "new/0?x={y}&z=${env:HOME}")));
    let world = World::with(config, "");
    world.add(0, 1);
    let ran = world.run(&["run", "--json", "--verbose"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(
        ran.stderr.contains("301 ok, goes again") && ran.stderr.contains("redirected to"),
        "{ran}"
    );
    assert!(ran.stdout.contains("\"sent\": 2") || ran.stdout.contains("\"sent\":2"), "{ran}");
    assert_eq!(paths(&world), ["GET /0", "GET /new/0"]);
    assert_eq!(world.arrivals()[1].query.as_deref(), Some("x=%7By%7D&z=$%7Benv:HOME%7D"));
    let job = world.json(&["show", "1"]);
    assert_eq!((&job["state"], &job["failures"]), (&"done".into(), &0.into()), "{job}");
    let hop = &job["attempts"][0];
    assert_eq!((&hop["status"], &hop["reason"]), (&301.into(), &"ok".into()), "{hop}");
    assert!(hop["detail"].as_str().unwrap().contains("hop 1 of 10"), "{hop}");
    assert_eq!(hop["body"], Value::Null, "no refusal: not kept");
    let address = world.url("/new/0?x=%7By%7D&z=$%7Benv:HOME%7D");
    assert_eq!(world.json(&["log"])[0]["redirect"], address.as_str());
    let log = world.run(&["log"]);
    assert!(log.stdout.contains(&format!(" 301 ok {} -> {address}", world.url("/0"))), "{log}");
    let shown = world.run(&["show", "1"]);
    assert!(shown.stdout.contains(&format!("redirected to {address}")), "{shown}");
}

#[test]
fn a_loop_fails_its_job_after_ten_hops_and_names_the_last_address() {
    let config = Config::new()
        .script(Script::new("/0", to(302, "/round")))
        .script(Script::new("/round", to(307, "/and-round")))
        .script(Script::new("/and-round", to(307, "/round")));
    let world = World::with(config, "[retry]\nmax_attempts = 2\n");
    world.add(0, 5);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 4), ("failed".to_owned(), 1)].into());
    assert_eq!(world.count(), 11 + 4, "{:?}", world.by_path());
    let last = attempts(&world, "1").pop().unwrap();
    assert_eq!((&last["n"], &last["reason"]), (&11.into(), &"unprocessable".into()), "{last}");
    let detail = last["detail"].as_str().unwrap();
    assert!(detail.contains("10 times") && detail.contains(&world.url("/round")), "{detail}");
}

/// What a credential may stand in, and what may go along.
const CREDENTIALS: &str = r#"
method = "POST"
repeatable = true
body = '{"id": "{id}"}'
[request.headers]
Authorization = "Bearer plain-hunter"
Cookie = "session=plain-hunter"
X-Api-Key = "plain-hunter"
X-Signed = "for ${env:SHOP_KEY}"
Accept = "text/x-price"
"#;

fn all_of(arrival: &paceline::practice::Arrival) -> String {
    let headers = arrival.headers.as_ref().unwrap();
    let query = arrival.query.as_deref().unwrap_or_default();
    format!("{headers:?} {query} {:?}", arrival.body)
}

#[test]
fn another_host_gets_no_credentials_and_the_own_host_does() {
    let own = World::new(Config::new().keep_headers());
    let other = own.another(
        Config::new().keep_headers().script(Script::new("/back", to(307, &own.url("/end")))),
    );
    let first = own.another(
        Config::new()
            .keep_headers()
            .script(Script::new("/0", to(308, "/same?key=hunter2secret")))
            .script(Script::new("/same", to(307, &other.url("/there"))))
            .script(Script::new("/1", to(307, &other.url("/back")))),
    );
    let request =
        format!("[request]\nurl = \"{}?key=${{env:SHOP_KEY}}\"\n{CREDENTIALS}", first.url("/{id}"));
    own.home.quota("shop", &request);
    own.add(0, 2);
    let ran = own.start_with(&["run"], &[("SHOP_KEY", "hunter2secret")]).finish();
    assert_eq!(ran.code, 0, "{ran}");
    let on_first = first.arrivals();
    assert_eq!(on_first.len(), 3);
    for arrival in &on_first {
        let all = all_of(arrival);
        assert!(all.contains("Bearer plain-hunter") && all.contains("for hunter2secret"), "{all}");
        assert!(arrival.query.as_deref().unwrap().contains("hunter2secret"), "{all}");
    }
    // There, and back on a third host.
    for arrival in other.arrivals().iter().chain(&own.arrivals()) {
        let all = all_of(arrival);
        assert!(!all.contains("hunter"), "{all}");
        assert!(all.contains("text/x-price") && all.contains("application/json"), "{all}");
        assert_eq!(arrival.method, "POST");
    }
    assert_eq!((other.arrivals().len(), own.count()), (2, 1));
    let told = own.run(&["show", "1", "--json"]);
    assert!(told.stdout.contains("without credentials"), "{told}");
    assert!(told.stdout.contains("/same?key=${env:SHOP_KEY}"), "{told}");
    assert!(!told.stdout.contains("hunter2secret"), "{told}");
}

#[test]
fn a_secret_in_address_or_body_is_taken_to_no_other_host() {
    let world = World::new(Config::new());
    let other = world.another(Config::new());
    let first = world.another(
        Config::new()
            .script(Script::new("/0", to(302, &other.url("/?key=hunter2secret"))))
            .script(Script::new("/1", to(308, &other.url("/")))),
    );
    for (name, id, more) in [
        ("address", 0, ""),
        ("body", 1, "method = \"POST\"\nrepeatable = true\nbody = 'k=${env:SHOP_KEY}'\n"),
    ] {
        let url = first.url("/{id}?key=${env:SHOP_KEY}");
        world.home.quota(
            name,
            &format!("[request]\nurl = \"{url}\"\n{more}[retry]\ninitial = \"10ms\"\n"),
        );
        world.add_to(name, id, 1, &[]);
    }
    let ran = world.start_with(&["run"], &[("SHOP_KEY", "hunter2secret")]).finish();
    assert_eq!(ran.code, 4, "a person must look at it: {ran}");
    assert!(other.arrivals().is_empty());
    assert_eq!(first.arrivals().len(), 4, "twice each, then held");
    for (job, part) in [("1", "address"), ("2", "body")] {
        let last = attempts(&world, job).pop().unwrap();
        let detail = last["detail"].as_str().unwrap();
        assert_eq!(last["reason"], "misconfigured");
        assert!(detail.contains(&format!("the {part} would take a secret there")), "{detail}");
    }
}

#[test]
fn what_a_post_led_to_is_fetched_and_what_was_not_done_is_posted_there() {
    let config = Config::new()
        .script(Script::new("/0", to(303, "/receipt/0")))
        .script(Script::new("/1", to(307, "/post/1")))
        .script(Script::new("/2", to(302, "/receipt/2")))
        .script(Script::new("/receipt/0", Answer::new(500)).times(1))
        .keep_headers();
    let text = "method = \"POST\"\nbody = 'x{id}'\nheaders = { Content-Type = \"text/plain\" }\n[retry]\ninitial = \"10ms\"\n";
    let world = World::with(config, text);
    world.add(0, 3);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let calls: Vec<_> = world
        .arrivals()
        .iter()
        .map(|arrival| (format!("{} {}", arrival.method, arrival.path), arrival.body.clone()))
        .collect();
    let times =
        |call: &str, body: &str| calls.iter().filter(|(c, b)| c == call && b == body).count();
    assert_eq!(times("POST /0", "x0"), 1, "{calls:?}");
    assert_eq!(times("GET /receipt/0", ""), 2, "a GET may be sent again: {calls:?}");
    assert_eq!((times("POST /1", "x1"), times("POST /post/1", "x1")), (1, 1), "{calls:?}");
    assert_eq!(times("GET /receipt/2", ""), 1, "{calls:?}");
    assert_eq!(calls.len(), 7);
    for arrival in world.arrivals() {
        let told = arrival.headers.as_ref().is_some_and(|all| all.contains_key("content-type"));
        assert_eq!(told, arrival.method == "POST", "of no body nothing is told: {arrival:?}");
    }
}

#[test]
fn hops_are_charged_and_paced_whatever_host_they_go_to() {
    let world = World::new(Config::new());
    let to_there = Script::new("*", to(302, &world.url("/x")));
    let first = world.another(Config::new().script(to_there));
    let limits = r#"
[[limit]]
name = "pace"
kind = "rate"
rate = "20/s"
[[limit]]
name = "daily"
kind = "budget"
amount = 15
per = "day"
time_zone = "UTC"
"#;
    world.home.quota("shop", &format!("[request]\nurl = \"{}\"\n{limits}", first.url("/{id}")));
    world.add(0, 9);
    let ran = world.run(&["run", "--max-wait", "2s"]);
    assert_eq!(ran.code, 75, "{ran}");
    let all = [first.arrivals(), world.arrivals()].concat();
    assert_eq!((all.len(), world.spent()), (15, 15), "{:?}", world.jobs());
    let (from, to) = (all.iter().map(|a| a.wall).min(), all.iter().map(|a| a.wall).max());
    let span = to.unwrap().since(from.unwrap());
    assert!(span > Duration::from_millis(14 * 50 - 60), "{span:?}: paced as one");
    // A hop that was due beside a later job's first call: the budget ended somewhere in between.
    assert_eq!(world.number("SELECT sum(attempts) FROM job"), 15);
    assert!(world.jobs()["done"] >= 6, "{:?}", world.jobs());
}

#[test]
fn a_redirect_that_leads_nowhere_holds_the_partition_and_says_why() {
    for (location, says) in [
        ("ftp://files.example/x", "only http and https"),
        ("http://[bad", "cannot be called"),
        ("", "without a word"),
    ] {
        let answer = Answer::new(301).header("location", location);
        let config = Config::new().script(Script::new("*", answer));
        let world = World::with(config, "[retry]\ninitial = \"10ms\"\n");
        world.add(0, 1);
        let ran = world.run(&["run"]);
        assert_eq!((ran.code, world.count()), (4, 2), "{location}: {ran}");
        let why = world.json(&["why", "shop"]);
        assert!(why[0]["detail"].as_str().unwrap().contains(says), "{why}");
    }
}

#[test]
fn loops_are_bounded_and_nobody_else_notices() {
    let config = Config::new().script(Script::new("/sick/*", to(307, "/sick/round")));
    let trouble = Trouble::new(config, "", 30);
    let ran = trouble.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(trouble.calls(), 30 * 11);
    assert_eq!(trouble.world.jobs(), [("done".to_owned(), 40), ("failed".to_owned(), 30)].into());
    trouble.nobody_noticed(Duration::from_secs(4));
}

#[test]
fn a_rule_of_the_quota_file_comes_before_following() {
    let config = Config::new().script(Script::new("*", to(302, "/login")));
    let rule = "[[reading]]\nwhen = { status = 302, header = { location = \"/login\" } }\nreason = \"ok\"\n";
    let world = World::with(config, rule);
    world.add(0, 3);
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.count()), (0, 3), "{ran}");
}
