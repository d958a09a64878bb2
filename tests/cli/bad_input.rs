//! Bad input: each kind has a clear message and its exit code, and loses nothing.

use super::bench::Bench;

#[test]
fn upstreams_are_known_by_name() {
    let bench = Bench::new();
    bench.run("add shpo x").ends(2).complains(&["no upstream `shpo`", "did you mean `shop`?"]);
    bench.run("run shpo").ends(2).complains(&["did you mean `shop`?"]);
    bench.run("status shpo").ends(2).complains(&["did you mean `shop`?"]);
    bench.run("hold shpo --why x").ends(2);
}

#[test]
fn quota_files_are_checked() {
    let bench = Bench::new();
    let limit = "[[limit]]\nname = \"l\"\n";
    let cases = [
        ("field", "colour = 1\n".to_owned(), "field.toml:2:1: unknown field `colour`"),
        ("zero", format!("{limit}kind = \"rate\"\nrate = \"0/s\"\n"), "zero.toml:5:8: zero rate"),
        (
            "zone",
            format!(
                "{limit}kind = \"budget\"\namount = 1\nper = \"day\"\ntime_zone = \"Mars/Olympus\"\n"
            ),
            "zone.toml:7:13:",
        ),
    ];
    for (name, text, told) in cases {
        bench.write(&format!("quotas/{name}.toml"), format!("name = \"{name}\"\n{text}"));
        bench.run(&format!("add {name} https://a.example/")).ends(2).complains(&[told]);
        bench.run(&format!("quotas check {name}")).ends(2).complains(&[told]);
        let checked = bench.run(&format!("quotas check ./quotas/{name}.toml --json")).ends(2);
        let checked: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
        assert!(checked[0]["problems"][0]["line"].is_u64());
    }
    bench.run("add engine https://a.example/1").ends(0);
}

#[test]
fn what_is_missing_is_said() {
    let bench = Bench::new();
    bench.run("add shop").ends(2).complains(&["the column `isbn` is missing: thirteen digits"]);
    bench.write("c.csv", "isnb\n1\n");
    bench.run("add shop --csv c.csv").ends(2).complains(&["`isbn` is missing", "there is `isnb`"]);
    bench.write("c.csv", "isbn;title\n1;A\n");
    bench.run("add shop --csv c.csv").ends(2).complains(&[
        "the column of c.csv: `isbn;title`",
        "that looks like several: say --delimiter ';'",
    ]);
    bench.write("c.csv", "ISBN,title\n1,A\n");
    bench.run("add shop --csv c.csv").ends(2).complains(&[
        "`isbn` is missing: thirteen digits (there is `ISBN`)",
        "the columns of c.csv: `ISBN`, `title`",
    ]);
    bench.run("add engine").ends(2).complains(&["the column `url` is missing"]);
    bench.run("add engine no-url").ends(3).complains(&["URL 1: the URL cannot be used"]);
    bench.run("add engine ftp://a.example/").ends(3).complains(&["only http and https"]);
    bench.run("add shop --csv none.csv").ends(2).complains(&["`none.csv` cannot be read"]);
    bench.write("twice.csv", "isbn,isbn\n1,2\n");
    bench
        .run("add shop --csv twice.csv")
        .ends(2)
        .complains(&["the columns of twice.csv cannot be told: the column `isbn` is named twice"]);
    bench.run("add shop --set isbn=1 --credential x").ends(2).complains(&["no credential `x`"]);
    bench.run("add shop --set isbn=1 --priority 10").ends(2).complains(&["priority 10"]);
    bench.run("add shop --set isbn=1 --deadline 2020-01-01").ends(2).complains(&["--deadline"]);
    bench.run("add shop --set isbn=1 --deadline soon").ends(2).complains(&["write a span"]);
    bench.run("jobs --state half").ends(2).complains(&["`half` is no job state"]);
    assert_eq!(bench.json("status")["jobs"]["queued"], 0);
}

#[test]
fn lines_that_are_no_urls_get_a_hint() {
    let bench = Bench::new();
    let hint = "shop is called by the column `isbn`, not by a URL: ";
    let csv = "`paceline add shop --csv - --columns isbn`";
    bench.run_with("add shop -", b"9780000000002\n").ends(3).complains(&[hint, csv]);
    bench.run_with("add shop - --dry-run", b"9780000000002\n").ends(3).complains(&[hint, csv]);
    bench.run("add shop 9780000000002").ends(3).complains(&[hint, "--set isbn=VALUE"]);
    let said = bench.run("add engine no-url").ends(3);
    assert!(!said.err.contains("is called by"), "{}", said.err);
}

#[test]
fn an_empty_default_is_named_as_the_cause() {
    let bench = Bench::new();
    let text = "name = \"empty\"\n[columns.id]\ndefault = \"\"\n[request]\nurl = \"https://a.example/{id}\"\n";
    bench.write("quotas/empty.toml", text);
    bench.run("add empty").ends(3).complains(&["`id` is missing: its `default` is empty"]);
}

#[test]
fn a_password_in_a_url_is_not_repeated() {
    let bench = Bench::new();
    let said = bench.run("add engine https://me:hunter2@a.example/").ends(3);
    assert!(said.err.contains("user name or password") && !said.err.contains("hunter2"));
}

#[test]
fn a_store_that_cannot_be_used_is_left_alone() {
    let bench = Bench::new();
    bench.write("text.db", "this is no database, and it is long enough to be looked at as one");
    let add = "add engine https://a.example/1 --store";
    bench.run(&format!("{add} text.db")).ends(1).complains(&["text.db"]);
    bench.write("folder/x", "");
    bench.run(&format!("{add} folder")).ends(1).complains(&["folder"]);
    bench.run(&format!("{add} text.db/store.db")).ends(1).complains(&["--store"]);
    bench
        .run("status --store postgres://host/db")
        .ends(2)
        .complains(&["Postgres store is not supported yet"]);
    let text = std::fs::read_to_string(bench.path("text.db")).unwrap();
    assert!(text.starts_with("this is no database"));
}

#[test]
fn a_newer_store_is_refused() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1").ends(0);
    let conn = rusqlite::Connection::open(bench.path("store.db")).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    bench.run("status").ends(1).complains(&["has schema 99", "use the newer paceline"]);
}

#[test]
fn commands_name_what_exists() {
    let bench = Bench::new();
    bench.run("add engine https://a.example/1 --load autumn").ends(0);
    bench.run("show 99").ends(2).complains(&["there is no job 99"]);
    bench.run("why 99").ends(2).complains(&["there is no job 99"]);
    bench.run("cancel 99").ends(2).complains(&["there is no job 99"]);
    bench.run("cancel").ends(2).complains(&["say which jobs"]);
    bench.run("cancel --load autum --yes").ends(2).complains(&["did you mean `autumn`?"]);
    bench.run("retry 1").ends(2).complains(&["job 1 is queued, and retry is for ended jobs"]);
    bench.run("set 1").ends(2).complains(&["say what to set"]);
    bench.run("results --after x").ends(2).complains(&["no cursor"]);
    bench
        .run("budget spend shop 1 --limit plan")
        .ends(2)
        .complains(&["no budget or rolling limit"]);
    bench.run("budget spend engine 1").ends(2).complains(&["--key"]);
    bench.run("calendar --time-zone Mars --per day").ends(2).complains(&["no IANA time zone"]);
    bench.run("frobnicate").ends(2);
    bench.run("gateway nowhere").ends(2).complains(&["no upstream `nowhere`"]);
    bench.run("gateway shop --listen box:1").ends(2).complains(&["127.0.0.1:4290"]);
}

#[test]
fn what_could_never_go_is_not_added() {
    let bench = Bench::new();
    bench
        .run("add shop --set isbn=1 --deadline 2h --not-before 3h")
        .ends(2)
        .complains(&["--deadline lies before --not-before"]);
    bench
        .run("calendar --time-zone UTC --per day --at 9999-12-31T00:00:00Z")
        .ends(2)
        .complains(&["2261"]);
}

#[test]
fn a_load_that_does_not_exist_is_a_slip_of_the_pen() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1 --load spring").ends(0);
    for command in ["jobs", "results", "cancel --yes"] {
        bench.run(&format!("{command} --load sprin")).ends(2).complains(&["did you mean `spring`"]);
    }
}

#[test]
fn no_file_is_written_over_a_store() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    let whole = std::fs::read(bench.path("store.db")).unwrap();
    let other = ["--store", "other.db"];
    for command in
        ["results --state queued -o", "results --sqlite", "add shop --set isbn= --rejects"]
    {
        for file in ["store.db", "./quotas/../store.db"] {
            let said = bench.run(&format!("{command} {file}")).ends(2);
            said.complains(&["is a store of Paceline's own; choose another file"]);
        }
        let words: Vec<&str> = command.split(' ').chain(["store.db"]).chain(other).collect();
        bench.exec(&words, b"").ends(2).complains(&["is a store of Paceline's own"]);
    }
    bench.write("store.db-wal", "");
    bench.run("results -o store.db-wal").ends(2).complains(&["is a store of Paceline's own"]);
    assert_eq!(std::fs::read(bench.path("store.db")).unwrap(), whole);
    bench.run("results --state queued -o out.csv").ends(0);
    bench.run("results --state queued -o out.csv").ends(0);
    assert!(std::fs::read_to_string(bench.path("out.csv")).unwrap().starts_with("id,"));
}

#[test]
fn a_cell_of_blanks_is_an_empty_one() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,title\n1,A\n,B\n\"  \",C\n4,\n");
    let said = bench.run("add shop --csv c.csv").ends(3).tells(&["2 added, 2 rejected"]);
    said.complains(&[
        "line 3 of c.csv: the column `isbn` is missing: thirteen digits",
        "line 4 of",
    ]);
}
