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
    mod budget;
    mod concurrency;
    mod crash;
    mod deadline;
    mod drain;
    mod follow;
    mod legible;
    mod rate;
    mod refusal;
    mod secrets;
    mod store_trouble;
    mod terminal;
    mod upstream_trouble;
}
