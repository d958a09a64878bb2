//! PURE: what a request's target asks for: a path of an upstream, or, of a proxy, an address.

use hyper::{Method, Uri};

use super::problem::Problem;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `/UPSTREAM/path?query`: what follows the name, with its slash.
    Path {
        /// The upstream's name.
        name: String,
        /// Empty, or what begins with `/` or `?`.
        rest: String,
    },
    /// A proxy is asked for this address.
    Address(String),
    /// `/`: no upstream is named.
    Root,
}

impl Target {
    /// Reads a target. `is_own` tells whether a host with its port is the gateway itself: HTTP/2 puts that
    /// before each path.
    ///
    /// # Errors
    ///
    /// A tunnel, and what no gateway can answer.
    pub fn read(
        method: &Method,
        uri: &Uri,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<Target, Problem> {
        if method == Method::CONNECT {
            return Err(Problem::tunnel());
        }
        match uri.authority() {
            Some(authority) if !is_own(authority.as_str()) => Ok(Target::Address(uri.to_string())),
            _ => Target::path(uri),
        }
    }

    fn path(uri: &Uri) -> Result<Target, Problem> {
        let whole = uri.path_and_query().map_or("/", |path| path.as_str());
        let Some(whole) = whole.strip_prefix('/') else {
            let detail = format!("`{whole}` is no path; write /UPSTREAM/path");
            return Err(Problem::bad_request("target", detail));
        };
        let end = whole.find(['/', '?']).unwrap_or(whole.len());
        let (name, rest) = whole.split_at(end);
        match name {
            "" => Ok(Target::Root),
            name => Ok(Target::Path { name: name.to_owned(), rest: rest.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: Method, target: &str) -> Result<Target, Problem> {
        Target::read(&method, &target.parse().unwrap(), |host| host == "127.0.0.1:8080")
    }

    fn path(name: &str, rest: &str) -> Target {
        Target::Path { name: name.to_owned(), rest: rest.to_owned() }
    }

    #[test]
    fn a_path_names_its_upstream() {
        for (target, name, rest) in [
            ("/shop/v1/stock?x=1", "shop", "/v1/stock?x=1"),
            ("/shop", "shop", ""),
            ("/shop/", "shop", "/"),
            ("/shop?x=/y", "shop", "?x=/y"),
            ("/shop//x", "shop", "//x"),
            ("http://127.0.0.1:8080/shop/x", "shop", "/x"),
        ] {
            assert_eq!(read(Method::GET, target).unwrap(), path(name, rest), "{target}");
        }
        assert_eq!(read(Method::GET, "/").unwrap(), Target::Root);
        assert_eq!(read(Method::GET, "//x").unwrap(), Target::Root);
    }

    #[test]
    fn a_proxy_is_asked_for_an_address() {
        let asked = read(Method::GET, "http://api.example/v1?x=1").unwrap();
        assert_eq!(asked, Target::Address("http://api.example/v1?x=1".to_owned()));
        let other_port = read(Method::GET, "http://127.0.0.1:9090/shop").unwrap();
        assert!(matches!(other_port, Target::Address(_)));
    }

    #[test]
    fn what_no_gateway_answers_is_refused() {
        let tunnel = read(Method::CONNECT, "api.example:443").unwrap_err();
        assert_eq!((tunnel.status, tunnel.reason.as_str()), (501, "tunnel"));
        assert_eq!(read(Method::OPTIONS, "*").unwrap_err().status, 400);
    }
}
