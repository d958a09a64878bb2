#![doc = include_str!("../README.md")]
//!
//! # The crate
//!
//! | module | is |
//! | --- | --- |
//! | [`client`] | for programs: [`Paceline`], permits, calls, events |
//! | [`clock`] | the only door to system time |
//! | [`job`], [`plan`], [`template`], [`address`] | what a job is; rows of columns become jobs |
//! | [`quota`] | may it go? Quota files, and the pure decision over all limits at once |
//! | [`reading`] | what was said? An answer's reason and hint |
//! | [`retry`], [`next`], [`redirect`] | what next? |
//! | [`secrets`] | placeholders resolved, values found in what is shown |
//! | [`store`] | durable truth, named by transitions |
//! | [`dispatch`] | the loop, and the events that it tells |
//! | `gateway` | a proxy on this machine: any program's calls go out paced (feature `gateway`) |
//! | [`input`], [`output`] | rows come in, rows go out |
//! | [`report`] | what people and tools are told |
//! | `practice` | an upstream to practise against (feature `practice`) |
//!
//! `ARCHITECTURE.md` in the repository is the longer map.

#[cfg(not(unix))]
compile_error!("Paceline needs Unix: its processes know each other by locks that children inherit");

pub mod address;
pub mod client;
pub mod clock;
mod crash;
pub mod dispatch;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod input;
pub mod job;
pub mod next;
pub mod output;
pub mod plan;
#[cfg(feature = "practice")]
pub mod practice;
pub mod quota;
pub mod reading;
pub mod redirect;
pub mod report;
pub mod retry;
pub mod secrets;
pub mod store;
pub mod template;

pub use client::{Paceline, Permit};
