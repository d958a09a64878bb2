//! IndexNow, as its preset has it: a fresh key is refused while it is verified, a wrong one for ever.

use std::time::Duration;

use paceline::practice::{Answer, Arrival, Config, Script};

use crate::support::Ran;
use crate::support::world::World;

const A: &str = "https://a.example";
const B: &str = "https://b.example";

/// One file for two hosts, each with a key of its own; the practice upstream tells them by the path.
const KEYS: &str = r#"
[batch]
max_items = 1
body = '{"host": "{host}", "key": "${secret:key}", "urlList": {items.url}}'
[credential.a]
when = { host = "a.example" }
secret = { key = "${env:KEY_A}" }
[credential.b]
when = { host = "b.example" }
secret = { key = "${env:KEY_B}" }
[retry]
initial = "100ms"
[[limit]]
name = "pace"
slack = "200ms"
"#;

const PATH: &str = "/indexnow/{host}/${secret:key}";

/// As the preset has it.
const SAYS: &str = "see that https://{host}/KEY.txt can be fetched and holds the key, which the search engine has not read yet";

/// The preset's rule with its waits cut short.
fn pending(wait: &str, at_most: &str) -> String {
    format!(
        "[[reading]]\nwhen = {{ status = 403, json = {{ \"/errorCode\" = \"SiteVerificationNotCompleted\" }} }}\n\
         reason = \"key_pending\"\nwait = \"{wait}\"\nfor_at_most = \"{at_most}\"\nthen = \"misconfigured\"\n\
         says = \"{SAYS}\"\n"
    )
}

fn refusal(code: &str, message: &str) -> Answer {
    Answer::new(403).body(format!(r#"{{"errorCode": "{code}", "message": "{message}"}}"#))
}

fn world(config: Config, rate: &str, more: &str) -> World {
    let mut world = World::new(config.script(Script::new("/indexnow/*", Answer::new(202))));
    let key = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    world.environment = vec![key("KEY_A", "key-of-a"), key("KEY_B", "key-of-b")];
    world.extends("mine", "indexnow", PATH, &format!("{KEYS}rate = \"{rate}\"\n{more}"));
    world
}

fn add(world: &World, host: &str, jobs: usize) {
    let urls: Vec<String> = (0..jobs).map(|n| format!("{host}/{n}")).collect();
    let arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    let ran = world.run(&[&["add", "mine", "--quiet"], &arguments[..]].concat());
    assert_eq!(ran.code, 0, "{ran}");
}

fn of(world: &World, host: &str) -> Vec<Arrival> {
    let path = format!("/indexnow/{host}/");
    world.arrivals().into_iter().filter(|arrival| arrival.path.starts_with(&path)).collect()
}

#[test]
fn a_fresh_key_is_waited_for_and_then_all_goes_out_once() {
    const REFUSED: usize = 4;
    let answer = refusal("SiteVerificationNotCompleted", "Site verification is not completed");
    let config =
        Config::new().script(Script::new("/indexnow/a.example/*", answer).times(REFUSED as u64));
    let world = world(config, "20/s", &pending("500ms", "1m"));
    add(&world, A, 6);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let calls = of(&world, "a.example");
    assert_eq!(calls.len(), REFUSED + 6, "each job goes out once more than it was refused");
    let waits: Vec<Duration> =
        calls.windows(2).take(REFUSED).map(|pair| pair[1].at.since(pair[0].at)).collect();
    // One may have been under way when the first was refused.
    let kept = waits.iter().filter(|wait| **wait >= Duration::from_millis(500)).count();
    assert!(kept >= REFUSED - 1 && waits[REFUSED - 1].as_millis() >= 500, "{waits:?}");
    assert_eq!(world.jobs(), [("done".to_owned(), 6)].into());
    assert_eq!(world.number("SELECT count(*) FROM attempt WHERE reason = 'accepted_pending'"), 6);
    assert_eq!(world.number("SELECT sum(failures) FROM job"), 0, "waiting is none");
    assert_eq!(world.run(&["run"]).code, 0);
    assert_eq!(world.count(), REFUSED + 6, "what was taken is not sent again");
}

/// What a person must read, wherever they look.
fn says_what_to_do(ran: &Ran) {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    let to_do =
        "put the key into https://a.example/KEY.txt, where the search engine found no key file";
    assert!(all.contains(&format!("{to_do}: no file for")), "{ran}");
    assert!(all.contains("paceline resume mine --key credential=a --key host=a.example"), "{ran}");
    assert!(!all.contains("key-of-a"), "{ran}");
}

#[test]
fn a_wrong_key_is_held_at_once_and_the_other_host_goes_on() {
    let wrong = refusal("KeyNotFound", "no file for key-of-a");
    let config = Config::new().script(Script::new("/indexnow/a.example/key-of-a", wrong));
    let mut world = world(config, "4/s", "");
    add(&world, A, 8);
    add(&world, B, 8);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    says_what_to_do(&ran);
    let held = of(&world, "a.example").len();
    assert!(held <= 3, "{held} calls with a wrong key");
    assert_eq!(of(&world, "b.example").len(), 8);
    assert_eq!(world.jobs(), [("done".to_owned(), 8), ("queued".to_owned(), 8)].into());
    for look in [&["why", "mine"][..], &["status"], &["why", &format!("{A}/3")]] {
        says_what_to_do(&world.run(look));
    }
    // Still wrong: one call finds out, and holds again.
    let resume = ["resume", "mine", "--key", "host=a.example"];
    assert_eq!(world.run(&resume).code, 0);
    assert_eq!(world.run(&["run"]).code, 4);
    assert_eq!(of(&world, "a.example").len(), held + 1, "one probe");
    // Right: one call finds out, then all go.
    world.environment =
        vec![("KEY_A".to_owned(), "right".to_owned()), ("KEY_B".to_owned(), "key-of-b".to_owned())];
    assert_eq!(world.run(&["run"]).code, 4, "a held partition stays so");
    assert_eq!(world.run(&resume).code, 0);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(of(&world, "a.example").len(), held + 1 + 8);
    assert_eq!(world.jobs(), [("done".to_owned(), 16)].into());
}

#[test]
fn a_key_that_stays_pending_is_held_however_often_the_run_is_started_anew() {
    let answer = refusal("SiteVerificationNotCompleted", "Site verification is not completed");
    let config = Config::new().script(Script::new("/indexnow/a.example/*", answer));
    let world = world(config, "20/s", &pending("300ms", "2s"));
    add(&world, A, 30);
    add(&world, B, 3);
    let begun = std::time::Instant::now();
    let mut runs = 0;
    let ran = loop {
        let both =
            [world.start(&["run", "--max-wait", "0"]), world.start(&["run", "--max-wait", "0"])];
        let [ran, other] = both.map(crate::support::process::Process::finish);
        runs += 1;
        assert!(begun.elapsed() < crate::support::process::PATIENCE, "{ran}");
        if ran.code == 4 && other.code == 4 {
            break ran;
        }
        assert!([4, 75].contains(&ran.code), "{ran}");
    };
    let calls = of(&world, "a.example");
    let stood = calls.last().unwrap().at.since(calls[0].at);
    println!("{runs} pairs of runs, {} calls in {stood:?}", calls.len());
    assert!(
        stood >= Duration::from_secs(2) && calls.len() <= 2 + 2000 / 300 + 4,
        "{}",
        calls.len()
    );
    assert!(ran.stderr.contains("(misconfigured)"), "{ran}");
    let told = "see that https://a.example/KEY.txt can be fetched and holds the key";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("did not pass within 2 s"), "{ran}");
    assert_eq!(world.jobs(), [("done".to_owned(), 3), ("queued".to_owned(), 30)].into());
    assert_eq!(world.number("SELECT sum(failures) FROM job"), 0);
}

#[test]
fn six_keys_for_six_hosts_stand_in_one_file() {
    let mut world = World::new(Config::new().script(Script::new("*", Answer::new(202))));
    let mut text = "body = '{\"host\": \"{host}\", \"key\": \"${secret:key}\", \
        \"keyLocation\": \"https://{host}/{file}\", \"urlList\": [\"{url}\"]}'\n"
        .to_owned();
    let host = |n: usize| format!("h{n}.example");
    for n in 1..=6 {
        text.push_str(&format!(
            "[credential.h{n}]\nwhen = {{ host = \"{}\" }}\nset = {{ file = \"keys/{n}.txt\" }}\n\
             secret = {{ key = \"${{env:KEY_{n}}}\" }}\n",
            host(n)
        ));
        world.environment.push((format!("KEY_{n}"), format!("the-key-{n}")));
    }
    world.extends("mine", "indexnow", "/indexnow", &text);
    for n in 1..=6 {
        let urls = [format!("https://{}/a", host(n)), format!("https://{}/b", host(n))];
        assert_eq!(world.run(&["add", "mine", &urls[0], &urls[1]]).code, 0);
    }
    let refused = world.run(&["add", "mine", "https://h7.example/a"]);
    assert_eq!(refused.code, 3, "{refused}");
    let told = "no credential is for host = \"h7.example\": declare one with that in its `when`, or write \
                --credential with one of h1, h2, h3, h4, h5, h6";
    assert!(refused.stderr.contains(told), "{refused}");
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    let sent: std::collections::BTreeSet<String> = world
        .arrivals()
        .iter()
        .map(|arrival| {
            let body: serde_json::Value = serde_json::from_slice(&arrival.body).unwrap();
            let text = |name: &str| body[name].as_str().unwrap().to_owned();
            format!(
                "{} {} {} {}",
                text("host"),
                text("key"),
                text("keyLocation"),
                body["urlList"][0]
            )
        })
        .collect();
    let wished = (1..=6).flat_map(|n| {
        let host = host(n);
        ["a", "b"].map(|page| {
            format!("{host} the-key-{n} https://{host}/keys/{n}.txt \"https://{host}/{page}\"")
        })
    });
    assert_eq!(sent, wished.collect());
    let kept = std::fs::read(world.home.path(crate::support::world::STORE)).unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("the-key-"), "no key is stored");
    let origin = world.run(&["quotas", "show", "mine", "--origin"]).stdout;
    let from = |line: &str| origin.lines().find(|told| told.contains(line)).unwrap().to_owned();
    assert!(from("[credential.h6]").starts_with("quotas/mine.toml:"), "{origin}");
    assert!(from("rate = \"1/s\"").starts_with("built-in indexnow.toml:"), "{origin}");
}
