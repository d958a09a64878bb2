//! Sitemaps that are fetched: through limits, refusals and redirects, and what engines get of them.

use std::io::Write as _;
use std::time::Duration;

use paceline::practice::{Answer, Config, Script};

use crate::support::batches::{Batches, Taking};
use crate::support::world::World;

const PAGES: usize = 25_000;

fn packed(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn urlset(pages: std::ops::Range<usize>) -> String {
    let urls: String = pages
        .map(|n| {
            format!("<url><loc>https://www.example.com/{n:05}</loc><lastmod>2026-11-30</lastmod></url>\n")
        })
        .collect();
    format!("<urlset>\n{urls}</urlset>\n")
}

fn index(locs: &[&str]) -> String {
    let locs: String =
        locs.iter().map(|loc| format!("<sitemap><loc>{loc}</loc></sitemap>\n")).collect();
    format!("<sitemapindex>\n{locs}</sitemapindex>\n")
}

/// A site whose index has three sitemaps, one packed; one is sent on to, one refused at first.
fn site() -> Config {
    let map = |body: Vec<u8>| Answer::new(200).body(body);
    let locs = ["a.xml", "b.xml.gz", "c.xml"];
    // Longer than what comes after it, of which none of it must be a part.
    let refused = Answer::refusal(Duration::from_secs(1)).body(vec![b'x'; 300_000]);
    Config::new()
        .script(Script::new("/maps/index.xml", map(index(&locs).into())))
        .script(Script::new("/maps/a.xml", map(urlset(0..10_000).into())))
        .script(Script::new("/maps/b.xml.gz", refused).times(1))
        .script(Script::new("/maps/b.xml.gz", map(packed(&urlset(10_000..20_000)))))
        .script(Script::new("/maps/c.xml", Answer::new(302).header("location", "/c.xml")))
        .script(Script::new("/c.xml", map(urlset(20_000..PAGES).into())))
}

fn engine(world: &World, name: &str, upstream: &Batches, most: usize, more: &str) {
    let text = format!(
        "[request]\nmethod = \"POST\"\nurl = \"{}\"\nrepeatable = true\n\
         [batch]\nmax_items = {most}\nbody = '{{\"urlList\": {{items.url}}}}'\n{more}",
        upstream.url
    );
    world.home.quota(name, &text);
}

#[test]
fn a_site_of_25_000_pages_is_told_to_two_engines() {
    let world = World::new(site());
    let daily = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 200\nper = \"day\"\n\
        time_zone = \"UTC\"\ncost = \"items\"\n";
    let (now, google) = (Batches::start(Taking::default()), Batches::start(Taking::default()));
    engine(&world, "indexnow-like", &now, 10_000, "");
    engine(&world, "google-like", &google, 100, daily);
    let url = world.url("/maps/index.xml");
    let to = ["--to", "indexnow-like", "--to", "google-like"];
    let told = world.json(&[&["add"], &to[..], &["--sitemap", &url, "--load", "l"]].concat());
    assert_eq!(told["added"], 2 * PAGES, "{told}");
    assert_eq!(told["rejected"], 0, "{told}");
    assert_eq!(world.by_path()["/maps/b.xml.gz"], 2, "it was refused, and fetched again");
    assert_eq!(world.by_path()["/c.xml"], 1);
    assert_eq!(world.json(&["jobs", "--upstream", "google-like"])[0]["lastmod"], "2026-11-30");
    let ran = world.run(&["run", "--max-wait", "2s"]);
    assert_eq!(ran.code, 75, "{ran}");
    assert_eq!(now.sizes(200), [10_000, 10_000, 5_000]);
    assert_eq!(google.sizes(200), [100, 100]);
    let again = world.json(&[&["add"], &to[..], &["--sitemap", &url, "--changed"]].concat());
    assert_eq!(again["added"], 0, "{again}");
}

#[test]
fn what_cannot_be_fetched_is_told_and_the_rest_goes_on() {
    let locs = ["gone.xml", "own1.xml", "own2.xml", "own3.xml", "file:///etc/passwd", "a.xml"];
    let config = Config::new()
        .script(Script::new("/index.xml", Answer::new(200).body(index(&locs))))
        .script(Script::new("/gone.xml", Answer::new(404)))
        .script(Script::new("/own*", Answer::new(403)))
        .script(Script::new("/a.xml", Answer::new(200).body(urlset(0..3))));
    let world = World::with(config, "");
    let url = world.url("/index.xml");
    let ran =
        world.run(&["add", "shop", "--set", "id=1", "--dedupe-key", "{url}", "--sitemap", &url]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("3 added, 5 rejected"), "{ran}");
    assert!(ran.stderr.contains("gone.xml is not read: 404 not_found"), "{ran}");
    let own = "own3.xml is not read: 403 not_found: the site does not let it be read";
    assert!(ran.stderr.contains(own), "{ran}");
    assert!(ran.stderr.contains("neither http nor https"), "{ran}");
    let jobs = world.jobs();
    assert_eq!(jobs.get("queued"), Some(&3), "{jobs:?}");
    assert_eq!(jobs.len(), 1, "a fetch is no job of this store: {jobs:?}");
    let gone = world.url("/gone.xml");
    for more in [&[][..], &["--strict"]] {
        let add = ["add", "shop", "--set", "id=1", "--json", "--sitemap", &gone];
        let ran = world.run(&[&add, more].concat());
        assert_eq!(ran.code, 3, "{ran}");
        let told = format!("{gone}: the sitemap is not read: 404 not_found");
        assert!(ran.stderr.contains(&told), "{ran}");
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&told["added"], &told["rejected"]), (&0.into(), &1.into()), "{ran}");
    }
}

#[test]
fn a_site_that_asks_for_an_hour_is_not_waited_for() {
    let busy = Answer::refusal(Duration::from_secs(3600));
    let config = Config::new()
        .script(Script::new("/index.xml", Answer::new(200).body(index(&["1.xml", "2.xml"]))))
        .script(Script::new("*", busy));
    let world = World::with(config, "");
    let url = world.url("/index.xml");
    let ran = world.run(&["add", "shop", "--set", "id=1", "--sitemap", &url]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains("1.xml is not read: 429 rate_limited: "), "{ran}");
    assert!(
        ran.stderr.contains("it would take longer than 10 min: its site asks for 1 h"),
        "{ran}"
    );
    assert!(ran.stderr.contains("2.xml is not read: no call was made: "), "{ran}");
    assert_eq!(world.count(), 2, "the site is left alone");
}

#[test]
fn a_strict_addition_fetches_once() {
    let config = Config::new().script(Script::new("/a.xml", Answer::new(200).body(urlset(0..3))));
    let world = World::with(config, "");
    let url = world.url("/a.xml");
    let ran = world.run(&[
        "add",
        "shop",
        "--set",
        "id=1",
        "--dedupe-key",
        "{url}",
        "--strict",
        "--sitemap",
        &url,
    ]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("3 added"), "{ran}");
    assert_eq!(world.count(), 1);
}

#[test]
fn sites_are_fetched_from_at_the_declared_pace() {
    let locs: Vec<String> = (0..6).map(|n| format!("{n}.xml")).collect();
    let locs: Vec<&str> = locs.iter().map(String::as_str).collect();
    let mut config =
        Config::new().script(Script::new("/index.xml", Answer::new(200).body(index(&locs))));
    config = config.script(Script::new("/*", Answer::new(200).body(urlset(0..1))));
    let world = World::with(config, "");
    world
        .home
        .quota("sitemaps", "extends = \"sitemaps\"\n[[limit]]\nname = \"pace\"\nrate = \"4/s\"\n");
    let url = world.url("/index.xml");
    let ran = world.run(&["add", "shop", "--set", "id=1", "--sitemap", &url]);
    assert_eq!(ran.code, 0, "{ran}");
    let arrivals = world.arrivals();
    assert_eq!(arrivals.len(), 7);
    let took = arrivals[6].at.since(arrivals[0].at);
    assert!(took >= Duration::from_millis(1_450), "{took:?}");
}
