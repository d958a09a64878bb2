//! Promise 6 and "no secret anywhere": what a call needs to know is in no file, answer, log or error.

use paceline::practice::{Answer, Config, Manner, Script};

use crate::support::Ran;
use crate::support::process::Process;
use crate::support::world::{STORE, World};

const SECRET: &str = "hunter2-Ünsafe/& \"quoted\"";

/// As it may stand in a URL, a JSON string, or a log.
fn forms() -> Vec<String> {
    let in_url = percent_encoding::utf8_percent_encode(SECRET, percent_encoding::NON_ALPHANUMERIC);
    let in_json = serde_json::to_string(SECRET).unwrap();
    vec![
        SECRET.to_owned(),
        in_url.to_string(),
        in_json.trim_matches('"').to_owned(),
        // Each part that no encoding changes.
        "hunter2".to_owned(),
    ]
}

fn is_clean(what: &str, bytes: &[u8]) {
    for form in forms() {
        let found = bytes.windows(form.len()).position(|window| window == form.as_bytes());
        assert!(found.is_none(), "the secret as {form:?} is in {what}");
    }
}

fn ran_clean(what: &str, ran: &Ran) {
    is_clean(&format!("stdout of {what}"), ran.stdout.as_bytes());
    is_clean(&format!("stderr of {what}"), ran.stderr.as_bytes());
}

#[test]
fn a_secret_is_in_no_file_answer_log_or_error() {
    let echo = |status| {
        let text =
            format!("{{\"you sent\": {}, \"stock\": {0}}}", serde_json::to_string(SECRET).unwrap());
        Answer::new(status).header("content-type", "application/json").body(text)
    };
    let config = Config::new()
        .script(Script::new("/404", echo(404)))
        .script(Script::new("/429", echo(429).header("retry-after", "1")).times(1))
        .script(Script::new("/400", Answer::new(400).body(format!("wrong key {SECRET}"))))
        .script(Script::new("/500", echo(500).manner(Manner::Cut)))
        .script(Script::new("/200", echo(200)))
        .keep_headers();
    let world = World::new(config);
    let text = r#"
method = "POST"
repeatable = true
headers = { Authorization = "Bearer ${env:SHOP_TOKEN}" }
body = '{"key": "${env:SHOP_KEY}", "id": "{id}"}'
[retry]
max_attempts = 2
initial = "10ms"
max_interval = "20ms"
[keep]
body = "all"
[results]
fields = { stock = "/stock" }
"#;
    world.quota("shop", "/{id}?key=${env:SHOP_KEY}", text);
    // Nothing listens there: an error that names the address would name the secret.
    world.home.quota(
        "gone",
        &format!("[request]\nurl = \"http://127.0.0.1:1/{{id}}?key=${{env:SHOP_KEY}}\"\n{}", text),
    );
    world.home.write("rows.csv", "id\n200\n404\n429\n400\n500\n");
    for upstream in ["shop", "gone"] {
        let ran = world.run(&["add", upstream, "--csv", "rows.csv"]);
        assert_eq!(ran.code, 0, "{ran}");
        ran_clean("add", &ran);
    }
    let set = [("SHOP_KEY", SECRET), ("SHOP_TOKEN", "hunter2-token")];
    let run = |arguments: &[&str]| world.start_with(arguments, &set).finish();
    let ran = run(&["run", "-v"]);
    assert_eq!(ran.code, 3, "{ran}");
    ran_clean("run -v", &ran);
    // It did reach the upstream, in all three places.
    let arrivals = world.arrivals();
    let arrival = arrivals.iter().find(|arrival| arrival.path == "/200").unwrap();
    let headers = arrival.headers.as_ref().unwrap();
    assert_eq!(headers["authorization"], "Bearer hunter2-token");
    assert!(arrival.query.as_ref().unwrap().contains("hunter2"), "{arrival:?}");
    let body: serde_json::Value = serde_json::from_slice(&arrival.body).unwrap();
    assert_eq!(body["key"], SECRET);
    for arguments in [
        &["jobs"][..],
        &["jobs", "--json"],
        &["log"],
        &["log", "--json"],
        &["results"],
        &["results", "--json"],
        &["status"],
        &["status", "--json"],
        &["why", "gone", "--json"],
        &["show", "1", "--json"],
        &["show", "2"],
        &["show", "2", "--json"],
        &["show", "3", "--json"],
        &["show", "4", "--json"],
        &["show", "5", "--json"],
        &["show", "6", "--json"],
        &["show", "6"],
        &["quotas", "show", "shop"],
        &["add", "shop", "--set", "id=9", "--dry-run"],
    ] {
        ran_clean(&arguments.join(" "), &run(arguments));
    }
    let shown = run(&["show", "2", "--json"]).stdout;
    assert!(shown.contains("you sent") && shown.contains("${env:SHOP_KEY}"), "{shown}");
    let mut files = 0;
    for entry in std::fs::read_dir(world.home.path("")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with(STORE) {
            files += 1;
            is_clean(&entry.file_name().to_string_lossy(), &std::fs::read(entry.path()).unwrap());
        }
    }
    assert!(files >= 1);
}

#[test]
fn a_secret_that_is_not_set_holds_its_upstream_and_no_other_until_it_is() {
    let world = World::new(Config::new());
    world.quota("shop", "/shop/{id}", "headers = { Authorization = \"Bearer ${env:SHOP_KEY}\" }\n");
    world.quota("other", "/other/{id}", "");
    world.add_to("shop", 0, 3, &[]);
    world.add_to("other", 0, 3, &[]);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("SHOP_KEY"), "{ran}");
    assert!(ran.stderr.contains("not set"), "{ran}");
    let came = |path: &str| world.arrivals().iter().filter(|a| a.path.starts_with(path)).count();
    assert_eq!((came("/shop/"), came("/other/")), (0, 3), "{ran}");
    let status = world.json(&["status"]);
    let shop =
        status["upstreams"].as_array().unwrap().iter().find(|u| u["name"] == "shop").unwrap();
    assert_eq!(shop["held"], true, "{status}");
    assert!(shop["held_detail"].as_str().unwrap().contains("SHOP_KEY"), "{status}");
    // Set, it goes on by itself.
    let ran = world.start_with(&["run"], &[("SHOP_KEY", "x")]).finish();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(came("/shop/"), 3);
    assert_eq!(world.jobs(), [("done".to_owned(), 6)].into());
}

#[test]
fn a_secret_of_one_credential_holds_its_own_partition() {
    let world = World::new(Config::new());
    world.quota(
        "shop",
        "/{credential}/{id}",
        r#"
headers = { Authorization = "Bearer ${secret:key}" }
[credential.good]
secret = { key = "${env:GOOD_KEY}" }
[credential.bad]
secret = { key = "${env:BAD_KEY}" }
"#,
    );
    world.add_to("shop", 0, 3, &["--credential", "bad"]);
    world.add_to("shop", 0, 3, &["--credential", "good"]);
    let run: Process = world.start_with(&["run"], &[("GOOD_KEY", "x")]);
    let ran = run.finish();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("BAD_KEY"), "{ran}");
    assert!(world.arrivals().iter().all(|a| a.path.starts_with("/good/")), "{ran}");
    assert_eq!(world.count(), 3);
    assert_eq!(world.spent(), 0);
}

#[test]
fn a_long_secret_is_not_shown_in_part_where_an_answer_is_cut() {
    let token = format!("eyJ{}", "hunter2".repeat(90));
    let body = format!("{{\"error\": {{\"message\": \"no such token: {token}\"}}}}");
    let edge = format!("{}{token}", "m".repeat(190));
    let config = Config::new()
        .script(Script::new("/1", Answer::new(400).body(body)))
        .script(Script::new("/2", Answer::new(400).body(edge)));
    let world = World::with(config, "headers = { Authorization = \"Bearer ${env:TOKEN}\" }\n");
    world.add(1, 2);
    let ran = world.start_with(&["run"], &[("TOKEN", &token)]).finish();
    assert_eq!((ran.code, world.count()), (3, 2), "{ran}");
    ran_clean("run", &ran);
    for arguments in [&["show", "1"][..], &["show", "2"], &["log"], &["results", "--json"]] {
        ran_clean(&format!("{arguments:?}"), &world.run(arguments));
    }
    for file in [STORE, &format!("{STORE}-wal")] {
        is_clean(file, &std::fs::read(world.home.path(file)).unwrap_or_default());
    }
    let said = world.run(&["show", "1"]).stdout;
    assert!(said.contains("no such token: ${env:TOKEN}"), "{said}");
}

#[test]
fn a_secret_that_no_header_can_carry_holds_its_upstream_until_it_is_mended() {
    let text = "headers = { Authorization = \"Bearer ${env:TOKEN}\" }\n";
    let world = World::with(Config::new(), text);
    world.add(0, 30);
    let ran = world.start_with(&["run"], &[("TOKEN", "good-key\r")]).finish();
    assert_eq!((ran.code, world.count()), (4, 0), "{ran}");
    assert!(ran.stderr.contains("`${env:TOKEN}` holds a line break"), "{ran}");
    assert_eq!(world.jobs(), [("queued".to_owned(), 30)].into());
    let ran = world.start_with(&["run"], &[("TOKEN", "good-key")]).finish();
    assert_eq!((ran.code, world.count()), (0, 30), "{ran}");
}
