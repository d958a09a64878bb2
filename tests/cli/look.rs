//! What is shown, of what is there and of what is not.

use serde_json::json;

use super::bench::{Bench, catalogue, has};

#[test]
fn what_a_job_waits_for_is_named() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("budget spend shop 11").ends(0);
    bench.run("show 1").ends(0).tells(&[
        "waiting for the limit `daily` (budget: 11 of 11 are spent in this window",
        "until ",
        "(America/Los_Angeles) = ",
    ]);
    bench.run("jobs").ends(0).tells(&["URL", "WHY", "daily in "]);
}

#[test]
fn a_jobs_place_in_the_line_is_told() {
    let bench = Bench::new();
    bench.write("c.csv", catalogue(1, 30));
    bench.run("add shop --csv c.csv").ends(0);
    let first = bench.run("why 1").ends(0).tells(&["ready: it goes as soon as a runner takes it"]);
    assert!(!first.out.contains("before it"), "{}", first.out);
    let line = "29 jobs go before it; its turn comes about ";
    bench.run("why 30").ends(0).tells(&["ready: it goes when its turn comes", line, "`daily`"]);
    bench.run("show 30").ends(0).tells(&["29 jobs go before it"]);
    bench.run("jobs 2 30").ends(0).tells(&["queued  http", "1 before it", "29 before it"]);
    let told = bench.json("why 30");
    assert_eq!((&told["ahead"], &told["ahead_more"]), (&json!(29), &json!(false)));
    // Eleven a day: as the forecast has it, two resets away.
    let forecast = bench.json("forecast shop")["finish_at"].clone();
    let hour = |at: &serde_json::Value| at.as_str().unwrap()[..13].to_owned();
    assert_eq!(hour(&told["turn_at"]), hour(&forecast), "{told}");
    bench.run("set 30 --priority 5").ends(0);
    assert_eq!(bench.json("why 30")["ahead"], 0);
    assert_eq!(bench.json("jobs 1 2")[1]["ahead"], 2);
    bench.run("hold shop").ends(0);
    let told = bench.json("why 2");
    assert_eq!((&told["ahead"], &told["turn_at"]), (&json!(2), &json!(null)), "{told}");
}

#[test]
fn a_long_line_is_not_counted_to_its_end() {
    let bench = Bench::new();
    bench.write("c.csv", catalogue(1, 10_050));
    bench.run("add shop --csv c.csv").ends(0);
    bench.run("jobs 1 10050").ends(0).tells(&["1000 or more before it"]);
    let line = "10000 jobs or more go before it; its turn comes no sooner than ";
    bench.run("why 10050").ends(0).tells(&[line]);
    let told = bench.json("why 10050");
    assert_eq!((&told["ahead_more"], &told["turn_at"]), (&json!(true), &json!(null)), "{told}");
    assert_eq!(bench.json("why 10000")["ahead"], 9_999);
}

#[test]
fn columns_that_say_nothing_are_left_out() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    let status = bench.run("status").ends(0).tells(&["LIMIT  USED"]).out;
    assert!(!status.contains("LEFT") && !status.contains("KEY"), "{status}");
    let budget = bench.run("budget").ends(0).tells(&["SPENT  AMOUNT  RESETS"]).out;
    assert!(!budget.contains("REPORTED"), "{budget}");
}

#[test]
fn the_status_of_one_upstream_counts_its_own_jobs() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("add engine https://a.example/1 https://a.example/2").ends(0);
    let shop = bench.run("status shop").ends(0).tells(&["shop: 1 queued"]).out;
    assert!(!shop.contains("3 queued"), "{shop}");
    bench.run("status").ends(0).tells(&["3 queued"]);
    assert_eq!(bench.json("status shop")["jobs"]["queued"], 1);
    assert_eq!(bench.json("status shop engine")["jobs"]["queued"], 3);
    has(&bench.json("status shop")["jobs"], &["queued", "running", "done", "unsure"]);
}

#[test]
fn a_store_that_is_not_there_is_not_made_to_be_looked_at() {
    let bench = Bench::new();
    for line in ["status", "jobs", "log", "results", "loads", "budget", "why shop"] {
        bench
            .run(line)
            .ends(0)
            .complains(&["no store at", "store.db yet: `paceline add` makes it"]);
    }
    for line in ["why 1", "show 1"] {
        bench.run(line).ends(2).complains(&["no store at", "there is no job 1"]);
    }
    let status = bench.json("status");
    assert_eq!(status["store"], bench.path("store.db").display().to_string());
    assert_eq!((&status["jobs"]["queued"], &status["upstreams"]), (&json!(0), &json!([])));
    assert_eq!(bench.json("jobs"), json!([]));
    assert!(!bench.path("store.db").exists());
}

#[test]
fn a_folder_of_quota_files_must_be_there() {
    let bench = Bench::new();
    let complaint = "there is no folder `nodir` for --quotas (or PACELINE_QUOTAS)";
    bench.run("status --quotas nodir").ends(2).complains(&[complaint]);
    bench.run("quotas list --quotas nodir").ends(2).complains(&[complaint]);
    bench.run("quotas list --quotas quotas").ends(0);
}

#[test]
fn values_go_out_as_they_came() {
    let bench = Bench::new();
    let title = "\u{1b}[2Jboo\u{7}, \u{9b}x";
    bench.run_with("add shop --csv -", format!("isbn,title\n1,\"{title}\"\n").as_bytes()).ends(0);
    bench.run("cancel 1").ends(0);
    let said = bench.run("results --state cancelled --fields title").ends(0);
    assert_eq!(said.out, format!("title\n\"{title}\"\n"));
}

#[test]
fn a_forecast_tells_whose_windows_they_are() {
    let bench = Bench::new();
    let quota = "[request]\nurl = \"https://a.example/{n}?{site}\"\n[[limit]]\nname = \"daily\"\nkind = \"budget\"\n\
        amount = 2\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]\n";
    bench.write("quotas/sites.toml", quota);
    bench.write("c.csv", "n,site\n1,b\n2,a\n3,b\n4,b\n");
    bench.run("add sites --csv c.csv").ends(0);
    bench.run("forecast").ends(0).tells(&["daily [site=a]: 1 job until", "daily [site=b]: 2 jobs"]);
    let told = bench.json("forecast");
    let windows = told["upstreams"][0]["windows"].as_array().unwrap();
    let keys: Vec<_> =
        windows.iter().map(|window| window["key"]["site"].as_str().unwrap()).collect();
    assert_eq!(keys, ["a", "b", "b"]);
}

#[test]
fn a_forecast_names_the_limit_and_the_windows() {
    let bench = Bench::new();
    let told = bench.run("forecast shop --count 1200000").ends(0).out;
    assert!(told.contains("done in 298 years") || told.contains("more than 200 years"), "{told}");
    assert!(told.contains("held back by the limit `daily`"), "{told}");
    let told = bench.json("forecast shop --count 30");
    let shop = &told["upstreams"][0];
    assert_eq!(
        (&shop["name"], &shop["jobs"], &shop["limit"]),
        (&json!("shop"), &json!(30), &json!("daily"))
    );
    assert_eq!(told["finish_at"], shop["finish_at"]);
    let windows = shop["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 3, "11 a day: {told}");
    has(&windows[0], &["limit", "start", "resets_at", "jobs"]);

    bench.run("add shop --set isbn=1").ends(0);
    bench.run("add shop --set isbn=2 --load mine").ends(0);
    assert_eq!(bench.json("forecast")["upstreams"][0]["jobs"], 2);
    assert_eq!(bench.json("forecast --load mine")["upstreams"][0]["jobs"], 2, "both go by then");
    bench.run("forecast --load myne").ends(2).complains(&["did you mean `mine`?"]);
    bench.run("forecast --count 9").ends(0).tells(&["shop: 11 jobs"]);
    bench.run("add engine https://a.example/1").ends(0);
    bench.run("forecast --count 9").ends(2).complains(&["--count needs the one upstream"]);
    bench.run("forecast nowhere").ends(2).complains(&["nowhere"]);
    bench.run("hold shop").ends(0);
    bench.run("forecast shop").ends(0).tells(&["2 jobs more wait for a person"]);
    assert_eq!(bench.json("forecast shop")["finish_at"], json!(null));
}

#[test]
fn a_report_of_nothing_says_so() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("report shop").ends(0).tells(&["0 calls, 0 refused", "Nothing was sent to"]);
    let told = bench.json("report shop");
    assert_eq!((&told["calls"], &told["busiest"]["1s"]), (&json!(0), &json!(0)));
    has(
        &told,
        &["upstream", "since", "refused_inside_limit", "by_reason", "by_connection", "conclusion"],
    );
    bench.run("report nowhere").ends(2).complains(&["nowhere"]);
}

#[test]
fn from_another_folder_the_counts_are_told_too() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    std::fs::remove_dir_all(bench.path("quotas")).unwrap();
    let folder = bench.path("quotas").canonicalize().unwrap_or_else(|_| bench.path("quotas"));
    let looked = format!("looked in {}", folder.display());
    for line in ["status", "status shop"] {
        bench.run(line).ends(0).tells(&["shop: 1 queued", "there is no upstream `shop`", &looked]);
    }
    let told = bench.json("status shop");
    assert_eq!(
        (&told["jobs"]["queued"], &told["upstreams"][0]["jobs"]["queued"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_job_that_is_not_there_is_an_error() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("jobs 1").ends(0).tells(&["shop"]);
    bench.run("jobs 99999").ends(2).complains(&["there is no job 99999"]);
    bench.run("jobs 1 7 8 --json").ends(2).complains(&["there are no jobs 7, 8"]);
    bench.run("jobs 1 --state failed").ends(0).complains(&["no job fits"]);
}

#[test]
fn what_is_held_has_no_next_instant() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("status").ends(0).tells(&["free now", "next: now"]);
    bench.run("hold shop").ends(0);
    let status = bench.run("status").ends(0).out;
    assert!(!status.contains("free now") && !status.contains("next:"), "{status}");
}

#[test]
fn a_report_says_what_it_cannot_know_any_more() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("add shop --set isbn=2").ends(0);
    let said = bench.run("report shop").ends(0);
    assert!(!said.err.contains("removed"), "{}", said.err);
    bench.run("cancel 1").ends(0);
    bench.run("prune 1").ends(0);
    bench.run("report shop").ends(0).complains(&["1 job was removed from this store"]);
    assert_eq!(bench.json("report shop")["pruned"], 1);
}
