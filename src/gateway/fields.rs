//! PURE: which header fields go on, and which are about one connection alone.

use std::collections::BTreeMap;

use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use super::wish::PREFIX;
use crate::template::Template;

/// Fields about one connection (RFC 9110 section 7.6.1), and of a proxy to its caller.
const HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Encodings that an answer may come in: those that its beginning can be read in.
const READABLE: [&str; 3] = ["gzip", "x-gzip", "deflate"];

/// The caller's fields, as the upstream is sent them. What the framing or the gateway is about stays.
pub(super) fn onward(headers: &HeaderMap) -> HeaderMap {
    let mut on = end_to_end(headers);
    for name in [HOST, EXPECT, CONTENT_LENGTH, ACCEPT_ENCODING] {
        on.remove(name);
    }
    on.insert(ACCEPT_ENCODING, readable(headers));
    on
}

/// The upstream's fields, as the caller is sent them.
pub(super) fn back(headers: &HeaderMap) -> HeaderMap {
    end_to_end(headers)
}

/// `headers`, with the file's own fields, filled in. One that holds a secret takes the place of the
/// caller's: whose quota is spent is decided here. Any other stands in where the caller says nothing.
pub(super) fn complete(headers: &mut HeaderMap, own: &HeaderMap, is_secret: impl Fn(&str) -> bool) {
    for (name, value) in own {
        if is_secret(name.as_str()) || !headers.contains_key(name) {
            headers.insert(name, value.clone());
        }
    }
}

/// Whether the file's field of that name holds a secret.
pub(super) fn is_secret(templates: &BTreeMap<String, String>, name: &str) -> bool {
    let own = templates.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut own = own.filter_map(|(_, text)| Template::parse(text).ok());
    own.any(|template| !template.secrets().is_empty())
}

/// What the caller wants to change the connection to.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<String> {
    let to = headers.get(UPGRADE)?;
    // Only with it is the field about this connection. HTTP/2 is asked for so, and may be declined.
    let is_meant = tokens(headers, &CONNECTION).any(|token| token == "upgrade");
    let to = String::from_utf8_lossy(to.as_bytes()).into_owned();
    (is_meant && !to.eq_ignore_ascii_case("h2c")).then_some(to)
}

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = tokens(headers, &CONNECTION).collect();
    let stays = |name: &HeaderName| {
        HOP.contains(name)
            || name.as_str().starts_with(PREFIX)
            || named.iter().any(|hop| hop == name.as_str())
    };
    let on = headers.iter().filter(|(name, _)| !stays(name));
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in on {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// The caller's `Accept-Encoding`, less what could not be read here; without one: as it is.
fn readable(headers: &HeaderMap) -> HeaderValue {
    let wanted = list(headers, &ACCEPT_ENCODING).filter(|coding| {
        let name = coding.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        READABLE.contains(&name.as_str()) || name == "identity"
    });
    let wanted: Vec<&str> = wanted.collect();
    let wanted = HeaderValue::from_str(&wanted.join(", ")).ok().filter(|value| !value.is_empty());
    wanted.unwrap_or(HeaderValue::from_static("identity"))
}

fn tokens(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> {
    list(headers, name).map(str::to_ascii_lowercase)
}

/// The members of a field that is a list.
fn list<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut map = HeaderMap::new();
        for (name, value) in fields.iter().map(field) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn what_is_about_one_connection_stays_on_it() {
        let asked = map(&[
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("host", "127.0.0.1"),
            ("expect", "100-continue"),
            ("content-length", "5"),
            ("paceline-deadline", "3s"),
            ("paceline-token", "t"),
            ("accept", "a"),
            ("cookie", "c=1"),
            ("cookie", "d=2"),
        ]);
        let on = onward(&asked);
        let mut names: Vec<_> = on.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "cookie"]);
        assert_eq!(on.get_all("cookie").iter().count(), 2);
        let answer = map(&[("connection", "close"), ("content-length", "5"), ("etag", "x")]);
        assert_eq!(back(&answer), map(&[("content-length", "5"), ("etag", "x")]));
    }

    #[test]
    fn only_what_can_be_read_is_asked_for() {
        let asked = |value: &'static str| {
            let on = onward(&map(&[("accept-encoding", value)]));
            on["accept-encoding"].to_str().unwrap().to_owned()
        };
        assert_eq!(asked("gzip, br;q=1.0, deflate;q=0.5, zstd"), "gzip, deflate;q=0.5");
        assert_eq!(asked("br"), "identity");
        assert_eq!(onward(&HeaderMap::new())["accept-encoding"], "identity");
    }

    #[test]
    fn a_secret_takes_the_callers_place_and_a_default_does_not() {
        let mut headers = map(&[("authorization", "Bearer dummy"), ("accept", "text/html")]);
        let own = map(&[("authorization", "Bearer true"), ("accept", "a"), ("x-version", "2")]);
        complete(&mut headers, &own, |name| name == "authorization");
        let expected =
            map(&[("authorization", "Bearer true"), ("accept", "text/html"), ("x-version", "2")]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn an_upgrade_is_seen_where_it_is_meant() {
        let asked = |to, connection| upgrade(&map(&[("upgrade", to), ("connection", connection)]));
        assert_eq!(asked("websocket", "keep-alive, Upgrade"), Some("websocket".to_owned()));
        assert_eq!(asked("websocket", "keep-alive"), None);
        assert_eq!(asked("h2c", "Upgrade, HTTP2-Settings"), None);
    }
}
