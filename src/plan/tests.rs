//! Plans: examples and properties.

use proptest::prelude::*;

use super::*;
use crate::quota::declare;
use crate::template::Template;

fn upstream(text: &str) -> Upstream {
    declare::parse("test", "test.toml", text).unwrap()
}

fn row(pairs: &[(&str, &str)]) -> Columns {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn plan(text: &str, pairs: &[(&str, &str)]) -> Result<NewJob, PlanError> {
    plan_with(text, AddOptions::default(), pairs)
}

fn plan_with(text: &str, options: AddOptions, pairs: &[(&str, &str)]) -> Result<NewJob, PlanError> {
    Planner::new(&upstream(text), options)?.plan(row(pairs))
}

/// A row that says its own method, in a column too.
fn by(text: &str, method: &str) -> Result<NewJob, PlanError> {
    let own = Own { method: Some(method.to_owned()), ..Own::default() };
    let row = row(&[("isbn", "1"), ("method", method)]);
    Planner::new(&upstream(text), AddOptions::default())?.plan_own(row, own)
}

const STOCK: &str = r#"
[columns.warehouse]
one_of = ["north", "south"]
default = "north"
[columns.isbn]
help = "thirteen digits"
[request]
url = "https://api.example/v1/stock/{isbn}?at={warehouse}&key=${env:KEY}"
headers = { X-Isbn = "{isbn}" }
[[limit]]
name = "plan"
kind = "rate"
rate = "10/s"
key = ["warehouse"]
"#;

const INDEX: &str = r#"
[columns.siteUrl]
from = "url.origin"
[columns.lang]
from = "url.query.lang"
default = "en"
[request]
method = "POST"
url = "https://index.example/submit"
headers = { Content-Type = "application/json" }
body = '{"site": "{siteUrl}", "url": "{url}", "lang": "{lang}"}'
[[limit]]
name = "daily"
kind = "budget"
amount = 10
per = "day"
time_zone = "UTC"
key = ["siteUrl"]
"#;

const KEYED: &str = r#"
[columns.site]
from = "url.host"
[credential.shop]
when = { host = "shop.example" }
set = { site = "the shop" }
secret = { key = "${env:SHOP}" }
[credential.all]
secret = { key = "${env:REST}" }
[request]
headers = { X-Key = "${secret:key}" }
"#;

#[test]
fn a_row_fills_the_url_and_names_its_partition() {
    let job = plan(STOCK, &[("isbn", "97 8")]).unwrap();
    assert_eq!(job.request.url, "https://api.example/v1/stock/97%208?at=north&key=${env:KEY}");
    assert_eq!(job.request.method, "GET");
    assert_eq!(job.partition, row(&[("warehouse", "north")]));
    assert_eq!(job.columns["host"], "api.example");
    assert_eq!(job.columns["method"], "GET");
    assert!(job.repeatable && job.request.body.is_none() && job.request.headers.is_empty());
}

#[test]
fn the_url_argument_fills_a_body_that_uses_it() {
    let job = plan(INDEX, &[("url", "https://www.example.com:8443/a?lang=d%22e")]).unwrap();
    assert_eq!(job.request.url, "https://index.example/submit");
    let body = Template::parse(&job.request.body.unwrap()).unwrap();
    let body = body.freeze(&job.columns, Place::Json).unwrap();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["site"], "https://www.example.com:8443");
    assert_eq!(body["lang"], "d\"e");
    assert_eq!(body["url"], "https://www.example.com:8443/a?lang=d%22e");
    assert_eq!(job.columns["host"], "www.example.com");
    assert!(!job.repeatable);
}

#[test]
fn the_url_argument_is_what_is_called_where_nothing_uses_it() {
    let job = plan(STOCK, &[("isbn", "978"), ("url", "https://other.example/{x}")]).unwrap();
    assert_eq!(job.request.url, "https://other.example/%7Bx%7D");
    let url = Some("https://api.example/{isbn}".to_owned());
    let options = AddOptions { url, ..AddOptions::default() };
    let job = plan_with(STOCK, options, &[("isbn", "978"), ("url", "https://x.example/")]).unwrap();
    assert_eq!(job.request.url, "https://api.example/978");
}

#[test]
fn a_get_does_not_carry_the_body_of_a_post() {
    let options = AddOptions { method: Some("GET".to_owned()), ..AddOptions::default() };
    let job = plan_with(INDEX, options, &[("url", "https://a.example/")]).unwrap();
    assert_eq!((job.request.body, job.request.url.as_str()), (None, "https://a.example/"));
}

#[test]
fn set_goes_before_row_before_credential_before_derived_before_default() {
    let url = ("url", "https://a.example/?lang=de");
    assert_eq!(plan(INDEX, &[url]).unwrap().columns["lang"], "de");
    assert_eq!(plan(INDEX, &[url, ("lang", "fr")]).unwrap().columns["lang"], "fr");
    assert_eq!(plan(INDEX, &[url, ("lang", "")]).unwrap().columns["lang"], "de");
    assert_eq!(plan(INDEX, &[("url", "https://a.example/")]).unwrap().columns["lang"], "en");
    let options = AddOptions { set: row(&[("lang", "it")]), ..AddOptions::default() };
    assert_eq!(plan_with(INDEX, options, &[url, ("lang", "fr")]).unwrap().columns["lang"], "it");
}

#[test]
fn the_most_particular_credential_that_agrees_is_used() {
    let shop = plan(KEYED, &[("url", "https://shop.example/x")]).unwrap();
    assert_eq!(shop.partition, row(&[("credential", "shop")]));
    assert_eq!(shop.columns["site"], "the shop");
    let rest = plan(KEYED, &[("url", "https://rest.example/x"), ("site", "own")]).unwrap();
    assert_eq!(
        (rest.columns["credential"].as_str(), rest.columns["site"].as_str()),
        ("all", "own")
    );
    let row = [("url", "https://rest.example/x"), ("credential", "shop")];
    assert_eq!(plan(KEYED, &row).unwrap().columns["credential"], "shop");
    let options = AddOptions { credential: Some("sho".to_owned()), ..AddOptions::default() };
    let error = plan_with(KEYED, options, &[]).unwrap_err();
    let told = "there is no credential `sho` (did you mean `shop`?); write --credential with one of all, shop";
    assert_eq!(error.to_string(), told);
}

#[test]
fn what_is_missing_is_named_with_its_help() {
    let error = plan(STOCK, &[("ISBN", "978")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the column `isbn` is missing: thirteen digits (there is `ISBN`)"
    );
    let error = plan(STOCK, &[("isbn", "")]).unwrap_err();
    assert_eq!(error.to_string(), "the column `isbn` is missing: thirteen digits");
    let query = "[request]\nurl = \"https://a.example/x?by={by}\"";
    assert_eq!(plan(query, &[("by", "")]).unwrap().request.url, "https://a.example/x?by=");
    assert_eq!(plan(query, &[("by", "..")]).unwrap().request.url, "https://a.example/x?by=..");
    let error = plan("", &[]).unwrap_err().to_string();
    let told = "the column `url` is missing: the address, as an argument or a column of the rows";
    assert_eq!(error, told);
}

#[test]
fn known_columns_are_checked_before_the_first_row() {
    let columns = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let new = |text, names| {
        let options = AddOptions { columns: columns(names), ..AddOptions::default() };
        Planner::new(&upstream(text), options).map(|_| ())
    };
    assert_eq!(new(STOCK, &["isbn"]), Ok(()));
    assert_eq!(new(INDEX, &["url"]), Ok(()));
    assert_eq!(new(KEYED, &["url"]), Ok(()));
    assert!(
        matches!(new(STOCK, &["is bn"]), Err(PlanError::Missing(missing)) if missing.len() == 1)
    );
    let error = new(INDEX, &[]).unwrap_err();
    let PlanError::Missing(missing) = error else { panic!("{error}") };
    let names: Vec<_> = missing.iter().map(|missing| missing.column.as_str()).collect();
    assert_eq!(names, ["url"]);
}

#[test]
fn addresses_that_cannot_be_called_are_refused() {
    for url in ["example.com/a", "ftp://a.example/", "https://user:secret@a.example/", "https://"] {
        let error = plan("", &[("url", url)]).unwrap_err();
        assert!(matches!(error, PlanError::Url { .. }), "{url}: {error}");
        assert!(!error.to_string().contains("secret"));
    }
    let host = "[request]\nurl = \"https://{where}/x\"";
    let error = plan(host, &[("where", "a b")]).unwrap_err();
    assert!(matches!(error, PlanError::Address { .. }), "{error}");
    let error = plan(STOCK, &[("isbn", "..")]).unwrap_err();
    assert_eq!(error, PlanError::Dots { column: "isbn".to_owned() });
}

#[test]
fn a_method_is_said_and_no_column() {
    let job = plan(STOCK, &[("isbn", "1"), ("method", "delete")]).unwrap();
    assert_eq!((job.request.method.as_str(), job.columns["method"].as_str()), ("GET", "delete"));
    let method = |job: NewJob| (job.request.method, job.columns["method"].clone());
    assert_eq!(method(by(STOCK, "put").unwrap()), ("PUT".to_owned(), "put".to_owned()));
    assert_eq!(method(by(STOCK, "PURGE").unwrap()).0, "PURGE");
    // A limit counts by what is sent.
    let counted = STOCK.replace("key = [\"warehouse\"]", "key = [\"method\"]");
    let job = by(&counted, "put").unwrap();
    assert_eq!(job.partition["method"], "PUT");
    let job = plan(&counted, &[("isbn", "1"), ("method", "delete")]).unwrap();
    assert_eq!(job.partition["method"], "GET");
}

#[test]
fn other_bad_values_are_refused() {
    let error = plan(STOCK, &[("isbn", "1"), ("warehouse", "west")]).unwrap_err();
    assert_eq!(error.to_string(), "`west` is not allowed in the column `warehouse`: north, south");
    let error = plan(STOCK, &[("isbn", "1\r\nX: y")]).unwrap_err();
    assert!(matches!(error, PlanError::Fill { .. }), "{error}");
    let options = AddOptions { priority: Some(10), ..AddOptions::default() };
    assert_eq!(plan_with(STOCK, options, &[]).unwrap_err(), PlanError::Priority(10));
    for bad in ["stand ard", "Hardcover"] {
        assert_eq!(by(STOCK, bad).unwrap_err(), PlanError::Method(bad.to_owned()));
    }
    let headers = row(&[("X-A", "a\nb")]);
    let options = AddOptions { headers, ..AddOptions::default() };
    let error = plan_with(STOCK, options, &[("isbn", "1")]).unwrap_err();
    assert_eq!(error, PlanError::HeaderValue("X-A".to_owned()));
    let body = Some("${secret:key}".to_owned());
    let options = AddOptions { body, ..AddOptions::default() };
    let error = plan_with(STOCK, options, &[("isbn", "1")]).unwrap_err();
    assert!(matches!(error, PlanError::UndeclaredSecret { .. }), "{error}");
}

#[test]
fn costs_are_whole_numbers() {
    let text = "[[limit]]\nname = \"tokens\"\nkind = \"rolling\"\namount = 5\nper = \"1h\"\n\
        cost = \"tokens\"";
    let url = ("url", "https://a.example/");
    assert!(plan(text, &[url, ("tokens", "3")]).is_ok());
    assert!(matches!(plan(text, &[url, ("tokens", "3.5")]), Err(PlanError::Cost { .. })));
    assert!(matches!(plan(text, &[url]), Err(PlanError::Missing(_))));
}

#[test]
fn headers_and_the_dedupe_key_are_templates() {
    let options = AddOptions {
        headers: row(&[("x-isbn", "${env:A}/{isbn}")]),
        dedupe_key: Some("{isbn}@{lastmod}".to_owned()),
        ..AddOptions::default()
    };
    let job = plan_with(STOCK, options, &[("isbn", "978"), ("lastmod", "{today}")]).unwrap();
    assert_eq!(job.request.headers, row(&[("x-isbn", "${env:A}/978")]));
    assert_eq!(job.dedupe_key.as_deref(), Some("978@{{today}}"));
}

proptest! {
    /// Whatever a row holds, the call goes where the file says.
    #[test]
    fn no_value_leads_elsewhere(isbn in any::<String>(), warehouse in "(north|south|[{}$./@:?#]{1,6})") {
        let planned = plan(STOCK, &[("isbn", &isbn), ("warehouse", &warehouse)]);
        if let Ok(job) = planned {
            let template = crate::template::Template::parse(&job.request.url).unwrap();
            let sent = template.render(&Columns::new(), Place::Url, &|_| Some("s".to_owned()));
            let url = Url::parse(&sent.unwrap()).unwrap();
            prop_assert_eq!(url.host_str(), Some("api.example"));
            prop_assert_eq!(url.path_segments().unwrap().count(), 3);
            prop_assert!(url.path().starts_with("/v1/stock/"));
            prop_assert_eq!(url.query_pairs().count(), 2);
        }
    }
}

#[test]
fn an_address_is_one_of_the_upstreams_where_it_names_its_hosts() {
    const API: &str = "[match]\nhosts = [\"api.example\", \"*.api.example\"]\n[request]\n\
                       headers = { Authorization = \"Bearer ${env:KEY}\" }\n";
    for url in ["https://api.example/a", "https://eu.API.example:8443/a"] {
        assert_eq!(plan(API, &[("url", url)]).unwrap().request.url, url);
    }
    for url in ["https://evil.example/a", "https://api.example.evil/a", "http://127.0.0.1/a"] {
        let error = plan(API, &[("url", url)]).unwrap_err();
        assert!(error.to_string().contains("would be sent its secrets"), "{error}");
    }
    let open = "[match]\nhosts = [\"api.example\"]\n";
    let error = plan(open, &[("url", "https://elsewhere.example/")]).unwrap_err();
    assert!(error.to_string().contains("whose limits do not count there"), "{error}");
    // Where it names none, it is the user's own affair.
    let own = "[request]\nheaders = { Authorization = \"Bearer ${env:KEY}\" }\n";
    assert!(plan(own, &[("url", "https://elsewhere.example/")]).is_ok());
}

#[test]
fn a_host_that_the_url_decides_is_not_set() {
    let upstream = declare::parse("shop", "shop.toml", "name = \"shop\"\n").unwrap();
    let set = |host: &str| Columns::from([("host".to_owned(), host.to_owned())]);
    let plan = |host: &str, row: &[(&str, &str)]| {
        let options = AddOptions { set: set(host), ..AddOptions::default() };
        let row = row.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Planner::new(&upstream, options).unwrap().plan(row.collect())
    };
    let row = [("url", "https://www.example.com/a")];
    assert!(matches!(plan("x", &row).unwrap_err(), PlanError::SetHost { .. }));
    assert_eq!(plan("www.example.com", &row).unwrap().columns["host"], "www.example.com");
}
