//! Promises 3 and 6: nothing goes on what is blocked before the server's hint, and nobody else waits.

use std::time::Duration;

use paceline::clock::Timestamp;
use paceline::practice::{Answer, Arrival, Config, Script};
use paceline::store::Store as _;
use paceline::store::sqlite::SqliteStore;

use crate::support::process::until;
use crate::support::world::World;

const SITES: &str = r#"
[[limit]]
name = "site"
kind = "rate"
rate = "60/s"
slack = "120ms"
key = ["site"]
[retry]
max_attempts = 1
"#;

/// Two sites of one upstream, each a partition; the fifth call to `a` is refused for 3 s.
fn sites(refusal: Answer) -> World {
    let script = Script::new("/a/*", refusal.wait(Duration::from_secs(3))).from(5).times(1);
    let config = Config::new().latency(Duration::from_millis(5)).script(script.closing("/a/*"));
    let world = World::new(config);
    world.quota("shop", "/{site}/{id}", SITES);
    world.add_to("shop", 0, 60, &["--set", "site=a"]);
    world.add_to("shop", 0, 200, &["--set", "site=b"]);
    world
}

fn of<'a>(arrivals: &'a [Arrival], site: &'a str) -> impl Iterator<Item = &'a Arrival> {
    arrivals.iter().filter(move |arrival| arrival.path.starts_with(site))
}

/// When the refused call came.
fn refused_at(arrivals: &[Arrival]) -> Timestamp {
    of(arrivals, "/a/").nth(4).unwrap().at
}

/// What must hold of `sites` once all is done.
fn obeyed(world: &World, within: Duration) {
    let arrivals = world.arrivals();
    let at = refused_at(&arrivals);
    let late = of(&arrivals, "/a/").skip(5).map(|arrival| arrival.at.since(at));
    let (after, on_the_way): (Vec<_>, Vec<_>) = late.partition(|late| *late > within);
    assert!(after.iter().all(|late| *late >= Duration::from_secs(3)), "{after:?}");
    println!("on their way when it was refused: {on_the_way:?}; first after: {:?}", after[0]);
    assert_eq!(world.stats().early, 0);
    // The other site goes on all the while: 3 s hold 180 of its slots.
    let others =
        of(&arrivals, "/b/").filter(|b| b.at > at && b.at.since(at) < Duration::from_secs(3));
    assert!(others.count() >= 30, "the other site waited too");
    assert_eq!(world.jobs(), [("done".to_owned(), 260)].into());
    assert_eq!(world.number("SELECT sum(failures) FROM job"), 0);
}

fn refused_and_shown(refusal: Answer) {
    let world = sites(refusal);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    obeyed(&world, Duration::from_millis(500));
    let refused = world.number("SELECT job_id FROM attempt WHERE status = 429").to_string();
    let shown = world.json(&["show", &refused]);
    assert_eq!(shown["attempts"][0]["reason"], "rate_limited", "{shown}");
    assert_eq!(shown["attempts"][0]["body"], "slow down, please", "{shown}");
    assert!(shown["attempts"][0]["hint_at"].is_string(), "{shown}");
    assert_eq!(shown["attempts"][1]["status"], 200, "{shown}");
}

#[test]
fn a_refusal_in_seconds_is_obeyed_and_shown() {
    refused_and_shown(Answer::new(429).header("Retry-After", "3").body("slow down, please"));
}

#[test]
fn a_refusal_until_a_date_is_obeyed_and_shown() {
    // The date is written beforehand: late enough for whatever comes before the refusal.
    let at = std::time::SystemTime::now() + Duration::from_secs(10);
    let date = httpdate::fmt_http_date(at);
    let script = Script::new("/a/*", Answer::new(429).header("Retry-After", date)).from(2).times(1);
    let world = World::new(Config::new().script(script));
    world.quota("shop", "/{site}/{id}", SITES);
    world.add_to("shop", 0, 4, &["--set", "site=a"]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let told = at.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 * 1_000_000_000;
    let arrivals = world.arrivals();
    let after = arrivals
        .iter()
        .skip(2)
        .filter(|a| a.wall.since(arrivals[1].wall) > Duration::from_millis(500));
    let after: Vec<_> = after.map(|arrival| arrival.wall).collect();
    assert!(after.iter().all(|wall| wall.as_nanos() >= told), "{after:?}");
    assert!(!after.is_empty());
    assert_eq!(world.jobs(), [("done".to_owned(), 4)].into());
}

#[test]
fn what_one_process_is_refused_the_other_knows_within_50_ms() {
    let world = sites(Answer::new(429).header("Retry-After", "3"));
    let runs = [world.start(&["run"]), world.start(&["run"])];
    // When anybody can see that the block was committed, in the store's time.
    let store = paceline::store::sqlite::Options::new(
        world.home.path(crate::support::world::STORE),
        std::sync::Arc::new(paceline::clock::SystemClock::new()),
    );
    let store = SqliteStore::open(store).unwrap();
    let book = world.sql();
    let sql = "SELECT blocked_at FROM limit_instance WHERE blocked_at IS NOT NULL";
    until("the refusal", || book.query_row(sql, [], |row| row.get::<_, i64>(0)).is_ok());
    let seen_at = store.now().store.as_nanos();
    let blocked_at = world.number(sql);
    println!("committed within {} ms", (seen_at - blocked_at) / 1_000_000);
    for run in runs {
        let ran = run.finish();
        assert_eq!(ran.code, 0, "{ran}");
    }
    obeyed(&world, Duration::from_millis(500));
    let last = world
        .sql()
        .prepare("SELECT sent_at FROM attempt JOIN job ON job.id = job_id WHERE job.columns LIKE '%\"a\"%'")
        .unwrap()
        .query_map([], |row| row.get::<_, i64>(0))
        .unwrap()
        .map(|at| (at.unwrap() - seen_at) / 1_000_000)
        .filter(|ms| (0..2900).contains(ms))
        .max();
    println!("the last to leave after the block was committed: {last:?} ms");
    assert!(last.is_none_or(|ms| ms <= 50), "{last:?} ms");
}

#[test]
fn a_hold_for_a_hint_that_is_too_far_says_until_when_and_what_a_resume_does() {
    let script = Script::new("/*", Answer::new(429).header("retry-after", "7200")).times(1);
    let text = "[retry]\nmax_hint = \"1h\"\n[[limit]]\nname = \"one\"\nkind = \"concurrency\"\namount = 1\n";
    let mut world = World::with(Config::new().script(script), text);
    world.environment = vec![("TZ".to_owned(), "Asia/Kathmandu".to_owned())];
    world.add(0, 3);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    let sent_at = world.arrivals()[0].at;
    let told = world.json(&["why", "shop"]);
    let until: Timestamp = chrono::DateTime::parse_from_rfc3339(told[0]["until"].as_str().unwrap())
        .unwrap()
        .to_utc()
        .into();
    assert!((7_195..7_205).contains(&until.since(sent_at).as_secs()), "{told}");
    assert_eq!(world.json(&["why", "1"])["until"], told[0]["until"]);
    let status = world.json(&["status"]);
    assert_eq!(status["upstreams"][0]["partitions"][0]["until"], told[0]["until"]);
    assert!(status["next_at"].is_null(), "it does not go on by itself: {status}");
    let there = until.to_utc().format("%Y-%m-%d %H:%M:%S UTC (UTC) = ").to_string();
    let what = format!("it wants to be left alone until {there}");
    let way_out =
        "when that is over: `paceline resume shop` (sooner, it sends one job at once, and";
    assert!(ran.stderr.contains(&what) && ran.stderr.contains(way_out), "{ran}");
    for look in [&["why", "shop"][..], &["status"], &["why", "1"]] {
        let told = world.run(look).stdout;
        assert!(told.contains(&what) && told.contains("+0545 here, in "), "{told}");
        assert_eq!(told.matches(way_out).count(), 1, "{told}");
    }
    assert!(world.run(&["show", "1"]).stdout.contains(&what));
    // Sooner: one job goes at once, and the others once it got through.
    assert_eq!(world.run(&["resume", "shop"]).code, 0);
    assert_eq!(world.run(&["run"]).code, 0);
    assert_eq!(world.jobs(), [("done".to_owned(), 3)].into());
}

#[test]
fn a_run_says_that_it_sent_as_many_as_it_might_and_what_was_refused() {
    let refusal = Answer::new(429).header("Retry-After", "1");
    let world = World::new(Config::new().script(Script::new("/a/*", refusal).from(1).times(1)));
    world.quota("shop", "/{site}/{id}", SITES);
    world.add_to("shop", 0, 9, &["--set", "site=a"]);
    let ran = world.run(&["run", "--count", "3"]);
    assert_eq!(ran.code, 75, "{ran}");
    for told in ["3 sent, 1 refused, 2 done", "it sent as many calls as --count lets it, and left"]
    {
        assert!(ran.stderr.contains(told), "{told}: {ran}");
    }
    let told = world.json(&["run", "--count", "1"]);
    assert_eq!((&told["left_for"], &told["refused"]), (&"count".into(), &0.into()), "{told}");
    let told = world.json(&["run"]);
    assert_eq!((&told["left_for"], &told["done"]), (&serde_json::Value::Null, &6.into()), "{told}");
}

#[test]
fn some_bad_rows_stop_nobody_for_long() {
    let world = World::new(Config::new().script(Script::new("/bad/*", Answer::new(403))));
    world.quota(
        "shop",
        "/{kind}/{id}",
        "[[limit]]\nname = \"r\"\nkind = \"rate\"\nrate = \"60/s\"\n",
    );
    world.add_to("shop", 0, 2, &["--set", "kind=bad"]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "two in a row may be the key: {ran}");
    let way_out = "`paceline cancel --upstream shop --where COLUMN=VALUE --yes`";
    assert!(ran.stderr.contains(way_out), "{ran}");
    world.add_to("shop", 2, 30, &["--set", "kind=good"]);
    assert_eq!(world.run(&["resume", "shop"]).code, 0);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 30), ("failed".to_owned(), 2)].into());
}
