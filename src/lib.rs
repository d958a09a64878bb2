//! Paceline makes outbound calls within the quotas their upstreams declare.

pub mod address;
pub mod clock;
pub mod dispatch;
pub mod input;
pub mod job;
pub mod next;
pub mod output;
pub mod plan;
#[cfg(feature = "practice")]
pub mod practice;
pub mod quota;
pub mod reading;
pub mod report;
pub mod retry;
pub mod secrets;
pub mod store;
pub mod template;
