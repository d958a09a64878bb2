//! The store's file, its disk, the clocks.

use paceline::clock::{Clock as _, SystemClock};
use paceline::report::words::span;
use paceline::store::Store as _;
use paceline::store::sqlite::{Health, Origin};

use super::{Findings, SqliteStore, private};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::count;
use crate::render::time::Here;

/// A disk with less room is not well, and with even less no place for a store.
const LITTLE: u64 = 500 << 20;
const TOO_LITTLE: u64 = 20 << 20;

/// Looks; the store, where one is there and opens.
pub async fn look(found: &mut Findings, context: &Context) -> anyhow::Result<Option<SqliteStore>> {
    let path = context.store_path()?;
    if !path.exists() {
        found.ok(
            "store",
            format!("there is none at {} yet: `paceline add` makes it", path.display()),
        );
        zone(found);
        return Ok(None);
    }
    let began = SystemClock::new().wall();
    let store = match context.store() {
        Ok(store) => store,
        Err(error) => {
            found.wrong("store", Exit::Fault, format!("{error:#}"), "");
            zone(found);
            return Ok(None);
        }
    };
    let health = match store.examine() {
        Ok(health) => health,
        Err(error) => {
            found.wrong("store", Exit::Fault, error.to_string(), "");
            return Ok(Some(store));
        }
    };
    file(found, &store, &health);
    // An empty transaction: nobody has it locked, and it may be written.
    match store.tidy().await {
        Ok(_) => {
            let took = SystemClock::new().wall().since(began);
            found.ok(
                "writing",
                format!("the store takes changes (all of this took {})", span(took)),
            );
        }
        Err(error) => found.wrong("writing", Exit::Fault, error.to_string(), ""),
    }
    private(found, "privacy", &path);
    disk(found, &health);
    runners(found, &health);
    clocks(found, &health, context);
    zone(found);
    Ok(Some(store))
}

fn file(found: &mut Findings, store: &SqliteStore, health: &Health) {
    let path = store.path().display();
    let size = indicatif::HumanBytes(health.bytes);
    match health.damage.as_slice() {
        [] => found.ok("store", format!("{path} is whole ({size}, schema {})", health.schema)),
        damage => found.wrong(
            "store",
            Exit::Fault,
            format!("{path} is damaged: {}", damage.join("; ")),
            "end what runs on it, and restore a copy: `paceline help restore`",
        ),
    }
    match store.origin() {
        Ok(Origin::Copy(at)) => found.warn(
            "origin",
            format!("it is a copy of {}, and nobody has sent from it yet", at.to_rfc3339_seconds()),
            "a run on it counts the windows that are open then as spent: `paceline help restore`",
        ),
        Ok(Origin::Restored(at)) => {
            let at = at.to_rfc3339_seconds();
            found.ok(
                "origin",
                format!("restored at {at}: windows that were open then count as spent"),
            );
        }
        _ => {}
    }
}

fn disk(found: &mut Findings, health: &Health) {
    let kind = health.file_system.unwrap_or("a local file system");
    if matches!(kind, "tmpfs" | "ramfs") {
        let fix = "put the store on a disk: --store, PACELINE_STORE";
        found.warn(
            "disk",
            format!("{kind} is memory: a reboot takes the store and its counts"),
            fix,
        );
    }
    let Some(free) = health.free_bytes else { return };
    let told = format!("{} free ({kind})", indicatif::HumanBytes(free));
    let fix = "make room: a store that cannot be written sends nothing";
    match free {
        free if free < TOO_LITTLE => found.wrong("disk", Exit::Fault, told, fix),
        free if free < LITTLE => found.warn("disk", told, fix),
        _ => found.ok("disk", told),
    }
}

fn runners(found: &mut Findings, health: &Health) {
    let pids: Vec<String> = health.alive.iter().map(ToString::to_string).collect();
    let alive = match pids.as_slice() {
        [] => "none at work".to_owned(),
        pids => format!("at work: process {}", pids.join(", ")),
    };
    match health.dead {
        0 => found.ok("runners", alive),
        dead => found.warn(
            "runners",
            format!("{alive}; {} without settling all calls", count(dead, "runner") + " ended"),
            "the next run finds what they left",
        ),
    }
}

fn clocks(found: &mut Findings, health: &Health, context: &Context) {
    let now = health.now;
    if !health.has_boot_clock {
        found.warn(
            "clocks",
            "this system tells no boot-time clock: store time is the wall clock, never running back".to_owned(),
            "see that nobody sets the clock",
        );
    } else if now.is_stepped() {
        let skew = std::time::Duration::from_nanos(now.skew().unsigned_abs());
        let way = if now.skew() > 0 { "ahead of" } else { "behind" };
        found.warn(
            "clocks",
            format!("the wall clock is {} {way} store time: somebody set it since the store was opened first after the boot", span(skew)),
            "until a reboot, or until it is set right, budgets grant only what the windows of both have left",
        );
    } else {
        found.ok(
            "clocks",
            format!("wall clock and store time agree: {}", context.times().here(now.wall)),
        );
    }
}

fn zone(found: &mut Findings) {
    match Here::find() {
        Here::Zone(zone) => {
            let data = chrono_tz::IANA_TZDB_VERSION;
            found.ok("zone", format!("times here are shown in {} (zone data {data})", zone.name()));
        }
        Here::Offset => found.warn(
            "zone",
            "the name of this machine's time zone cannot be told: times are shown by its offset"
                .to_owned(),
            "set TZ, such as TZ=Europe/Berlin",
        ),
    }
}
