//! Promise 4, and 1 and 2 under it, at each of the eight stops of a job's way: the program dies there
//! as if by a power cut, and what it left is looked at before anybody else works on it, and after.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods)]

mod support;

use paceline::practice::{Answer, Config, Script};
use support::world::World;

const JOBS: usize = 24;

/// What `run` comes by, in order; `mark` is for what must not be sent twice.
const STOPS: [&str; 9] =
    ["wake", "claim", "claimed", "marked", "send", "read", "next", "settle", "settled"];

const LIMITS: &str = r#"
[[limit]]
name = "pace"
kind = "rate"
rate = "200/s"
slack = "100ms"
[[limit]]
name = "daily"
kind = "budget"
amount = 100000
per = "day"
time_zone = "UTC"
"#;

/// An upstream beside which `closed` refuses for an hour and `held` for good, both met before anything
/// dies.
fn world(request: &str) -> World {
    let refused = Answer::new(429).header("retry-after", "3600");
    let config = Config::new()
        .script(Script::new("/closed/*", refused))
        .script(Script::new("/held/*", Answer::new(403).body("wrong key")));
    let world = World::with(config, &format!("{request}{LIMITS}"));
    world.quota("closed", "/closed/{id}", LIMITS);
    world.quota("held", "/held/{id}", LIMITS);
    world.add_to("closed", 0, 3, &[]);
    world.add_to("held", 0, 3, &[]);
    assert_eq!(world.run(&["run", "closed", "--max-wait", "0"]).code, 75);
    assert_eq!(world.run(&["run", "held"]).code, 4);
    world
}

/// Blocks and holds, as they stand.
fn closed(world: &World) -> Vec<(Option<i64>, Option<String>, i64)> {
    let conn = world.sql();
    let mut query = conn
        .prepare(
            "SELECT blocked_until, block_reason, refusals FROM limit_instance
             WHERE blocked_until IS NOT NULL
             UNION ALL SELECT held_at, held_reason, hard_refusals FROM partition
             WHERE held_at IS NOT NULL",
        )
        .unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Calls of `shop` that the upstream saw.
fn arrived(world: &World) -> i64 {
    let own = world.arrivals().into_iter().filter(|call| call.path.matches('/').count() == 1);
    i64::try_from(own.count()).unwrap()
}

/// Units spent on the budget of `shop`.
fn spent(world: &World) -> i64 {
    world.number(
        "SELECT coalesce(sum(spent), 0) FROM budget_window WHERE instance_id IN
         (SELECT id FROM limit_instance WHERE upstream_id =
          (SELECT id FROM upstream WHERE name = 'shop'))",
    )
}

/// What must hold whoever died where.
fn holds(world: &World, stop: &str) {
    let shop = "upstream_id = (SELECT id FROM upstream WHERE name = 'shop')";
    let jobs = world.number(&format!("SELECT count(*) FROM job WHERE {shop}"));
    assert_eq!(jobs, i64::try_from(JOBS).unwrap(), "{stop}: jobs lost");
    let torn = world
        .number("SELECT count(*) FROM running JOIN job ON job.id = job_id WHERE state <> 'queued'");
    assert_eq!(torn, 0, "{stop}: in two states");
    let untold = world.number(
        "SELECT count(*) FROM job
         WHERE attempts <> (SELECT count(*) FROM attempt WHERE job_id = job.id)",
    );
    assert_eq!(untold, 0, "{stop}: attempts that are not on record");
    let attempts = world
        .number(&format!("SELECT count(*) FROM attempt JOIN job ON job.id = job_id WHERE {shop}"));
    let running = world.number("SELECT count(*) FROM running");
    let (arrived, spent) = (arrived(world), spent(world));
    assert!(arrived <= attempts + running, "{stop}: {arrived} arrived, {attempts}+{running} known");
    assert!(spent >= arrived, "{stop}: {arrived} arrived, {spent} spent");
    // What was leased and never left stays spent; nothing else is spent without an attempt.
    assert!(
        spent <= attempts + running + LOST,
        "{stop}: {spent} spent, {attempts}+{running} known"
    );
}

/// Calls that one process may have had leased when it died.
const LOST: i64 = 64;

/// Lets `run` die at a stop, looks, and lets another one finish.
fn dies_and_is_finished(world: &World, stop: &str, nth: u32) {
    world.add(0, JOBS);
    let before = closed(world);
    assert_eq!(before.len(), 2, "one block and one hold");
    let crash = format!("{stop}:{nth}");
    let died = world.start_with(&["run", "shop"], &[("PACELINE_CRASH", &crash)]).finish();
    assert_eq!(died.code, -1, "it died by a signal at {crash}: {died}");
    holds(world, &crash);
    assert_eq!(closed(world), before, "{crash}: blocks and holds");
    let ran = world.run(&["run", "shop"]);
    assert!(matches!(ran.code, 0 | 3), "{crash}: {ran}");
    holds(world, &crash);
    assert_eq!(closed(world), before, "{crash}: blocks and holds");
    world.nothing_is_left_over();
}

/// Arrivals of each job of `shop` that came more than once.
fn twice(world: &World) -> Vec<(String, u64)> {
    world
        .by_path()
        .into_iter()
        .filter(|(path, n)| *n > 1 && path.matches('/').count() == 1)
        .collect()
}

#[test]
fn repeatable_jobs_are_all_done_wherever_it_dies() {
    for stop in STOPS.into_iter().filter(|stop| *stop != "marked") {
        let world = world("");
        dies_and_is_finished(&world, stop, 3);
        let done = "SELECT count(*) FROM job WHERE state = 'done'";
        assert_eq!(world.number(done), i64::try_from(JOBS).unwrap(), "{stop}");
        let again: u64 = twice(&world).iter().map(|(_, n)| n - 1).sum();
        let lost = world.number("SELECT count(*) FROM attempt WHERE reason IS NULL");
        assert!(again <= u64::try_from(lost).unwrap(), "{stop}: {again} again, {lost} lost");
    }
}

#[test]
fn nothing_unrepeatable_is_sent_twice_wherever_it_dies() {
    for stop in STOPS.into_iter().filter(|stop| *stop != "next") {
        let world = world("method = \"POST\"\nbody = 'x'\n");
        dies_and_is_finished(&world, stop, 3);
        assert_eq!(twice(&world), [], "{stop}: sent twice");
        let done = world.number("SELECT count(*) FROM job WHERE state = 'done'");
        let unsure = world.number("SELECT count(*) FROM job WHERE state = 'unsure'");
        assert_eq!(done + unsure, i64::try_from(JOBS).unwrap(), "{stop}: {done}, {unsure}");
        if matches!(stop, "wake" | "claim" | "claimed") && arrived(&world) == 0 {
            assert_eq!(unsure, 0, "{stop}: nothing had left");
        }
        if stop == "read" {
            assert!(unsure > 0, "an answer that nobody read is in doubt");
        }
    }
}

#[test]
fn an_addition_is_there_whole_or_not_at_all() {
    for (stop, there) in [("add", 0), ("store", JOBS as u64)] {
        let world = World::with(Config::new(), "");
        world.home.write(
            "rows.csv",
            &(0..JOBS).fold("id\n".to_owned(), |rows, id| format!("{rows}{id}\n")),
        );
        let add = ["add", "shop", "--csv", "rows.csv"];
        let crash = format!("{stop}:1");
        let died = world.start_with(&add, &[("PACELINE_CRASH", &crash)]).finish();
        assert_eq!(died.code, -1, "{died}");
        assert_eq!(world.jobs().get("queued").copied().unwrap_or(0), there, "{stop}");
        let again = world.json(&add);
        assert_eq!(again["added"], JOBS as u64 - there, "{stop}: {again}");
        assert_eq!(again["duplicates"], there, "{stop}: {again}");
        assert_eq!(world.run(&["run"]).code, 0);
        assert_eq!(world.count(), JOBS);
    }
}
