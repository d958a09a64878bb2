//! The templates of one `add`, read once.

use std::collections::BTreeMap;

use url::Url;

use super::{AddOptions, PlanError};
use crate::address::{self, AddressError};
use crate::job::{Columns, Own};
use crate::quota::Upstream;
use crate::quota::declare::{is_framing, is_token};
use crate::template::{Place, Secret, Template, TemplateError};

/// Methods whose calls carry the file's body only where the file itself is about them.
const BODILESS: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];

/// A template and the place its text goes to.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) template: Template,
    pub(super) place: Place,
}

/// A body template, read and as it was written.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) filled: Filled,
    pub(super) text: String,
}

/// An address template.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) filled: Filled,
    columns: Vec<String>,
    /// The columns that make up host and path, where an empty value would call something else.
    pub(super) path: Vec<String>,
    /// It is `{url}` and nothing else.
    pub(super) is_url: bool,
    /// The host, where no placeholder has a part in it.
    pub(super) host: Option<String>,
    secret: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Templates {
    /// `{url}`: the argument is what is called.
    itself: Address,
    address: Option<Address>,
    /// `--url` was given.
    explicit: bool,
    body: Option<Body>,
    body_uses_url: bool,
    /// The method that the body is for; `None`: any.
    body_for: Option<String>,
    /// `--header`.
    pub(super) headers: Vec<(String, Template)>,
    /// The file's headers that use columns; they are rendered when a call is sent.
    sent: Vec<Template>,
    pub(super) dedupe_key: Option<Filled>,
}

/// No address without a column `url`.
pub(super) struct NoAddress;

impl Templates {
    pub(super) fn new(upstream: &Upstream, options: &AddOptions) -> Result<Templates, PlanError> {
        let read = |what: &str, text: &str| read(upstream, what, text);
        let url = options.url.as_ref().or(upstream.request.url.as_ref());
        let url = url.map(|text| Address::new(single("the URL", read("the URL", text)?)?));
        let url = url.transpose()?;
        let body = options.body.as_ref().or(upstream.body().filter(|_| !options.unsent));
        let body = body.map(|text| {
            let place = Place::of_body(content_type(upstream, options), text);
            let filled = Filled { template: read("the body", text)?, place };
            Ok::<_, PlanError>(Body { filled, text: text.clone() })
        });
        let body = body.transpose()?;
        let key = options.dedupe_key.as_ref();
        let key = key.map(|text| {
            let template = read("--dedupe-key", text)?;
            Ok::<_, PlanError>(Filled { template, place: Place::Plain })
        });
        let headers = headers(upstream, options)?;
        let sent = if options.unsent { Vec::new() } else { sent(upstream, &headers)? };
        let itself = Template::parse("{url}").map_err(|source| PlanError::Fill { source })?;
        Ok(Templates {
            itself: Address::new(itself)?,
            address: url,
            explicit: options.url.is_some(),
            body_uses_url: body.as_ref().is_some_and(|body| uses(&body.filled.template, "url")),
            body,
            body_for: options.body.is_none().then(|| upstream.request.method.clone()),
            sent,
            headers,
            dedupe_key: key.transpose()?,
        })
    }

    /// The body of a call by that method.
    pub(super) fn body_of(&self, method: &str) -> Option<&Body> {
        let for_it = match &self.body_for {
            Some(own) => own == method || !BODILESS.contains(&method),
            None => true,
        };
        self.body.as_ref().filter(|_| for_it)
    }

    /// What is called: the template where there is no `url`, where URL or body use it, or where it
    /// was given as an option; else `url` itself.
    pub(super) fn address(&self, has_url: bool, method: &str) -> Result<&Address, NoAddress> {
        let body_fills = self.body_uses_url && self.body_of(method).is_some();
        match &self.address {
            Some(address) if !has_url || self.explicit || body_fills => Ok(address),
            Some(address) if uses(&address.filled.template, "url") => Ok(address),
            _ if has_url => Ok(&self.itself),
            Some(address) => Ok(address),
            None => Err(NoAddress),
        }
    }

    /// The columns that a call by that method needs.
    pub(super) fn needed(&self, has_url: bool, method: &str) -> Vec<&str> {
        let address = match self.address(has_url, method) {
            Ok(address) => address.filled.template.columns(),
            Err(NoAddress) => vec!["url"],
        };
        let body = self.body_of(method).map(|body| body.filled.template.columns());
        let key = self.dedupe_key.as_ref().map(|key| key.template.columns());
        let headers = self.headers.iter().map(|(_, template)| template).chain(&self.sent);
        let mut needed = Vec::new();
        let more = body.into_iter().chain(key).flatten();
        for name in address.into_iter().chain(more).chain(headers.flat_map(Template::columns)) {
            if !needed.contains(&name) {
                needed.push(name);
            }
        }
        needed
    }

    /// Whether any of them has that column.
    pub(super) fn uses(&self, column: &str) -> bool {
        let address = self.address.iter().map(|address| &address.filled.template);
        let body = self.body.iter().map(|body| &body.filled.template);
        let key = self.dedupe_key.iter().map(|key| &key.template);
        let headers = self.headers.iter().map(|(_, template)| template).chain(&self.sent);
        address.chain(body).chain(key).chain(headers).any(|template| uses(template, column))
    }

    /// Whether the file's headers, which are rendered when the call is sent, can take the columns.
    pub(super) fn check_sent(&self, columns: &Columns) -> Result<(), TemplateError> {
        self.sent.iter().try_for_each(|one| one.freeze(columns, Place::Header).map(drop))
    }
}

impl Address {
    fn new(template: Template) -> Result<Address, PlanError> {
        let columns: Vec<_> = template.columns().into_iter().map(str::to_owned).collect();
        let path = template.columns_before(&['?', '#']).into_iter().map(str::to_owned).collect();
        let secret = !template.secrets().is_empty();
        let is_url = template.is_column("url");
        let filled = Filled { template, place: Place::Url };
        let host = host(filled.template.prefix());
        let address = Address { filled, columns, path, is_url, host, secret };
        if !address.filled.template.prefix().is_empty() {
            address.check_sample()?;
        }
        Ok(address)
    }

    /// Refuses a template that no row can make an address.
    fn check_sample(&self) -> Result<(), PlanError> {
        let sample = self.columns.iter().map(|name| (name.clone(), "x".to_owned())).collect();
        let bad = |source| {
            let address = self.filled.template.freeze(&sample, Place::Url).unwrap_or_default();
            PlanError::Address { address, source }
        };
        self.checked(&sample)?.map(|_| ()).map_err(bad)
    }

    /// The address as a URL, secrets stood in for.
    pub(super) fn checked(
        &self,
        columns: &Columns,
    ) -> Result<Result<Url, AddressError>, TemplateError> {
        let text = if self.secret {
            self.filled.template.render(columns, Place::Url, &|_| Some("s".to_owned()))?
        } else {
            self.filled.template.freeze(columns, Place::Url)?
        };
        Ok(address::parse(&text))
    }
}

/// The host in the text before the first placeholder, if it ends there.
fn host(prefix: &str) -> Option<String> {
    let (_, rest) = prefix.split_once("://")?;
    rest.contains(['/', '?', '#']).then_some(())?;
    address::parse(prefix).ok()?.host_str().map(str::to_owned)
}

fn uses(template: &Template, column: &str) -> bool {
    template.columns().contains(&column)
}

/// The headers of this `add`.
fn headers(
    upstream: &Upstream,
    options: &AddOptions,
) -> Result<Vec<(String, Template)>, PlanError> {
    let mut headers = Vec::new();
    for (name, text) in &options.headers {
        check_header(name, text)?;
        let what = format!("--header {name}");
        headers.push((name.clone(), single(&what, read(upstream, &what, text)?)?));
    }
    Ok(headers)
}

fn check_header(name: &str, value: &str) -> Result<(), PlanError> {
    if !is_token(name) {
        return Err(PlanError::HeaderName(name.to_owned()));
    }
    if is_framing(name) {
        return Err(PlanError::Framing(name.to_owned()));
    }
    if value.chars().any(char::is_control) {
        return Err(PlanError::HeaderValue(name.to_owned()));
    }
    Ok(())
}

/// Adds a row's own headers, word for word, in place of those of one name.
pub(super) fn own_headers(
    own: &Own,
    headers: &mut BTreeMap<String, String>,
) -> Result<(), PlanError> {
    for (name, value) in &own.headers {
        check_header(name, value)?;
        // Limits and secrets go by the address; a row must not have it answered by another site.
        if name.eq_ignore_ascii_case("host") {
            return Err(PlanError::HostHeader);
        }
        headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
        headers.insert(name.clone(), Template::literal(value));
    }
    Ok(())
}

/// The file's headers that use columns, save those that this `add` replaces.
fn sent(upstream: &Upstream, own: &[(String, Template)]) -> Result<Vec<Template>, PlanError> {
    let mut sent = Vec::new();
    for (name, text) in &upstream.request.headers {
        let template = read(upstream, &format!("header {name}"), text)?;
        let replaced = own.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !replaced && !template.columns().is_empty() {
            sent.push(template);
        }
    }
    Ok(sent)
}

/// Reads a template; its secrets must be declared.
fn read(upstream: &Upstream, what: &str, text: &str) -> Result<Template, PlanError> {
    let unreadable = |source| PlanError::Template { what: what.to_owned(), source };
    let template = Template::parse(text).map_err(unreadable)?;
    for secret in template.secrets() {
        let declared = match secret {
            Secret::Env(_) | Secret::File(_) => true,
            Secret::Named(name) => {
                upstream.credentials.values().any(|credential| credential.secret.contains_key(name))
            }
            Secret::Token => upstream.auth.is_some(),
        };
        if !declared {
            let (what, secret) = (what.to_owned(), secret.clone());
            return Err(PlanError::UndeclaredSecret { what, secret });
        }
    }
    Ok(template)
}

/// A template of one job, whatever call that goes in.
fn single(what: &str, template: Template) -> Result<Template, PlanError> {
    if template.is_batch() { Err(PlanError::Items(what.to_owned())) } else { Ok(template) }
}

/// The `Content-Type` of options and file, in this order.
fn content_type<'t>(upstream: &'t Upstream, options: &'t AddOptions) -> Option<&'t str> {
    let headers = options.headers.iter().chain(&upstream.request.headers);
    let mut types = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    types.next().map(|(_, value)| value.as_str())
}
