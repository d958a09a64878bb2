//! Bing, as its preset has it: "too many requests" in JSON, under 400 or 200, and not a word about when.

use std::time::Duration;

use paceline::clock::Timestamp;
use paceline::practice::{Answer, Arrival, Config, Script, Verdict};

use crate::support::process::Process;
use crate::support::world::World;

/// Two accounts, each with a key and sites of its own.
const KEYS: &str = r#"
[batch]
max_items = 1
[credential.busy]
when = { host = "busy.example" }
secret = { key = "${env:KEY_BUSY}" }
[credential.calm]
when = { host = "calm.example" }
secret = { key = "${env:KEY_CALM}" }
[[limit]]
name = "pace"
rate = "20/s"
slack = "200ms"
key = ["credential"]
[[limit]]
name = "calls"
key = ["credential"]
# One at a time: none is under way when another is refused, however slow the machine is.
[[limit]]
name = "one"
kind = "concurrency"
amount = 1
key = ["credential"]
[[limit.for]]
when = { credential = "calm" }
amount = 64
[retry]
initial = "300ms"
"#;

const JOBS: usize = 40;
const REFUSALS: usize = 4;

fn of<'a>(arrivals: &'a [Arrival], path: &'a str) -> Vec<&'a Arrival> {
    arrivals.iter().filter(|arrival| arrival.path.starts_with(path)).collect()
}

/// From the fifth call on so many are refused, whoever makes them; then all is well again.
fn backs_off_together(refusal: Answer) {
    let script = Script::new("/busy/*", refusal).from(5).times(REFUSALS as u64);
    let mut world = World::new(Config::new().latency(Duration::from_millis(2)).script(script));
    world.environment =
        ["KEY_BUSY", "KEY_CALM"].map(|key| (key.to_owned(), "a-key".to_owned())).into();
    world.extends("mine", "bing-webmaster", "/{credential}/SubmitUrl?apikey=${secret:key}", KEYS);
    // Three sites of one key; a refusal of one concerns all.
    let mut rows = "url,credential\n".to_owned();
    for n in 0..JOBS {
        rows.push_str(&format!("https://{}.busy.example/{n},busy\n", ["a", "b", "c"][n % 3]));
        rows.push_str(&format!("https://calm.example/{n},calm\n"));
    }
    world.home.write("rows.csv", &rows);
    let added = world.run(&["add", "mine", "--csv", "rows.csv"]);
    assert_eq!(added.code, 0, "{added}");
    let runs: Vec<Process> = (0..3).map(|_| world.start(&["run"])).collect();
    for run in runs {
        let ran = run.finish();
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert_eq!(world.jobs(), [("done".to_owned(), 2 * JOBS as u64)].into());
    assert_eq!(world.number("SELECT sum(failures) FROM job"), 0);
    let arrivals = world.arrivals();
    let busy = of(&arrivals, "/busy/");
    assert_eq!(busy.len(), JOBS + REFUSALS, "each refused call is made once more");
    grows(&busy);
    calm_is_not_delayed(&of(&arrivals, "/calm/"), busy[4].at);
}

/// Pauses of all three together after a refusal, each at least as long as it must be: 300 ms, 600, 1.2 s,
/// 2.4 s. What was under way when another was refused makes none.
fn grows(busy: &[&Arrival]) {
    let pauses: Vec<Duration> = busy
        .windows(2)
        .filter(|pair| matches!(pair[0].verdict, Verdict::Scripted(_)))
        .map(|pair| pair[1].at.since(pair[0].at))
        .filter(|pause| pause.as_millis() >= 290)
        .collect();
    println!("pauses: {pauses:?}");
    assert!(pauses.len() >= REFUSALS - 1, "{pauses:?}");
    for (n, pause) in pauses.iter().enumerate() {
        assert!(pause.as_millis() >= 290 << n, "{n}: {pauses:?}");
    }
}

/// The other key's jobs went out while this one's waited.
fn calm_is_not_delayed(calm: &[&Arrival], refused_at: Timestamp) {
    assert_eq!(calm.len(), JOBS);
    let last = calm.last().unwrap().at.since(refused_at);
    assert!(last < Duration::from_secs(4), "{last:?} after the first refusal");
}

#[test]
fn too_many_requests_under_400_are_backed_off_from_together() {
    backs_off_together(
        Answer::new(400).body(r#"{"ErrorCode": 4, "Message": "ERROR!!! ThrottleUser"}"#),
    );
}

#[test]
fn too_many_requests_under_200_are_backed_off_from_together() {
    backs_off_together(
        Answer::new(200).body(r#"{"ErrorCode": 17, "Message": "ERROR!!! Too many requests"}"#),
    );
}
