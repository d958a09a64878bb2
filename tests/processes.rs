//! The promises, held by processes: the built program on a store of its own, against a strict practice
//! upstream. Each file is a promise or a kind of trouble; `tests/dispatch.rs` holds the same on a virtual
//! clock. What happened is read from the upstream's book and from the store; nobody waits for anything
//! but slots and processes.
//!
//! `PACELINE_KILLS=200` makes `crash` kill so often, `PACELINE_SEED=n` lets it begin as it did then.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Real processes are waited for by the machine's own clock.
#![allow(clippy::disallowed_methods, clippy::cast_possible_truncation)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod support;

mod processes {
    mod adapt;
    mod auth;
    mod auth_refused;
    mod batches;
    mod budget;
    #[cfg(target_os = "linux")]
    mod clocks;
    mod concurrency;
    mod connections;
    mod copies;
    mod crash;
    mod damage;
    #[cfg(target_os = "linux")]
    mod daylight;
    mod deadline;
    #[cfg(target_os = "linux")]
    mod disk_trouble;
    mod doors;
    mod drain;
    mod follow;
    mod hostile;
    mod legible;
    mod notify;
    #[cfg(target_os = "linux")]
    mod power;
    mod rate;
    #[cfg(target_os = "linux")]
    mod reboot;
    mod redirect;
    mod refusal;
    mod remaining;
    mod results;
    mod retention;
    mod secrets;
    mod sitemaps;
    mod store_trouble;
    mod story_bing;
    #[cfg(target_os = "linux")]
    mod story_google;
    mod story_indexnow;
    mod story_reddit;
    mod terminal;
    mod trouble_connection;
    mod trouble_refusal;
    mod trouble_size;
    mod trouble_time;
}
