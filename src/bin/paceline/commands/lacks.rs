//! What calls would lack: variables that are not set where this runs.

use std::collections::{BTreeMap, BTreeSet};

use paceline::quota::Upstream;
use paceline::quota::auth::Auth;
use paceline::template::{Secret, Template};

use crate::args::add::AddArgs;

/// A variable that is not set here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unset {
    /// Its name.
    pub name: String,
    /// The credentials that take a secret from it; none where all calls do.
    credentials: BTreeSet<String>,
}

impl Unset {
    /// Whether jobs of these credentials need it.
    pub fn concerns(&self, used: &BTreeSet<String>) -> bool {
        self.credentials.is_empty() || !self.credentials.is_disjoint(used)
    }

    /// Says so, for people.
    pub fn note(&self, upstream: &str) -> String {
        let named: Vec<_> = self.credentials.iter().map(|name| format!("`{name}`")).collect();
        let whose = match named.as_slice() {
            [] => String::new(),
            named => format!(" with the credential {}", named.join(" or ")),
        };
        format!(
            "note: `${{env:{}}}` is not set here; {upstream} sends nothing{whose} until a run finds it",
            self.name
        )
    }
}

/// The same of the jobs of an `add`.
pub fn lacks(upstream: &Upstream, args: &AddArgs) -> Vec<Unset> {
    let headers = args.header.iter().map(|header| &header.value);
    unset(upstream, headers.chain(&args.url).chain(&args.body))
}

/// The variables that an upstream's calls take secrets from and that are not set here; `more` are
/// templates beside those of its quota file.
pub fn unset<'t>(upstream: &'t Upstream, more: impl Iterator<Item = &'t String>) -> Vec<Unset> {
    let own = own(upstream).chain(more);
    let mut all: BTreeMap<String, Unset> = BTreeMap::new();
    for (name, credential) in &upstream.credentials {
        for missing in missing(credential.secret.values()) {
            let unset = Unset { name: missing.clone(), credentials: BTreeSet::new() };
            all.entry(missing).or_insert(unset).credentials.insert(name.clone());
        }
    }
    for name in missing(own) {
        all.insert(name.clone(), Unset { name, credentials: BTreeSet::new() });
    }
    all.into_values().collect()
}

/// The variables and files that an upstream's calls take secrets from.
pub fn named(upstream: &Upstream) -> BTreeSet<Secret> {
    let credentials = upstream.credentials.values().flat_map(|one| one.secret.values());
    secrets(own(upstream).chain(credentials)).into_iter().filter(is_outside).collect()
}

fn is_outside(secret: &Secret) -> bool {
    matches!(secret, Secret::Env(_) | Secret::File(_))
}

/// Templates that all calls of an upstream are made of.
fn own(upstream: &Upstream) -> impl Iterator<Item = &String> {
    let request = &upstream.request;
    let own = request.url.iter().chain(upstream.body()).chain(request.headers.values());
    own.chain(upstream.auth.iter().flat_map(Auth::templates))
}

fn secrets<'t>(templates: impl Iterator<Item = &'t String>) -> BTreeSet<Secret> {
    let templates = templates.filter_map(|text| Template::parse(text).ok());
    templates
        .flat_map(|template| template.secrets().into_iter().cloned().collect::<Vec<_>>())
        .collect()
}

fn missing<'t>(templates: impl Iterator<Item = &'t String>) -> BTreeSet<String> {
    let unset = |secret| match secret {
        Secret::Env(name) if paceline::secrets::variable(&name).is_none() => Some(name),
        _ => None,
    };
    secrets(templates).into_iter().filter_map(unset).collect()
}
