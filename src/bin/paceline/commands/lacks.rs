//! What calls would lack: variables that are not set where this runs.

use std::collections::BTreeSet;

use paceline::quota::Upstream;
use paceline::quota::auth::Auth;
use paceline::template::{Secret, Template};

/// The variables that an upstream's calls take secrets from and that are not set here; `more` are
/// templates beside those of its quota file.
pub fn unset<'t>(upstream: &'t Upstream, more: impl Iterator<Item = &'t String>) -> Vec<String> {
    let request = &upstream.request;
    let own = request.url.iter().chain(&request.body).chain(request.headers.values());
    let credentials = upstream.credentials.values().flat_map(|one| one.secret.values());
    let auth = upstream.auth.iter().flat_map(Auth::templates);
    let templates = own.chain(auth).chain(credentials).chain(more);
    let mut names = BTreeSet::new();
    for template in templates.filter_map(|text| Template::parse(text).ok()) {
        names.extend(template.secrets().into_iter().filter_map(|secret| match secret {
            Secret::Env(name) if std::env::var_os(name).is_none_or(|value| value.is_empty()) => {
                Some(name.clone())
            }
            _ => None,
        }));
    }
    names.into_iter().collect()
}

/// One of them, for people.
pub fn note(upstream: &str, name: &str) -> String {
    format!(
        "note: `${{env:{name}}}` is not set here; {upstream} sends nothing until a run finds it"
    )
}
