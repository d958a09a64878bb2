//! Columns that the row does not bring: derived, default, and the credential's.

use std::collections::BTreeSet;

use url::Url;

use super::PlanError;
use crate::job::Columns;
use crate::quota::{Credential, Derivation, Upstream};

/// Adds what is derived from `url`, and defaults; returns what was added.
pub(super) fn derive<'a>(
    upstream: &'a Upstream,
    columns: &mut Columns,
    url: Option<&Url>,
) -> Vec<&'a str> {
    let mut added = Vec::new();
    for (name, rule) in &upstream.columns {
        if columns.get(name).is_some_and(|value| !value.trim().is_empty()) {
            continue;
        }
        let derived = rule.from.as_ref().zip(url).and_then(|(from, url)| part(from, url));
        if let Some(value) = derived.or_else(|| rule.default.clone()) {
            columns.insert(name.clone(), value);
            added.push(name.as_str());
        }
    }
    added
}

/// Sets the credential's columns, save those that the user gave a value.
pub(super) fn set(credential: &Credential, columns: &mut Columns, added: &[&str]) {
    for (name, value) in &credential.set {
        let given = columns.get(name).is_some_and(|value| !value.is_empty());
        if !given || added.contains(&name.as_str()) {
            columns.insert(name.clone(), value.clone());
        }
    }
}

fn part(from: &Derivation, url: &Url) -> Option<String> {
    match from {
        Derivation::Host => url.host_str().map(str::to_owned),
        Derivation::Origin => Some(url.origin().ascii_serialization()),
        Derivation::Path => Some(url.path().to_owned()),
        Derivation::Query(wanted) => {
            let mut pairs = url.query_pairs();
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        }
    }
}

/// The credential of that name.
pub(super) fn declared<'a>(
    upstream: &'a Upstream,
    name: &str,
) -> Result<(&'a str, &'a Credential), PlanError> {
    let unknown = || PlanError::UnknownCredential { name: name.to_owned(), known: known(upstream) };
    let (name, credential) = upstream.credentials.get_key_value(name).ok_or_else(unknown)?;
    Ok((name, credential))
}

fn known(upstream: &Upstream) -> Vec<String> {
    upstream.credentials.keys().cloned().collect()
}

/// The job's credential: the one named by option or column, else the one whose `when` fits best.
pub(super) fn credential<'a>(
    upstream: &'a Upstream,
    named: Option<&str>,
    columns: &Columns,
) -> Result<Option<(&'a str, &'a Credential)>, PlanError> {
    let column = columns.get("credential").map(String::as_str).filter(|name| !name.is_empty());
    if let Some(name) = named {
        return declared(upstream, name).map(Some);
    }
    if upstream.credentials.is_empty() {
        return Ok(None);
    }
    if let Some(name) = column {
        return declared(upstream, name).map(Some);
    }
    let fits = |(_, credential): &(&'a String, &'a Credential)| {
        credential.when.iter().all(|(name, value)| columns.get(name) == Some(value))
    };
    // The most particular one; of several the first by name. A credential for all would otherwise
    // hide those whose names come after its own.
    let fitting = upstream.credentials.iter().filter(fits);
    let best = fitting.reduce(
        |best, next| {
            if next.1.when.len() > best.1.when.len() { next } else { best }
        },
    );
    let none = || {
        let asked = upstream.credentials.values().flat_map(|one| one.when.keys());
        let has = asked.filter_map(|name| columns.get_key_value(name));
        let has = has.map(|(name, value)| (name.clone(), value.clone())).collect();
        PlanError::NoCredential { has, known: known(upstream) }
    };
    let (name, credential) = best.ok_or_else(none)?;
    Ok(Some((name, credential)))
}

/// The columns that need not be in a row.
pub(super) fn supplied(upstream: &Upstream, has_url: bool) -> BTreeSet<&str> {
    let mut supplied = BTreeSet::from(["method", "host"]);
    for (name, rule) in &upstream.columns {
        if rule.default.is_some() || (rule.from.is_some() && has_url) {
            supplied.insert(name);
        }
    }
    for credential in upstream.credentials.values() {
        supplied.insert("credential");
        supplied.extend(credential.set.keys().map(String::as_str));
    }
    supplied
}
