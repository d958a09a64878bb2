//! The command line, as its users meet it: the built program on a store of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "cli/acts.rs"]
mod acts;
#[path = "cli/add.rs"]
mod add;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/care.rs"]
mod care;
#[path = "cli/doors.rs"]
mod doors;
#[path = "cli/examples.rs"]
mod examples;
#[path = "cli/history.rs"]
mod history;
#[path = "cli/init.rs"]
mod init;
#[path = "cli/json.rs"]
mod json;
#[path = "cli/look.rs"]
mod look;
#[path = "cli/manners.rs"]
mod manners;
#[path = "cli/names.rs"]
mod names;
#[path = "cli/packages.rs"]
mod packages;
#[path = "cli/rows.rs"]
mod rows;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/sitemaps.rs"]
mod sitemaps;
#[path = "cli/tools.rs"]
mod tools;
#[path = "cli/why.rs"]
mod why;
