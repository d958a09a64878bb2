//! Which jobs a command is about.

use crate::clock::Timestamp;
use crate::job::{Columns, JobId, JobState};

/// Which jobs: all parts that are given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// These jobs.
    pub ids: Vec<JobId>,
    /// Of this address.
    pub url: Option<String>,
    /// Of this load.
    pub load: Option<String>,
    /// Of these upstreams; empty: all.
    pub upstreams: Vec<String>,
    /// In one of these states; empty: any.
    pub states: Vec<JobState>,
    /// Whose last reason is this.
    pub reason: Option<String>,
    /// Whose columns have these values.
    pub columns: Columns,
    /// Added or ended at or after this (store time).
    pub since: Option<Timestamp>,
    /// Ended at or before this (store time).
    pub ended_before: Option<Timestamp>,
    /// With a higher number than this one: for pages.
    pub after: Option<JobId>,
    /// At most this many.
    pub limit: Option<u64>,
}

/// What the attempts of a log or a job are picked by.
#[derive(Clone, Debug, Default)]
pub struct AttemptFilter {
    /// Of this job.
    pub job: Option<JobId>,
    /// Of these upstreams; empty: all.
    pub upstreams: Vec<String>,
    /// Of this address.
    pub url: Option<String>,
    /// Left at or after this (wall time).
    pub since: Option<Timestamp>,
    /// With their bodies.
    pub bodies: bool,
    /// At most this many, the latest.
    pub limit: Option<u64>,
}
