//! Where redirects lead, and where they may not.

use super::*;

const OWN: &str = "https://api.example/v1/items?key=s3cret%2Fvalue&page=2";

fn call(url: &Url) -> Redirected<'_> {
    Redirected {
        status: 302,
        method: "GET",
        url,
        body: None,
        repeatable: true,
        is_secure: true,
        by: None,
    }
}

fn hide(text: &str) -> String {
    text.replace("s3cret%2Fvalue", "${env:KEY}").replace("s3cret/value", "${env:KEY}")
}

fn own() -> Url {
    Url::parse(OWN).unwrap()
}

fn to(location: &str) -> Result<Redirect, DeadEnd> {
    follow(&call(&own()), location, &hide)
}

fn by(hops: u32, as_get: bool, away: bool) -> Redirect {
    Redirect { url: "https://api.example/".to_owned(), hops, as_get, away }
}

#[test]
fn a_location_is_resolved_against_the_address_that_was_called() {
    for (location, url) in [
        ("https://api.example/v2", "https://api.example/v2"),
        ("/v2/a b", "https://api.example/v2/a%20b"),
        ("other?x=1#part", "https://api.example/v1/other?x=1"),
        ("//api.example/v3", "https://api.example/v3"),
        ("?page=3", "https://api.example/v1/items?page=3"),
        ("  /blanks\t", "https://api.example/blanks"),
    ] {
        let redirect = to(location).unwrap();
        assert_eq!((redirect.url.as_str(), redirect.hops), (url, 1), "{location}");
        assert!(!redirect.away && !redirect.as_get, "{redirect:?}");
    }
}

#[test]
fn only_what_can_be_called_is_followed() {
    for location in ["ftp://api.example/", "javascript:alert(1)", "https://", "data:,x", "http://["]
    {
        let end = to(location).unwrap_err();
        assert!(matches!(end, DeadEnd::Address(_)), "{location}: {end:?}");
        assert_eq!(end.reason(), Reason::Misconfigured);
    }
    let named = to("https://user:pw@api.example/").unwrap_err();
    assert_eq!(named, DeadEnd::Address(AddressError::UserInfo));
    assert_eq!(to(&format!("/{}", "x".repeat(9000))), Err(DeadEnd::Long));
}

#[test]
fn methods_change_as_browsers_change_them() {
    let url = own();
    let get_after = |status, method, repeatable| {
        let call = Redirected { status, method, repeatable, ..call(&url) };
        follow(&call, "/x", &hide).unwrap().as_get
    };
    for status in [301, 302] {
        assert!(get_after(status, "POST", false) && get_after(status, "POST", true));
        assert!(!get_after(status, "PUT", true) && !get_after(status, "GET", false));
        assert!(get_after(status, "PATCH", false), "it may have been done");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert!(get_after(303, method, false), "{method}");
        assert!(!get_after(307, method, false) && !get_after(308, method, false), "{method}");
    }
    assert!(!get_after(303, "GET", true) && !get_after(303, "HEAD", true));
}

#[test]
fn what_became_a_get_stays_one_and_what_went_away_stays_away() {
    let url = own();
    let before = by(3, true, true);
    let call = Redirected { status: 307, by: Some(&before), ..call(&url) };
    let redirect = follow(&call, "/back", &hide).unwrap();
    assert_eq!((redirect.hops, redirect.as_get, redirect.away), (4, true, true));
}

#[test]
fn another_scheme_port_or_host_is_away_but_for_the_step_to_https() {
    let away = |from: &str, to: &str| {
        let url = Url::parse(from).unwrap();
        let call = Redirected { is_secure: url.scheme() == "https", ..call(&url) };
        follow(&call, to, &hide).unwrap().away
    };
    assert!(away("https://a.example/", "https://b.example/"));
    assert!(away("https://a.example/", "https://www.a.example/"));
    assert!(away("https://a.example/", "https://a.example:8443/"));
    assert!(away("http://127.0.0.1:80/", "http://127.0.0.1:81/"));
    assert!(away("http://a.example:8080/", "https://a.example/"));
    assert!(away("http://a.example/", "https://b.example/"));
    assert!(!away("http://a.example/", "https://a.example/x"));
    assert!(!away("https://a.example/", "https://A.example:443/x"));
}

#[test]
fn https_is_not_left_unless_the_job_asked_for_http() {
    let end = to("http://api.example/v1").unwrap_err();
    assert_eq!(end, DeadEnd::Downgrade("http://api.example/v1".to_owned()));
    assert!(end.to_string().contains("read and change"), "{end}");
    let url = own();
    let plain = Redirected { is_secure: false, ..call(&url) };
    assert!(follow(&plain, "http://api.example/v1", &hide).unwrap().away);
}

#[test]
fn the_eleventh_redirect_is_a_loop_and_names_its_address() {
    let url = own();
    let (ninth, tenth) = (by(9, false, false), by(10, false, false));
    let last = Redirected { by: Some(&ninth), ..call(&url) };
    assert_eq!(follow(&last, "/x", &hide).unwrap().hops, MOST_HOPS);
    let end = follow(&Redirected { by: Some(&tenth), ..last }, "/round", &hide).unwrap_err();
    assert_eq!(end, DeadEnd::Loop("https://api.example/round".to_owned()));
    assert_eq!(end.reason(), Reason::Unprocessable);
}

#[test]
fn a_secret_goes_back_to_its_own_host_as_a_placeholder_and_nowhere_else() {
    let same = to("/v2?key=s3cret/value").unwrap();
    assert_eq!(same.url, "https://api.example/v2?key=${env:KEY}");
    let end = to("https://b.example:8443/v2?key=s3cret/value").unwrap_err();
    let host = "b.example:8443".to_owned();
    assert_eq!(end, DeadEnd::Secret { host, part: "address" });
    assert!(!end.to_string().contains("s3cret"), "{end}");
}

#[test]
fn a_body_with_a_secret_goes_to_no_other_host() {
    let url = own();
    let post =
        Redirected { status: 307, method: "POST", body: Some("k=${secret:k}"), ..call(&url) };
    let end = follow(&post, "https://b.example/", &hide).unwrap_err();
    assert!(matches!(end, DeadEnd::Secret { part: "body", .. }), "{end:?}");
    assert!(follow(&post, "/here", &hide).is_ok());
    let plain = Redirected { body: Some("{\"isbn\": \"{isbn}\"}"), ..post };
    assert!(follow(&plain, "https://b.example/", &hide).unwrap().away);
    assert!(follow(&Redirected { status: 303, ..post }, "https://b.example/", &hide).is_ok());
}

#[test]
fn nothing_that_the_upstream_writes_is_a_placeholder() {
    for location in ["/x?${env:HOME}", "/${file:/etc/passwd}", "?a={isbn}", "/{{x}}?{{y}}"] {
        let url = to(location).unwrap().url;
        let template = Template::parse(&url).unwrap();
        assert!(template.secrets().is_empty() && template.columns().is_empty(), "{url}");
        assert!(!url.contains(['{', '}']), "{url}");
    }
}
