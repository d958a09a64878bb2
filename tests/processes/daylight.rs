//! Promise 2 where clocks are changed for summer and back: in Los Angeles the 8th of March 2026 has 23
//! hours, the 1st of November 25, and each holds its amount once.

use paceline::practice::{Config, Limit, Rule};

use crate::support::process::until;
use crate::support::shim::Shim;
use crate::support::world::World;

const AMOUNT: usize = 6;

const QUOTA: &str = r#"
[[limit]]
name = "daily"
kind = "budget"
amount = 6
per = "day"
time_zone = "America/Los_Angeles"
[[limit]]
name = "pace"
kind = "rate"
rate = "2/s"
slack = "150ms"
"#;

/// A day, all in UTC.
struct Day {
    /// Just before midnight.
    eve: &'static str,
    /// Just before the clocks are changed.
    before_change: &'static str,
    /// In its last hour, and when its last calls might leave.
    late: [&'static str; 2],
    /// Its end, and from when on the next one grants.
    end: &'static str,
    next: &'static str,
}

fn holds_its_amount(day: &Day) {
    let shim = Shim::at(day.eve);
    let zone = chrono_tz::America::Los_Angeles;
    let strict = Rule::new("daily", Limit::day(AMOUNT as u64, zone));
    let world = World::on(&shim, Config::new().rule(strict), QUOTA);
    world.add(0, 4 * AMOUNT);
    // Started before midnight, the run uses the old day up; its wait ends with the reset.
    let run = world.start(&["run", "--follow"]);
    until("the eve's amount", || world.count() == AMOUNT);
    // Then the day's own, across the change.
    shim.pass_to(day.before_change);
    until("the day's amount", || world.count() == 2 * AMOUNT);
    run.signal("INT");
    assert_eq!(run.finish().code, 130);
    for instant in day.late {
        shim.pass_to(instant);
        let told = world.json(&["run", "--max-wait", "0"]);
        assert_eq!(told["sent"].as_u64(), Some(0), "{instant}: {told}");
        assert!(told["next_at"].as_str().unwrap().starts_with(day.next), "{instant}: {told}");
    }
    shim.pass_to(&day.end.replace(":00Z", ":03Z"));
    let ran = world.run(&["run", "--max-wait", "1s"]);
    assert_eq!(ran.code, 75, "{ran}");
    let stats = world.stats();
    assert_eq!((stats.count, stats.refused), (3 * AMOUNT as u64, 0));
}

#[test]
fn a_day_of_23_hours_holds_its_amount_and_ends_an_hour_early() {
    holds_its_amount(&Day {
        eve: "2026-03-08T07:59:40Z",
        before_change: "2026-03-08T09:59:58Z",
        late: ["2026-03-09T06:00:03Z", "2026-03-09T06:59:56Z"],
        end: "2026-03-09T07:00:00Z",
        next: "2026-03-09T07:00:02",
    });
}

#[test]
fn a_day_of_25_hours_holds_its_amount_and_ends_an_hour_late() {
    holds_its_amount(&Day {
        eve: "2026-11-01T06:59:40Z",
        before_change: "2026-11-01T08:59:58Z",
        late: ["2026-11-02T07:00:03Z", "2026-11-02T07:59:56Z"],
        end: "2026-11-02T08:00:00Z",
        next: "2026-11-02T08:00:02",
    });
}
