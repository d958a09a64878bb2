//! Acting on jobs and partitions.

use super::bench::{Bench, catalogue};

#[test]
fn a_wrong_load_goes_and_another_stays() {
    let bench = Bench::new();
    bench.write("wrong.csv", catalogue(0, 50_000));
    bench.write("right.csv", catalogue(1_000_000, 100));
    bench.run("add shop --csv wrong.csv --load wrong").ends(0);
    bench.run("add shop --csv right.csv --load right").ends(0);
    bench.run("cancel --load wrong").ends(2).complains(&["this would cancel 50,000 jobs", "--yes"]);
    bench.run("cancel --load wrong --yes").ends(0).tells(&["50,000 jobs cancelled"]);
    assert_eq!(bench.count("wrong", "cancelled"), 50_000);
    assert_eq!(bench.count("right", "queued"), 100);
    bench.run("prune --load wrong --yes").ends(0).tells(&["50,000 jobs pruned"]);
    assert_eq!(bench.json("loads").as_array().unwrap().len(), 1);
}

#[test]
fn one_job_needs_no_yes() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1 https://a.example/2").ends(0);
    bench.run("cancel 1").ends(0).tells(&["1 job cancelled"]);
    bench.run("cancel 1").ends(2).complains(&["job 1 is cancelled"]);
    bench.run("retry 1").ends(0).tells(&["1 job queued"]);
    bench.run("set 2 --priority 9").ends(0).tells(&["1 job changed"]);
    assert_eq!(bench.json("jobs 2")[0]["priority"], 9);
    bench.run("set 2 --deadline 1h").ends(0);
    assert!(bench.json("jobs 2")[0]["deadline_at"].is_string());
    bench.run("set 2 --deadline none").ends(0);
    assert!(bench.json("jobs 2")[0]["deadline_at"].is_null());
    bench.run("resolve 1 --as done").ends(2).complains(&["resolve is for unsure jobs"]);
    bench.run("cancel 1 2").ends(2).complains(&["this would cancel 2 jobs"]);
}

#[test]
fn a_filter_without_a_state_does_not_send_again_what_is_cancelled() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1 --load x").ends(0);
    bench.run("cancel 1").ends(0);
    bench.run("retry --load x --yes").ends(0).tells(&["0 jobs queued"]);
    bench.run("retry --load x --state cancelled --yes").ends(0).tells(&["1 job queued"]);
}

#[test]
fn what_is_held_says_so_and_is_let_go() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1 https://b.example/1").ends(0);
    let key = ["hold", "engine", "--key", "site=https://a.example", "--why", "site moved"];
    bench.exec(&key, b"").ends(0).tells(&["1 partition of engine held"]);
    let status = bench.json("status");
    assert_eq!(status["upstreams"][0]["held"], true);
    let why = bench.json("why engine");
    assert_eq!(why.as_array().unwrap().len(), 1);
    assert_eq!(why[0]["state"], "held");
    assert_eq!(why[0]["detail"], "site moved");
    assert_eq!(bench.json("why 1")["turn"], "held");
    assert_eq!(bench.json("why 2")["turn"], "ready");
    bench.run("why engine").ends(0).tells(&["paceline resume engine --key site=https://a.example"]);
    bench.run("resume engine").ends(0);
    assert_eq!(bench.json("status")["upstreams"][0]["held"], false);
    bench.exec(&["hold", "engine", "--key", "site=x", "--why", "y"], b"").ends(2);
    bench.run("hold engine --why maintenance").ends(0);
    bench.run("status").ends(0).tells(&["held since", "maintenance"]);
    assert_eq!(bench.json("why 2")["detail"], "maintenance");
}

#[test]
fn units_spent_elsewhere_count() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("budget spend shop 11").ends(0).tells(&["11 of 11 spent"]);
    let why = bench.json("why 1");
    assert_eq!((&why["limit"], &why["state"]), (&"daily".into(), &"queued".into()));
    assert!(why["until"].is_string());
    bench.run("why 1").ends(0).tells(&[
        "for the limit `daily`",
        "(America/Los_Angeles) = ",
        " UTC here, in ",
    ]);
    bench.run("budget").ends(0).tells(&["shop", "daily", "11", "(America/Los_Angeles)"]);
    bench.run("budget spend shop -1").ends(0).tells(&["10 of 11 spent"]);
    assert_eq!(bench.json("why 1")["turn"], "ready");
    bench.run("budget spend engine 2 --key site=https://a.example").ends(0).tells(&["2 of 5"]);
}

#[test]
fn pruning_by_age_keeps_what_is_young() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1").ends(0);
    bench.run("cancel 1").ends(0);
    assert_eq!(bench.json("prune")["pruned"], 0);
    bench.run("prune --older-than 0 --yes").ends(0).tells(&["1 job pruned"]);
}

#[test]
fn a_hold_needs_no_words_and_a_resume_says_what_goes_on() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1 https://b.example/1").ends(0);
    bench.run("hold engine --key site=https://a.example").ends(0);
    bench.run("why engine").ends(0).tells(&["held by hand"]);
    bench
        .run("resume engine --key site=https://a.example")
        .ends(0)
        .tells(&["1 partition of engine goes on"]);
    bench.run("hold engine").ends(0);
    bench
        .run("resume engine --key site=https://b.example")
        .ends(0)
        .tells(&["all of engine is still held"]);
    bench.run("resume engine").ends(0).tells(&["engine goes on"]);
}
