//! `call` and `exec`: what they say, and how they end.

use super::bench::{Bench, has};

/// An upstream with a budget that is spent, and one whose address answers nobody.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.run("budget spend shop 11").ends(0);
    bench
}

const URL: &str = "http://127.0.0.1:9/v1/stock/1";

#[test]
fn who_does_not_wait_is_told_limit_and_instant_in_both_zones() {
    let bench = bench();
    let said = bench.run(&format!("call shop {URL} --max-wait 1s")).ends(75).complains(&[
        "shop: the limit `daily` binds until ",
        "(America/Los_Angeles) = ",
        " UTC here, in ",
        ": 11 of 11 are spent in this window",
    ]);
    assert_eq!(said.err.lines().count(), 1, "one line: {}", said.err);
    let quiet = bench.run(&format!("call shop {URL} --max-wait 0 --quiet")).ends(75);
    assert_eq!((quiet.out, quiet.err), (String::new(), String::new()));
    bench.run("exec shop --max-wait 1s -- true").ends(75).complains(&["`daily` binds until "]);
}

#[test]
fn what_is_too_late_for_its_deadline_has_failed() {
    let bench = bench();
    let said = bench.run(&format!("call shop {URL} --deadline 5s")).ends(3);
    said.complains(&["the limit `daily` binds until ", ", past its deadline"]);
    bench.run("jobs --state expired").ends(0).tells(&["call"]);
}

#[test]
fn json_tells_the_same() {
    let bench = bench();
    let said = bench.run(&format!("call shop {URL} --max-wait 0 --json")).ends(75);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let fields = ["upstream", "state", "limit", "until", "zone", "reason", "detail", "exit"];
    has(&told, &fields);
    assert_eq!((&told["limit"], &told["zone"]), (&"daily".into(), &"America/Los_Angeles".into()));
    assert_eq!((&told["reason"], &told["exit"]), (&"budget".into(), &75.into()));
}

#[test]
fn what_is_held_needs_a_person() {
    let bench = Bench::new();
    bench.run("hold shop --why maintenance").ends(0);
    let said = bench.run(&format!("call shop {URL}")).ends(4);
    said.complains(&["shop is held (by_hand): maintenance", "`paceline why shop` tells more"]);
    bench.run("exec shop -- true").ends(4).complains(&["shop is held"]);
}

#[test]
fn a_secret_that_is_not_set_is_said() {
    let bench = Bench::new();
    bench.run("call engine https://a.example/1").ends(4).complains(&["ENGINE_KEY"]);
    // A command has secrets of its own, or needs none.
    bench.run("exec engine --key site=https://a.example -- true").ends(0);
    bench.run("exec engine -- true").ends(2).complains(&["site"]);
}

#[test]
fn a_cost_that_no_limit_grants_is_said_at_once() {
    let bench = Bench::new();
    let said = bench.run("exec shop --cost 2 -- true").ends(3);
    said.complains(&["2 units are more than the limit `plan` ever grants at once: 1"]);
    bench.run("exec shop --cost 0 -- true").ends(2);
}

#[test]
fn a_command_that_cannot_be_run_costs_nothing() {
    let bench = Bench::new();
    bench
        .run("exec shop -- no-such-command")
        .ends(127)
        .complains(&["`no-such-command` cannot be run"]);
    bench.run("exec shop -- /").ends(126);
    let budget = bench.json("status");
    let limits = budget["upstreams"][0]["limits"].as_array().unwrap();
    let daily = limits.iter().find(|limit| limit["name"] == "daily").unwrap();
    assert_eq!(daily["spent"], 0);
}

#[test]
fn the_status_and_the_output_are_the_commands_own() {
    let bench = Bench::new();
    let said =
        bench.exec(&["exec", "shop", "--", "sh", "-c", "echo out; echo err >&2; exit 33"], b"");
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (33, "out\n", "err\n"));
    let shown = bench.run("jobs --load exec").ends(0);
    shown.tells(&["exec:sh", "failed"]);
}

#[test]
fn what_nothing_answers_has_failed() {
    let bench = Bench::new();
    bench.write("quotas/dead.toml", "name = \"dead\"\n[retry]\nmax_attempts = 1\n");
    let said = bench.run("call dead http://127.0.0.1:9/x").ends(3);
    said.complains(&["dead: no answer transient: no connection to 127.0.0.1"]);
}

#[test]
fn names_and_files_are_checked() {
    let bench = Bench::new();
    bench.run("call shopp http://127.0.0.1:9/").ends(2).complains(&["did you mean `shop`?"]);
    bench.run("call shop no-url").ends(2).complains(&["the URL cannot be used"]);
    bench.run(&format!("call shop {URL} -d @missing.txt")).ends(2).complains(&["missing.txt"]);
    bench.run(&format!("call shop {URL} -H nonsense")).ends(2).complains(&["NAME: VALUE"]);
    bench.run("exec shop").ends(2);
    bench.run("exec shop --retry-after-from f -- true").ends(2).complains(&["--refused-status"]);
}

#[test]
fn a_url_alone_is_its_upstreams_whose_match_has_it() {
    let bench = Bench::new();
    let quota = "name = \"near\"\n[match]\nhosts = [\"127.0.0.1\"]\n[retry]\nmax_attempts = 1\n";
    bench.write("quotas/near.toml", quota);
    bench.run("call http://127.0.0.1:9/x").ends(3).complains(&["near: no answer transient"]);
    let said = bench.run("call http://elsewhere.example/x").ends(2);
    said.complains(&["no quota file's [match] has http://elsewhere.example/x"]);
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_anything_is_sent() {
    let bench = Bench::new();
    let said = bench.run(&format!("call shop {URL} -o no/such/folder/x")).ends(2);
    said.complains(&["`no/such/folder/x` cannot be written"]);
    bench.run(&format!("call shop {URL} -o quotas")).ends(2).complains(&["`quotas` is a folder"]);
    bench.run("status").ends(0).complains(&["no store"]);
}

#[test]
fn a_deadline_that_has_passed_is_said() {
    let bench = Bench::new();
    let said = bench.run(&format!("call shop {URL} --deadline 2020-01-01")).ends(3);
    assert_eq!(said.err, "shop: its deadline has passed\n");
}

#[test]
fn what_is_kept_in_reserve_is_said() {
    let bench = Bench::new();
    let quota = "name = \"kept\"\n[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 3\n\
                 per = \"day\"\ntime_zone = \"UTC\"\nreserve = 1\n";
    bench.write("quotas/kept.toml", quota);
    bench.run("budget spend kept 2").ends(0);
    let said = bench.run("exec kept --max-wait 0 -- true").ends(75);
    said.complains(&["2 of 3 are spent in this window (UTC); 1 are kept in reserve"]);
    bench.run("exec kept --max-wait 0 --use-reserve -- true").ends(0);
}
