//! Promise 4, and 1 and 2 under it: `kill -9` at any moment loses nothing and undoes no charge.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline::practice::Config;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::process::until;
use crate::support::world::World;

const JOBS: usize = 120;

/// Kills wait for ever longer between them, so that a run never ends before its last kill.
fn quota(kills: u32) -> String {
    format!(
        r#"
[[limit]]
name = "pace"
kind = "rate"
rate = "{}/s"
slack = "50ms"
[[limit]]
name = "daily"
kind = "budget"
amount = 100000
per = "day"
time_zone = "UTC"
[retry]
initial = "10ms"
max_interval = "50ms"
"#,
        // About 0.2 s a kill go by; half of the jobs or more are left at the last one.
        (JOBS as u32 * 2 / kills.max(1)).clamp(2, 20)
    )
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What must hold whenever nobody is at work: every job in one state, every attempt recorded, every
/// arrival paid for.
fn holds(world: &World, jobs: usize) {
    let jobs_there = world.number("SELECT count(*) FROM job");
    assert_eq!(jobs_there, i64::try_from(jobs).unwrap(), "jobs lost");
    let torn = world.number(
        "SELECT count(*) FROM running JOIN job ON job.id = job_id WHERE job.state <> 'queued'",
    );
    assert_eq!(torn, 0, "in two states");
    let untold = world.number(
        "SELECT count(*) FROM job WHERE attempts <> (SELECT count(*) FROM attempt WHERE job_id = job.id)",
    );
    assert_eq!(untold, 0, "attempts counted and not recorded");
    let arrived = i64::try_from(world.count()).unwrap();
    let spent = world.spent();
    assert!(spent >= arrived, "{arrived} arrived, {spent} spent");
    let attempts = world.number("SELECT count(*) FROM attempt");
    let running = world.number("SELECT count(*) FROM running");
    assert!(attempts + running >= arrived, "{arrived} arrived, {attempts}+{running} recorded");
    assert_eq!(
        world.sql().query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
}

/// Starts and kills `kills` runners, each after a random while, then lets one finish.
fn killed_again_and_again(world: &World, kills: u64, jobs: usize) {
    let seed = number("PACELINE_SEED", rand::random::<u32>().into());
    println!("PACELINE_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..kills {
        let mut run = world.start(&["run"]);
        let before = world.count();
        // Half of them as soon as something happens, the others whenever.
        if random.random_bool(0.5) {
            until("an arrival, or the end", || world.count() > before || !run.is_running());
        }
        std::thread::sleep(Duration::from_millis(random.random_range(0..200)));
        run.kill();
        holds(world, jobs);
    }
}

#[test]
fn repeatable_jobs_are_all_done_and_sent_at_least_once() {
    let kills = number("PACELINE_KILLS", 12);
    let jobs = usize::try_from(kills).unwrap().max(12) * 8;
    let config = Config::new().latency(Duration::from_millis(15));
    let world = World::with(config, &quota(u32::try_from(kills).unwrap()));
    world.add(0, jobs);
    killed_again_and_again(&world, kills, jobs);
    // The rest goes fast.
    world.quota("shop", "/{id}", &quota(1).replace("20/s", "200/s"));
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    holds(&world, jobs);
    assert_eq!(world.jobs(), [("done".to_owned(), jobs as u64)].into());
    let by_path = world.by_path();
    assert_eq!(by_path.len(), jobs, "some were never sent");
    let twice = by_path.values().filter(|n| **n > 1).count();
    let lost = world.number("SELECT count(*) FROM attempt WHERE reason IS NULL");
    println!("{kills} kills, {lost} attempts lost with their process, {twice} jobs sent again");
    let extra: u64 = by_path.values().map(|n| n - 1).sum();
    assert!(extra <= u64::try_from(lost).unwrap(), "{extra} sent again, {lost} lost");
    world.nothing_is_left_over();
}

#[test]
fn what_must_not_be_sent_twice_never_is_and_what_is_in_doubt_is_unsure() {
    let kills = number("PACELINE_KILLS", 12);
    let jobs = usize::try_from(kills).unwrap().max(12) * 8;
    let config = Config::new().latency(Duration::from_millis(30));
    let post =
        |limits: &str| format!("method = \"POST\"\nbody = '{{\"id\": \"{{id}}\"}}'\n{limits}");
    let world = World::with(config, &post(&quota(u32::try_from(kills).unwrap())));
    world.add(0, jobs);
    killed_again_and_again(&world, kills, jobs);
    world.quota("shop", "/{id}", &post(&quota(1).replace("20/s", "200/s")));
    let ran = world.run(&["run"]);
    holds(&world, jobs);
    let by_path = world.by_path();
    let twice: BTreeMap<_, _> = by_path.iter().filter(|(_, n)| **n > 1).collect();
    assert_eq!(twice, BTreeMap::new(), "sent twice");
    let states = world.jobs();
    println!("{kills} kills: {states:?}, {} arrived", by_path.len());
    let of = |state: &str| states.get(state).copied().unwrap_or(0);
    assert_eq!(of("done") + of("unsure"), jobs as u64, "{states:?}");
    assert!(of("done") <= by_path.len() as u64, "done without an arrival");
    // Whatever never arrived and is not done was in doubt; whatever arrived and is not done as well.
    let answered = by_path.len() as u64;
    assert!(answered <= of("done") + of("unsure"));
    // What earlier runs left unsure may have been found by a killed one.
    assert!(ran.code == 0 || (ran.code == 3 && of("unsure") > 0), "{ran}");
    world.nothing_is_left_over();
}

#[test]
fn what_a_dead_process_had_in_flight_is_done_before_the_last_one_leaves() {
    use paceline::practice::{Answer, Manner, Script};
    let silent = Script::new("/0", Answer::new(200).manner(Manner::Hang)).times(1);
    let world = World::with(Config::new().script(silent), &quota(1));
    world.add(0, 30);
    let mut first = world.start(&["run", "--count", "1"]);
    until("the silent one", || world.count() == 1);
    let other = world.start(&["run"]);
    // A third of a second before the other has nothing left to do.
    until("nearly all", || world.count() >= 24);
    first.kill();
    let ran = other.finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 30)].into());
    world.nothing_is_left_over();
}
