//! Results and logs, on a history that the store's own doors wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::clock::SystemClock;
use paceline::job::CallId;
use paceline::quota::declare;
use paceline::reading::{Reading, Reason};
use paceline::store::sqlite::{Options, SqliteStore};
use paceline::store::{Claim, KeptBody, Serves, Settlement, Store};
use serde_json::Value;

use super::bench::{Bench, has};

/// No limits, so that nothing waits.
const FREE: &str = "name = \"free\"\n[request]\nurl = \"http://127.0.0.1:9/{isbn}\"\n\
    [results]\nfields = { stock = \"/stock\" }\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("quotas/free.toml", FREE);
    bench.run_with("add free --csv - --load l --dedupe none", b"isbn,id\n1,a\n2,b\n1,c\n").ends(0);
    bench
}

/// Answers every queued job: the second is not found.
fn answer_all(bench: &Bench) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = Options::new(bench.path("store.db"), Arc::new(SystemClock::new()));
        let store = SqliteStore::open(options).unwrap();
        let upstream = Arc::new(declare::parse("free", "free.toml", FREE).unwrap());
        let (runner, _) = store.register(Serves::Queue(vec!["free".to_owned()])).await.unwrap();
        let claim = Claim::new(Arc::clone(&upstream), runner, 10);
        let calls = store.claim(claim).await.unwrap().calls;
        assert_eq!(calls.len(), 3);
        let now = store.now().store;
        let settle = |call: CallId, job: i64| Settlement {
            call,
            sent_at: now,
            left: true,
            status: Some(if job == 2 { 404 } else { 200 }),
            reading: reading(if job == 2 { Reason::NotFound } else { Reason::Ok }),
            items: Vec::new(),
            connection: None,
            token: None,
            remaining: Vec::new(),
            redirect: None,
            fields: BTreeMap::from([("stock".to_owned(), Value::from(job))]),
            body: (job == 2).then(|| KeptBody { bytes: b"no \xff such".to_vec(), cut: true }),
            random: 0.5,
        };
        for call in calls {
            let one = settle(call.id, call.job.id.0);
            store.settle(Arc::clone(&upstream), vec![one]).await.unwrap();
        }
        store.retire(runner).await.unwrap();
    });
}

fn reading(reason: Reason) -> Reading {
    Reading {
        reason,
        retryable: false,
        retry_at: None,
        clamped: false,
        source: "status".to_owned(),
        limit: None,
        detail: "as told".to_owned(),
        wait: None,
        becomes: None,
        location: None,
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn results_come_in_the_order_of_ending() {
    let bench = bench();
    answer_all(&bench);
    let said = bench.run("results --format jsonl").ends(0);
    let all = lines(&said.out);
    assert_eq!(all.len(), 3);
    for one in &all {
        has(one, &["id", "url", "status", "reason", "finished_at", "stock", "isbn", "cursor"]);
    }
    assert_eq!(all[1]["reason"], "not_found");
    assert_eq!(all[1]["body_base64"], "bm8g/yBzdWNo");
    assert_eq!(all[0]["columns"]["id"], "a");
    let cursor = all[1]["cursor"].as_str().unwrap();
    let rest = bench.run(&format!("results --format jsonl --after {cursor}")).ends(0);
    assert_eq!(lines(&rest.out).len(), 1);
    let last = all[2]["cursor"].as_str().unwrap();
    assert_eq!(said.err, "");
    assert!(rest.err.contains(&format!("--after {last}")));
    let none = bench.run(&format!("results --json --after {last}")).ends(0);
    assert_eq!(none.out, "");
}

#[test]
fn the_latest_of_its_like_stands_for_all() {
    let bench = bench();
    answer_all(&bench);
    let said = bench.run("results --json --latest-by isbn").ends(0);
    let ids: Vec<i64> = lines(&said.out).iter().map(|one| one["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn results_are_csv_by_themselves() {
    let bench = bench();
    answer_all(&bench);
    let said = bench.run("results --state done").ends(0);
    let header = said.out.lines().next().unwrap();
    assert_eq!(
        header,
        "id,url,state,status,reason,finished_at,load,upstream,stock,host,columns.id,isbn,method,cursor"
    );
    let picked = bench.run("results --fields isbn,stock,columns.id --limit 1").ends(0);
    assert_eq!(picked.out, "isbn,stock,columns.id\n1,1,a\n");
    bench
        .run("results --fields isbn,body")
        .ends(2)
        .complains(&["`body` is not kept", "free says [keep] body = \"refusals\""]);
    bench.run("results --fields isbn,body --state failed").ends(0);
    bench.run("results --output r.csv").ends(0);
    assert_eq!(std::fs::read_to_string(bench.path("r.csv")).unwrap().lines().count(), 4);
}

#[test]
fn a_field_of_a_body_that_was_not_kept_is_refused() {
    let bench = bench();
    answer_all(&bench);
    let way = "the quota file of free says [keep] body = \"refusals\"; with \"all\"";
    bench.run("results --field price=/price").ends(2).complains(&[
        "`price` is not kept",
        "2 answered jobs without",
        way,
    ]);
    let cut = bench.run("results --field price=/price --state failed --fields id").ends(2);
    cut.complains(&["1 answered job whose answer was cut", "[keep] max_bytes"]);
    bench.write("quotas/free.toml", format!("{FREE}[keep]\nbody = \"all\"\n"));
    let way = "leave out those from before it said [keep] body = \"all\"";
    bench.run("results --fields body").ends(2).complains(&[way, "--since or --after"]);
    bench.run("results --fields isbn,stok").ends(2).complains(&["`stok`", "did you mean `stock`?"]);
    bench.run("results --fields price").ends(2).complains(&["no result has", "--field price=/"]);
    bench.run("results --fields price --state expired").ends(0);
    bench.run("results --field status=/x").ends(2).complains(&["a `status` of its own"]);
    bench
        .run("results --field stock=stock")
        .ends(2)
        .complains(&["no JSON pointer", "stock=/stock"]);
}

#[test]
fn a_table_that_cannot_be_written_says_what_to_do() {
    let bench = bench();
    answer_all(&bench);
    let refused = |line: &str, says: &[&str]| bench.run(line).ends(2).complains(says);
    refused("results --sqlite store.db", &["is a store of Paceline's own"]);
    refused("results --sqlite no/such/out.db", &["cannot be opened", "another file with --sqlite"]);
    bench
        .write("text.db", "no database, but as long as the head of one would have to be".repeat(9));
    refused("results --sqlite text.db", &["is no SQLite file"]);
    refused("results --sqlite o.db --format csv", &["cannot be used with"]);
    refused("results --upsert isbn", &["--sqlite"]);
    refused("results --sqlite o.db --upsert ean", &["no `ean` to replace a row by", "--upsert"]);
    let conn = rusqlite::Connection::open(bench.path("o.db")).unwrap();
    conn.execute_batch("CREATE TABLE old (isbn INTEGER)").unwrap();
    refused("results --sqlite o.db --table old", &["`isbn`", "INTEGER", "make it TEXT"]);
}

#[test]
fn whether_a_page_was_submitted_yesterday_is_seen_in_one_look() {
    let bench = bench();
    answer_all(&bench);
    let (url, yesterday) = ("http://127.0.0.1:9/2", "--since 2d");
    let said = bench.run(&format!("log --url {url} {yesterday}")).ends(0);
    assert_eq!(said.out.lines().count(), 1);
    said.tells(&["free job 2 attempt 1 404 not_found", "(as told)"]);
    bench.run(&format!("show {url}")).ends(0).tells(&["job 2 of free", "404, not_found"]);
    bench.run_with("add free --csv - --load l", b"isbn,id\n9,z\n").ends(0);
    let waits = bench.run("log --url http://127.0.0.1:9/9").ends(0);
    waits.complains(&["no attempt fits; job 4 of that URL is queued: `paceline why 4`"]);
    let none = bench.run("log --url http://127.0.0.1:9/8").ends(0);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "no attempt fits\n"));
}

#[test]
fn who_asks_and_keeps_no_answer_is_told_before_it_is_too_late() {
    let bench = bench();
    let note = "of each answer of bare only status and reason will be there";
    let bare = "name = \"bare\"\n[request]\nurl = \"http://127.0.0.1:9/{isbn}\"\n";
    let adds = |file: &str, more: &str| {
        bench.write("quotas/bare.toml", file);
        bench.run(&format!("add bare --set isbn=1 {more}")).ends(0).err
    };
    let said = adds(bare, "");
    assert!(said.contains(note) && said.contains("[keep] body = \"all\""), "{said}");
    assert_eq!(said.lines().count(), 1);
    bench.run("hold bare").ends(0);
    bench.run("run bare --max-wait 0").ends(4).complains(&[note]);
    let quiet = bench.run("run bare --max-wait 0 --quiet").ends(4);
    assert!(!quiet.err.contains(note), "{}", quiet.err);
    for kept in ["[keep]\nbody = \"all\"\n", "[results]\nfields = { a = \"/a\" }\n"] {
        assert_eq!(adds(&format!("{bare}{kept}"), ""), "");
    }
    bench.run("resume bare").ends(0);
    assert_eq!(adds(bare, "--method PUT"), "", "it sends, and is told that it was taken");
}

#[test]
fn the_log_has_a_line_an_attempt() {
    let bench = bench();
    answer_all(&bench);
    let log = bench.json("log free");
    assert_eq!(log.as_array().unwrap().len(), 3);
    has(&log[0], &["job", "upstream", "url", "n", "sent_at", "status", "reason", "hint_at"]);
    assert_eq!(bench.json("log --limit 1")[0]["job"], 3);
    let csv = bench.run("log --csv").ends(0).out;
    assert_eq!(
        csv.lines().next().unwrap(),
        "job,upstream,url,n,sent_at,status,reason,hint_at,detail"
    );
    assert_eq!(csv.lines().count(), 4);
    bench.run("log --since 1h").ends(0).tells(&["404 not_found", "(as told)"]);
    let jobs = |line: &str| -> Vec<i64> {
        let log = bench.json(line);
        log.as_array().unwrap().iter().map(|one| one["job"].as_i64().unwrap()).collect()
    };
    assert_eq!(jobs("log --load l --where isbn=1"), [1, 3]);
    assert_eq!(jobs("log --load l --where isbn=1 --where id=c"), [3]);
    assert_eq!(jobs("log --reason not_found"), [2]);
    bench.run("log --load spring").ends(2).complains(&["no load `spring`"]);
    let shown = bench.json("show 2");
    has(&shown["attempts"][0], &["n", "sent_at", "status", "reason", "hint_at", "body"]);
    assert_eq!(shown["attempts"][0]["body_cut"], true);
    bench.run("show 2").ends(0).tells(&["404, not_found", "no text", "there was more"]);
    bench.run("retry --load l --yes").ends(0).tells(&["1 job queued"]);
}

#[test]
fn a_prune_of_nothing_and_a_spend_of_too_much_say_so() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1").ends(0);
    bench.run("cancel 1").ends(0);
    bench.run("prune").ends(0).tells(&["0 jobs pruned"]).complains(&["older than its [keep] says"]);
    let within = bench.run("budget spend shop 11").ends(0);
    assert!(!within.err.contains("more is recorded"), "{}", within.err);
    bench
        .run("budget spend shop 3")
        .ends(0)
        .tells(&["14 of 11 spent"])
        .complains(&["14 of 11; `paceline budget spend shop -3` takes back"]);
}

#[test]
fn a_column_id_of_the_rows_is_told_from_the_jobs_number() {
    let bench = Bench::new();
    bench.write(
        "quotas/items.toml",
        "name = \"items\"\n[request]\nurl = \"http://127.0.0.1:9/{id}\"\n",
    );
    bench.write("c.csv", "id,title\n70,A\n71,B\n");
    bench.run("add items --csv c.csv").ends(0);
    bench.run("cancel --upstream items --yes").ends(0);
    let line = "results --state cancelled --sqlite a.db --upsert";
    let note = "`id` is the job's number, of which no two rows have the same; the column `id` of your rows is \
        `columns.id`";
    bench.run(&format!("{line} id")).ends(0).complains(&[note]);
    let said = bench.run(&format!("{line} columns.id")).ends(0);
    assert!(!said.err.contains("number"), "{}", said.err);
    let csv = bench.run("results --state cancelled --fields columns.id").ends(0);
    assert_eq!(csv.out, "columns.id\n70\n71\n");
}
