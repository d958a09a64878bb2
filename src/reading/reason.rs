//! Why an answer is what it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A typed reason. Their exact sense is part of the contract; `retryable` in a reading says whether
/// waiting alone can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Served.
    Ok,
    /// Taken; work goes on at the upstream's side. Never sent again.
    AcceptedPending,
    /// Too fast: a window shorter than an hour, or of unknown length.
    RateLimited,
    /// A budget of an hour or longer is used up, or money is.
    QuotaExhausted,
    /// Too many calls in flight, or an object is locked.
    ConcurrencyLimited,
    /// The upstream has no capacity.
    Overloaded,
    /// A fault on the upstream's side.
    Transient,
    /// Our credential is right but not yet checked.
    KeyPending,
    /// A token expired, was revoked or is invalid; a refresh may cure it.
    AuthExpired,
    /// A setting of ours must change.
    Misconfigured,
    /// We lack the permission.
    Forbidden,
    /// They shut us out.
    Blocked,
    /// The request itself is wrong.
    InvalidRequest,
    /// There is no such thing.
    NotFound,
    /// There is no such thing any more.
    Gone,
    /// Too much in one call.
    TooLarge,
    /// Understood, and not possible.
    Unprocessable,
    /// Nothing is known about such an answer, and nothing is guessed.
    Unknown,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 18] = [
        Reason::Ok,
        Reason::AcceptedPending,
        Reason::RateLimited,
        Reason::QuotaExhausted,
        Reason::ConcurrencyLimited,
        Reason::Overloaded,
        Reason::Transient,
        Reason::KeyPending,
        Reason::AuthExpired,
        Reason::Misconfigured,
        Reason::Forbidden,
        Reason::Blocked,
        Reason::InvalidRequest,
        Reason::NotFound,
        Reason::Gone,
        Reason::TooLarge,
        Reason::Unprocessable,
        Reason::Unknown,
    ];

    /// The reason's name, as stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Ok => "ok",
            Reason::AcceptedPending => "accepted_pending",
            Reason::RateLimited => "rate_limited",
            Reason::QuotaExhausted => "quota_exhausted",
            Reason::ConcurrencyLimited => "concurrency_limited",
            Reason::Overloaded => "overloaded",
            Reason::Transient => "transient",
            Reason::KeyPending => "key_pending",
            Reason::AuthExpired => "auth_expired",
            Reason::Misconfigured => "misconfigured",
            Reason::Forbidden => "forbidden",
            Reason::Blocked => "blocked",
            Reason::InvalidRequest => "invalid_request",
            Reason::NotFound => "not_found",
            Reason::Gone => "gone",
            Reason::TooLarge => "too_large",
            Reason::Unprocessable => "unprocessable",
            Reason::Unknown => "unknown",
        }
    }

    /// Whether waiting alone usually helps: what a reading says unless a rule or a body says other.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Reason::RateLimited
                | Reason::QuotaExhausted
                | Reason::ConcurrencyLimited
                | Reason::Overloaded
                | Reason::Transient
                | Reason::KeyPending
        )
    }

    /// Whether the job itself cannot be answered as wished, whoever sends it and whenever.
    pub const fn is_permanent(self) -> bool {
        matches!(
            self,
            Reason::InvalidRequest
                | Reason::NotFound
                | Reason::Gone
                | Reason::TooLarge
                | Reason::Unprocessable
                | Reason::Unknown
        )
    }

    /// Whether it says "not now" or "not you", rather than anything of the job.
    pub const fn is_refusal(self) -> bool {
        !(self.is_success() || self.is_permanent() || matches!(self, Reason::Transient))
    }

    /// Whether the job was done as wished.
    pub const fn is_success(self) -> bool {
        matches!(self, Reason::Ok | Reason::AcceptedPending)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(name: &str) -> Result<Self, UnknownReason> {
        let known = Reason::ALL.into_iter().find(|reason| reason.name() == name);
        known.ok_or_else(|| UnknownReason(name.to_owned()))
    }
}

/// A name that is no reason.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no reason; `paceline read --help` lists them")]
pub struct UnknownReason(String);
