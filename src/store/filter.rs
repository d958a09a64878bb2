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
    /// Of a job of this load.
    pub load: Option<String>,
    /// That came to this reason.
    pub reason: Option<String>,
    /// Of a job whose columns have these values.
    pub columns: Columns,
    /// Left at or after this (wall time).
    pub since: Option<Timestamp>,
    /// With their bodies.
    pub bodies: bool,
    /// After the attempt of this number ([`crate::store::views::AttemptView::id`]): for pages.
    pub after: Option<i64>,
    /// At most this many: the latest, or with `after` the first.
    pub limit: Option<u64>,
}

/// A place in the order in which jobs ended: what comes after it is new.
///
/// ```
/// use paceline::store::Cursor;
/// let cursor: Cursor = "1796100482000000000-7".parse()?;
/// assert_eq!(cursor.to_string(), "1796100482000000000-7");
/// # Ok::<(), paceline::store::NoCursor>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// When the job ended (store time).
    pub ended_at: Timestamp,
    /// The job.
    pub job: JobId,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ended_at.as_nanos(), self.job)
    }
}

impl std::str::FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Cursor, NoCursor> {
        let parts = text.trim().split_once('-').ok_or(NoCursor)?;
        let ended_at = parts.0.parse().map(Timestamp::from_nanos).map_err(|_| NoCursor)?;
        let job = parts.1.parse().map(JobId).map_err(|_| NoCursor)?;
        Ok(Cursor { ended_at, job })
    }
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("that is no cursor; give one that `results` told")]
pub struct NoCursor;
