//! One place where a hint may stand, and what came of it.

use std::borrow::Cow;

use super::moment::Moment;
use super::view::View;
use crate::clock::Timestamp;

/// A value that may tell when to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<'v> {
    /// Where it stands: `retry-after`, `body retryDelay`.
    pub(crate) source: Cow<'static, str>,
    /// What stands there.
    pub(crate) value: Cow<'v, str>,
    /// The earliest instant to come back, by our wall clock and not yet clamped; or why it is none.
    pub(crate) at: Result<Timestamp, PassedOver>,
    /// The limit whose reset it is.
    pub(crate) limit: Option<String>,
}

impl<'v> Candidate<'v> {
    /// A value and what it was read as; `None` where nobody can read it.
    pub(crate) fn new(
        source: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'v, str>>,
        moment: Option<Moment>,
        view: &View<'_>,
    ) -> Self {
        let ahead = |moment: Moment| moment.resolve(view).ok_or(PassedOver::NotAhead);
        let at = moment.ok_or(PassedOver::Unreadable).and_then(ahead);
        Candidate::known(source, value, at)
    }

    /// A value whose instant is known.
    pub(crate) fn known(
        source: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'v, str>>,
        at: Result<Timestamp, PassedOver>,
    ) -> Self {
        Candidate { source: source.into(), value: value.into(), at, limit: None }
    }
}

/// The latest that is usable: of several values of one source it is the one that counts.
pub(crate) fn latest<'v>(
    candidates: impl IntoIterator<Item = Candidate<'v>>,
) -> Option<(Timestamp, Candidate<'v>)> {
    let usable = candidates.into_iter().filter_map(|one| Some((one.at.ok()?, one)));
    usable.max_by_key(|(at, _)| *at)
}

/// Why a value is no hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PassedOver {
    /// No number, duration or date.
    #[error("it cannot be read as a time")]
    Unreadable,
    /// Never means "now".
    #[error("it is zero, negative or past")]
    NotAhead,
    /// A healthy window's reset is never the wait.
    #[error("remaining is not 0: this limit did not refuse")]
    HasLeft,
    /// After a fault of the server, say.
    #[error("no limit refused, and no remaining of 0 says otherwise")]
    LeftUnknown,
    /// No clock can spoil a delay.
    #[error("a delay of the same limit is surer than an instant")]
    DelayIsSurer,
    /// Its unit is declared.
    #[error("the rule reads this header in its own unit")]
    RuleReads,
    /// The short delay of a refusal by the day.
    #[error("a limit of a day or longer refused: its reset decides")]
    ByTheDay,
    /// What an intermediary kept tells nothing of now.
    #[error("the answer comes from a cache (Age)")]
    Cached,
    /// More than the bucket can ever hold.
    #[error("the query costs more than the bucket can hold")]
    NeverFits,
}
