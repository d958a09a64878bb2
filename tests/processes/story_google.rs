//! Google, as its presets have it: the day is used up, "try again tomorrow", and nobody says whose
//! tomorrow. The machine's zone and its midnights have no say in it.

use paceline::practice::{Answer, Config, Script};

use crate::support::shim::Shim;
use crate::support::world::World;

const TOMORROW: &str = "Sorry, we couldn't process this request because you've exceeded your daily \
    quota. Please try submitting this again tomorrow.";

/// Granted `before` times, then used up for the next `times` calls.
fn used_up(before: u64, times: u64) -> Config {
    let body = format!(r#"{{"error": {{"code": 429, "message": "{TOMORROW}"}}}}"#);
    Config::new()
        .script(Script::new("*", Answer::new(429).body(body)).from(before + 1).times(times))
}

/// Runs in a zone, at once or with a little patience; its answer in JSON. One call at a time: else chance has it
/// how many leave before a refusal is read.
fn run_in(world: &mut World, zone: &str) -> serde_json::Value {
    world.environment.retain(|(name, _)| name != "TZ");
    world.environment.push(("TZ".to_owned(), zone.to_owned()));
    world.json(&["run", "--max-wait", "2s", "--concurrency", "1"])
}

fn next_at(told: &serde_json::Value) -> &str {
    assert_eq!(told["exit"], 75, "{told}");
    told["next_at"].as_str().unwrap()
}

/// The instants are in UTC; a reset is waited for with up to 30 s of jitter.
fn waits_for_the_pacific_midnight(now: &str, reset: &str) {
    let day = &reset[..16];
    let zones =
        ["UTC", "Asia/Tokyo", "Pacific/Auckland", "Pacific/Honolulu", "America/Los_Angeles"];
    for zone in zones {
        let shim = Shim::at(now);
        let mut world = World::new(used_up(3, 1).clock(shim.truth()));
        world.environment = shim.environment();
        let pace = "[auth]\nkind = \"command\"\ncommand = [\"echo\", \"t0ken\"]\n\
            [[limit]]\nname = \"per-minute\"\nslack = \"200ms\"\n";
        world.extends("mine", "google-indexing", "/publish", pace);
        let added = world.run(&[
            "add",
            "mine",
            "https://a.example/1",
            "https://a.example/2",
            "https://a.example/3",
            "https://a.example/4",
            "https://a.example/5",
        ]);
        assert_eq!(added.code, 0, "{added}");
        let told = run_in(&mut world, zone);
        assert!(next_at(&told).starts_with(day), "{zone} at {now}: {told}");
        assert_eq!((world.count(), told["done"].as_u64()), (4, Some(3)), "{zone}: {told}");
        let why = world.run(&["why", "mine"]);
        assert!(why.stdout.contains("00:00:"), "{why}");
        assert!(
            why.stdout.contains("(America/Los_Angeles)") || zone == "America/Los_Angeles",
            "{why}"
        );
        assert!(why.stdout.contains("again tomorrow"), "{why}");
        // Just before it nothing goes; then the rest.
        shim.pass_to(&format!("{}59:58Z", &shifted_hour(reset)));
        assert_eq!(next_at(&run_in(&mut world, zone))[..16], *day, "{zone}");
        shim.pass_to(&reset.replace(":00Z", ":40Z"));
        let told = run_in(&mut world, zone);
        assert_eq!((told["exit"].as_u64(), world.count()), (Some(0), 6), "{zone}: {told}");
    }
}

/// The hour before a full one: `2026-12-01T07:` of `2026-12-01T08:00:00Z`.
fn shifted_hour(reset: &str) -> String {
    let hour: u32 = reset[11..13].parse().unwrap();
    format!("{}{:02}:", &reset[..11], hour - 1)
}

#[test]
fn tomorrow_is_the_declared_zones_just_before_its_midnight() {
    waits_for_the_pacific_midnight("2026-12-01T07:40:00Z", "2026-12-01T08:00:00Z");
}

#[test]
fn tomorrow_is_the_declared_zones_just_before_and_after_other_midnights() {
    // Tokyo's midnight is at 15:00, that of UTC at 00:00.
    waits_for_the_pacific_midnight("2026-12-01T14:59:30Z", "2026-12-02T08:00:00Z");
    waits_for_the_pacific_midnight("2026-12-02T00:00:10Z", "2026-12-02T08:00:00Z");
}

/// The button that has no API, as if there were one: its budget is what is tried.
fn by_hand(shim: &Shim, config: Config, more: &str) -> World {
    let mut world = World::new(config.clock(shim.truth()));
    world.environment = shim.environment();
    let pace = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"200ms\"\n";
    let text = format!("[columns.by_hand]\ndefault = \"no\"\none_of = [\"no\"]\n{pace}{more}");
    world.extends("mine", "google-request-indexing", "/request?url={url}", &text);
    let urls: Vec<String> = (0..20).map(|n| format!("https://a.example/{n}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let added = world.run(&[&["add", "mine", "--dedupe", "none"], &urls[..]].concat());
    assert_eq!(added.code, 0, "{added}");
    world
}

#[test]
fn eleven_a_day_in_an_unknown_zone_are_eleven_in_25_hours() {
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Honolulu"] {
        let shim = Shim::at("2026-11-30T23:50:00Z");
        let mut world = by_hand(&shim, Config::new(), "");
        let told = run_in(&mut world, zone);
        assert!(next_at(&told).starts_with("2026-12-02T00:50:"), "{zone}: {told}");
        assert_eq!(world.count(), 11);
        // Midnight in UTC, midnight here: nothing.
        for instant in ["2026-12-01T00:00:05Z", "2026-12-01T10:00:05Z", "2026-12-02T00:49:50Z"] {
            shim.pass_to(instant);
            assert!(next_at(&run_in(&mut world, zone)).starts_with("2026-12-02T00:50:"), "{zone}");
        }
        assert_eq!(world.count(), 11);
        shim.pass_to("2026-12-02T00:51:00Z");
        assert_eq!(run_in(&mut world, zone)["exit"], 0);
        assert_eq!(world.count(), 20);
    }
}

#[test]
fn a_refusal_in_an_unknown_zone_is_waited_for_25_hours() {
    for zone in ["UTC", "Asia/Tokyo", "America/Los_Angeles"] {
        let shim = Shim::at("2026-11-30T23:50:00Z");
        let mut world = by_hand(&shim, used_up(5, 1), "");
        let told = run_in(&mut world, zone);
        assert!(next_at(&told).starts_with("2026-12-02T00:5"), "{zone}: {told}");
        assert_eq!(world.count(), 6);
        let why = world.run(&["why", "mine"]).stdout;
        assert!(
            why.contains("nobody states when its day begins, and no answer has shown it yet"),
            "{why}"
        );
    }
}

/// Asked each hour, the answers tell when the day begins.
#[test]
fn why_shows_which_resets_the_answers_still_allow() {
    let hourly = "[[reading]]\nwhen = { status = 429 }\nreason = \"quota_exhausted\"\n\
                  limit = \"daily\"\nwait = \"1h\"\n";
    let shim = Shim::at("2026-12-01T05:30:00Z");
    let mut world = by_hand(&shim, used_up(2, 3), hourly);
    let zone = "Europe/Berlin";
    for instant in ["05:30:10", "06:31:00", "07:32:00"] {
        shim.pass_to(&format!("2026-12-01T{instant}Z"));
        assert_eq!(run_in(&mut world, zone)["exit"], 75);
    }
    let why = world.run(&["why", "mine"]).stdout;
    assert!(why.contains("its answers leave 07:32 to 05:31 UTC (08:32 to 06:31 here)"), "{why}");
    let json = world.json(&["why", "mine"]);
    assert_eq!(json[0]["resets_between"], serde_json::json!([["07:32", "05:31"]]), "{json}");
    shim.pass_to("2026-12-01T08:33:00Z");
    run_in(&mut world, zone);
    let why = world.run(&["why", "mine"]).stdout;
    let told = "its answers leave 07:32 to 08:34 UTC (08:32 to 09:34 here), as midnight would be in \
                America/Los_Angeles";
    assert!(why.contains(told), "{why}");
}
