//! Promise 7, of deadlines: what can only come too late ends at once, and says when it could have gone.

use paceline::practice::Config;

use crate::support::world::World;

#[test]
fn a_job_whose_next_instant_is_past_its_deadline_expires_at_once() {
    let world =
        World::with(Config::new(), "[[limit]]\nname = \"slow\"\nkind = \"rate\"\nrate = \"1/h\"\n");
    world.add_to("shop", 0, 3, &["--deadline", "10m"]);
    let begun = std::time::Instant::now();
    let told = world.json(&["run"]);
    assert_eq!((told["sent"].as_u64(), told["expired"].as_u64()), (Some(1), Some(2)), "{told}");
    assert_eq!(told["exit"], 3, "{told}");
    assert_eq!(world.count(), 1);
    assert!(begun.elapsed().as_secs() < 60);
    let jobs = world.json(&["jobs", "--state", "expired"]);
    let detail = jobs[0]["detail"].as_str().unwrap();
    println!("{detail}");
    let at = detail.strip_prefix("it could have gone at ").unwrap().split(' ').next().unwrap();
    let away = at.parse::<chrono::DateTime<chrono::Utc>>().unwrap() - chrono::Utc::now();
    assert!((58..=60).contains(&away.num_minutes()), "{detail}");
    assert!(detail.contains("for the limit `slow`, which is past its deadline"), "{detail}");
    let why = world.json(&["why", &jobs[0]["id"].to_string()]);
    assert_eq!((&why["state"], &why["limit"]), (&"expired".into(), &"slow".into()), "{why}");
    assert!(why["until"].as_str().unwrap().starts_with(at.trim_end_matches(|c| c != ':')), "{why}");
}
