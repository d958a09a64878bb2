//! Templates: an address and a JSON body, read once and filled for each row; and read for each row too.
//!
//! `cargo bench --bench template`

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

#[path = "common/mod.rs"]
mod common;

use divan::{Bencher, black_box};
use paceline::template::{Place, Template};

const ADDRESS: &str = "https://api.distributor.example/v1/stock/{isbn}?shop={shop}";

const BODY: &str = r#"{"siteUrl": "{siteUrl}", "urlList": ["{url}"], "title": {title}}"#;

const ROW: [(&str, &str); 5] = [
    ("isbn", "9780141036144"),
    ("shop", "Basel & Zürich"),
    ("siteUrl", "https://www.example.com/"),
    ("url", "https://www.example.com/a?b=c"),
    ("title", "A \"quoted\" title"),
];

fn main() {
    divan::main();
}

#[divan::bench(args = ["address", "body"])]
fn filled(bencher: Bencher<'_, '_>, which: &str) {
    let (text, place) = what(which);
    let (template, row) = (Template::parse(text).unwrap(), common::columns(&ROW));
    bencher.bench_local(|| black_box(&template).freeze(black_box(&row), place).unwrap());
}

#[divan::bench(args = ["address", "body"])]
fn read_and_filled(bencher: Bencher<'_, '_>, which: &str) {
    let (text, place) = what(which);
    let row = common::columns(&ROW);
    bencher.bench_local(|| Template::parse(black_box(text)).unwrap().freeze(&row, place).unwrap());
}

fn what(which: &str) -> (&'static str, Place) {
    if which == "body" { (BODY, Place::Json) } else { (ADDRESS, Place::Url) }
}
