//! Reddit, as its preset has it: a 429 that says until when, then a page under 403 that shuts us out.

use std::time::Duration;

use paceline::practice::{Answer, Config, Script};

use crate::support::world::World;

const WAIT: Duration = Duration::from_secs(2);
const PAGE: &str = "<!doctype html><html><head><title>Blocked</title></head>\
    <body>whoa there, pardner! Your request has been blocked due to a network policy.</body></html>";

/// The preset, with a token that is there.
fn world(config: Config) -> World {
    let mut world = World::new(config);
    let secret = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    world.environment = vec![secret("PACELINE_USER_AGENT", "curl/8")];
    let text = "extends = \"reddit\"\n[match]\nhosts = [\"127.0.0.1\"]\n\
        [auth]\nkind = \"command\"\ncommand = [\"echo\", \"t0ken\"]\n";
    world.home.quota("mine", text);
    world
}

#[test]
fn a_hint_is_waited_for_exactly_and_a_page_that_shuts_out_holds_with_both_bodies_kept() {
    let busy = Answer::new(429)
        .header("x-ratelimit-remaining", "0.0")
        .header("x-ratelimit-used", "100")
        .header("x-ratelimit-reset", WAIT.as_secs().to_string())
        .body(r#"{"message": "Too Many Requests", "error": 429}"#);
    let blocked = Answer::new(403).header("content-type", "text/html").body(PAGE);
    let config = Config::new()
        .script(Script::new("/api/info", busy).times(1))
        .script(Script::new("/r/*", blocked));
    let world = world(config);
    let urls = ["/api/info", "/r/a/about", "/api/me"].map(|path| world.url(path));
    let added = world.run(&["add", "mine", &urls[0], &urls[1], &urls[2]]);
    assert_eq!(added.code, 0, "{added}");
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");

    let arrivals = world.arrivals();
    let paths: Vec<&str> = arrivals.iter().map(|arrival| arrival.path.as_str()).collect();
    assert_eq!(paths, ["/api/info", "/api/info", "/r/a/about"], "held at the first block");
    let waited = arrivals[1].at.since(arrivals[0].at);
    // A tenth of it may be jitter.
    assert!(waited >= WAIT && waited < WAIT + Duration::from_millis(800), "{waited:?}");

    let to_do = "set PACELINE_USER_AGENT to a name of your own, as in linux:my-app:1.0 (by /u/me)";
    for look in [&["why", "mine"][..], &["status"]] {
        let told = world.run(look);
        assert_eq!(told.stdout.matches(to_do).count(), 1, "told once: {told}");
        assert!(told.stdout.contains(": Blocked"), "{told}");
        assert!(told.stdout.contains("`paceline resume mine`"), "{told}");
    }
    assert!(ran.stderr.contains(to_do) && ran.stderr.contains("`paceline resume mine`"), "{ran}");
    for (job, body) in [("1", "Too Many Requests"), ("2", "due to a network policy")] {
        let shown = world.run(&["show", job]);
        assert!(shown.stdout.contains(body), "{shown}");
        let json = world.json(&["show", job]);
        assert!(json["attempts"][0]["body"].as_str().unwrap().contains(body), "{json}");
    }
    let shown = world.run(&["show", "2"]).stdout;
    assert!(shown.contains("`paceline why 2` says how it goes on"), "{shown}");
    let why = world.json(&["why", "mine"]);
    assert_eq!((&why[0]["state"], &why[0]["reason"]), (&"held".into(), &"blocked".into()), "{why}");
    assert_eq!(world.jobs(), [("done".to_owned(), 1), ("queued".to_owned(), 2)].into());
}

/// What Reddit says of a community that is private.
const PRIVATE: &str = r#"{"message": "Forbidden", "error": 403, "reason": "private"}"#;

#[test]
fn a_403_on_one_thing_of_many_is_its_own() {
    let script = Script::new("/r/private/*", Answer::new(403).body(PRIVATE));
    let world = world(Config::new().script(script));
    let urls =
        ["/r/a/about", "/r/private/about", "/r/b/about", "/r/c/about"].map(|path| world.url(path));
    assert_eq!(world.run(&["add", "mine", &urls[0], &urls[1], &urls[2], &urls[3]]).code, 0);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 3), ("failed".to_owned(), 1)].into());
    let shown = world.json(&["show", "2"]);
    let bodies: Vec<&str> = shown["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["body"].as_str().unwrap())
        .collect();
    assert_eq!(bodies, [PRIVATE, PRIVATE], "tried once more, as it might have been us");
    assert_eq!(world.json(&["why", "mine"]), serde_json::json!([]), "nobody else is held");
}

#[test]
fn a_403_on_all_waits_and_then_holds_with_both_bodies_kept() {
    let world = world(Config::new().script(Script::new("/*", Answer::new(403).body(PRIVATE))));
    let urls = ["/r/a/about", "/r/b/about", "/r/c/about"].map(|path| world.url(path));
    assert_eq!(world.run(&["add", "mine", &urls[0], &urls[1], &urls[2]]).code, 0);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(world.jobs(), [("queued".to_owned(), 3)].into(), "none is lost");
    for job in ["1", "2"] {
        assert_eq!(world.json(&["show", job])["attempts"][0]["body"], PRIVATE);
    }
    let why = world.json(&["why", "mine"]);
    assert_eq!(
        (&why[0]["state"], &why[0]["reason"]),
        (&"held".into(), &"forbidden".into()),
        "{why}"
    );
}
