//! Promises 1, 2 and 3 while somebody sets the wall clock under a run: no second allowance, no burst, no
//! lease or block that ends early, and nobody sleeps for longer than its own limit explains.

use std::time::Duration;

use paceline::clock::{NANOS_PER_SEC, Timestamp};
use paceline::practice::{Answer, Config, Limit, Rule, Script};

use crate::support::process::until;
use crate::support::shim::Shim;
use crate::support::world::World;

const HOUR: i64 = 3600 * NANOS_PER_SEC;
const STEPS: [i64; 6] =
    [2 * NANOS_PER_SEC, -2 * NANOS_PER_SEC, 3 * HOUR, -3 * HOUR, 48 * HOUR, -48 * HOUR];

/// Noon in Los Angeles; the day ends at `RESET`.
const NOON: &str = "2026-06-10T19:00:00Z";
const RESET: &str = "2026-06-11T07:00:00Z";
const AMOUNT: u64 = 160;

const SHARED: &str = r#"
[[limit]]
name = "plan"
kind = "rate"
rate = "40/s"
burst = 20
counted = "bucket"
slack = "125ms"
path_jitter = "200ms"
[[limit]]
name = "daily"
kind = "budget"
amount = 160
per = "day"
time_zone = "America/Los_Angeles"
"#;

fn strict() -> Config {
    let plan = Limit::Bucket { units: 40, per: Duration::from_secs(1), burst: 20 };
    let daily = Limit::day(AMOUNT, chrono_tz::America::Los_Angeles);
    Config::new().rule(Rule::new("plan", plan)).rule(Rule::new("daily", daily))
}

fn instant(text: &str) -> Timestamp {
    text.parse::<chrono::DateTime<chrono::Utc>>().unwrap().into()
}

/// The longest time between two arrivals.
fn worst_gap(world: &World) -> Duration {
    let arrivals = world.arrivals();
    arrivals.windows(2).map(|pair| pair[1].at.since(pair[0].at)).max().unwrap()
}

#[test]
fn steps_under_a_run_neither_stop_it_nor_give_a_second_allowance() {
    let shim = Shim::at(NOON);
    let world = World::on(&shim, strict(), SHARED);
    world.add(0, 165);
    let mut run = world.start(&["run", "--max-wait", "3s"]);
    for (number, step) in STEPS.into_iter().flat_map(|step| [step, 0]).enumerate() {
        let count = 12 * (number + 1);
        until("more arrivals", || world.count() >= count || !run.is_running());
        assert!(world.count() >= count, "it left after {}, before a step to {step}", world.count());
        shim.set_wrong_by(step);
    }
    let ran = run.finish();
    assert_eq!(ran.code, 75, "{ran}");
    let stats = world.stats();
    assert_eq!((stats.count, stats.refused), (AMOUNT, 0), "{ran}");
    assert!(stats.rule("plan").unwrap().excess_offered <= 0.0, "{stats:?}");
    // All of it at 40/s takes four seconds: a sleep that a step made would be seen.
    assert!(worst_gap(&world) < Duration::from_secs(2), "{:?}", worst_gap(&world));
    // Two seconds are where a step begins; the others are told, each once.
    let told =
        ran.stderr.lines().filter(|line| line.starts_with("somebody set this machine's clock"));
    let told = told.filter(|line| line.ends_with("3 h") || line.ends_with("2 d")).count();
    assert_eq!(told, 8, "{ran}");

    the_day_stays_spent(&shim, &world);
    shim.set_wrong_by(48 * HOUR);
    shim.pass_to("2026-06-11T07:00:03Z");
    let ran = world.run(&["run", "--max-wait", "3s"]);
    assert_eq!((ran.code, world.count()), (0, 165), "{ran}");
    assert_eq!(world.stats().refused, 0);
}

/// Whatever the clock is set to, nothing goes, and the wait is that of the later of two calendars.
fn the_day_stays_spent(shim: &Shim, world: &World) {
    for step in STEPS {
        shim.set_wrong_by(step);
        let told = world.json(&["run", "--max-wait", "0"]);
        assert_eq!((told["sent"].as_u64(), told["exit"].as_u64()), (Some(0), Some(75)), "{told}");
        let next_at = instant(told["next_at"].as_str().unwrap()).shifted(-step);
        let late_by = if step == -3 * HOUR { 3 * HOUR } else { 0 };
        let reset = instant(RESET).shifted(late_by);
        assert!(next_at.since(reset) <= Duration::from_secs(5), "{step}: {next_at}");
        assert!(next_at.shifted(2 * NANOS_PER_SEC) >= reset, "{step}: {next_at}");
    }
    assert_eq!(world.stats().count, AMOUNT);
}

#[test]
fn no_lease_ends_early() {
    let shim = Shim::at(NOON);
    let slow = Config::new().latency(Duration::from_secs(3));
    let world = World::on(&shim, slow, "timeout = \"8s\"\n");
    world.add(0, 8);
    // Each looks every second for leases that ran out.
    let runs = [world.start(&["run"]), world.start(&["run", "--follow", "--for", "10h"])];
    until("all in flight", || world.count() == 8);
    for step in [3 * HOUR, 48 * HOUR] {
        shim.set_wrong_by(step);
        // Each run has looked.
        std::thread::sleep(Duration::from_millis(1200));
    }
    let [one, other] = runs;
    let ran = one.finish();
    assert_eq!(ran.code, 0, "{ran}");
    other.signal("INT");
    other.finish();
    assert_eq!((world.count(), world.jobs()), (8, [("done".to_owned(), 8)].into()));
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE status = 200"), 8);
}

/// A refusal for 3 s, and a failure that backs off, under a clock that is set meanwhile.
fn waits_as_told(steps: [i64; 2]) {
    let shim = Shim::at(NOON);
    let refusal = Answer::new(429).wait(Duration::from_secs(3)).header("Retry-After", "3");
    let refusal = Script::new("/a", refusal).times(1).closing("/a");
    let failure = Script::new("/b", Answer::new(500)).times(1);
    let text = "[retry]\ninitial = \"3s\"\n[[limit]]\nname = \"each\"\nkind = \"rate\"\nrate = \"9/s\"\n\
                key = [\"id\"]\n";
    let world = World::on(&shim, Config::new().script(refusal).script(failure), text);
    world.home.write("ab.csv", "id\na\nb\n");
    assert_eq!(world.run(&["add", "shop", "--csv", "ab.csv"]).code, 0);
    let run = world.start(&["run", "--max-wait", "10s"]);
    for step in steps {
        until("both tried", || {
            world.number("SELECT count(*) FROM attempt WHERE reason IS NOT NULL") == 2
        });
        shim.set_wrong_by(step);
        // So long that the run plans by the wrong clock before it is set again.
        std::thread::sleep(Duration::from_millis(600));
    }
    let ran = run.finish();
    assert_eq!((ran.code, world.count(), world.stats().early), (0, 4, 0), "{ran}");
    for path in ["/a", "/b"] {
        let arrivals = world.arrivals();
        let at: Vec<_> = arrivals.iter().filter(|a| a.path == path).map(|a| a.at).collect();
        let gap = at[1].since(at[0]);
        let told = Duration::from_millis(2600)..Duration::from_secs(6);
        assert!(told.contains(&gap), "{path}: {gap:?}");
    }
}

#[test]
fn a_block_and_a_backoff_last_as_long_though_the_clock_is_set_forward() {
    waits_as_told([3 * HOUR, 48 * HOUR]);
}

#[test]
fn a_block_and_a_backoff_last_no_longer_though_the_clock_is_set_back() {
    waits_as_told([-3 * HOUR, -48 * HOUR]);
}
