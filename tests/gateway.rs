//! The gateway as a process, between callers and a practice upstream: one behaviour a test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Real processes are waited for by the machine's own clock.
#![allow(clippy::disallowed_methods)]

mod support;

mod gateway {
    mod callers;
    mod command;
    mod door;
    mod doors;
    mod leaving;
    mod limits;
    mod passing;
    mod proxy;
    mod refusals;
    mod streams;
}
