//! `add`: rows in all their forms, and which of them are queued again.

use std::io::Write as _;

use super::bench::{Bench, catalogue};

pub fn packed(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn files_of_spreadsheets_are_read_as_they_are_written() {
    let bench = Bench::new();
    let utf16 = |text: &str| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    bench.write("u.txt", utf16("isbn\ttitle\r\n1\tStraße \u{1f4d6}\r\n"));
    bench.run("add shop --csv u.txt --delimiter tab").ends(0).tells(&["1 added"]);
    bench.write("w.csv", b"sep=;\r\nisbn;title\r\n2;Stra\xdfe\r\n");
    bench
        .run("add shop --csv w.csv --rejects r.csv")
        .ends(3)
        .complains(&["line 3 of w.csv", "as in --encoding windows-1252"]);
    assert!(
        std::fs::read(bench.path("r.csv")).unwrap().starts_with(b"isbn;title;rejected_because\n2;")
    );
    bench.run("add shop --csv w.csv --encoding windows-1252").ends(0).tells(&["1 added"]);
    let jobs = bench.json("jobs");
    assert_eq!(
        (&jobs[0]["title"], &jobs[1]["title"]),
        (&"Straße \u{1f4d6}".into(), &"Straße".into())
    );
    let lines = utf16("{\"isbn\": \"3\"}\n");
    bench.run_with("add shop --jsonl -", &lines).ends(0).tells(&["1 added"]);
    let sitemap = "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n<urlset><url><loc>https://a.example/ü</loc></url></urlset>";
    bench.write("u.xml", utf16(sitemap));
    bench.run("add engine --sitemap u.xml").ends(0).tells(&["1 added"]);
    assert_eq!(bench.json("jobs --upstream engine")[0]["url"], "https://a.example/ü");
    bench
        .run("add shop --csv w.csv --encoding klingon")
        .ends(2)
        .complains(&["such as windows-1252"]);
}

#[test]
fn json_lines_are_columns_or_whole_requests() {
    let bench = Bench::new();
    let lines = r#"{"isbn": "1", "title": "A \"B\"", "price": 1.10, "none": null}

{"url": "http://127.0.0.1:9/x", "method": "put", "headers": {"X-A": "{isbn} ${env:HOME}"}, "body": {"a": "{isbn}"}}
"#;
    bench.write("r.jsonl", lines);
    bench.run("add shop --jsonl r.jsonl").ends(0).tells(&["2 added"]);
    let jobs = bench.json("jobs");
    assert_eq!(jobs[0]["title"], "A \"B\"");
    assert_eq!((&jobs[0]["price"], jobs[0].get("none")), (&"1.10".into(), None));
    assert_eq!(
        (&jobs[1]["method"], &jobs[1]["address"]),
        (&"PUT".into(), &"http://127.0.0.1:9/x".into())
    );
    bench.run_with("add shop --jsonl -", &packed("{\"isbn\": 7}\n")).ends(0).tells(&["1 added"]);
    bench.run_with("add shop --jsonl - --dry-run", lines.as_bytes()).ends(0).tells(&[
        "PUT http://127.0.0.1:9/x",
        "X-A: {isbn} ${env:HOME}",
        r#"{"a": "{isbn}"}"#,
    ]);
}

#[test]
fn bad_json_lines_are_named_and_kept_as_they_were() {
    let bench = Bench::new();
    let lines = "{\"isbn\": 1}\n{\"isbn\": }\n[1]\n{\"isbn\": 2, \"isbn\": 3}\n{\"title\": \"x\"}\n\
        {\"isbn\": 4, \"headers\": {\"X-A\": \"1\\r\\nX-B: 2\"}}\n{\"isbn\": 5}\n";
    bench.write("r.jsonl", lines);
    bench.run("add shop --jsonl r.jsonl --strict").ends(3).complains(&["nothing was added"]);
    bench
        .run("add shop --jsonl r.jsonl --rejects bad.jsonl")
        .ends(3)
        .tells(&["2 added, 5 rejected"])
        .complains(&[
            "line 2 of r.jsonl: it is no JSON object: expected value (at character 10)",
            "line 3 of r.jsonl: it is no JSON object",
            "line 4 of r.jsonl: its field `isbn` is there twice",
            "line 5 of r.jsonl: the column `isbn` is missing",
            "line 6 of r.jsonl: the value of header `X-A` holds a line break",
        ]);
    let rejected: String = lines.split_inclusive('\n').skip(1).take(5).collect();
    assert_eq!(std::fs::read_to_string(bench.path("bad.jsonl")).unwrap(), rejected);
}

#[test]
fn what_is_packed_is_unpacked() {
    let bench = Bench::new();
    bench.write("c.csv.gz", packed(&catalogue(0, 3_000)));
    bench.run("add shop --csv c.csv.gz").ends(0).tells(&["3,000 added"]);
    bench.run_with("add shop --csv -", &packed("isbn\nx\n")).ends(0).tells(&["1 added"]);
    bench.run_with("add shop --csv - --strict", &packed("isbn\ny\n")).ends(0).tells(&["1 added"]);
    bench.run_with("add engine -", &packed("https://a.example/1\n")).ends(0).tells(&["1 added"]);
    let mut cut = packed(&catalogue(5_000, 3_000));
    cut.truncate(cut.len() / 2);
    bench.write("cut.csv.gz", cut);
    bench
        .run("add shop --csv cut.csv.gz")
        .ends(1)
        .complains(&["cut.csv.gz cannot be read further"]);
}

#[test]
fn the_same_rows_go_to_several_upstreams() {
    let bench = Bench::new();
    let told = bench.json(
        "add --to engine --to shop https://a.example/1 https://b.example/2 --set isbn=7 --load l",
    );
    assert_eq!(
        (&told["added"], &told["rejected"], &told["load"]),
        (&4.into(), &0.into(), &"l".into())
    );
    assert_eq!(told["upstreams"][1]["upstream"], "shop");
    assert_eq!(told["upstreams"][1]["ids"].as_array().unwrap().len(), 2);
    let again = bench.run("add --to engine --to shop https://a.example/1 https://c.example/3 --set isbn=7 --load m").ends(0);
    assert_eq!(
        again.out,
        "load m: 1 added to engine, 1 there already\nload m: 1 added to shop, 1 there already\n"
    );
    bench.write("c.csv", "isbn,url\n1,https://a.example/7\n2,no-url\n,https://a.example/8\n");
    let said = bench.run("add --to engine --to shop --csv c.csv --rejects r.csv").ends(3);
    let said = said.complains(&["line 3 of c.csv: engine: the URL cannot be used"]);
    assert!(said.err.contains("; shop: the URL"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(bench.path("r.csv")).unwrap().lines().count(), 2);
    bench.write("c.csv", "isbn\n1\n");
    let said = bench.run("add --to shop --to engine --csv c.csv").ends(2);
    said.complains(&["these rows are not for engine", "the column `url` is missing"]);
    bench
        .run("add --to engine --to engine https://a.example/1")
        .ends(2)
        .complains(&["named twice"]);
    bench.run("add shop --to engine https://a.example/1").ends(2).complains(&["say --to shop"]);
    bench.run("add").ends(2);
    bench
        .run("add --to engine --to shop https://a.example/9 --set isbn=7 --dry-run")
        .ends(0)
        .tells(&["Limits of engine:", "Limits of shop:", "Nothing was added."]);
}

#[test]
fn a_stale_row_makes_way_for_a_newer_one() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,price\n1,10\n2,20\n");
    bench.run("add shop --csv c.csv --load monday").ends(0);
    bench.write("c.csv", "isbn,price\n1,11\n2,21\n3,31\n");
    let told = bench.json("add shop --csv c.csv --load tuesday --replace");
    assert_eq!(
        (&told["added"], &told["replaced"], &told["duplicates"]),
        (&3.into(), &2.into(), &0.into())
    );
    assert_eq!(bench.count("monday", "cancelled"), 2);
    let queued = bench.json("jobs --state queued");
    let prices: Vec<_> =
        queued.as_array().unwrap().iter().map(|job| job["price"].clone()).collect();
    assert_eq!(prices, ["11", "21", "31"]);
    let said = bench.run("add shop --csv c.csv --replace --load wednesday").ends(0);
    assert_eq!(said.out, "load wednesday: 3 added, 3 of them in place of older ones\n");
    let priorities = |add: &str| {
        bench.run(add).ends(0);
        let queued = bench.json("jobs --state queued");
        let all = queued.as_array().unwrap().iter().map(|job| job["priority"].as_i64().unwrap());
        all.collect::<Vec<_>>()
    };
    let replace = "add shop --csv c.csv --replace";
    assert_eq!(priorities(&format!("{replace} --priority 5")), [5, 5, 5]);
    assert_eq!(priorities(replace), [5, 5, 5], "the place in line is kept");
    bench.write("c.csv", "isbn,price\n1,3\n2,\n3,2026-11-30\n");
    assert_eq!(priorities(&format!("{replace} --priority-from price")), [3, 5, 5]);
    assert_eq!(priorities(&format!("{replace} --priority 0")), [0, 0, 0]);
    bench.run("add shop --csv c.csv --replace --dedupe none").ends(2).complains(&["--dedupe none"]);
}

#[test]
fn the_order_comes_from_a_column() {
    let bench = Bench::new();
    bench.write("c.csv", "isbn,seen\n1,2026-11-02\n2,\n3,2026-11-01T08:00:00Z\n4,7\n5,soon\n");
    bench.run("add shop --csv c.csv --priority-from seen").ends(3).complains(&[
        "line 6 of c.csv: `soon` in the column `seen` is no priority from 0 to 9, and no date",
    ]);
    let jobs = bench.json("jobs");
    let mut order: Vec<_> = jobs.as_array().unwrap().clone();
    order.sort_by_key(|job| {
        (-job["priority"].as_i64().unwrap(), job["due_at"].as_str().unwrap().to_owned())
    });
    let order: Vec<_> = order.iter().map(|job| job["isbn"].as_str().unwrap()).collect();
    assert_eq!(order, ["4", "2", "3", "1"]);
    bench.run("add shop --csv c.csv --priority-from sen").ends(2).complains(&["`sen` is missing"]);
}

#[test]
fn a_column_is_no_method() {
    let bench = Bench::new();
    bench.run_with("add shop --csv -", b"isbn,method\n1,delete\n2,Hardcover\n").ends(0);
    let jobs = bench.json("jobs");
    assert_eq!((&jobs[0]["method"], &jobs[1]["method"]), (&"GET".into(), &"GET".into()));
    bench.run("cancel --upstream shop --yes").ends(0);
    let told = bench.run("results --state cancelled --fields isbn,method").ends(0);
    assert_eq!(told.out, "isbn,method\n1,delete\n2,Hardcover\n");
    bench
        .run_with("add shop --jsonl -", b"{\"isbn\": 1, \"method\": \"Hardcover\"}\n")
        .ends(3)
        .complains(&["line 1 of stdin: `Hardcover` is no method"]);
}

#[test]
fn no_row_says_how_a_message_is_read() {
    let bench = Bench::new();
    for name in ["Content-Length", "transfer-encoding", "Connection", "Upgrade", "HOST"] {
        let line =
            format!("{{\"isbn\": 1, \"headers\": {{\"{name}\": \"3\"}}}}\n{{\"isbn\": 2}}\n");
        let said = bench.run_with("add shop --jsonl - --dedupe none", line.as_bytes()).ends(3);
        said.tells(&["1 added, 1 rejected"]).complains(&["line 1 of stdin: ", "leave "]);
        let header = format!("{name}: 3");
        let words = ["add", "shop", "--set", "isbn=1", "--header", &header, "--dedupe", "none"];
        // A person may call a machine by another name than that of its site.
        bench.exec(&words, b"").ends(if name == "HOST" { 0 } else { 2 });
    }
}

#[test]
fn an_address_too_long_to_be_sent_is_refused() {
    let bench = Bench::new();
    let url = |bytes: usize| format!("http://a.example/{}", "x".repeat(bytes - 17));
    let lines = format!("{}\n{}\n", url(65_535), url(65_534));
    let said = bench.run_with("add engine - --set k=1 --url {url}", lines.as_bytes()).ends(3);
    said.tells(&["1 added, 1 rejected"]).complains(&["line 1 of stdin", "no more than 65534"]);
    let said = bench
        .run_with("add shop --csv -", format!("isbn\n1\n{}\n", "\u{e4}".repeat(11_000)).as_bytes());
    said.ends(3)
        .tells(&["1 added, 1 rejected"])
        .complains(&["line 3 of stdin", "it has 66028 bytes"]);
}
