//! Promise 7: `why` names the limit that binds, as it changes.

use paceline::practice::Config;
use serde_json::Value;

use crate::support::world::World;

#[test]
fn of_three_limits_the_one_that_binds_is_named_as_it_changes() {
    let world = World::with(
        Config::new(),
        r#"
[[limit]]
name = "second"
kind = "rate"
rate = "2/s"
[[limit]]
name = "hour"
kind = "rolling"
amount = 4
per = "1h"
[[limit]]
name = "day"
kind = "budget"
amount = 20
per = "day"
time_zone = "UTC"
"#,
    );
    world.add(0, 10);
    let why = || -> Value { world.json(&["why", "shop"])[0].clone() };
    let ran = world.run(&["run", "--count", "1"]);
    assert_eq!(ran.code, 75, "{ran}");
    // The rate's own wait is over before a person can ask; what the run printed is what bound then.
    assert!(ran.stderr.contains("`second`"), "{ran}");
    let ran = world.run(&["run", "--max-wait", "5s"]);
    assert_eq!((ran.code, world.count()), (75, 4), "{ran}");
    let told = why();
    assert_eq!((told["state"].as_str(), told["limit"].as_str()), (Some("blocked"), Some("hour")));
    assert!(told["until"].is_string(), "{told}");
    let ran = world.run(&["budget", "spend", "shop", "20", "--limit", "day"]);
    assert_eq!(ran.code, 0, "{ran}");
    let told = why();
    let (left, until) = (told["limit"].as_str(), told["until"].as_str().unwrap());
    // The later of the two binds: in the last hour of a day that is the rolling one still.
    let late = chrono::Timelike::hour(&chrono::Utc::now()) == 23;
    assert!(left == Some("day") || late, "{told}");
    assert!(until.ends_with("T00:00:02Z") || late, "{told}");
    assert_eq!(world.count(), 4);
}

#[test]
fn a_column_called_body_is_not_taken_for_the_answers() {
    let world = World::with(Config::new(), "");
    world.home.write("b.csv", "id,body,attempts\n1,mine,many\n");
    assert_eq!(world.run(&["add", "shop", "--csv", "b.csv"]).code, 0);
    assert_eq!(world.run(&["run"]).code, 0);
    let told = world.json(&["results"]);
    assert_eq!(
        (&told["body"], &told["columns"]["body"]),
        (&serde_json::Value::Null, &"mine".into())
    );
    let csv = world.run(&["results", "--format", "csv"]).stdout;
    assert!(csv.contains("columns.body") && csv.contains("columns.attempts"), "{csv}");
    assert!(csv.contains("mine") && csv.contains("many"), "{csv}");
}
