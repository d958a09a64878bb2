//! A request with its columns and secrets filled in: made just before it is sent, never kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use sha2::{Digest, Sha256};

use super::transport::Spool;
use crate::job::Columns;
use crate::quota::auth::Auth;
use crate::quota::{QuotaCall, Upstream};
use crate::secrets::{SecretError, Secrets};
use crate::store::Call;
use crate::template::{Place, Secret, Template, TemplateError};

/// A request that can be sent.
#[derive(Debug)]
pub struct Prepared {
    /// The method.
    pub method: Method,
    /// The address, secrets filled in.
    pub url: Url,
    /// Header fields, secrets filled in.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// Bytes of the answer's body that are read, counted after decompression.
    pub answer_cap: usize,
    /// Where the whole answer goes, beyond what is read of it.
    pub spool: Option<Arc<dyn Spool>>,
}

impl Prepared {
    /// Sends this instead of the file's own body. What no header tells of it is told: that it is JSON, or a
    /// form.
    pub(crate) fn set_body(&mut self, body: Vec<u8>) {
        if !self.headers.contains_key(CONTENT_TYPE) {
            let is_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
                && serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
            let form = "application/x-www-form-urlencoded";
            let told = if is_json { "application/json" } else { form };
            self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(told));
        }
        self.body = Some(body);
    }
}

/// Bytes of most answers that are read. With the client's own buffers (up to 400 KiB a connection) 64 of
/// them at once take some 30 MiB.
pub(crate) const ANSWER_CAP: usize = 256 * 1024;

/// Bytes more for each job of a batch whose jobs are answered one by one.
const ANSWER_CAP_ITEM: usize = 1024;

/// Headers that another host than the job's own may see, where they hold no secret.
const FOR_ANYBODY: [&str; 6] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "content-language",
    "content-type",
    "user-agent",
];

const TOKEN: &str = "${token}";

/// Why a request cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// A secret has no value: the partition, or the upstream, waits for a person.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A template cannot be filled.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// What it was filled with makes no request. The text names the part, never the value.
    #[error("the {0} cannot be sent once its secrets are filled in")]
    Invalid(String),
}

/// Fills in what a call needs.
pub(super) fn prepare(
    upstream: &Upstream,
    call: &Call,
    secrets: &Secrets,
    token: Option<&str>,
) -> Result<Prepared, PrepareError> {
    let job = &call.job;
    let items = call.jobs().map(|job| &job.columns).collect();
    let (columns, missing) = (&job.columns, RefCell::new(None));
    let filler = Filler { upstream, columns, items, secrets, token, missing };
    let mut prepared =
        filler.bodyless(job.method(), job.url(), &header_templates(upstream, call))?;
    let headers = &mut prepared.headers;
    let body = match job.body() {
        Some(template) => Some(filler.body(template, headers)?.into_bytes()),
        None => None,
    };
    if let Some(name) = &upstream.request.idempotency_header {
        let name = HeaderName::from_str(name).map_err(|_| invalid("idempotency header"))?;
        let value = HeaderValue::from_str(&idempotency_key(upstream, call));
        headers.insert(name, value.map_err(|_| invalid("idempotency header"))?);
    }
    let by_item = upstream.batch.as_ref().is_some_and(|batch| batch.answer.is_some());
    let more = if by_item { ANSWER_CAP_ITEM * filler.items.len() } else { 0 };
    Ok(Prepared { body, answer_cap: ANSWER_CAP + more, ..prepared })
}

/// Fills in a question of what is left for the partition with these columns.
pub(super) fn prepare_question(
    upstream: &Upstream,
    quota: &QuotaCall,
    partition: &Columns,
    secrets: &Secrets,
    token: Option<&str>,
) -> Result<Prepared, PrepareError> {
    let (columns, items, missing) = (partition, vec![partition], RefCell::new(None));
    let filler = Filler { upstream, columns, items, secrets, token, missing };
    filler.bodyless(&quota.method, &quota.url, &quota.headers)
}

fn invalid(part: &str) -> PrepareError {
    PrepareError::Invalid(part.to_owned())
}

/// The file's headers, and the job's own instead of those of one name. Another host than the job's own
/// gets only those that tell what is sent or asked for: any other may be a credential.
fn header_templates(upstream: &Upstream, call: &Call) -> BTreeMap<String, String> {
    let all = upstream.request.headers.iter().chain(&call.job.request.headers);
    let away = call.job.redirect.as_ref().is_some_and(|redirect| redirect.away);
    let bodyless = call.job.redirect.as_ref().is_some_and(|redirect| redirect.as_get);
    all.map(|(name, template)| (name.to_ascii_lowercase(), template.clone()))
        .filter(|(name, template)| !away || is_for_anybody(name, template))
        .filter(|(name, _)| !bodyless || !name.starts_with("content-"))
        .collect()
}

/// Whether any site may see that header: it holds no secret, and is none. `name` is in small letters.
pub(crate) fn is_for_anybody(name: &str, template: &str) -> bool {
    let is_free = |template: Template| template.secrets().is_empty();
    FOR_ANYBODY.contains(&name) && Template::parse(template).is_ok_and(is_free)
}

/// One value for all attempts of a job, or of the same jobs as a batch, and no other's on any store.
fn idempotency_key(upstream: &Upstream, call: &Call) -> String {
    let job = &call.job;
    let key = format!("{}-{:x}-{:x}", upstream.name, job.added_at.as_nanos(), job.id.0);
    if call.more.is_empty() {
        return key;
    }
    let mut hash = Sha256::new();
    call.jobs().for_each(|job| hash.update(job.id.0.to_be_bytes()));
    let hash = hash.finalize();
    let short = hash.iter().take(8).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("{key}-{short}")
}

struct Filler<'a> {
    upstream: &'a Upstream,
    columns: &'a Columns,
    /// Those of all the jobs of the call.
    items: Vec<&'a Columns>,
    secrets: &'a Secrets,
    token: Option<&'a str>,
    missing: RefCell<Option<SecretError>>,
}

impl Filler<'_> {
    fn bodyless(
        &self,
        method: &str,
        url: &str,
        templates: &BTreeMap<String, String>,
    ) -> Result<Prepared, PrepareError> {
        let method = Method::from_str(method).map_err(|_| invalid("method"))?;
        let url = self.fill(url, Place::Url)?;
        let url = Url::parse(&url).map_err(|_| invalid("address"))?;
        let mut headers = HeaderMap::new();
        for (name, template) in templates {
            let value = self.fill(template, Place::Header)?;
            let parsed = HeaderName::from_str(name).ok().zip(HeaderValue::from_str(&value).ok());
            let (name, mut value) = parsed.ok_or_else(|| invalid(&format!("header `{name}`")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Prepared { method, url, headers, body: None, answer_cap: ANSWER_CAP, spool: None })
    }

    fn fill(&self, template: &str, place: Place) -> Result<String, PrepareError> {
        let template = Template::parse(template)?;
        let credential = self.columns.get("credential").map(String::as_str);
        let secret = |secret: &Secret| {
            let value = match place {
                _ if *secret == Secret::Token => {
                    self.token.map(str::to_owned).ok_or(SecretError::NoToken)
                }
                Place::Header => self.secrets.resolve_for_header(secret, self.upstream, credential),
                _ => self.secrets.resolve(secret, self.upstream, credential),
            };
            value.map_err(|error| *self.missing.borrow_mut() = Some(error)).ok()
        };
        let filled = template.render_batch(self.columns, &self.items, place, &secret);
        match self.missing.borrow_mut().take() {
            Some(error) => Err(error.into()),
            None => Ok(filled?),
        }
    }

    fn body(&self, template: &str, headers: &mut HeaderMap) -> Result<String, PrepareError> {
        let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let place = Place::of_body(declared, template);
        let body = self.fill(template, place)?;
        if declared.is_none() && place == Place::Json {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok(body)
    }
}

/// Whether a call carries the token.
pub(super) fn needs_token(upstream: &Upstream, call: &Call) -> bool {
    let names = |text: &str| text.contains(TOKEN);
    let job = &call.job;
    names(job.url())
        || job.body().is_some_and(names)
        || header_templates(upstream, call).values().any(|text| names(text))
}

/// The secrets that every call of the upstream needs, whatever its job: without one of them nothing
/// of it can be sent.
pub(super) fn missing_for_all(upstream: &Upstream, secrets: &Secrets) -> Option<SecretError> {
    let request = &upstream.request;
    let headers = request.headers.values().map(|template| (template, true));
    let others = request.url.iter().chain(upstream.body());
    let auth = upstream.auth.iter().flat_map(Auth::templates);
    let others = others.chain(auth).map(|template| (template, false));
    headers.chain(others).find_map(|(template, is_header)| {
        let template = Template::parse(template).ok()?;
        let outside = |secret: &&Secret| matches!(secret, Secret::Env(_) | Secret::File(_));
        let mut outside = template.secrets().into_iter().filter(outside);
        outside.find_map(|secret| secrets.missing(secret, upstream, is_header))
    })
}
