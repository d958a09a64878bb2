//! A person is told of what is newly held: once, and nobody waits for that.

use paceline::practice::{Answer, Config, Script};
use serde_json::Value;

use crate::support::process::until;
use crate::support::world::World;

/// Writes down what it is told.
const TELL: &str =
    "(cat; echo) >> told.jsonl; echo \"$PACELINE_HELD $PACELINE_MESSAGE\" >> told.txt";

/// An upstream that holds each site at its first call, and a program that is told.
fn world(command: &str) -> World {
    let world = World::new(
        Config::new()
            .script(Script::new("/wrong/*", Answer::new(401).body("{\"error\": \"bad key\"}"))),
    );
    world.quota(
        "shop",
        "/wrong/{id}",
        "[columns.site]\ndefault = \"a\"\n[[limit]]\nname = \"in-flight\"\n\
        kind = \"concurrency\"\namount = 1\nkey = [\"site\"]\n",
    );
    tell_by(&world, command);
    world
}

fn tell_by(world: &World, command: &str) {
    let words = serde_json::to_string(&["sh", "-c", command]).unwrap();
    world.home.write(".config/paceline/config.toml", &format!("[notify]\ncommand = {words}\n"));
}

fn add(world: &World, site: &str, from: u32) {
    let rows: String = (from..from + 4).map(|id| format!("{id}\n")).collect();
    world.home.write("rows.csv", &format!("id\n{rows}"));
    let ran = world.run(&["add", "shop", "--csv", "rows.csv", "--set", &format!("site={site}")]);
    assert_eq!(ran.code, 0, "{ran}");
}

fn told(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.home.path("told.jsonl")).unwrap_or_default();
    text.lines().flat_map(|line| serde_json::from_str::<Vec<Value>>(line).unwrap()).collect()
}

#[test]
fn each_hold_is_told_once() {
    let world = world(TELL);
    add(&world, "a", 0);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    let news = told(&world);
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!((&news[0]["upstream"], &news[0]["key"]["site"]), (&"shop".into(), &"a".into()));
    assert!(news[0]["way_out"].as_str().unwrap().contains("`paceline resume shop --key site=a`"));
    assert!(news[0]["jobs"].as_u64().unwrap() > 0, "{news:?}");
    let text = std::fs::read_to_string(world.home.path("told.txt")).unwrap();
    assert!(text.starts_with("1 shop [site=a] is held ("), "{text}");
    // As from cron, each minute: it is held still, and that is no news.
    assert_eq!(world.run(&["run"]).code, 4);
    assert_eq!(told(&world).len(), 1);
    add(&world, "b", 10);
    assert_eq!(world.run(&["run"]).code, 4);
    let news = told(&world);
    assert_eq!(news.len(), 2);
    assert_eq!(news[1]["key"]["site"], "b");
    // Whoever resumes it wants to know whether that helped.
    assert_eq!(world.run(&["resume", "shop", "--key", "site=a"]).code, 0);
    assert_eq!(world.run(&["run"]).code, 4);
    assert_eq!(told(&world).len(), 3);
    // What a person holds is no news to a person.
    assert_eq!(world.run(&["hold", "shop"]).code, 0);
    assert_eq!(world.run(&["run"]).code, 4);
    assert_eq!(told(&world).len(), 3);
}

#[test]
fn a_missing_secret_is_told_once_until_it_was_there() {
    let world = world(TELL);
    world.quota("keyed", "/{id}", "headers = { X-Key = \"${env:KEY}\" }\n");
    let add = |id: &str| assert_eq!(world.run(&["add", "keyed", "--set", id]).code, 0);
    add("id=1");
    for _ in 0..3 {
        assert_eq!(world.run(&["run"]).code, 4);
    }
    let news = told(&world);
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!((&news[0]["key"], &news[0]["jobs"]), (&Value::Null, &1.into()));
    assert_eq!(world.start_with(&["run"], &[("KEY", "x")]).finish().code, 0);
    add("id=2");
    assert_eq!(world.run(&["run"]).code, 4);
    assert_eq!(told(&world).len(), 2);
}

#[test]
fn what_could_not_be_told_is_told_by_the_next_run() {
    let world = world("exit 3");
    add(&world, "a", 0);
    let ran = world.run(&["run", "--quiet"]);
    assert_eq!(ran.code, 4, "a program that fails changes nothing else: {ran}");
    assert!(
        ran.stderr.contains("warning: the [notify] command `sh` failed (exit status: 3)"),
        "{ran}"
    );
    tell_by(&world, TELL);
    assert_eq!(world.run(&["run"]).code, 4);
    assert_eq!(told(&world).len(), 1);
}

#[test]
fn nothing_waits_for_whoever_is_told() {
    let world = world(&format!("while [ ! -e go ]; do sleep 0.01; done; {TELL}"));
    world.quota("other", "/{id}", "");
    add(&world, "a", 0);
    let run = world.start(&["run", "--follow"]);
    run.hears("is held");
    // It is being told, and takes its time; another upstream is served meanwhile.
    for id in 0..3 {
        let ran = world.run(&["add", "other", "--set", &format!("id={id}")]);
        assert_eq!(ran.code, 0, "{ran}");
        until("the other upstream's call", || {
            world.arrivals().iter().any(|arrival| arrival.path == format!("/{id}"))
        });
    }
    assert!(told(&world).is_empty());
    world.home.write("go", "");
    until("the news", || told(&world).len() == 1);
    run.signal("TERM");
    assert_eq!(run.finish().code, 130);
}
