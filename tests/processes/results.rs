//! What comes out: every row once, as it went in, and what was answered.

use std::collections::BTreeMap;

use paceline::practice::{Answer, Config, Script};
use rusqlite::Connection;
use serde_json::Value;

use crate::support::Ran;
use crate::support::world::World;

/// Cells that something on the way could take for its own.
const HOSTILE: [&str; 18] = [
    "plain",
    "",
    " blank before",
    "blank behind ",
    "\ttab\t",
    "a \"quoted\" word",
    "\"",
    "comma, semicolon; pipe|",
    "two\nlines",
    "dos\r\nlines\r",
    "{} {id} {{id}} }}",
    "${env:HOME} ${secret:x}",
    "100 % %41 %zz",
    "📚 naïve Straße",
    "ספר خط \u{202e}rtl",
    "=1+1",
    "00012",
    "'; DROP TABLE job; --",
];

fn stock(text: &str) -> World {
    let answer =
        Answer::new(200).body(r#"{"stock": 12, "price": {"eur": "0012.50"}, "new": true}"#);
    World::with(Config::new().script(Script::new("/*", answer)), text)
}

/// Rows of a CSV file, by the value of `id`.
fn rows(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let mut all = BTreeMap::new();
    for row in reader.records() {
        let row = row.unwrap();
        let cells = header.iter().zip(row.iter()).map(|(n, v)| (n.to_owned(), v.to_owned()));
        let cells: BTreeMap<String, String> = cells.collect();
        let id = cells.get("columns.id").or(cells.get("id")).unwrap().clone();
        assert!(all.insert(id, cells).is_none(), "a row came twice");
    }
    all
}

fn good(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran}");
    ran
}

/// A table of hostile cells, under names of which some are a result's own.
fn hostile() -> String {
    let names = ["id", "note", "status", "cursor", "body", "Ünïcode name", "columns.status"];
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(names).unwrap();
    for (id, cell) in HOSTILE.iter().enumerate() {
        let id = id.to_string();
        csv.write_record([&id, *cell, cell, cell, cell, cell, "other"]).unwrap();
    }
    String::from_utf8(csv.into_inner().unwrap()).unwrap()
}

#[test]
fn every_row_comes_back_once_with_its_columns_byte_for_byte() {
    let world = stock("[results]\nfields = { stock = \"/stock\" }\n");
    world.home.write("in.csv", &hostile());
    good(world.run(&["add", "shop", "--csv", "in.csv", "--load", "l"]));
    good(world.run(&["run", "--quiet"]));
    let said = good(world.run(&["results", "--load", "l", "--format", "csv"]));
    let back = rows(&said.stdout);
    assert_eq!(back.len(), HOSTILE.len());
    for (id, cells) in rows(&hostile()) {
        for (name, cell) in cells {
            let own = ["id", "status", "cursor", "body", "columns.status"].contains(&name.as_str());
            let name = if own { format!("columns.{name}") } else { name };
            assert_eq!(back[&id][&name], cell, "{name} of row {id}");
        }
        assert_eq!((back[&id]["status"].as_str(), back[&id]["stock"].as_str()), ("200", "12"));
    }
    let lines = good(world.run(&["results", "--load", "l", "--json"]));
    for line in lines.stdout.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let id: usize = row["columns"]["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(
            (&row["columns"]["status"], &row["note"]),
            (&HOSTILE[id].into(), &HOSTILE[id].into())
        );
    }
    good(world.run(&["results", "--load", "l", "--sqlite", "out.db"]));
    let conn = Connection::open(world.home.path("out.db")).unwrap();
    let mut query =
        conn.prepare("SELECT \"columns.id\", note, \"columns.status\" FROM results").unwrap();
    let table = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let table: Vec<(String, String, String)> = table.map(Result::unwrap).collect();
    assert_eq!(table.len(), HOSTILE.len());
    for (id, note, status) in table {
        let cell = HOSTILE[id.parse::<usize>().unwrap()];
        assert_eq!((note.as_str(), status.as_str()), (cell, cell));
    }
}

/// A table in one line a row.
fn table(world: &World, sql: &str) -> Vec<String> {
    let conn = Connection::open(world.home.path("stock.db")).unwrap();
    let mut query = conn.prepare(sql).unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_table_is_kept_up_to_date() {
    let world = stock("[results]\nfields = { stock = \"/stock\", new = \"/new\" }\n");
    let into =
        ["results", "--load", "l", "--sqlite", "stock.db", "--table", "stock", "--upsert", "ISBN"];
    let day = |csv: &str| {
        world.home.write("in.csv", csv);
        good(world.run(&["add", "shop", "--csv", "in.csv", "--load", "l", "--dedupe", "none"]));
        good(world.run(&["run", "--quiet"]));
        good(world.run(&into)).stdout
    };
    let said = day("id,ISBN,Status\n1,0012,a\n2,0013,b\n");
    assert_eq!(said, "2 rows written to `stock` in stock.db\n");
    let all = "SELECT ISBN || ' ' || typeof(ISBN) || ' ' || \"columns.Status\" || ' ' || stock || ' ' \
        || typeof(stock) || ' ' || new || ' ' || typeof(id) FROM stock ORDER BY ISBN";
    let first = ["0012 text a 12 integer 1 integer", "0013 text b 12 integer 1 integer"];
    assert_eq!(table(&world, all), first);
    day("id,ISBN,Status,shelf\n3,0012,c,left\n");
    assert_eq!(table(&world, all), ["0012 text c 12 integer 1 integer", first[1]]);
    assert_eq!(table(&world, "SELECT shelf FROM stock WHERE shelf IS NOT NULL"), ["left"]);
    // A script goes on from where its table ends.
    let last = table(&world, "SELECT max(cursor) FROM stock").remove(0);
    let told = world.json(&[&into[..], &["--after", &last]].concat());
    assert_eq!((&told["written"], &told["cursor"]), (&0.into(), &last.into()));
}

#[test]
fn a_table_that_somebody_holds_is_waited_for_and_then_told_of() {
    let world = stock("");
    world.add(0, 3);
    good(world.run(&["run", "--quiet"]));
    let holder = Connection::open(world.home.path("stock.db")).unwrap();
    holder
        .execute_batch("CREATE TABLE own (x); BEGIN IMMEDIATE; INSERT INTO own VALUES (1)")
        .unwrap();
    let ran = world.run(&["results", "--sqlite", "stock.db"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("stock.db is locked by another program"), "{ran}");
    holder.execute_batch("ROLLBACK").unwrap();
    good(world.run(&["results", "--sqlite", "stock.db"]));
    good(world.run(&["results", "--sqlite", "stock.db"]));
    assert_eq!(table(&world, "SELECT count(*) || ' rows' FROM results"), ["3 rows"]);
}

#[test]
fn fields_are_taken_from_kept_answers() {
    let world = stock("[keep]\nbody = \"all\"\n");
    world.add(0, 120);
    good(world.run(&["run", "--quiet"]));
    let ran = good(world.run(&[
        "results",
        "--field",
        "price=/price/eur",
        "--field",
        "none=/no",
        "--fields",
        "columns.id",
    ]));
    let mut lines = ran.stdout.lines();
    assert_eq!(lines.next(), Some("columns.id,price,none"));
    let rest: Vec<&str> = lines.collect();
    assert_eq!(rest.len(), 120);
    assert!(rest.iter().all(|line| line.ends_with(",0012.50,")), "{rest:?}");
    let whole = good(world.run(&["results", "--limit", "1"])).stdout;
    let header = whole.lines().next().unwrap();
    assert!(header.ends_with(",body,cursor"), "all are kept, and so told: {header}");
    assert!(whole.contains("\"\"stock\"\": 12"), "{whole}");
}

#[test]
fn each_job_of_a_batch_has_its_own_part_of_the_answer() {
    let answer = r#"{"results": [{"id": "2", "code": 200, "stock": 20}, {"id": 1, "code": 200, "stock": 10}]}"#;
    let config = Config::new().script(Script::new("/*", Answer::new(200).body(answer)));
    let world = World::new(config);
    let text = "method = \"POST\"\nrepeatable = true\n[batch]\nmax_items = 2\nbody = '{\"ids\": {items.id}}'\n\
        [batch.answer]\nitems = \"/results\"\nkey = { \"/id\" = \"id\" }\nstatus = \"/code\"\n\
        [keep]\nbody = \"all\"\n";
    world.quota("shop", "/batch", text);
    world.add(1, 2);
    good(world.run(&["run", "--quiet"]));
    assert_eq!(world.count(), 1);
    let ran = good(world.run(&["results", "--field", "stock=/stock", "--fields", "columns.id"]));
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1,10", "2,20", "columns.id,stock"]);
    // The answer is both jobs': it stays for as long as one of them does.
    let bodies = || world.number("SELECT count(*) FROM body");
    good(world.run(&["prune", "1"]));
    assert_eq!(bodies(), 1);
    good(world.run(&["prune", "2"]));
    assert_eq!(bodies(), 0);
}

/// Makes `jobs` of the one job that ended, each with a body of 64 KiB where `bodies` says so.
fn multiply(world: &World, jobs: u64, bodies: bool) {
    let body =
        "INSERT INTO body SELECT n, CAST(printf('%.*c', 65536, 'x') AS BLOB), 0, 0, 1 FROM more;";
    let bodies = if bodies { body } else { "" };
    let sql = format!(
        "CREATE TEMP TABLE more AS WITH RECURSIVE count (n) AS
             (SELECT 1001 UNION ALL SELECT n + 1 FROM count LIMIT {jobs}) SELECT n FROM count;
         CREATE TEMP TABLE twin AS SELECT * FROM job;
         UPDATE twin SET dedupe = NULL;
         INSERT INTO job SELECT more.n, upstream_id, partition_id, load_id, shape_id, url, columns, state,
             priority, due_at, deadline_at, repeatable, added_at, attempts, failures, refused_hard, dedupe,
             ended_at, status, reason, detail, fields, limit_name, could_go_at FROM more, twin;
         INSERT INTO attempt (job_id, n, call_id, sent_at, ended_at, status, reason)
             SELECT n, 1, n, 1, 1, 200, 'ok' FROM more; {bodies}"
    );
    world.sql().execute_batch(&sql).unwrap();
}

#[test]
fn a_field_of_a_cut_answer_is_no_empty_cell() {
    let world = stock("[keep]\nbody = \"all\"\nmax_bytes = \"10B\"\n");
    world.add(0, 2);
    good(world.run(&["run", "--quiet"]));
    let ran = world.run(&["results", "--field", "stock=/stock"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran}");
    assert!(ran.stderr.contains("there are 2 answered jobs whose answer was cut"), "{ran}");
    good(world.run(&["results", "--fields", "id,body"]));
    let ran = world.run(&["results", "--latest-by", "nope"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran}");
    assert!(ran.stderr.contains("no result has a column `nope`"), "{ran}");
    good(world.run(&["results", "--latest-by", "id"]));
    let ran = good(world.run(&["results", "--fields", "id", "--after", ""]));
    assert_eq!(ran.stdout.lines().count(), 3, "{ran}");
    assert!(ran.stderr.contains("next: --after "), "{ran}");
}

#[test]
fn memory_does_not_grow_with_what_comes_out() {
    let few = stock("[results]\nfields = { stock = \"/stock\" }\n");
    few.add(0, 1);
    good(few.run(&["run", "--quiet"]));
    let peak = |world: &World, more: &[&str], rows: usize| {
        let ran = good(world.run(&[&["results", "--output", "out.csv"], more].concat()));
        let written = std::fs::read_to_string(world.home.path("out.csv")).unwrap();
        assert_eq!(written.lines().count(), rows + 1);
        ran.peak
    };
    let small = peak(&few, &[], 1);
    multiply(&few, 30_000, false);
    let large = peak(&few, &[], 30_001);
    // The page cache fills up (16 MiB); the rows themselves would be as much again.
    assert!(large < small + 24 * 1024, "{small} and {large} KiB");
    let kept = stock("[keep]\nbody = \"all\"\n");
    kept.add(0, 1);
    good(kept.run(&["run", "--quiet"]));
    multiply(&kept, 1000, true);
    let large = peak(&kept, &["--fields", "id,body"], 1001);
    assert!(large < small + 32 * 1024, "{small} and {large} KiB with bodies");
}

#[test]
fn who_polls_by_cursor_while_two_processes_send_sees_each_result_once() {
    let world = stock("[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"100/s\"\n");
    world.add(0, 300);
    let mut runs = [world.start(&["run", "--quiet"]), world.start(&["run", "--quiet"])];
    let mut seen: Vec<u64> = Vec::new();
    let mut after = "0-0".to_owned();
    let mut polls = 0;
    loop {
        let over = runs.iter_mut().all(|run| !run.is_running());
        let ran = good(world.run(&["results", "--json", "--after", &after]));
        for line in ran.stdout.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            seen.push(row["id"].as_u64().unwrap());
            after = row["cursor"].as_str().unwrap().to_owned();
        }
        polls += 1;
        if over {
            break;
        }
    }
    assert!(polls > 5, "{polls} looks");
    seen.sort_unstable();
    assert_eq!(seen, (1..=300).collect::<Vec<_>>());
}
