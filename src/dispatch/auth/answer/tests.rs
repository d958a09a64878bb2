//! Answers of token servers.

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_780_315_200);

fn blame(is_dated: bool) -> Blame {
    Blame {
        host: "t.example".to_owned(),
        grant: "the refresh token",
        grant_fix: "get a new one and put it into `${env:REFRESH}`".to_owned(),
        client_fix: "check `client_id`".to_owned(),
        is_dated,
    }
}

fn answered(status: u16, headers: &[(&str, &str)], body: &str) -> Received {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let (headers, body) = (headers.collect(), body.as_bytes().to_vec());
    Received { status, headers, body, cut: false, received_at: NOW, connection: None }
}

fn told(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    of_server(&answered(status, headers, body), &blame(false)).unwrap_err()
}

fn lasting(failure: Failure) -> String {
    match failure {
        Failure::Lasting(detail) => detail,
        Failure::Passing { .. } => panic!("{failure:?}"),
    }
}

#[test]
fn a_token_comes_with_its_life_and_what_else_is_secret() {
    let body = r#"{"access_token": "abc", "expires_in": "3600", "refresh_token": "next"}"#;
    let fetched = of_server(&answered(200, &[], body), &blame(false)).unwrap();
    assert_eq!((fetched.value.as_str(), fetched.lasts), ("abc", Some(Duration::from_secs(3600))));
    assert_eq!(fetched.others, ["next"]);
    for (life, lasts) in [
        (r#", "expires_in": 1.5"#, Some(1500)),
        (r#", "expires_in": 0"#, None),
        (r#", "expires_in": -5"#, None),
        (r#", "expires_in": "soon""#, None),
        (r#", "expires_on": 1780315260"#, Some(60_000)),
        (r#", "expiry": "2026-06-01T12:02:00Z""#, Some(120_000)),
        ("", None),
    ] {
        let body = format!("{{\"access_token\": \"abc\"{life}}}");
        let fetched = of_server(&answered(200, &[], &body), &blame(false)).unwrap();
        assert_eq!(fetched.lasts, lasts.map(Duration::from_millis), "{life}");
    }
}

#[test]
fn a_success_without_a_token_tells_names_and_no_values() {
    let detail = lasting(told(200, &[], r#"{"token": "hunter2", "ok": true}"#));
    assert!(detail.contains("only ok, token") && !detail.contains("hunter2"), "{detail}");
    assert!(lasting(told(200, &[], "access_token=hunter2")).contains("no fields"), "a form");
    let detail = lasting(told(200, &[], r#"{"access_token": "a\nb"}"#));
    let empty = lasting(told(200, &[], r#"{"access_token": ""}"#));
    let what = "the token server at t.example gave no token: it is empty; check `token_url`";
    assert_eq!(empty, what, "whose it is, and what to do");
    assert!(detail.contains("line break") && !detail.contains('a'.to_string().repeat(2).as_str()));
}

#[test]
fn what_passes_is_waited_for() {
    let Failure::Passing { detail, retry_at } = told(503, &[("Retry-After", "7")], "") else {
        panic!("lasting")
    };
    assert_eq!(retry_at, Some(NOW + Duration::from_secs(7)));
    assert!(detail.starts_with("the token server at t.example answered 503"), "{detail}");
    for (status, body) in [
        (500, ""),
        (429, ""),
        (408, ""),
        (400, r#"{"error": "temporarily_unavailable"}"#),
        (400, r#"{"error": "slow_down"}"#),
    ] {
        assert!(matches!(told(status, &[], body), Failure::Passing { .. }), "{status} {body}");
    }
}

#[test]
fn what_a_person_must_mend_says_how() {
    let body = r#"{"error": "invalid_grant", "error_description": "Token has been revoked"}"#;
    assert_eq!(
        lasting(told(400, &[], body)),
        "the refresh token was refused (invalid_grant: Token has been revoked): \
         get a new one and put it into `${env:REFRESH}`"
    );
    let client = lasting(told(401, &[], r#"{"error": "invalid_client"}"#));
    assert!(client.contains("refuses the client") && client.ends_with("check `client_id`"));
    assert!(lasting(told(403, &[], "")).contains("403"));
    assert!(lasting(told(400, &[], r#"{"error": "invalid_scope"}"#)).ends_with("check `scopes`"));
    assert!(lasting(told(302, &[("Location", "/x")], "")).contains("write the new address"));
    assert!(lasting(told(200, &[], r#"{"error": "invalid_client"}"#)).contains("refuses"));
}

#[test]
fn a_clock_that_is_off_is_what_is_told() {
    let told = |date: &str, is_dated| {
        let received = answered(400, &[("Date", date)], r#"{"error": "invalid_grant"}"#);
        lasting(of_server(&received, &blame(is_dated)).unwrap_err())
    };
    let ahead = told("Mon, 01 Jun 2026 11:54:00 GMT", true);
    assert!(ahead.contains("this machine's clock is 6 min ahead of the token server's"), "{ahead}");
    let behind = told("Mon, 01 Jun 2026 12:01:30 GMT", true);
    assert!(behind.contains("this machine's clock is 90 s behind the token server's"), "{behind}");
    assert!(
        !told("Mon, 01 Jun 2026 12:01:00 GMT", true).contains("clock"),
        "a minute is no matter"
    );
    assert!(!told("Mon, 01 Jun 2026 11:54:00 GMT", false).contains("clock"), "nothing was dated");
}

#[test]
fn a_command_writes_a_token_or_an_object() {
    let read = |text: &str| of_command(text, NOW).map(|fetched| (fetched.value, fetched.lasts));
    assert_eq!(read("abc\n"), Ok(("abc".to_owned(), None)));
    assert_eq!(read("\"abc\"\r\n"), Ok(("abc".to_owned(), None)));
    assert_eq!(read("12345"), Ok(("12345".to_owned(), None)));
    let minute = Some(Duration::from_secs(60));
    for object in [
        r#"{"access_token": "abc", "expires_in": 60}"#,
        r#"{"token": "abc", "expiry": "2026-06-01T12:01:00Z"}"#,
        r#"{"accessToken": "abc", "expires_on": 1780315260, "expiresOn": "local time"}"#,
    ] {
        assert_eq!(read(object), Ok(("abc".to_owned(), minute)), "{object}");
    }
    for wrong in ["", "\n", "a\nb", "{}", r#"{"token": 5}"#, "\u{e9}"] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
}
