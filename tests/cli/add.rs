//! `add`.

use super::bench::{Bench, catalogue, has};

#[test]
fn rows_are_added_once() {
    let bench = Bench::new();
    bench.write("c.csv", catalogue(0, 12_000));
    let said = bench.run("add shop --csv c.csv --load one").ends(0);
    assert_eq!(said.out, "load one: 12,000 added\n");
    let again = bench.run("add shop --csv c.csv --load two").ends(0);
    assert_eq!(again.out, "load two: 0 added, 12,000 there already\n");
    assert_eq!(bench.count("one", "queued"), 12_000);
}

#[test]
fn a_load_has_a_name_that_is_free() {
    let bench = Bench::new();
    let first = bench.json("add engine https://a.example/1");
    let second = bench.json("add engine https://a.example/2");
    has(&first, &["load", "added", "duplicates", "rejected", "ids"]);
    let name = |told: &serde_json::Value| told["load"].as_str().unwrap().to_owned();
    assert!(name(&first).ends_with("-1") && name(&second).ends_with("-2"));
    assert_eq!(first["ids"].as_array().unwrap().len(), 1);
}

#[test]
fn bad_rows_are_named_by_line_and_the_rest_is_added() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,title\n1,A\n2\n,C\n4,\"open\n5,E\n");
    let said = bench.run("add shop --csv c.csv --rejects r.csv --json").ends(3).complains(&[
        "line 3 of c.csv: it has 1 value, and there are 2 columns",
        "line 4 of c.csv: the column `isbn` is missing: thirteen digits",
        "line 5 of c.csv: a quote in it is never closed",
    ]);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&told["added"], &told["rejected"]), (&2.into(), &3.into()));
    let rejects = std::fs::read_to_string(bench.path("r.csv")).unwrap();
    let lines: Vec<&str> = rejects.lines().collect();
    assert_eq!(lines[0], "isbn,title,rejected_because");
    assert_eq!(lines[1], "2,\"it has 1 value, and there are 2 columns\"");
    assert_eq!(lines.len(), 4);
}

#[test]
fn a_column_that_no_placeholder_can_name_is_told() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,Title(short)\n1,A\n");
    let told = &["`{Title(short)}` is no placeholder", "rename the column of c.csv"];
    bench.run("add shop --csv c.csv --dedupe-key {Title(short)}").ends(2).complains(told);
    bench.run("add shop --csv c.csv --dedupe-key {{Title(short)}}{isbn}").ends(0);
    assert_eq!(bench.json("jobs")[0]["Title(short)"], "A");
}

#[test]
fn rejects_can_be_corrected_and_added() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,title\n,B\n");
    bench.run("add shop --csv c.csv --rejects r.csv").ends(3);
    let corrected = std::fs::read_to_string(bench.path("r.csv")).unwrap().replace("\n,B", "\n2,B");
    bench.write("r.csv", corrected);
    bench.run("add shop --csv r.csv").ends(0);
    let jobs = bench.json("jobs");
    assert_eq!(jobs[0]["title"], "B");
    assert!(jobs[0].get("rejected_because").is_none());
}

#[test]
fn rejects_that_are_rejected_again_are_as_they_were() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,title\n2\n,C\n4,\"open\n5,E,F\n");
    bench.run("add shop --csv c.csv --rejects r1.csv").ends(3).tells(&["4 rejected"]);
    for (read, made) in [("r1.csv", "r2.csv"), ("r2.csv", "r3.csv")] {
        bench
            .run(&format!("add shop --csv {read} --rejects {made}"))
            .ends(3)
            .tells(&["4 rejected"]);
        let rejects = std::fs::read_to_string(bench.path(made)).unwrap();
        let lines: Vec<&str> = rejects.lines().collect();
        let rows = ["2", ",C", "4,\"open", "5,E,F"].map(|row| format!("{row},\""));
        assert_eq!((lines[0], lines.len()), ("isbn,title,rejected_because", 5));
        for (line, row) in lines.iter().skip(1).zip(rows) {
            assert!(line.starts_with(&row) && !line.contains("\",\""), "{rejects}");
        }
    }
    // A spreadsheet writes it as it likes, and puts the column elsewhere.
    bench.write("moved.csv", "\"rejected_because\",\"isbn\",\"title\"\n\"why\",\"\",\"a,b\"\n");
    bench.run("add shop --csv moved.csv --rejects r4.csv").ends(3);
    let rejects = std::fs::read_to_string(bench.path("r4.csv")).unwrap();
    assert!(rejects.starts_with("isbn,title,rejected_because\n,\"a,b\",\"the column"), "{rejects}");
}

#[test]
fn rejects_do_not_overwrite_what_is_read() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,title\n,B\n");
    bench.run("add shop --csv c.csv --rejects ./c.csv").ends(2).complains(&["--rejects"]);
    assert_eq!(std::fs::read_to_string(bench.path("c.csv")).unwrap(), "isbn,title\n,B\n");
}

#[test]
fn strict_adds_all_or_nothing() {
    let bench = Bench::new();
    bench.write("bad.csv", "isbn\n1\n\"\n3\n");
    bench
        .run("add shop --csv bad.csv --strict")
        .ends(3)
        .complains(&["line 3", "nothing was added"]);
    assert_eq!(bench.json("status")["jobs"]["queued"], 0);
    bench.run_with("add shop --csv - --strict", b"isbn\n1\n2,3\n").ends(3);
    assert_eq!(bench.json("status")["jobs"]["queued"], 0);
    bench.run_with("add shop --csv - --strict", b"isbn\n1\n2\n").ends(0).tells(&["2 added"]);
}

#[test]
fn rows_come_in_many_forms() {
    let bench = Bench::new();
    bench.run_with("add engine -", b"https://a.example/1\r\n\r\n https://a.example/2 \n").ends(0);
    bench.run_with("add shop --csv -", b"\xef\xbb\xbfisbn\r\n1\r\n").ends(0);
    bench.write("c.txt", "2;two\n3;three\n");
    bench.run("add shop --csv c.txt --columns isbn,title --delimiter ;").ends(0);
    bench.write("t.txt", "isbn\ttitle\n4\tfour\n");
    bench.run("add shop --csv t.txt --delimiter tab").ends(0);
    bench.run("add shop --set isbn=5").ends(0).tells(&["1 added"]);
    assert_eq!(bench.json("status")["jobs"]["queued"], 7);
    assert_eq!(bench.json("jobs --where title=four")[0]["isbn"], "4");
}

#[test]
fn what_is_sent_can_be_said() {
    let bench = Bench::new();
    let words = [
        "add",
        "shop",
        "--set",
        "id=7",
        "--set",
        "isbn=1",
        "--url",
        "https://x.example/{id}",
        "--method",
        "PUT",
        "--header",
        "X-Shop: {id}",
        "--body",
        "{id}",
        "--priority",
        "9",
        "--deadline",
        "2h",
    ];
    bench.exec(&words, b"").ends(0);
    let job = bench.json("jobs")[0].clone();
    assert_eq!((&job["address"], &job["method"]), (&"https://x.example/7".into(), &"PUT".into()));
    assert_eq!(job["priority"], 9);
    assert!(job["deadline_at"].is_string());
}

#[test]
fn a_dry_run_shows_and_adds_nothing() {
    let bench = Bench::new();
    bench.write("c.csv", catalogue(0, 2_200));
    bench.run("add shop --csv c.csv --dry-run").ends(0).tells(&[
        "GET http://127.0.0.1:9/v1/stock/9780000000000",
        "and 2,197 more jobs",
        "daily: 11 a day, which begins at 00:00 in America/Los_Angeles",
        "in about 198 d",
        "held back by the limit `daily`",
    ]);
    assert!(!bench.path("store.db").exists());
    let slow = "name = \"slow\"\n[request]\nurl = \"https://a.example/{isbn}\"\n[[limit]]\nname = \"monthly\"\n\
        kind = \"budget\"\namount = 1\nper = \"month\"\ntime_zone = \"UTC\"\n";
    bench.write("quotas/slow.toml", slow);
    bench.write("c.csv", catalogue(0, 299 * 12));
    let far = bench.run("add slow --csv c.csv --dry-run").ends(0);
    far.tells(&[
        "3,588 jobs would be done in more than 200 years, held back by the limit `monthly`",
    ]);
    assert!(bench.json("add slow --csv c.csv --dry-run")["finish_at"].is_null());
    let told = bench.json("add engine https://a.example/1 --dry-run");
    has(&told, &["jobs", "requests", "limits", "finish_at"]);
    assert_eq!(told["requests"][0]["headers"]["X-Key"], "${env:ENGINE_KEY}");
}

#[test]
fn quiet_is_quiet() {
    let bench = Bench::new();
    let said = bench.run("add engine https://a.example/1 --quiet").ends(0);
    assert_eq!((said.out, said.err), (String::new(), String::new()));
}

#[test]
fn an_address_of_somebody_elses_is_refused() {
    let bench = Bench::new();
    let problem = "`www.example.com` is no host of ncbi-eutils (eutils.ncbi.nlm.nih.gov), whose limits do not \
        count there";
    bench.run("add ncbi-eutils https://www.example.com/a").ends(3).complains(&[problem]);
    bench.run("add ncbi-eutils https://eutils.ncbi.nlm.nih.gov/entrez/eutils/einfo.fcgi").ends(0);
}

#[test]
fn a_host_that_the_url_decides_is_not_set() {
    let bench = Bench::new();
    let row = "https://www.example.com/a --set key=0123456789abcdef";
    let problem = "`--set host=x` changes nothing: the column `host` is the host of `url`, which is `www.example.com`";
    bench.run(&format!("add indexnow {row} --set host=x")).ends(3).complains(&[problem]);
    bench.run(&format!("add indexnow {row} --set host=www.example.com")).ends(0);
}

#[test]
fn what_only_a_person_can_do_is_never_a_job() {
    let bench = Bench::new();
    let why = "a person presses it, and `paceline budget spend google-request-indexing 1";
    for set in ["", "--set by_hand=x", "--set by_hand="] {
        let add = format!("add google-request-indexing https://www.example.com/a {set}");
        for line in [add.clone(), format!("{add} --dry-run")] {
            let said = bench.run(&line);
            assert!([2, 3].contains(&said.code), "{line}: {}", said.out);
            assert!(said.err.contains(why), "{line}: {}", said.err);
        }
    }
    bench
        .run("budget spend google-request-indexing 1 --key siteUrl=https://www.example.com")
        .ends(0);
}

#[test]
fn who_is_interrupted_says_what_was_added() {
    use std::io::Write as _;
    let bench = Bench::new();
    let words = ["add", "shop", "--csv", "-", "--load", "l"];
    let mut child = bench.command().args(words).spawn().unwrap();
    // stdin stays open: more rows may come.
    let mut rows = child.stdin.take().unwrap();
    rows.write_all(catalogue(0, 5_000).as_bytes()).unwrap();
    rows.flush().unwrap();
    while bench.count("l", "queued") < 4_000 {
        assert!(child.try_wait().unwrap().is_none());
    }
    let kill = ["-s", "INT", &child.id().to_string()];
    assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(130));
    let told = String::from_utf8(said.stderr).unwrap();
    // The second chunk is there; whether that was heard of by then is another matter.
    let heard =
        ["2,000", "4,000"].map(|jobs| format!("at least {jobs} jobs were added to the load l"));
    assert!(heard.iter().any(|heard| told.contains(heard)), "{told}");
    assert!(told.contains("--load l adds only the rest"), "{told}");
    drop(rows);
}

#[test]
fn a_credential_that_is_typed_out_is_told_of() {
    let bench = Bench::new();
    let add = |header: &str| {
        let arguments =
            ["add", "engine", "https://a.example/1", "--dedupe", "none", "--header", header];
        bench.exec(&arguments, b"").ends(0)
    };
    let told = add("Authorization: Bearer abcdef123456");
    told.complains(&[
        "`Authorization` is kept in the store, as it stands",
        "'Authorization: ${env:NAME}'",
    ]);
    for header in ["Authorization: Bearer ${env:KEY}", "X-Title: a book", "Idempotency-Key: 7"] {
        let told = add(header);
        assert!(!told.err.contains("kept in the store"), "{header}: {}", told.err);
    }
}

#[test]
fn whoever_adds_to_what_is_held_is_told() {
    let bench = Bench::new();
    let said = bench.run("add shop --set isbn=1").ends(0);
    assert!(!said.err.contains("held"), "{}", said.err);
    bench.run("hold shop --why maintenance").ends(0);
    bench.run("add shop --set isbn=2").ends(0).complains(&[
        "held, and not sent until a person acts: shop (by_hand): maintenance",
        "`paceline resume shop`",
    ]);
    let again = bench.run("add shop --set isbn=2").ends(0);
    assert!(!again.err.contains("held"), "nothing was added: {}", again.err);
    bench.run("add engine https://a.example/1").ends(0);
    bench.run("hold engine --key site=https://a.example").ends(0);
    bench
        .run("add engine https://a.example/2")
        .ends(0)
        .complains(&["engine [site=https://a.example]"]);
}

#[test]
fn a_dry_run_says_that_it_looks_for_no_duplicates() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    let line = "Nor was looked which rows are there already, or come twice";
    bench.run("add shop --set isbn=1 --dry-run").ends(0).tells(&["Nothing was added.", line]);
    let said = bench.run("add shop --set isbn=1 --dry-run --dedupe none").ends(0);
    assert!(!said.out.contains(line), "{}", said.out);
}
