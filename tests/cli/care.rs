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
