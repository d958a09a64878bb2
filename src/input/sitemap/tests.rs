//! Sitemaps as sites write them, whole and broken.

use std::io::Read as _;

use super::*;

fn told(entry: Entry) -> String {
    match entry {
        Entry::Row(Input::Row(row)) => {
            let values: Vec<_> = row.columns.values().rev().map(String::as_str).collect();
            format!("{}: {}", row.line, values.join(" "))
        }
        Entry::Row(Input::Bad(bad)) => format!("{}: {}", bad.line, bad.problem),
        Entry::Sitemap { line, loc } => format!("{line}: > {loc}"),
    }
}

fn tell(text: &str) -> Vec<String> {
    let told_by = |capacity| -> Vec<String> {
        let input = io::BufReader::with_capacity(capacity, text.as_bytes());
        Sitemap::new(input).unwrap().map(told).collect()
    };
    let told = told_by(1);
    assert_eq!(told, told_by(4096), "however its bytes come");
    told
}

#[test]
fn only_what_the_protocol_names_is_read() {
    let text = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <!-- made by hand -->\n\
        <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">\n\
        <url>\n  <loc>\n https://a.example/1 </loc><lastmod>2026-11-30</lastmod><priority>0.5</priority>\n\
        <xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"https://a.example/de\"/>\n\
        <image:image><image:loc>https://a.example/i.png</image:loc><loc>deep</loc></image:image></url>\n\
        <url><loc><![CDATA[https://a.example/?a=1&b=2]]></loc><lastmod/></url>\n\
        <url><news:loc>no</news:loc><loc>https://a.example/&#xe4;&amp;&apos;&lt;</loc></url>\n\
        </urlset>\n";
    assert_eq!(
        tell(text),
        [
            "4: https://a.example/1 2026-11-30",
            "9: https://a.example/?a=1&b=2",
            "10: https://a.example/ä&'<"
        ]
    );
}

#[test]
fn prefixes_are_those_of_the_root() {
    let text = "<s:sitemapindex xmlns:s=\"x\"><s:sitemap><s:loc>https://a.example/1.xml</s:loc></s:sitemap>\
        <sitemap><loc>https://a.example/2.xml</loc></sitemap></s:sitemapindex>";
    assert_eq!(tell(text), ["1: > https://a.example/1.xml"]);
    assert!(tell("<urlset/>").is_empty());
    assert!(tell("<urlset></urlset>").is_empty());
}

#[test]
fn an_entry_of_the_other_kind_is_told() {
    let loc = |n: u8| format!("<loc>https://a.example/{n}</loc>");
    let index = format!(
        "<sitemapindex>\n<url>{}</url>\n<sitemap>{}</sitemap></sitemapindex>",
        loc(1),
        loc(2)
    );
    assert_eq!(
        tell(&index),
        ["2: a <url> stands in a <sitemapindex>, which has none", "3: > https://a.example/2"]
    );
    let set = format!("<urlset><sitemap/>\n<url>{}</url></urlset>", loc(3));
    assert_eq!(
        tell(&set),
        ["1: a <sitemap> stands in a <urlset>, which has none", "2: https://a.example/3"]
    );
}

#[test]
fn a_text_of_urls_is_a_sitemap() {
    assert_eq!(
        tell("\u{feff}\n\nhttps://a.example/1\n\n https://a.example/2\n"),
        ["3: https://a.example/1", "5: https://a.example/2"]
    );
}

#[test]
fn a_bad_entry_takes_no_other_with_it() {
    let long = "x".repeat(LOC_BOUND);
    let text = format!(
        "<urlset><url><lastmod>2026</lastmod></url>\n<url><loc>a?b=1&c=2</loc></url>\n\
         <url><loc>&nbsp;</loc></url>\n<url><loc>a</loc><loc>b</loc></url>\n<url><loc>{long}</loc></url>\n\
         <url><x>&nbsp; &</x><loc>ok</loc></url></urlset>"
    );
    assert_eq!(
        tell(&text),
        [
            "1: it has no <loc>",
            "2: it has an `&` that is not written as `&amp;`",
            "3: it has an entity `&nbsp;`, which XML does not know",
            "4: its field `loc` is there twice",
            "5: its <loc> has 2048 characters or more",
            "6: ok",
        ]
    );
}

#[test]
fn where_the_xml_is_broken_all_before_it_counts() {
    let whole = "<urlset>\n<url><loc>one</loc></url>\n";
    for (rest, line, what) in [
        ("<url><loc>two</url>", 3, "expected `</loc>`, but `</url>` was found"),
        ("<url><loc>two", 3, "it ends too early"),
        ("", 3, "it ends too early"),
        ("</urlset", 3, "tag not closed"),
    ] {
        let told = tell(&format!("{whole}{rest}"));
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0], "2: one");
        assert!(told[1].starts_with(&format!("{line}: its XML is broken: ")), "{told:?}");
        assert!(told[1].contains(what), "{told:?}");
    }
    assert_eq!(tell(""), ["1: its XML is broken: there is nothing in it"]);
    let html = tell("<!DOCTYPE html>\n<html><body>404</body></html>");
    assert_eq!(html, ["2: it is no sitemap: its root is <html>, not <urlset> or <sitemapindex>"]);
    let bytes: &[u8] = b"<urlset><url><loc>\xff</loc></url></urlset>";
    assert!(told(Sitemap::new(bytes).unwrap().next().unwrap()).contains("its XML is broken"));
}

#[test]
fn the_limits_of_the_protocol_are_kept() {
    let mut text = "<urlset>".to_owned();
    (0..=MOST_ENTRIES).for_each(|n| text.push_str(&format!("\n<url><loc>{n}</loc></url>")));
    let told = tell(&text);
    assert_eq!(told.len(), MOST_ENTRIES + 1);
    assert_eq!(told[MOST_ENTRIES - 1], "50001: 49999");
    let too_many = "50002: there are more than 50000 entries in it, which the protocol does not allow: split it";
    assert_eq!(told[MOST_ENTRIES], too_many);
    let begin = &b"<urlset><url><loc>1</loc></url>"[..];
    let endless = io::BufReader::new(begin.chain(io::repeat(b' ')));
    let large: Vec<_> = Sitemap::new(endless).unwrap().map(super::tests::told).collect();
    assert_eq!(large.len(), 2);
    assert!(large[1].contains("it is larger than 50 MiB"), "{large:?}");
}
