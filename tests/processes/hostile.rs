//! Rows that mean harm, or only look like it: each arrives exactly as it was meant, or is refused with its
//! line.

use paceline::practice::Config;
use percent_encoding::percent_decode_str;

use crate::support::world::World;

const VALUES: [&str; 16] = [
    "a \"quoted\" word",
    "two\nlines",
    "two\r\nlines",
    "{}",
    "{id}",
    "{{id}} }} {",
    "${env:HOME}",
    "${token}",
    "100% %41 %zz",
    "😀 ü ﷽",
    "\u{202e}desrever\u{2066}",
    "../../etc/passwd?x=1#y",
    "a,b;c\td",
    "</value><x>&amp;",
    "\\n\\u0041\\",
    "'; DROP TABLE job; --",
];

/// A CSV file of ids and values.
fn csv(values: &[&str]) -> String {
    let quoted = |value: &str| format!("\"{}\"", value.replace('"', "\"\""));
    let rows = values.iter().enumerate().map(|(n, value)| format!("{n},{}\n", quoted(value)));
    format!("id,v\n{}", rows.collect::<String>())
}

fn jsonl(values: &[&str]) -> String {
    let rows = values.iter().enumerate();
    rows.map(|(n, value)| format!("{}\n", serde_json::json!({"id": n, "v": value}))).collect()
}

/// What arrived under an id: path, query and body, each as its value.
fn arrived(world: &World, id: usize) -> (String, String, String) {
    let arrivals = world.arrivals();
    let prefix = format!("/p/{id}/");
    let of = arrivals.iter().filter(|arrival| arrival.path.starts_with(&prefix));
    let [arrival] = of.collect::<Vec<_>>()[..] else {
        panic!("{id} arrived another number of times")
    };
    let decode = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let body: serde_json::Value = serde_json::from_slice(&arrival.body).unwrap();
    (
        decode(&arrival.path[prefix.len()..]),
        decode(arrival.query.as_deref().unwrap().strip_prefix("q=").unwrap()),
        body["v"].as_str().unwrap().to_owned(),
    )
}

fn world() -> World {
    let world = World::new(Config::new().keep_headers());
    let text = format!(
        "[request]\nmethod = \"POST\"\nurl = \"{}\"\nbody = '{{\"v\": \"{{v}}\"}}'\n",
        world.url("/p/{id}/{v}?q={v}")
    );
    world.home.quota("shop", &text);
    world
}

#[test]
fn values_arrive_as_they_were_meant() {
    for (file, text) in [("--csv", csv(&VALUES)), ("--jsonl", jsonl(&VALUES))] {
        let world = world();
        world.home.write("rows", &text);
        let ran = world.run(&["add", "shop", file, "rows"]);
        assert_eq!(ran.code, 0, "{ran}");
        let ran = world.run(&["run"]);
        assert_eq!(ran.code, 0, "{ran}");
        for (id, value) in VALUES.iter().enumerate() {
            let (path, query, body) = arrived(&world, id);
            assert_eq!((path.as_str(), query.as_str(), body.as_str()), (*value, *value, *value));
        }
        let results = world.run(&["results", "--format", "csv"]);
        let mut back = csv::Reader::from_reader(results.stdout.as_bytes());
        let names = back.headers().unwrap().clone();
        let at = names.iter().position(|name| name == "v").unwrap();
        let mut told: Vec<String> = back.records().map(|row| row.unwrap()[at].to_owned()).collect();
        told.sort();
        let mut meant = VALUES.map(str::to_owned);
        meant.sort();
        assert_eq!(told, meant, "results give back what came in");
    }
}

#[test]
fn a_cell_of_a_megabyte_arrives_or_is_refused() {
    let world = world();
    let text = format!(
        "[request]\nmethod = \"POST\"\nurl = \"{}\"\nbody = '{{v}}'\n",
        world.url("/p/{id}")
    );
    world.home.quota("shop", &text);
    let (large, larger) = ("ä😀".repeat(1_000_000 / 6), "x".repeat(1 << 20));
    world.home.write("rows.csv", &csv(&["one", &large, &larger, "two"]));
    let ran = world.run(&["add", "shop", "--csv", "rows.csv"]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains("line 4 of rows.csv: it is longer than 1048576 bytes"), "{ran}");
    assert!(ran.stdout.contains("3 added, 1 rejected"), "{ran}");
    assert_eq!(world.run(&["run"]).code, 0);
    let mut bodies: Vec<_> = world.arrivals().into_iter().map(|arrival| arrival.body).collect();
    bodies.sort_by_key(|body| body.len());
    assert_eq!(bodies.iter().map(|body| body.len()).collect::<Vec<_>>(), [3, 3, large.len()]);
    assert!(bodies[2] == large, "byte for byte");
}

#[test]
fn what_would_break_a_header_or_a_key_is_refused_with_its_line() {
    let world = World::with(
        Config::new(),
        "headers = { X-V = \"{v}\" }\n[[limit]]\nname = \"r\"\nkind = \"rate\"\nrate = \"100/s\"\nburst = 100\nkey = [\"site\"]\n",
    );
    let rows =
        "id,v,site\n1,\"a\r\nCookie: b\",s\n2,ok,\n3,ok,s\n,ok,s\n5,\u{7f},s\n6,\"t\tab\",s\n";
    world.home.write("rows.csv", rows);
    let ran = world.run(&["add", "shop", "--csv", "rows.csv", "--rejects", "bad.csv"]);
    assert_eq!(ran.code, 3, "{ran}");
    for line in [
        "line 2 of rows.csv: ",
        "line 4 of rows.csv: the column `site` is missing",
        "line 6 of rows.csv: the column `id` is missing",
        "line 7 of rows.csv: ",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran}");
    }
    assert!(ran.stdout.contains("1 added, 5 rejected"), "{ran}");
    let bad = std::fs::read_to_string(world.home.path("bad.csv")).unwrap();
    assert!(bad.contains("1,\"a\r\nCookie: b\",s,\""), "as it was: {bad}");
    assert_eq!(world.run(&["run"]).code, 0);
    assert_eq!(world.by_path().keys().collect::<Vec<_>>(), ["/3"]);
}

#[test]
fn a_whole_request_is_sent_word_for_word() {
    let world = world();
    let url = world.url("/whole?x=%7B{id}");
    let body =
        r#"{"b": 1.10,  "a": "{id} ${env:HOME} {{x}} ü", "big": 123456789012345678901234567890}"#;
    let row = format!(
        r#"{{"url": "{url}", "method": "PUT", "headers": {{"X-Odd": "{{id}} ${{env:HOME}} 100%", "x-n": 7}}, "body": {body}}}"#
    );
    world.home.write("r.jsonl", &format!("{row}\n"));
    world.home.quota("any", "[request]\nheaders = { X-N = \"file\", X-File = \"yes\" }\n");
    let ran = world.run(&["add", "any", "--jsonl", "r.jsonl"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.run(&["run"]).code, 0);
    let arrivals = world.arrivals();
    let [arrival] = &arrivals[..] else { panic!("{} arrivals", arrivals.len()) };
    assert_eq!(std::str::from_utf8(&arrival.body).unwrap(), body);
    assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("PUT", "/whole"));
    let headers = arrival.headers.as_ref().unwrap();
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("x-odd"), "{id} ${env:HOME} 100%");
    assert_eq!((header("x-n"), header("x-file")), ("7".to_owned(), "yes".to_owned()));
    assert_eq!(header("content-type"), "application/json");
}

#[test]
fn what_usually_has_a_body_tells_where_it_has_none() {
    let world = world();
    let row =
        |method: &str| format!("{{\"url\": \"{}\", \"method\": \"{method}\"}}\n", world.url("/x"));
    let rows = ["POST", "PUT", "PATCH", "GET", "DELETE"].map(row).concat();
    world.home.write("r.jsonl", &rows);
    world.home.quota("any", "[request]\nrepeatable = true\n");
    assert_eq!(world.run(&["add", "any", "--jsonl", "r.jsonl"]).code, 0);
    assert_eq!(world.run(&["run"]).code, 0);
    let arrivals = world.arrivals();
    let mut told: Vec<_> = arrivals
        .iter()
        .filter(|arrival| {
            arrival
                .headers
                .as_ref()
                .unwrap()
                .get("content-length")
                .is_some_and(|length| length == "0")
        })
        .map(|arrival| arrival.method.clone())
        .collect();
    told.sort();
    assert_eq!((arrivals.len(), told.join(" ")), (5, "PATCH POST PUT".to_owned()));
}
