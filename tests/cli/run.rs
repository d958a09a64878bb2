//! `run`, where nothing can be sent.

use super::bench::{Bench, has};

#[test]
fn an_empty_queue_is_all_done() {
    let bench = Bench::new();
    let told = bench.json("run");
    has(
        &told,
        &[
            "sent", "done", "failed", "expired", "unsure", "held", "waiting", "next_at", "limit",
            "exit",
        ],
    );
    assert_eq!(told["exit"], 0);
}

#[test]
fn a_used_up_budget_must_wait() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("budget spend shop 11").ends(0);
    bench.run("run shop --max-wait 0").ends(75).complains(&[
        "1 job waits: the limit `daily` of shop binds, until",
        "(America/Los_Angeles) = ",
        " UTC here, in ",
        "paceline why shop",
    ]);
    let quiet = bench.run("run --max-wait 0 --quiet").ends(75);
    assert_eq!((quiet.out, quiet.err), (String::new(), String::new()));
    let said = bench.run("run --max-wait 0 --json").ends(75);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["exit"], &told["limit"], &told["waiting"]),
        (&75.into(), &"daily".into(), &1.into())
    );
}

#[test]
fn what_is_held_needs_a_person() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("hold shop --why maintenance").ends(0);
    bench.run("run --max-wait 0").ends(4).complains(&["1 job is held until a person acts"]);
}

#[test]
fn a_secret_that_is_not_set_is_said() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1").ends(0);
    bench.run("run --max-wait 0").ends(4).complains(&["ENGINE_KEY"]);
}

#[test]
fn spans_and_names_are_checked() {
    let bench = Bench::new();
    bench.run("run --max-wait 5").ends(2).complains(&["no unit"]);
    bench.run("run --fail-on often").ends(2);
    bench.run("run --concurrency 0").ends(2);
}

#[test]
fn a_runner_is_alone_where_it_wants_to_be_and_leaves_when_asked() {
    let bench = Bench::new();
    let mut runner = bench.command().args(["run", "shop", "--follow"]).spawn().unwrap();
    // It is there once another one sees it.
    while !bench.run("run shop --single --max-wait 0").ends(0).err.contains("serves already") {
        assert!(runner.try_wait().unwrap().is_none());
    }
    bench.run("run engine --single --max-wait 0").ends(0);
    let told = bench.json("run --single");
    assert_eq!(told["exit"], 0);
    let kill = std::process::Command::new("kill").arg(runner.id().to_string()).status().unwrap();
    assert!(kill.success());
    assert_eq!(runner.wait().unwrap().code(), Some(130));
}

#[test]
fn a_run_says_for_which_bound_it_left() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    let said = bench.run("run shop --for 1ms").ends(75);
    said.complains(&["its time (--for, --until) was over, and it left", "1 job waits"]);
    let said = bench.run("run shop --max-wait 0").ends(75);
    assert!(!said.err.contains("and it left"), "{}", said.err);
    let told = bench.run("run shop --for 1ms --json").ends(75);
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["left_for"], &told["refused"]), (&"time".into(), &0.into()), "{told}");
}
