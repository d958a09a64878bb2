//! PURE: who may come in: callers with the token, and no page of a browser.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HOST, HeaderName, ORIGIN, PROXY_AUTHORIZATION};
use hyper::{HeaderMap, Uri};
use sha2::{Digest, Sha256};

use super::problem::Problem;
use super::wish::TOKEN;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the gateway listens on, and whom it lets in.
pub(super) struct Door {
    listen: SocketAddr,
    /// The token's digest: comparing digests takes as long whatever a guess has right.
    token: Option<[u8; 32]>,
}

impl Door {
    pub fn new(listen: SocketAddr, token: Option<&str>) -> Door {
        Door { listen, token: token.map(digest) }
    }

    /// Lets a caller in, or tells why not.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        self.check_token(headers)?;
        self.check_host(uri, headers)?;
        self.check_page(headers)
    }

    /// Whether a host, with its port where it has one, is this gateway.
    pub fn is_own(&self, authority: &str) -> bool {
        let (host, port) = split(authority);
        port.unwrap_or(80) == self.listen.port() && self.is_own_host(host)
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = &self.token else { return Ok(()) };
        let told = headers.get(TOKEN).and_then(|value| value.to_str().ok()).map(str::to_owned);
        match told.or_else(|| proxy_token(headers)) {
            Some(told) if digest(&told) == *token => Ok(()),
            told => {
                let what =
                    if told.is_some() { "that is not the token" } else { "a token is needed" };
                let detail = format!(
                    "{what} of this gateway: send it as `Paceline-Token: ...` (a proxy's caller may put \
                     it into the proxy's address: http://paceline:TOKEN@HOST:PORT)"
                );
                let mut problem =
                    Problem::new(if told.is_some() { 403 } else { 401 }, "token", detail);
                if told.is_none() {
                    let asked = "Bearer realm=\"paceline\"".to_owned();
                    problem.fields.push((hyper::header::WWW_AUTHENTICATE, asked));
                }
                Err(problem)
            }
        }
    }

    /// A page that had its own name lead here ("DNS rebinding") still calls us by that name. Whoever
    /// knows the token is no such page.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let named = headers.get(HOST).and_then(|host| host.to_str().ok());
        // Whoever asks a proxy names the host that it wants.
        let Some(named) = named.filter(|_| uri.authority().is_none()) else { return Ok(()) };
        if self.token.is_some() || self.is_own_host(split(named).0) {
            return Ok(());
        }
        let detail = format!(
            "this gateway is not called `{named}`: call it http://{}; by other names only with a token",
            self.listen
        );
        Err(Problem::new(421, "host", detail))
    }

    /// Pages in a browser reach this machine too, and must not spend what is its user's.
    fn check_page(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let own_origin = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|authority| self.is_own(authority))
        };
        let is_foreign = headers.contains_key(ORIGIN) && !text(&ORIGIN).is_some_and(own_origin);
        let is_cross =
            text(&SEC_FETCH_SITE).is_some_and(|site| !matches!(site, "none" | "same-origin"));
        if is_foreign || is_cross {
            let detail =
                "a page of another origin may not call this gateway: call it from a program";
            return Err(Problem::forbidden("origin", detail));
        }
        Ok(())
    }

    fn is_own_host(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == self.listen.ip(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// What a proxy's caller is let in by: a bearer token, or the password of `Basic`.
fn proxy_token(headers: &HeaderMap) -> Option<String> {
    let told = headers.get(PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = told.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let pair = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(value.trim()))?.ok()?;
    let pair = String::from_utf8(pair).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// A host and its port.
fn split(authority: &str) -> (&str, Option<u16>) {
    let port = |text: &str| text.parse().ok();
    match authority.rsplit_once(':') {
        // An IPv6 address alone has colons too, and stands in brackets.
        Some((host, text)) if !text.contains(']') => (host, port(text)),
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(token: Option<&str>) -> Door {
        Door::new("127.0.0.1:8080".parse().unwrap(), token)
    }

    fn check(door: &Door, fields: &[(&'static str, &str)]) -> Result<(), u16> {
        let fields = fields.iter();
        let fields =
            fields.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        door.check(&Uri::from_static("/shop/x"), &fields.collect())
            .map_err(|problem| problem.status)
    }

    #[test]
    fn only_names_of_this_machine_lead_here() {
        let open = door(None);
        for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "localhost", "127.0.0.9"] {
            assert_eq!(check(&open, &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1"] {
            assert_eq!(check(&open, &[("host", host)]), Err(421), "{host}");
        }
        let named = [("host", "box.lan:8080"), ("paceline-token", "t")];
        assert_eq!(check(&door(Some("t")), &named), Ok(()));
    }

    #[test]
    fn pages_of_browsers_stay_out() {
        let open = door(None);
        for field in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(check(&open, &[field]), Err(403), "{field:?}");
        }
        for field in [("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "none")] {
            assert_eq!(check(&open, &[field]), Ok(()), "{field:?}");
        }
    }

    #[test]
    fn the_token_comes_by_three_ways() {
        let closed = door(Some("s3cret"));
        let basic = format!("Basic {}", STANDARD.encode("any:s3cret"));
        for field in [
            ("paceline-token", "s3cret"),
            ("proxy-authorization", "Bearer s3cret"),
            ("proxy-authorization", &basic),
        ] {
            assert_eq!(check(&closed, &[field]), Ok(()), "{field:?}");
        }
        assert_eq!(check(&closed, &[]), Err(401));
        assert_eq!(check(&closed, &[("authorization", "Bearer s3cret")]), Err(401));
        assert_eq!(check(&closed, &[("paceline-token", "s3cre")]), Err(403));
    }

    #[test]
    fn it_knows_itself() {
        let door = door(None);
        assert!(door.is_own("localhost:8080") && door.is_own("[::1]:8080"));
        assert!(!door.is_own("localhost:9090") && !door.is_own("api.example:8080"));
    }
}
