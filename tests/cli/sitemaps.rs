//! `add --sitemap`, from files.

use super::bench::Bench;
use super::rows::packed;

fn urlset(urls: &[(&str, &str)]) -> String {
    let url = |(loc, lastmod): &(&str, &str)| match *lastmod {
        "" => format!("<url><loc>{loc}</loc></url>\n"),
        _ => format!("<url><loc>{loc}</loc><lastmod>{lastmod}</lastmod></url>\n"),
    };
    let urls: String = urls.iter().map(url).collect();
    format!("<?xml version=\"1.0\"?>\n<urlset>\n{urls}</urlset>\n")
}

fn index(locs: &[&str]) -> String {
    let locs: String =
        locs.iter().map(|loc| format!("<sitemap><loc>{loc}</loc></sitemap>\n")).collect();
    format!("<sitemapindex>\n{locs}</sitemapindex>\n")
}

fn urls(bench: &Bench) -> Vec<String> {
    let jobs = bench.json("jobs");
    jobs.as_array().unwrap().iter().map(|job| job["url"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_index_leads_to_all_its_sitemaps() {
    let bench = Bench::new();
    let inner = index(&["https://a.example/maps/two.xml.gz"]);
    bench.write(
        "maps/index.xml",
        index(&["https://a.example/one.xml", "more/inner.xml", "three.txt"]),
    );
    bench.write("maps/one.xml", urlset(&[("https://a.example/1?a=1&amp;b=2", "2026-11-30")]));
    bench.write("maps/more/inner.xml", inner);
    bench.write("maps/more/two.xml.gz", packed(&urlset(&[("https://a.example/2", "")])));
    bench.write("maps/three.txt", "https://a.example/3\n");
    bench.run("add engine --sitemap maps/index.xml").ends(0).tells(&["3 added"]);
    assert_eq!(
        urls(&bench),
        ["https://a.example/1?a=1&b=2", "https://a.example/2", "https://a.example/3"]
    );
    assert_eq!(bench.json("jobs")[0]["lastmod"], "2026-11-30");
    let whole = packed(&urlset(&[("https://a.example/4", "")]));
    bench.run_with("add engine --sitemap -", &whole).ends(0).tells(&["1 added"]);
}

#[test]
fn what_is_broken_is_named_and_loses_nothing_else() {
    let bench = Bench::new();
    bench.write(
        "index.xml",
        index(&["broken.xml", "good.xml", "good.xml", "index.xml", "none.xml"]),
    );
    bench.write(
        "broken.xml",
        "<urlset>\n<url><loc>https://a.example/1</loc></url>\n<url><loc>https://a.example/2</url>",
    );
    bench.write(
        "good.xml",
        urlset(&[
            ("https://a.example/3", ""),
            ("no-url", "2026-11-30"),
            ("https://a.example/?a&b", ""),
        ]),
    );
    bench.run("add engine --sitemap index.xml --strict").ends(3).complains(&["nothing was added"]);
    assert!(urls(&bench).is_empty());
    bench
        .run("add engine --sitemap index.xml --rejects r.csv")
        .ends(3)
        .tells(&["2 added, 6 rejected"])
        .complains(&[
            "line 3 of broken.xml: its XML is broken: ",
            "line 4 of good.xml: the URL cannot be used",
            "line 5 of good.xml: it has an `&` that is not written as `&amp;`",
            "line 4 of index.xml: the sitemap good.xml was read already",
            "line 5 of index.xml: the sitemap index.xml was read already",
            "line 6 of index.xml: the sitemap none.xml is not read: `none.xml` cannot be read: ",
        ]);
    assert_eq!(urls(&bench), ["https://a.example/1", "https://a.example/3"]);
    let rejects = std::fs::read_to_string(bench.path("r.csv")).unwrap();
    assert!(rejects.starts_with("url,lastmod,rejected_because\n"), "{rejects}");
    assert!(rejects.contains("no-url,2026-11-30,\"the URL cannot be used"), "{rejects}");
    bench.write("r.csv", rejects.replace("no-url", "https://a.example/4"));
    bench.run("add engine --csv r.csv").ends(0);
    assert!(urls(&bench).contains(&"https://a.example/4".to_owned()));
    bench.run("add engine --sitemap none.xml").ends(2).complains(&["`none.xml` cannot be read"]);
    bench.write("page.xml", "<html></html>");
    bench.run("add engine --sitemap page.xml").ends(3).complains(&["its root is <html>"]);
}

#[test]
fn since_keeps_what_was_changed_at_or_after() {
    let bench = Bench::new();
    let all = [
        ("https://a.example/old", "2026-11-28"),
        ("https://a.example/day", "2026-11-29"),
        ("https://a.example/zone", "2026-11-29T01:00:00+02:00"),
        ("https://a.example/late", "2026-11-30T08:00:00Z"),
        ("https://a.example/undated", ""),
        ("https://a.example/odd", "last week"),
    ];
    bench.write("s.xml", urlset(&all));
    let said = bench.run("add engine --sitemap s.xml --since 2026-11-29 --json").ends(3);
    let said = said.complains(&["line 8 of s.xml: the lastmod `last week` is no date"]);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["added"], &told["older"], &told["rejected"]),
        (&2.into(), &3.into(), &1.into())
    );
    assert_eq!(urls(&bench), ["https://a.example/day", "https://a.example/late"]);
    bench.run("add engine --sitemap s.xml").ends(0).tells(&["4 added, 2 there already"]);
}

#[test]
fn only_what_has_changed_is_queued_again() {
    let bench = Bench::new();
    let one = ("https://a.example/1", "2026-11-29");
    bench.write(
        "s.xml",
        urlset(&[one, ("https://a.example/2", "2026-11-29"), ("https://a.example/3", "")]),
    );
    bench.run("add engine --sitemap s.xml --load first").ends(0);
    bench.run("cancel --load first --yes").ends(0);
    bench.run("add engine --sitemap s.xml --load second --changed").ends(0).tells(&["3 added"]);
    let conn = rusqlite::Connection::open(bench.path("store.db")).unwrap();
    let done = "UPDATE job SET state = 'done', ended_at = 1 WHERE state = 'queued'";
    assert_eq!(conn.execute(done, []).unwrap(), 3);
    drop(conn);
    bench.run("prune --state done --yes").ends(0);
    bench.run("add engine --sitemap s.xml --changed").ends(0).tells(&["0 added, 3 there already"]);
    bench.write(
        "s.xml",
        urlset(&[one, ("https://a.example/2", "2026-11-30"), ("https://a.example/3", "")]),
    );
    bench
        .run("add --to engine --to shop --set isbn=1 --sitemap s.xml --changed --load third")
        .ends(0)
        .tells(&["load third: 1 added to engine, 2 there already", "load third: 3 added to shop"]);
    bench
        .run("add engine --sitemap s.xml --changed --dedupe ever")
        .ends(2)
        .complains(&["--dedupe ever"]);
}
