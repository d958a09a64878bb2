//! Why a program gets no permit or no answer, and until when.

use std::sync::Arc;

use chrono_tz::Tz;

use super::OurWay;
use crate::clock::Timestamp;
use crate::dispatch::RunError;
use crate::dispatch::desk::NoTurn;
use crate::job::JobState;
use crate::plan::PlanError;
use crate::quota::Upstream;
use crate::quota::library::LibraryError;
use crate::reading::Reading;
use crate::store::Store as _;
use crate::store::StoreError;
use crate::store::views::{JobView, WaitView};

/// Something cannot go now: what keeps it, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotNow {
    /// The upstream.
    pub upstream: String,
    /// The limit that binds; `None`: the partition was refused, or others go first.
    pub limit: Option<String>,
    /// When it could go (wall time); `None`: once something in flight ends.
    pub until: Option<Timestamp>,
    /// The zone that the limit's calendar is of.
    pub zone: Option<Tz>,
    /// Why, in one word: a reading's reason, or a limit's kind.
    pub reason: String,
    /// Why, in a sentence.
    pub detail: String,
}

impl NotNow {
    /// What a refusal says, where it comes too late for another try.
    pub(super) fn refused(upstream: &str, reading: Reading, until: Option<Timestamp>) -> NotNow {
        NotNow {
            upstream: upstream.to_owned(),
            limit: reading.limit,
            until: until.max(reading.retry_at),
            zone: None,
            reason: reading.reason.name().to_owned(),
            detail: reading.detail,
        }
    }

    fn of(upstream: &Upstream, wait: Option<WaitView>) -> NotNow {
        let Some(WaitView { limit, until, reason, detail, .. }) = wait else {
            let (limit, until, zone) = (None, None, None);
            let (reason, detail) = ("busy".to_owned(), "others go first".to_owned());
            return NotNow { upstream: upstream.name.clone(), limit, until, zone, reason, detail };
        };
        let zone = zone(upstream, limit.as_deref());
        NotNow { upstream: upstream.name.clone(), limit, until, zone, reason, detail }
    }
}

fn zone(upstream: &Upstream, limit: Option<&str>) -> Option<Tz> {
    let limit = upstream.limit(limit?)?;
    limit.rule.calendar().map(|calendar| calendar.zone)
}

impl std::fmt::Display for NotNow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NotNow { upstream, limit, until, detail, .. } = self;
        match limit {
            Some(limit) => write!(f, "the limit `{limit}` of {upstream} lets nothing go")?,
            None => write!(f, "nothing of {upstream} can go")?,
        }
        match until {
            Some(until) => write!(f, " before {}", until.to_rfc3339_seconds())?,
            None => f.write_str(" now")?,
        }
        if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
    }
}

/// Why there is no permit, or no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not within the time that was given.
    #[error("{0}")]
    NotNow(NotNow),
    /// It could go only after its deadline.
    #[error("{0}, which is after its deadline")]
    Expired(NotNow),
    /// It stopped until a person acts.
    #[error("{upstream} is held ({reason}): {detail}")]
    Held {
        /// The upstream.
        upstream: String,
        /// Why, in one word.
        reason: String,
        /// Why, and what to do.
        detail: String,
        /// Until when the upstream wants to be left alone, where that is why (wall time).
        until: Option<Timestamp>,
    },
    /// It takes more than a limit can ever grant.
    #[error("{detail}")]
    NeverFits {
        /// The limit.
        limit: Option<String>,
        /// How much.
        detail: String,
    },
    /// A person withdrew it.
    #[error("it was withdrawn: {detail}")]
    Cancelled {
        /// Why.
        detail: String,
    },
    /// Its answer cannot count any more: its process was taken for dead, or it was settled before.
    #[error("the call was over already: {detail}")]
    Over {
        /// What happened.
        detail: String,
    },
    /// A secret is not there.
    #[error("{0}")]
    Secret(String),
    /// A token cannot be had.
    #[error("{detail}")]
    NoToken {
        /// Why.
        detail: String,
        /// When one is fetched again (wall time), where that may help.
        until: Option<Timestamp>,
    },
    /// What is asked for makes no job of the upstream.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No such upstream, or its quota file is wrong.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The request makes no HTTP.
    #[error("{0}")]
    Request(String),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store cannot do its work.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// A run could not go on.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The store said nothing within the time that was given.
    #[error("the store does not answer")]
    Silent,
    /// There is no folder for the user's own store.
    #[error("there is no home folder for the store: name its file")]
    NoHome,
    /// The handle was closed meanwhile.
    #[error("it was closed")]
    Closed,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::Store(Arc::new(error))
    }
}

impl Error {
    /// When it could go, or is tried again (wall time), where that is known.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Error::NotNow(not_now) | Error::Expired(not_now) => not_now.until,
            Error::Held { until, .. } | Error::NoToken { until, .. } => *until,
            _ => None,
        }
    }

    pub(super) fn of(error: NoTurn, way: &OurWay) -> Error {
        let upstream = &way.upstream;
        match error {
            NoTurn::NotNow(wait) => Error::NotNow(NotNow::of(upstream, wait)),
            NoTurn::Held(WaitView { reason, detail, until, .. }) => {
                Error::Held { upstream: upstream.name.clone(), reason, detail, until }
            }
            NoTurn::Ended(view) => Error::ended(*view, upstream),
            NoTurn::Unprepared(error) => Error::Request(error.to_string()),
            NoTurn::NoSecret(detail) => Error::Secret(detail),
            NoTurn::NoToken(detail, until) => {
                Error::NoToken { detail, until: until.map(|until| way.store.now().to_wall(until)) }
            }
            NoTurn::Store(error) => Error::Store(error),
            NoTurn::Silent => Error::Silent,
            NoTurn::Closed => Error::Closed,
        }
    }

    fn ended(view: JobView, upstream: &Upstream) -> Error {
        let detail = view.detail.unwrap_or_default();
        match view.state {
            JobState::Expired => Error::Expired(NotNow {
                upstream: upstream.name.clone(),
                zone: zone(upstream, view.limit.as_deref()),
                limit: view.limit,
                until: view.could_go_at,
                reason: view.reason.unwrap_or_default(),
                detail,
            }),
            JobState::Failed => Error::NeverFits { limit: view.limit, detail },
            JobState::Cancelled => Error::Cancelled { detail },
            _ => Error::Over { detail },
        }
    }
}
