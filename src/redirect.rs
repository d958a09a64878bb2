//! PURE: where does a redirect lead? To one more call of the same job, with a permit and an attempt of
//! its own, or to a dead end.
//!
//! What the upstream sent is text from outside: it becomes an address, its braces are encoded, so that
//! nothing in it reads as a placeholder, and the secrets it repeats become placeholders again.

use url::Url;

use crate::address::{self, AddressError};
use crate::reading::Reason;
use crate::template::Template;

/// A job's calls follow at most so many redirects, as browsers do about.
pub(crate) const MOST_HOPS: u32 = 10;

/// No address is longer; servers refuse shorter ones.
const LONGEST: usize = 8 * 1024;

/// Where a job's next call goes instead of its own address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The address; secrets of the job's own host stand in it as placeholders.
    pub url: String,
    /// Redirects that led there, from 1.
    pub hops: u32,
    /// By GET and without a body, whatever the job's own method is.
    pub as_get: bool,
    /// Away from the job's own host, once at least: no credential goes along any more.
    pub away: bool,
}

impl Redirect {
    /// What happened, for people.
    pub fn told(&self) -> String {
        let as_get = if self.as_get { ", by GET and without a body" } else { "" };
        let away = if self.away { ", without credentials: it is another host" } else { "" };
        format!("redirected to {}{as_get}{away} (hop {} of {MOST_HOPS})", self.url, self.hops)
    }
}

/// A call that was answered by a redirect.
#[derive(Clone, Copy, Debug)]
pub struct Redirected<'a> {
    /// The answer's status.
    pub status: u16,
    /// The call's method.
    pub method: &'a str,
    /// Where it went, secrets filled in.
    pub url: &'a Url,
    /// Its body's template.
    pub body: Option<&'a str>,
    /// Whether sending it twice does no harm.
    pub repeatable: bool,
    /// Whether the job's own address is `https`.
    pub is_secure: bool,
    /// The redirect that led to it.
    pub by: Option<&'a Redirect>,
}

/// Why a redirect is not followed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadEnd {
    /// It names no address that can be called.
    #[error("it redirects to an address that cannot be called: {0}")]
    Address(#[from] AddressError),
    /// It names an address of no sensible length.
    #[error("it redirects to an address of more than {LONGEST} bytes")]
    Long,
    /// From `https` to `http`, of a job that never asked for `http`.
    #[error(
        "it redirects from https to http ({0}), where everybody on the way could read and change the call; it was not followed"
    )]
    Downgrade(String),
    /// To another host, which a secret would reach.
    #[error(
        "it redirects to another host ({host}), and the {part} would take a secret there; it was not followed"
    )]
    Secret {
        /// The other host.
        host: String,
        /// `address` or `body`.
        part: &'static str,
    },
    /// Round and round.
    #[error(
        "it was redirected {MOST_HOPS} times and sent on again, at last to {0}; that looks like a loop"
    )]
    Loop(String),
}

impl DeadEnd {
    /// The reason that the job ends with, or its partition is held for.
    pub const fn reason(&self) -> Reason {
        match self {
            DeadEnd::Loop(_) => Reason::Unprocessable,
            // An address of ours must change.
            _ => Reason::Misconfigured,
        }
    }
}

/// Whether a status sends a call on, where a `Location` says whereto.
pub(crate) const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Where `location` leads. `hide` puts placeholders in the place of secrets.
///
/// ```
/// use paceline::redirect::{Redirected, follow};
///
/// let url = "https://api.example/v1/items?page=2".parse()?;
/// let (method, body, by) = ("POST", Some("x"), None);
/// let call = Redirected { status: 303, method, url: &url, body, repeatable: false, is_secure: true, by };
/// let redirect = follow(&call, "../v2/done", &str::to_owned)?;
/// assert_eq!(redirect.url, "https://api.example/v2/done");
/// assert!(redirect.as_get && !redirect.away);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`DeadEnd`] where it leads nowhere that may be called.
pub fn follow(
    call: &Redirected<'_>,
    location: &str,
    hide: &dyn Fn(&str) -> String,
) -> Result<Redirect, DeadEnd> {
    let url = resolve(call.url, location)?;
    let shown = hide(&without_braces(url.as_str()));
    if call.is_secure && url.scheme() == "http" {
        return Err(DeadEnd::Downgrade(shown));
    }
    let hops = call.by.map_or(0, |by| by.hops) + 1;
    if hops > MOST_HOPS {
        return Err(DeadEnd::Loop(shown));
    }
    let as_get = call.by.is_some_and(|by| by.as_get) || turns_to_get(call);
    let away = call.by.is_some_and(|by| by.away) || !is_same_host(call.url, &url);
    let secret = |part| DeadEnd::Secret { host: host(&url), part };
    if away && has_secret(&shown) {
        return Err(secret("address"));
    }
    if away && !as_get && call.body.is_some_and(has_secret) {
        return Err(secret("body"));
    }
    Ok(Redirect { url: shown, hops, as_get, away })
}

fn resolve(from: &Url, location: &str) -> Result<Url, DeadEnd> {
    if location.len() > LONGEST {
        return Err(DeadEnd::Long);
    }
    let joined = from.join(location.trim()).map_err(AddressError::NotAbsolute)?;
    let mut url = address::parse(joined.as_str())?;
    url.set_fragment(None);
    Ok(url)
}

/// A query may hold braces as they are; as part of a template they would be read.
fn without_braces(url: &str) -> String {
    url.replace('{', "%7B").replace('}', "%7D")
}

/// As browsers do it (Fetch, "HTTP-redirect fetch"), but that nothing unrepeatable is sent on unless
/// the status proves that it was not done, as 307 and 308 do.
fn turns_to_get(call: &Redirected<'_>) -> bool {
    let reads = matches!(call.method, "GET" | "HEAD");
    match call.status {
        303 => !reads,
        301 | 302 => !reads && (call.method == "POST" || !call.repeatable),
        _ => false,
    }
}

/// The same host and port; or the usual step from `http` to `https` of one host.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let is_upgrade = from.scheme() == "http"
        && to.scheme() == "https"
        && (from.port(), to.port()) == (None, None);
    from.host() == to.host() && (is_upgrade || from.origin() == to.origin())
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// What cannot be read as a template counts as one that has a secret.
fn has_secret(template: &str) -> bool {
    Template::parse(template).map_or(true, |template| !template.secrets().is_empty())
}

#[cfg(test)]
mod tests;
