//! Quota files, readings, calendars, and the manners of the program.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use super::bench::{Bench, has};

#[test]
fn every_saved_answer_is_read() {
    let bench = Bench::new();
    let cases = include_str!("../data/readings.jsonl");
    let said = bench.run_with("read", cases.as_bytes()).ends(0);
    let told: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), cases.lines().count());
    let mut wrong = Vec::new();
    for (case, told) in cases.lines().zip(&told) {
        let case: Value = serde_json::from_str(case).unwrap();
        has(told, &["id", "reason", "retryable", "retry_at", "source", "limit", "detail"]);
        assert_eq!(case["id"], told["id"]);
        if case["expect"]["reason"] != told["reason"] {
            wrong.push(case["id"].clone());
        }
    }
    // Those of upstreams whose presets are still to come.
    assert!(wrong.len() <= 12, "{wrong:?}");
}

#[test]
fn a_bad_line_is_told_and_the_others_are_read() {
    let bench = Bench::new();
    let good = r#"{"url": "https://a.example/", "status": 429, "headers": [["Retry-After", "120"]], "received_at": "2026-03-01T12:00:00Z"}"#;
    let text = format!("{good}\nnonsense\n{{\"url\": 1}}\n\n{good}\n");
    let said = bench.run_with("read --upstream engine", text.as_bytes()).ends(2);
    assert_eq!(said.out.lines().count(), 2);
    assert!(said.err.contains("line 2: ") && said.err.contains("line 3: "));
    let told: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert_eq!(told["retry_at"], "2026-03-01T12:02:00Z");
    bench.run_with("read --upstream nobody", b"").ends(2);
}

#[test]
fn a_line_that_is_no_answer_says_what_to_write() {
    let bench = Bench::new();
    for (line, problem) in [
        (r#"{"url": "u", "status": "429"}"#, "its `status` is \"429\": write a number such as 429"),
        (r#"{"url": "u", "status": 429.5}"#, "its `status` is 429.5: write a number such as 429"),
        (r#"{"status": 429}"#, "it has no `url`: write the address that was called"),
        (r#"{"url": "u"}"#, "it has no `status`: write the answer's, such as 429"),
        (r#"{"url": 1, "status": 429}"#, "its `url` is no text but 1"),
        (
            r#"{"url": "u", "status": 429, "headers": {"a": "b"}}"#,
            "its `headers` are an object: write [[",
        ),
        (
            r#"{"url": "u", "status": 429, "headers": [["a"]]}"#,
            "header 1 of its `headers` is no pair of texts",
        ),
        (
            r#"{"url": "u", "status": 429, "received_at": "now"}"#,
            "`now` is no instant: write one such as 2026-",
        ),
        (r#"{"url": "u", "status": 429"#, "it is no JSON: it ends too early, so it may be cut"),
        (r#"{"url": u, "status": 429}"#, "it is no JSON: look at its column 9"),
        ("[]", "write a JSON object on one line"),
    ] {
        let said = bench.run_with("read", format!("\n{line}\n").as_bytes()).ends(2);
        assert!(said.err.contains("line 2: ") && said.err.contains(problem), "{}", said.err);
        assert!(!said.err.contains("expected") && !said.err.contains("line 1"), "{}", said.err);
    }
}

#[test]
fn a_reading_explains_itself() {
    let bench = Bench::new();
    let rules = "\n[[reading]]\nwhen = { status = 403, json = { \"/code\" = 7 } }\nreason = \"key_pending\"\n\
        \n[[reading]]\nwhen = { status = 429 }\nreason = \"rate_limited\"\n";
    bench.write("quotas/ruled.toml", format!("name = \"ruled\"\n{rules}"));
    let answer = r#"{"id": "a", "upstream": "ruled", "url": "https://a.example/", "status": 429, "headers": [["X-RateLimit-Remaining", "3"], ["X-RateLimit-Reset", "60"], ["Retry-After", "120"]], "received_at": "2026-03-01T12:00:00Z", "body": "{\"code\": \"overloaded\"}"}"#;
    let text = bench.run_with("read --explain", answer.as_bytes()).ends(0);
    for line in [
        "a: rate_limited; waiting can help; not before 2026-03-01T12:02:00Z; ",
        "      rule 1, quotas/ruled.toml:3 (status 403, json /code = `7`): the status is 429",
        "    > rule 2, quotas/ruled.toml:7 (status 429): rate_limited, by rule 2",
        "would say overloaded, by body /code, but an earlier reader decided",
        "    > Retry-After (retry-after: 120): 2026-03-01T12:02:00Z",
        "      reset headers (x-ratelimit-reset: 60): remaining is not 0: this limit did not refuse",
    ] {
        assert!(text.out.contains(line), "{line}\n{}", text.out);
    }
    let told = bench.run_with("read --explain --json", answer.as_bytes()).ends(0);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    let plain = bench.run_with("read", answer.as_bytes()).ends(0);
    let plain: Value = serde_json::from_str(&plain.out).unwrap();
    assert_eq!(told["reason"], plain["reason"]);
    let steps = told["explain"].as_array().unwrap();
    for step in steps {
        has(step, &["about", "reader", "looked_at", "said", "decided", "why", "file", "line"]);
    }
    let decided: Vec<_> = steps.iter().filter(|step| step["decided"] == true).collect();
    assert_eq!(decided[0]["reader"], "rule 2");
    assert_eq!(
        (&decided[0]["file"], &decided[0]["line"]),
        (&"quotas/ruled.toml".into(), &7.into())
    );
    assert_eq!(decided[0]["said"]["reason"], "rate_limited");
    assert_eq!(decided[1]["said"]["retry_at"], told["retry_at"]);
    assert_eq!(decided.len(), 2);
}

#[test]
fn every_calendar_case_is_told() {
    let bench = Bench::new();
    for line in include_str!("../data/calendar.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| case[name].as_str().unwrap();
        let words = [
            "calendar",
            "--time-zone",
            field("time_zone"),
            "--per",
            field("per"),
            "--resets-at",
            field("resets_at"),
            "--at",
            field("at"),
            "--json",
        ];
        let said = bench.exec(&words, b"").ends(0);
        let told: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(told, case["expect"], "{}", case["id"]);
    }
}

#[test]
fn quota_files_are_listed_and_shown() {
    let bench = Bench::new();
    let listed = bench.json("quotas list");
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"shop") && names.contains(&"indexnow"));
    bench.run("quotas list").ends(0).tells(&[
        "NAME",
        "10 a second",
        "pace: 1 a second, burst 1, each host",
        "a guess",
        "documented",
    ]);
    bench.write("quotas/mine.toml", "name = \"mine\"\nextends = \"shop\"\ntitle = \"Mine\"\n");
    bench
        .run("quotas show mine --origin")
        .ends(0)
        .tells(&["quotas/mine.toml:3", "quotas/shop.toml:"]);
    bench.run("quotas show mine").ends(0).tells(&["title = \"Mine\"", "[[limit]]"]);
}

#[test]
fn checks_tell_what_is_planned() {
    let bench = Bench::new();
    bench.run("quotas check shop").ends(0).tells(&["shop: valid", "one in 101 ms, burst 1: 99 %"]);
    let slow = super::bench::SHOP.replace("rate = \"10/s\"", "rate = \"10/s\"\nburst = 10");
    bench.write("new/shop.toml", slow);
    bench.run("quotas check new/shop.toml").ends(0).tells(&["planned one in"]).complains(&[
        "warning",
        "under 98.5 %",
        "burst = 1",
    ]);
    bench.run("quotas check").ends(0);
}

#[test]
fn checks_tell_what_is_lacking() {
    let bench = Bench::new();
    bench.write(
        "quotas/free.toml",
        "name = \"free\"\n[request]\nurl = \"https://a.example/{id}\"\n",
    );
    let warning = "free has no [[limit]]: nothing of it is paced";
    bench.run("quotas check free").ends(0).complains(&[&format!("warning: {warning}")]);
    assert_eq!(bench.json("quotas check free")[0]["warning"], warning);
    let note = "note: `${env:ENGINE_KEY}` is not set here";
    let all = bench.run("quotas check").ends(0).complains(&[note]);
    assert!(!all.err.contains("INDEXNOW_KEY"), "{}", all.err);
    bench.run("quotas check indexnow").ends(0).complains(&["INDEXNOW_KEY"]);
    assert_eq!(bench.json("quotas check engine")[0]["unset"][0], "ENGINE_KEY");
    bench.run("add engine https://a.example/1 --dry-run").ends(0).complains(&[note]);
    let told = bench.json("add engine https://a.example/1 --dry-run");
    assert_eq!(told["unset"][0], "ENGINE_KEY");
}

#[test]
fn checks_tell_of_rules_that_can_never_match() {
    let bench = Bench::new();
    let rule = |when: &str| format!("[[reading]]\nwhen = {{ {when} }}\nreason = \"blocked\"\n");
    let text = format!(
        "name = \"ruled\"\n{}{}{}",
        rule("status = \"4xx\""),
        rule("status = 403"),
        rule("json = { \"/a\" = { present = false }, \"/a/b\" = 1 }")
    );
    bench.write("quotas/ruled.toml", text);
    bench.run("quotas check ruled").ends(0).tells(&["ruled: valid"]).complains(&[
        "warning: quotas/ruled.toml:5:1: rule 2 can never match: rule 1 (line 2) takes every such \
         answer before it; write it before them",
        "warning: quotas/ruled.toml:8:1: rule 3 can never match: nothing can stand at `/a/b`",
    ]);
    let told = &bench.json("quotas check ruled")[0]["unreachable"];
    assert_eq!((&told[0]["rule"], &told[0]["line"]), (&2.into(), &5.into()));
    // An own rule that takes what the extended file's would have read is meant so.
    let own = format!("name = \"mine\"\nextends = \"indexnow\"\n{}", rule("status = \"4xx\""));
    bench.write("quotas/mine.toml", own);
    assert_eq!(bench.json("quotas check mine")[0]["unreachable"], serde_json::json!([]));
    for checked in bench.json("quotas check").as_array().unwrap() {
        let ruled = checked["name"] == "ruled";
        assert!(ruled || checked["unreachable"] == serde_json::json!([]), "{checked}");
    }
}

#[test]
fn a_url_that_no_row_makes_whole_is_wrong() {
    let bench = Bench::new();
    bench.write("quotas/base.toml", "name = \"base\"\n[request]\nurl = \"${env:BASE}/v1/{id}\"\n");
    bench.run("quotas check base").ends(2).complains(&["base.toml:3:7: a secret cannot bring"]);
    bench.write("quotas/binary.toml", b"name = \"binary\"\n\xff\xfe\0");
    bench.run("quotas check binary").ends(2).complains(&["binary.toml` is no UTF-8 text"]);
    bench.run("add binary x").ends(2).complains(&["is no UTF-8 text"]);
}

#[test]
fn a_pipe_that_nobody_reads_is_a_quiet_end() {
    let bench = Bench::new();
    bench.write("c.csv", super::bench::catalogue(0, 20_000));
    bench.run("add shop --csv c.csv").ends(0);
    let mut child = bench.command().args(["jobs", "--json"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(first.starts_with('['));
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn help_has_examples() {
    let bench = Bench::new();
    bench.run("--help").ends(0).tells(&["Examples:", "Exit codes of `run`"]);
    let commands = [
        "add",
        "run",
        "status",
        "why",
        "jobs",
        "show",
        "loads",
        "log",
        "results",
        "budget",
        "retry",
        "cancel",
        "resolve",
        "set",
        "prune",
        "hold",
        "resume",
        "read",
        "calendar",
        "quotas check",
        "backup",
        "restore",
        "doctor",
        "init",
        "completions",
        "man",
    ];
    for command in commands {
        bench.run(&format!("{command} --help")).ends(0).tells(&["Example", "paceline"]);
    }
}

#[test]
fn help_is_narrow_and_usage_short() {
    let bench = Bench::new();
    let help = bench.run("--help").ends(0).out;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands.lines().filter_map(|line| line.split_whitespace().next());
    for command in names.filter(|name| *name != "help") {
        let help = bench.run(&format!("{command} --help")).ends(0).out;
        let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(wide.is_empty(), "{command}: {wide:?}");
        let (own, global) = help.split_once("\nGlobal options:\n").unwrap();
        assert!(!own.contains("--store <PATH>") && global.contains("--store <PATH>"), "{help}");
    }
    let said = bench.run("why").ends(2);
    assert!(said.err.contains("Usage: paceline why <JOB|UPSTREAM>"), "{}", said.err);
}

#[test]
fn the_usual_store_is_the_users_own() {
    let bench = Bench::new();
    let output = bench.command().env_remove("PACELINE_STORE").arg("run").output().unwrap();
    assert!(output.status.success());
    assert!(bench.path(".local/state/paceline/store.db").exists());
}

#[test]
fn an_hours_start_is_told_as_one() {
    let bench = Bench::new();
    bench.run("quotas list").ends(0).tells(&["an hour, which begins on the hour in UTC"]);
    let hourly = "name = \"late\"\n[[limit]]\nname = \"points\"\nkind = \"budget\"\namount = 5\n\
        per = \"hour\"\nresets_at = \"00:30\"\ntime_zone = \"UTC\"\n";
    bench.write("quotas/late.toml", hourly);
    bench
        .run("quotas check late")
        .ends(0)
        .tells(&["5 an hour, which begins 30 min past each hour in UTC"]);
}

#[test]
fn a_check_of_all_files_says_of_presets_only_that_they_are_valid() {
    let bench = Bench::new();
    let said = bench.run("quotas check").ends(0);
    said.complains(&[]).tells(&["shop: valid", "engine: valid", "built-in presets: valid ("]);
    let lines = bench.run("quotas check").ends(0).out.lines().count();
    assert!(lines < 12, "{lines} lines");
    bench.run("quotas check indexnow").ends(0).tells(&["indexnow: valid", "planned"]);
    assert!(bench.json("quotas check").as_array().unwrap().len() > 20, "tools are told of each");
}
