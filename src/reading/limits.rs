//! What header fields say about limits: the buckets of all families, and what their state means.

use super::body::words;
use super::hint::Hint;
use super::verdict::Verdict;
use super::view::View;
use super::window::Window;
use super::{Reason, families, fields};
use crate::clock::Timestamp;

/// One limit as header fields tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// What pairs its fields.
    pub(crate) name: String,
    /// Whether nothing is left; `None` where no field says.
    pub(crate) is_empty: Option<bool>,
    /// The reset told as a delay: it beats the other, for no clock can spoil it.
    pub(crate) relative: Option<Timestamp>,
    /// The reset told as an instant.
    pub(crate) absolute: Option<Timestamp>,
    /// The field of the reset, else of the remaining.
    pub(crate) field: String,
    /// How long its window is, where it says.
    pub(crate) window: Option<Window>,
    /// Whether it counts calls in flight.
    pub(crate) is_concurrency: bool,
}

impl Bucket {
    /// Its reset, where it may be what refused: nothing is left, or it does not say. The reset of a
    /// healthy bucket is never the wait.
    fn reset(&self, of_unknown: bool) -> Option<Timestamp> {
        let used_up = self.is_empty.unwrap_or(of_unknown);
        self.relative.or(self.absolute).filter(|_| used_up)
    }
}

/// All buckets that the answer tells of.
fn buckets(view: &View<'_>) -> Vec<Bucket> {
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

/// The reset of the used-up buckets, of several the latest.
pub(crate) fn reset(view: &View<'_>, which: Resets<'_>) -> Option<Hint> {
    let resets = buckets(view).into_iter().filter_map(|bucket| {
        let own = which.except.is_some_and(|name| bucket.field.eq_ignore_ascii_case(name));
        let at = bucket.reset(which.of_unknown).filter(|_| !own)?;
        Some(Hint::new(at, bucket.field))
    });
    resets.max_by_key(|hint| hint.at)
}

/// A reason from header fields alone: on a 429 (or 420), or on a 403 where a bucket is empty. Each
/// means that a limit refused; the used-up buckets tell which.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    let state = State::of(&buckets(view));
    let source = |field: &str| format!("status {}; {field}", view.status());
    match (view.status(), state) {
        (403 | 420 | 429, Some(state)) => Some(state.verdict(source(&state.field))),
        _ => None,
    }
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
        Some(window) => Verdict {
            wait: verdict.wait,
            ..Verdict::limited(Some(window), format!("{}; words", verdict.source))
        },
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
    fn of(buckets: &[Bucket]) -> Option<State> {
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
