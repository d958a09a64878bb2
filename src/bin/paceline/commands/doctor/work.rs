//! Quota files, secrets, and what is held or unsure.

use std::collections::BTreeSet;
use std::sync::Arc;

use paceline::job::JobState;
use paceline::quota::Upstream;
use paceline::report::{status, why};
use paceline::secrets::Secrets;
use paceline::store::Store as _;

use super::super::lacks;
use super::super::status::known;
use super::{Findings, SqliteStore};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::{count, grouped};

/// Whether each quota file can be used, and each upstream with jobs has one.
pub async fn quotas(
    found: &mut Findings,
    store: Option<&SqliteStore>,
    context: &Context,
) -> anyhow::Result<()> {
    let (library, mut own, mut wrong) = (context.library(), 0_u64, 0_u64);
    for entry in library.list().into_iter().filter(|entry| !entry.built_in) {
        own += 1;
        if let Err(error) = library.get(&entry.name) {
            wrong += 1;
            let fix = format!("mend {}, then `paceline quotas check {}`", entry.file, entry.name);
            found.wrong("quotas", Exit::Usage, error.to_string(), fix);
        }
    }
    if wrong == 0 {
        let presets = library.list().iter().filter(|entry| entry.built_in).count();
        found
            .ok("quotas", format!("{} of yours, {presets} presets, all valid", count(own, "file")));
    }
    let Some(store) = store else { return Ok(()) };
    let names = library.names();
    for name in store.upstream_names().await?.iter().filter(|name| !names.contains(*name)) {
        let open = store.remaining(name.clone()).await?;
        let open = open.waiting + open.held + open.running;
        if open > 0 {
            let told = format!("{} of {name} have no quota file", count(open, "job"));
            let fix = format!(
                "put {name}.toml back, or start where its folder `quotas` is; where nobody wants them: \
                 `paceline cancel --upstream {name} --yes`"
            );
            found.wrong("quotas", Exit::Usage, told, fix);
        }
    }
    Ok(())
}

/// Whether the secrets are there that calls need: of upstreams that have jobs, and of own quota files.
pub async fn secrets(
    found: &mut Findings,
    store: Option<&SqliteStore>,
    context: &Context,
) -> anyhow::Result<()> {
    let library = context.library();
    let own = library.list().into_iter().filter(|entry| !entry.built_in).map(|entry| entry.name);
    let mut names: BTreeSet<String> = own.collect();
    if let Some(store) = store {
        names.extend(store.upstream_names().await?);
    }
    let mut there = 0_u64;
    for upstream in names.iter().filter_map(|name| library.get(name).ok()) {
        let open = match store {
            Some(store) => status::open(&store.upstream(Arc::clone(&upstream)).await?.jobs),
            None => 0,
        };
        there += of(found, &upstream, open);
    }
    if there > 0 {
        found
            .ok("secrets", format!("{} there; values are not looked into", count(there, "secret")));
    }
    Ok(())
}

/// How many of the upstream's secrets are there; the others are told.
fn of(found: &mut Findings, upstream: &Upstream, open: u64) -> u64 {
    let (secrets, mut there) = (Secrets::new(), 0);
    for secret in lacks::named(upstream) {
        let Some(missing) = secrets.missing(&secret, upstream, false) else {
            there += 1;
            continue;
        };
        let told = format!("{}: {missing}", upstream.name);
        let fix = "set it where `run` starts, or name a file with --env-file";
        match open {
            0 => found.warn("secrets", told, fix),
            jobs => {
                let told = format!("{told}, and {} cannot go without it", count(jobs, "job"));
                found.wrong("secrets", Exit::Held, told, fix);
            }
        }
    }
    there
}

/// What waits for a person.
pub async fn holds(
    found: &mut Findings,
    store: &SqliteStore,
    context: &Context,
) -> anyhow::Result<()> {
    let mut held = 0_u64;
    for known in known(store, &[], context).await? {
        let Ok(view) = &known.view else { continue };
        for hold in why::held(view) {
            held += 1;
            let of = match why::key(&hold.key).as_str() {
                "" => view.name.clone(),
                key => format!("{} [{key}]", view.name),
            };
            let told = format!("{of} is held ({}): {}", hold.reason, hold.detail);
            found.wrong("holds", Exit::Held, told, hold.way_out);
        }
    }
    if held == 0 {
        found.ok("holds", "nothing is held".to_owned());
    }
    let unsure = store.tally().await?.get(&JobState::Unsure).copied().unwrap_or(0);
    if unsure > 0 {
        found.warn(
            "unsure",
            format!("{} jobs may have been sent, and must not be sent twice", grouped(unsure)),
            "`paceline jobs --state unsure` lists them, `paceline resolve` ends them",
        );
    }
    Ok(())
}
