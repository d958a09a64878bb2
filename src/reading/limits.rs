//! What header fields say about limits: the buckets of all families, and what their state means.

use std::borrow::Cow;

use super::body::words;
use super::candidate::{Candidate, PassedOver};
use super::moment::Moment;
use super::verdict::Verdict;
use super::view::View;
use super::window::Window;
use super::{Reason, families, fields};

/// One limit as header fields tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket<'a> {
    /// What pairs its fields.
    pub(crate) name: String,
    /// Whether nothing is left; `None` where no field says.
    pub(crate) is_empty: Option<bool>,
    /// Whether the limit itself is 0.
    pub(crate) is_zero: bool,
    /// All that is said of its reset.
    pub(crate) resets: Vec<Told<'a>>,
    /// The field of the reset, else of the remaining.
    pub(crate) field: String,
    /// How long its window is, where it says.
    pub(crate) window: Option<Window>,
    /// Whether it counts calls in flight.
    pub(crate) is_concurrency: bool,
}

/// A reset as one field tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told<'a> {
    /// What it says.
    pub(crate) said: Candidate<'a>,
    /// Whether as a delay: it beats an instant, for no clock can spoil it.
    pub(crate) is_delay: bool,
}

impl<'a> Told<'a> {
    /// A field's value, and what it was read as.
    pub(crate) fn new(
        field: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'a, str>>,
        moment: Option<Moment>,
        view: &View<'_>,
    ) -> Self {
        let is_delay = moment.is_some_and(Moment::is_relative);
        Told { said: Candidate::new(field, value, moment, view), is_delay }
    }
}

impl<'a> Bucket<'a> {
    /// Its resets, usable where it may be what refused: nothing is left, or it does not say. The
    /// reset of a healthy bucket is never the wait.
    fn candidates(self, which: Resets<'_>) -> impl Iterator<Item = Candidate<'a>> {
        let against = match self.is_empty {
            Some(false) => Some(PassedOver::HasLeft),
            None if !which.of_unknown => Some(PassedOver::LeftUnknown),
            _ => None,
        };
        let known = |told: &Told<'_>| told.is_delay && told.said.at.is_ok();
        let delay = self.resets.iter().any(known);
        self.resets.into_iter().map(move |told| {
            let own = which.except.is_some_and(|name| told.said.source.eq_ignore_ascii_case(name));
            let against = own.then_some(PassedOver::RuleReads).or(against);
            let instant = (delay && !told.is_delay).then_some(PassedOver::DelayIsSurer);
            let at = match against.or(instant) {
                Some(why) => told.said.at.and(Err(why)),
                None => told.said.at,
            };
            Candidate { at, ..told.said }
        })
    }
}

/// All buckets that the answer tells of.
fn buckets<'v>(view: &'v View<'_>) -> Vec<Bucket<'v>> {
    let mut all = fields::buckets(view);
    all.extend(families::buckets(view));
    all
}

/// Which resets count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resets<'n> {
    /// Not this field: a rule of the upstream has read it in its own unit.
    pub(crate) except: Option<&'n str>,
    /// Also those of buckets that do not say what is left.
    pub(crate) of_unknown: bool,
}

/// The resets of all buckets; those of used-up ones are usable.
pub(crate) fn resets<'v>(view: &'v View<'_>, which: Resets<'_>) -> Vec<Candidate<'v>> {
    let known = buckets(view).into_iter().flat_map(|bucket| bucket.candidates(which));
    known.chain(fields::ignored(view)).collect()
}

/// Whether fields that everybody knows tell of a limit that is used up.
pub(crate) fn is_told(view: &View<'_>) -> bool {
    buckets(view).iter().any(|bucket| bucket.is_empty == Some(true))
}

/// Whether the limit that refused is itself 0: nothing is left of it, or nobody says what is, and no
/// other limit that is used up explains the refusal.
pub(crate) fn is_zero(view: &View<'_>) -> bool {
    let buckets = buckets(view);
    let other = buckets.iter().any(|bucket| bucket.is_empty == Some(true) && !bucket.is_zero);
    !other && buckets.iter().any(|bucket| bucket.is_zero && bucket.is_empty != Some(false))
}

/// A reason from header fields alone: on a 429 (or 420), or on a 403 where a bucket is empty. Each
/// means that a limit refused; the used-up buckets tell which.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    if !matches!(view.status(), 403 | 420 | 429) {
        return None;
    }
    let state = State::of(&buckets(view))?;
    Some(state.verdict(format!("status {}; {}", view.status(), state.field)))
}

/// Makes a refusal whose window is unknown a quota, where the used-up buckets or the server's own
/// words name one of an hour or longer.
pub(crate) fn refine(view: &View<'_>, verdict: Verdict) -> Verdict {
    if !verdict.open || verdict.reason != Reason::RateLimited || verdict.window.is_some() {
        return verdict;
    }
    if let Some(state) = State::of(&buckets(view)).filter(State::says_more) {
        let source = format!("{}; {}", verdict.source, state.field);
        return state.verdict(source);
    }
    match words::said(view).and_then(Window::in_sentence) {
        Some(window) => Verdict::limited(Some(window), format!("{}; words", verdict.source)),
        None => verdict,
    }
}

/// What the used-up buckets say together.
struct State {
    window: Option<Window>,
    is_concurrency: bool,
    field: String,
}

impl State {
    /// `None` where no bucket is empty.
    fn of(buckets: &[Bucket<'_>]) -> Option<State> {
        let empty = || buckets.iter().filter(|bucket| bucket.is_empty == Some(true));
        let longest = empty().max_by_key(|bucket| bucket.window)?;
        Some(State {
            window: longest.window,
            is_concurrency: empty().all(|bucket| bucket.is_concurrency),
            field: longest.field.clone(),
        })
    }

    /// Whether it is more than "some limit".
    fn says_more(&self) -> bool {
        self.is_concurrency || self.window.is_some()
    }

    fn verdict(&self, source: String) -> Verdict {
        if self.is_concurrency {
            return Verdict::new(Reason::ConcurrencyLimited, source);
        }
        Verdict::limited(self.window, source)
    }
}
