//! The JSON that tools rely on.

use super::bench::{Bench, has};

#[test]
fn status_has_its_shape() {
    let bench = Bench::new();
    let empty = bench.json("status");
    has(&empty, &["store", "jobs", "next_at", "upstreams"]);
    bench.run("add shop --set isbn=1").ends(0);
    let status = bench.json("status");
    let states = ["queued", "running", "done", "failed", "expired", "cancelled", "unsure"];
    has(&status["jobs"], &states);
    assert_eq!(status["store"], bench.path("store.db").display().to_string());
    let shop = &status["upstreams"][0];
    has(shop, &["name", "held", "limits", "partitions"]);
    let daily = &shop["limits"][1];
    let fields = [
        "name",
        "kind",
        "key",
        "spent",
        "amount",
        "remaining",
        "resets_at",
        "next_at",
        "blocked_until",
        "reason",
        "effective_rate",
    ];
    has(daily, &fields);
    assert_eq!((&daily["spent"], &daily["amount"]), (&0.into(), &11.into()));
    assert_eq!(daily["key"], serde_json::json!({}));
    assert!(daily["resets_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn jobs_carry_their_columns() {
    let bench = Bench::new();
    bench.run_with("add shop --csv - --load l", b"isbn,id,title\n1,own,A\n").ends(0);
    bench.run("add engine https://a.example/page").ends(0);
    let jobs = bench.json("jobs");
    for job in jobs.as_array().unwrap() {
        has(job, &["id", "upstream", "load", "url", "state", "waiting", "columns"]);
    }
    assert_eq!(jobs[0]["url"], "http://127.0.0.1:9/v1/stock/1");
    assert_eq!((&jobs[0]["isbn"], &jobs[0]["id"]), (&"1".into(), &1.into()));
    assert_eq!(jobs[0]["columns"]["id"], "own");
    assert_eq!(jobs[1]["url"], "https://a.example/page");
    assert_eq!(jobs[1]["address"], "http://127.0.0.1:9/submit");
    assert_eq!(bench.json("jobs --load l").as_array().unwrap().len(), 1);
    assert_eq!(bench.json("jobs --state running,done").as_array().unwrap().len(), 0);
    assert_eq!(bench.json("jobs --limit 1").as_array().unwrap().len(), 1);
    assert_eq!(bench.json("jobs --since 1h --where title=A")[0]["title"], "A");
}

#[test]
fn many_jobs_are_one_array() {
    let bench = Bench::new();
    bench.write("c.csv", super::bench::catalogue(0, 2_345));
    bench.run("add shop --csv c.csv").ends(0);
    assert_eq!(bench.json("jobs").as_array().unwrap().len(), 2_345);
}

#[test]
fn why_tells_a_job_and_an_upstream() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1 --not-before 1h").ends(0);
    let why = bench.json("why 1");
    has(&why, &["state", "limit", "until", "reason", "detail"]);
    assert_eq!((&why["turn"], &why["reason"]), (&"scheduled".into(), &"not_before".into()));
    let all = bench.json("why shop");
    has(&all[0], &["key", "state", "limit", "until", "reason", "detail"]);
    has(&bench.json("show 1"), &["id", "url", "state", "attempts"]);
    assert_eq!(bench.json("log"), serde_json::json!([]));
    assert_eq!(bench.run("results --format jsonl").ends(0).out, "");
}

#[test]
fn nothing_holds_secrets() {
    let bench = Bench::new();
    let secret = "k-3fd0c2";
    let words = ["add", "engine", "https://a.example/1", "--json"];
    let output = bench.command().env("ENGINE_KEY", secret).args(words).output().unwrap();
    assert!(output.status.success());
    for line in ["show 1 --json", "jobs --json", "add engine https://a.example/2 --dry-run"] {
        let said = bench.run(line).ends(0);
        assert!(!said.out.contains(secret), "{line}");
    }
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(bench.path(file)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
}

#[test]
fn control_characters_do_nothing() {
    let bench = Bench::new();
    bench.run_with("add shop --csv -", b"isbn,title\n1,\x1b[2Jboo\n").ends(0);
    let said = bench.run("show 1").ends(0).tells(&["\\u{1b}[2Jboo"]);
    assert!(!said.out.contains('\u{1b}'));
}
