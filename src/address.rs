//! Addresses that can be called: absolute, `http` or `https`, with a host and without a password.

use url::{Host, Url};

/// The longest address that HTTP clients take, in bytes as it is sent.
pub const LONGEST: usize = 65_534;

/// Why an address cannot be called.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// No URL at all, or a relative one.
    #[error(
        "it is no absolute URL ({0}); write it with its scheme, as in https://www.example.com/"
    )]
    NotAbsolute(url::ParseError),
    /// A scheme other than `http` and `https`.
    #[error("its scheme is `{0}`; only http and https can be called")]
    Scheme(String),
    /// A name or password before the host: it would be stored and shown.
    #[error(
        "it holds a user name or password, which would be stored; remove it and send a header such as Authorization = \"Basic ${{env:NAME}}\""
    )]
    UserInfo,
    /// A control character, which URL parsers drop without a word.
    #[error("it holds a line break or control character")]
    Control,
    /// More bytes than any client sends.
    #[error("it has {0} bytes, and no more than {LONGEST} can be sent")]
    TooLong(usize),
    /// Secrets would go over the network as they are.
    #[error(
        "everybody on the way could read the secrets that go to http://{0}; write https (http only to this machine itself)"
    )]
    Open(String),
}

/// Reads an address.
///
/// # Errors
///
/// What cannot be called, or would store a password.
pub fn parse(text: &str) -> Result<Url, AddressError> {
    if text.chars().any(char::is_control) {
        return Err(AddressError::Control);
    }
    let url = Url::parse(text).map_err(AddressError::NotAbsolute)?;
    // `https` without a host does not parse, so that the scheme is all there is to check.
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::UserInfo);
    }
    match url.as_str().len() {
        bytes if bytes > LONGEST => Err(AddressError::TooLong(bytes)),
        _ => Ok(url),
    }
}

/// Reads an address that secrets are sent to: over TLS, or not beyond this machine.
pub(crate) fn for_secrets(text: &str) -> Result<Url, AddressError> {
    let url = parse(text)?;
    let is_here = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if url.scheme() == "http" && !is_here {
        return Err(AddressError::Open(url.host_str().unwrap_or_default().to_owned()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_called_is_an_address() {
        assert_eq!(parse("https://a.example:8443/x y").unwrap().path(), "/x%20y");
        assert!(parse("http://127.0.0.1:9/").is_ok());
        for text in ["", "a.example/x", "/x", "https://", "http:///"] {
            assert!(matches!(parse(text), Err(AddressError::NotAbsolute(_))), "{text}");
        }
        assert_eq!(parse("ftp://a.example/"), Err(AddressError::Scheme("ftp".to_owned())));
        assert_eq!(parse("localhost:80/x"), Err(AddressError::Scheme("localhost".to_owned())));
        for text in ["https://user:pw@a.example/", "https://user@a.example/"] {
            assert_eq!(parse(text), Err(AddressError::UserInfo));
        }
        assert_eq!(parse("https://a.example/\nx"), Err(AddressError::Control));
    }

    #[test]
    fn secrets_go_over_tls_or_stay_here() {
        let here = ["http://127.0.0.1:9/t", "http://[::1]/t", "http://localhost/t"];
        for text in here.into_iter().chain(["https://a.example/t"]) {
            assert!(for_secrets(text).is_ok(), "{text}");
        }
        for text in ["http://a.example/t", "http://127.0.0.1.a.example/t", "http://10.0.0.1/t"] {
            assert!(matches!(for_secrets(text), Err(AddressError::Open(_))), "{text}");
        }
    }
}
