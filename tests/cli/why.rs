//! Why nothing moves: what people read, and the way out.

use super::bench::{Bench, SHOP, has};

#[test]
fn an_upstream_that_cannot_be_reached_is_said() {
    let bench = Bench::new();
    // So long that a slow machine does not wait for it either.
    bench.write(
        "quotas/shop.toml",
        format!("{SHOP}[retry]\ninitial = \"1h\"\nmax_interval = \"2h\"\n"),
    );
    bench.run("add shop --set isbn=1").ends(0);
    let said = bench.run("run shop --max-wait 0").ends(75);
    let said = said.complains(&[
        "shop gives no answer: no connection to 127.0.0.1: ",
        "0 sent, 1 call could not be sent",
        "1 job waits",
    ]);
    assert_eq!(said.err.matches("gives no answer").count(), 1);
    let last = "its last attempt ended with transient: no connection to 127.0.0.1: ";
    bench.run("why 1").ends(0).tells(&["scheduled (backoff: ", last]);
    bench.run("why shop").ends(0).tells(&["(backoff: ", last, "last attempt (job 1, "]);
    let told = bench.json("why 1");
    assert_eq!((&told["state"], &told["reason"]), (&"queued".into(), &"backoff".into()));
    assert!(told["detail"].as_str().unwrap().contains("no connection to"), "{told}");
    let told = bench.run("run shop --for 1ms --json").ends(75);
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    has(&told, &["sent", "unreached"]);
    assert_eq!(told["sent"], 0);
}

#[test]
fn a_missing_secret_asks_for_no_resume() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1").ends(0);
    let way_out = "set ENGINE_KEY (as in `export ENGINE_KEY=...`) and run again";
    let ran = bench.run("run --max-wait 0").ends(4);
    let ran = ran.complains(&["1 job is held until a person acts", "is not set", way_out]);
    assert!(!ran.err.contains("resume"), "{}", ran.err);
    for line in ["why 1", "why engine", "status"] {
        let said = bench.run(line).ends(0).tells(&[way_out]);
        assert!(!said.out.contains("resume"), "{line}: {}", said.out);
        assert_eq!(said.out.matches(way_out).count(), 1, "{line}: {}", said.out);
    }
}

#[test]
fn a_hold_by_hand_says_how_it_ends() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("hold shop --why maintenance").ends(0);
    let way_out = "`paceline resume shop`";
    bench.run("run --max-wait 0").ends(4).complains(&["maintenance", way_out]);
    for line in ["why 1", "why shop", "status"] {
        bench.run(line).ends(0).tells(&["maintenance", way_out]);
    }
    // A secret that is missing besides does not make it one that ends by itself.
    bench.run("add engine https://a.example/1").ends(0);
    bench.run("hold engine --why maintenance").ends(0);
    bench.run("run engine --max-wait 0").ends(4).complains(&["engine (by_hand): maintenance"]);
}

#[test]
fn a_job_whose_quota_file_is_wrong_waits_for_a_person() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.write("quotas/shop.toml", "schema = 1\nname = \"shop\"\nrubbish = 1\n");
    bench.run("why 1").ends(0).tells(&["held until a person acts (quota_file: ", "rubbish"]);
    let told = bench.json("why 1");
    assert_eq!((&told["turn"], &told["reason"]), (&"held".into(), &"quota_file".into()), "{told}");
}

#[test]
fn what_is_held_before_it_has_jobs_is_told() {
    let bench = Bench::new();
    bench.run("hold shop --why maintenance").ends(0);
    let way_out = "`paceline resume shop`";
    for line in ["why shop", "status shop"] {
        let said = bench.run(line).ends(0).tells(&["maintenance", way_out]);
        assert!(!said.out.contains("nothing is held back"), "{}", said.out);
        assert_eq!(said.out.matches(way_out).count(), 1, "{}", said.out);
    }
    let told = bench.json("why shop");
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!((&told[0]["state"], &told[0]["jobs"]), (&"held".into(), &0.into()), "{told}");
    assert_eq!(
        (&told[0]["reason"], &told[0]["key"]),
        (&"by_hand".into(), &serde_json::json!({})),
        "{told}"
    );
    bench.run("resume shop").ends(0);
    assert_eq!(bench.json("why shop"), serde_json::json!([]));
    bench.run("why shop").ends(0).tells(&["nothing is held back"]);
}
