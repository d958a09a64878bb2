//! Copies of the store, as they are asked for and told.

use super::bench::Bench;

#[test]
fn a_copy_is_told_and_replaces_nothing() {
    let bench = Bench::new();
    bench.run("backup copy.db").ends(2).complains(&["there is no store at", "store.db"]);
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("backup copy.db").ends(0).tells(&["copy.db holds a copy of", "store.db ("]);
    let again = bench.run("backup copy.db").ends(2);
    assert_eq!(again.err, "error: copy.db is there already, and is left as it is\n");
    bench.run("backup quotas").ends(2).complains(&["`quotas` is a folder: name a new file"]);
    bench
        .run("backup no/such/folder.db")
        .ends(1)
        .complains(&["no/such/folder.db cannot be written"]);
    let told = bench.json("backup second.db");
    assert!(told["bytes"].as_u64().unwrap() > 4096 && told["file"] == "second.db", "{told}");
    assert_eq!(bench.run("backup third.db --quiet").ends(0).out, "");
}

#[test]
fn a_restore_says_what_it_did() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("add engine https://a.example/1").ends(0);
    bench.run("backup copy.db").ends(0);
    bench.run("restore copy.db").ends(2).complains(&["there is a store at", "--replace keeps it"]);
    bench.run("restore store.db --replace").ends(2).complains(&["is the store itself"]);
    bench
        .run("restore nothing.db --replace")
        .ends(2)
        .complains(&["there is no store at nothing.db"]);
    bench.run("restore").ends(2).complains(&["Usage: paceline restore"]);
    bench.run("restore copy.db --replace").ends(0).tells(&[
        "is now what copy.db holds",
        ".before-restore-",
        "each window that is open now counts as spent",
        "1 job that must not be sent twice may have been sent since, and is unsure",
    ]);
    bench.run("budget show shop").ends(0).tells(&["daily  11     11"]);
    bench.run("status shop").ends(0).tells(&["11 of 11, as restored"]);
    bench.run("why shop").ends(0).tells(&["because the store was restored"]);
    assert_eq!(bench.json("status")["upstreams"][1]["limits"][1]["restored"], true);
    bench.run("restore --trust").ends(0).tells(&["the counts of the copy hold"]);
    bench.run("status shop").ends(0).tells(&["0 of 11"]);
    bench.run("restore --trust").ends(0).tells(&["was not restored lately"]);
    let told = bench.json("restore copy.db --replace");
    assert_eq!(told["unsure"], 1);
    assert!(told["copied_at"].is_string() && told["kept"].is_string(), "{told}");
}

/// The findings of a doctor, by name.
fn findings(told: &serde_json::Value, name: &str) -> Vec<(String, String)> {
    let all = told["checks"].as_array().unwrap().iter().filter(|one| one["name"] == name);
    let text = |one: &serde_json::Value, field: &str| one[field].as_str().unwrap().to_owned();
    all.map(|one| (text(one, "status"), text(one, "detail"))).collect()
}

#[test]
fn a_doctor_finds_nothing_where_nothing_is_wrong() {
    let bench = Bench::new();
    bench
        .run("doctor")
        .ends(0)
        .tells(&["there is none at", "ok       quotas     2 files of yours"]);
    assert!(!bench.path("store.db").exists(), "nothing is made by looking");
    bench.run("add shop --set isbn=1").ends(0);
    let said = bench.run("doctor").ends(0);
    let said = said.tells(&[
        "is whole (",
        "the store takes changes",
        "nothing is held",
        "ok       clocks",
    ]);
    assert!(said.err.contains("nothing is wrong"), "{}", said.err);
    // The key of the other upstream is lacking, and no job needs it.
    let said = said.tells(&["warning  secrets    engine: `${env:ENGINE_KEY}` is not set"]);
    assert!(!said.out.contains("wrong  "), "{}", said.out);
    let quiet = bench.run("doctor --quiet").ends(0);
    assert!(!quiet.out.contains("ok ") && quiet.err.is_empty(), "{}{}", quiet.out, quiet.err);
    let told = bench.json("doctor");
    assert_eq!(told["exit"], 0);
    assert_eq!(findings(&told, "store")[0].0, "ok");
}

#[test]
fn a_doctor_says_what_a_person_must_do() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1").ends(0);
    let said = bench.run("doctor").ends(4);
    said.tells(&["wrong    secrets    engine: `${env:ENGINE_KEY}` is not set, and 1 job cannot go without it"]);
    bench.write("my.env", "ENGINE_KEY=hunter2\n");
    let said = bench.run("doctor --env-file my.env").ends(0).tells(&["chmod 600 my.env"]);
    assert!(!said.out.contains("hunter2"), "no value is shown: {}", said.out);
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("hold shop --why maintenance").ends(0);
    let said = bench.run("doctor --env-file my.env").ends(4);
    said.tells(&[
        "wrong    holds      shop is held (by_hand): maintenance",
        "`paceline resume shop`",
    ]);
}

#[test]
fn a_doctor_reads_quota_files_and_the_store() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.write("quotas/shop.toml", "name = \"shop\"\n[request]\nurll = 1\n");
    let said = bench.run("doctor").ends(2);
    said.tells(&[
        "wrong    quotas     quotas/shop.toml:3:1: unknown field `urll`",
        "paceline quotas check shop",
    ]);
    std::fs::remove_file(bench.path("quotas/shop.toml")).unwrap();
    bench.run("doctor").ends(2).tells(&[
        "1 job of shop have no quota file",
        "put shop.toml back",
        "folder `quotas`",
    ]);
    bench.write("store.db", "this is no store, and never was one; it is a text of some length");
    let said = bench.run("doctor").ends(1);
    said.tells(&["wrong    store      ", "is not a Paceline store"]);
}

#[test]
fn a_copy_is_told_by_a_doctor() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("backup copy.db").ends(0);
    bench.run("doctor --store copy.db").ends(0).tells(&["warning  origin     it is a copy of 20"]);
    bench.run("restore copy.db --replace").ends(0);
    bench.run("doctor").ends(0).tells(&["ok       origin     restored at 20"]);
}
