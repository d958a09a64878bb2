//! Calls wait for their turn; where they may not wait so long, the answer says what for, and until when.

use std::time::Duration;

use paceline::practice::{Config, Limit, Rule};
use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::process::until;
use crate::support::world::World;

const PLAN: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\nburst = 5\n\
    counted = \"bucket\"\n";
const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 2\nper = \"day\"\n\
    time_zone = \"America/Los_Angeles\"\n";

#[test]
fn callers_wait_for_their_turn() {
    let bucket = Limit::Bucket { units: 20, per: Duration::from_secs(1), burst: 5 };
    let world = World::with(Config::new().rule(Rule::new("plan", bucket)), PLAN);
    let gateway = Gateway::start(&world, &[]);
    let calls = (0..30).map(|n| gateway.request("GET", &format!("/shop/{n}"))).collect();
    let answers = gateway.all(calls);
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let stats = world.stats();
    assert_eq!((stats.ok, stats.refused), (30, 0), "{stats:?}");
}

#[test]
fn a_spent_day_is_told_with_its_reset() {
    let world = World::with(Config::new(), DAILY);
    let gateway = Gateway::start(&world, &[]);
    for n in 0..2 {
        assert_eq!(gateway.get(&format!("/shop/{n}")).status, 200);
    }
    let answer = gateway.get("/shop/2");
    assert_eq!((answer.status, answer.reason()), (429, "budget"), "{answer:?}");
    let told = answer.json();
    assert_eq!(told["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(
        (&told["status"], &told["upstream"], &told["limit"]),
        (&429.into(), &"shop".into(), &"daily".into())
    );
    assert_eq!(told["time_zone"], "America/Los_Angeles");
    let there = told["until_there"].as_str().unwrap();
    assert!(there.contains("T00:00:0"), "midnight there: {there}");
    let seconds: u64 = answer.field("retry-after").parse().unwrap();
    assert!((1..=90_000).contains(&seconds), "{seconds}");
    assert_eq!(answer.field("cache-control"), "no-store");
    assert_eq!(answer.field("ratelimit-policy"), "\"daily\";q=2;w=86400");
    assert!(answer.field("ratelimit").starts_with("\"daily\";r=0;t="), "{answer:?}");
    assert_eq!(world.count(), 2, "nothing was sent");
    // What `read` makes of our own answer: a gateway may stand before a gateway.
    let read = read_back(&world, &answer);
    assert_eq!(read["reason"], "quota_exhausted");
    assert!(read["retry_at"].is_string(), "{read}");
}

fn read_back(world: &World, answer: &crate::support::gateway::Answered) -> Value {
    let headers: Vec<_> = answer.headers.iter().collect();
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let line = serde_json::json!({
        "method": "GET", "url": "https://api.example/x", "received_at": "2026-12-01T08:00:00Z",
        "status": answer.status, "headers": headers, "body": answer.text(),
    });
    world.home.write("answer.jsonl", &line.to_string());
    let ran = world.home.shell("paceline read < answer.jsonl");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

#[test]
fn a_caller_says_how_long_it_waits() {
    let world = World::with(
        Config::new(),
        "[[limit]]\nname = \"slow\"\nkind = \"rate\"\nrate = \"1/10s\"\ncounted = \"bucket\"\n",
    );
    let gateway = Gateway::start(&world, &["--max-wait", "3s"]);
    assert_eq!(gateway.get("/shop/1").status, 200);
    let answer = gateway.get("/shop/2");
    assert_eq!((answer.status, answer.reason()), (429, "rate"), "it would not wait so long");
    let seconds: u64 = answer.field("retry-after").parse().unwrap();
    assert!((3..=11).contains(&seconds), "{seconds}");
    assert_eq!(gateway.get_with("/shop/3", "Paceline-Deadline", "30s").status, 200);
    let past = gateway.get_with("/shop/4", "Paceline-Deadline", "2020-01-01T00:00:00Z");
    assert_eq!(past.status, 429);
    assert_eq!(world.count(), 2);
}

#[test]
fn each_key_has_its_own_count() {
    let keyed = DAILY.replace("amount = 2", "amount = 1\nkey = [\"site\"]");
    let world = World::with(Config::new(), &keyed);
    let gateway = Gateway::start(&world, &[]);
    let get = |site: &str| gateway.get_with("/shop/x", "Paceline-Set", &format!("site={site}"));
    assert_eq!([get("a").status, get("b").status], [200, 200]);
    let answer = get("a");
    assert_eq!((answer.status, answer.json()["limit"].as_str()), (429, Some("daily")));
}

#[test]
fn what_is_kept_for_people_is_used_only_when_asked_for() {
    let kept = DAILY.replace("amount = 2", "amount = 2\nreserve = 1");
    let world = World::with(Config::new(), &kept);
    let gateway = Gateway::start(&world, &[]);
    assert_eq!([gateway.get("/shop/1").status, gateway.get("/shop/2").status], [200, 429]);
    let other = Gateway::start(&world, &["--use-reserve"]);
    assert_eq!([other.get("/shop/2").status, other.get("/shop/3").status], [200, 429]);
}

#[test]
fn what_is_held_says_what_a_person_does() {
    let world = World::with(Config::new(), "headers = { X-Key = \"${env:SHOP_KEY}\" }\n");
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get("/shop/x");
    assert_eq!((answer.status, answer.reason()), (503, "missing_secret"), "{}", answer.text());
    assert!(answer.text().contains("SHOP_KEY"), "{}", answer.text());
    assert_eq!(answer.field("retry-after"), "", "waiting alone changes nothing");
    world.quota("other", "/{id}", "");
    assert_eq!(world.run(&["hold", "other"]).code, 0);
    let answer = gateway.get("/other/x");
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("paceline resume other"), "{}", answer.text());
    assert_eq!(world.run(&["resume", "other"]).code, 0);
    assert_eq!(gateway.get("/other/x").status, 200);
}

#[test]
fn a_store_that_cannot_answer_is_told_apart() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &["--max-wait", "1s"]);
    assert_eq!(gateway.get("/shop/1").status, 200);
    let sql = world.sql();
    sql.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let answer = gateway.get("/shop/2");
    assert_eq!((answer.status, answer.reason()), (503, "store"), "{}", answer.text());
    assert!(answer.field("retry-after").parse::<u64>().unwrap() > 0);
    sql.execute_batch("ROLLBACK").unwrap();
    drop(sql);
    assert_eq!(gateway.get("/shop/3").status, 200);
    assert_eq!(world.count(), 2, "nothing was sent without a record");
}

#[test]
fn a_changed_quota_file_is_taken_up() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &["--max-wait", "5s"]);
    assert_eq!([gateway.get("/shop/1").status, gateway.get("/shop/2").status], [200, 200]);
    world.quota("shop", "/{id}", &DAILY.replace("amount = 2", "amount = 1"));
    until("the limit is in force", || gateway.get("/shop/3").status == 429);
    gateway.process.hears("its changed quota file is in force");
}
