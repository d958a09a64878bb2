//! PURE: who has which token, what is to be fetched, and what a refusal says about it.
//!
//! One table for all lanes of a run. All instants are store time, unless they are said to be wall time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::life::Life;
use super::{Failure, Fetched};
use crate::clock::{Now, Timestamp};
use crate::next::Token as Standing;
use crate::quota::auth::Auth;
use crate::quota::{RetryPolicy, Upstream};
use crate::retry::{after_hint, backoff};

/// Pauses between tries while the trouble may pass by itself.
const PASSING: Pauses = Pauses { first: Duration::from_secs(1), longest: Duration::from_secs(300) };

/// And where a person must do something first: a run that stays finds it done.
const LASTING: Pauses =
    Pauses { first: Duration::from_secs(15), longest: Duration::from_secs(600) };

struct Pauses {
    first: Duration,
    longest: Duration,
}

impl Pauses {
    fn after(&self, failures: u32, random: f64) -> Duration {
        let (initial, max_interval) = (self.first, self.longest);
        let policy = RetryPolicy { initial, max_interval, ..RetryPolicy::default() };
        backoff(&policy, failures, random)
    }
}

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub upstream: String,
    /// `None`: all credentials share one.
    pub credential: Option<String>,
}

impl Owner {
    pub fn of(upstream: &Upstream, auth: &Auth, credential: Option<&String>) -> Owner {
        let credential = credential.filter(|_| auth.is_per_credential()).cloned();
        Owner { upstream: upstream.name.clone(), credential }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { upstream, credential } = self;
        write!(f, "{upstream} {}", credential.as_deref().unwrap_or_default())
    }
}

/// A token that a call carries.
#[derive(Debug)]
pub(crate) struct Given {
    pub value: Arc<str>,
    owner: Owner,
    number: u64,
}

/// Why there is no token now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub owner: Owner,
    /// When it is fetched again; `None`: a person must do something.
    pub until: Option<Timestamp>,
    pub detail: String,
}

/// What a fetch came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// There is one. `was_in_trouble`: it had not come before.
    None { was_in_trouble: bool },
    /// There is none, or none once the present one has expired.
    Trouble { trouble: Trouble, has_token: bool },
}

#[derive(Debug)]
struct Token {
    value: Arc<str>,
    number: u64,
    life: Life,
    /// It replaced one that was refused, and nobody got through with it yet.
    is_suspect: bool,
}

/// One owner's token.
#[derive(Debug)]
struct Slot {
    auth: Auth,
    token: Option<Token>,
    number: u64,
    /// A call found none.
    is_wanted: bool,
    /// The one in use will expire soon.
    is_due: bool,
    is_fetched: bool,
    /// The last one that was refused, until another has come: its number, and what that said of it.
    refused: Option<(u64, Standing)>,
    failures: u32,
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    until: Timestamp,
    trouble: Trouble,
}

impl Slot {
    fn new(auth: &Auth) -> Slot {
        Slot {
            auth: auth.clone(),
            token: None,
            number: 0,
            is_wanted: false,
            is_due: false,
            is_fetched: false,
            refused: None,
            failures: 0,
            pause: None,
        }
    }

    fn needs(&self) -> bool {
        (self.is_wanted || self.is_due) && !self.is_fetched
    }

    fn holds_at(&self, at: Timestamp) -> bool {
        self.token.as_ref().is_some_and(|token| token.life.holds_at(at))
    }

    fn fetched(&mut self, fetched: Fetched, asked_at: Timestamp) -> Need {
        self.number += 1;
        self.token = Some(Token {
            value: fetched.value.into(),
            number: self.number,
            life: Life::new(asked_at, fetched.lasts),
            is_suspect: self.refused.take().is_some(),
        });
        (self.is_wanted, self.is_due, self.failures) = (false, false, 0);
        Need::None { was_in_trouble: self.pause.take().is_some() }
    }

    fn failed(&mut self, owner: Owner, failure: Failure, now: Now, random: f64) -> Need {
        self.failures += 1;
        let own = |pauses: Pauses| now.store + pauses.after(self.failures, random);
        let (until, is_lasting, detail) = match failure {
            Failure::Lasting(detail) => (own(LASTING), true, detail),
            Failure::Passing { detail, retry_at } => {
                let hint = retry_at.map(|at| now.to_store(at)).filter(|at| *at > now.store);
                let hint = hint.map(|at| after_hint(now.store, at, random));
                let until = hint.map_or(own(PASSING), |hint| hint.max(own(PASSING)));
                let wait = until.since(now.store).as_secs_f64().ceil();
                (until, false, format!("{detail}; next try in {wait} s"))
            }
        };
        let trouble = Trouble { owner, until: (!is_lasting).then_some(until), detail };
        self.pause = Some(Pause { until, trouble: trouble.clone() });
        Need::Trouble { trouble, has_token: self.holds_at(now.store) }
    }
}

/// All tokens of a run.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    slots: Mutex<BTreeMap<Owner, Slot>>,
}

impl Tokens {
    /// The owner's token, if it is still one at `at`. Else it is wanted from now on.
    pub fn give(&self, owner: &Owner, auth: &Auth, now: Timestamp, at: Timestamp) -> Option<Given> {
        let mut slots = self.slots();
        let slot = slots.entry(owner.clone()).or_insert_with(|| Slot::new(auth));
        if slot.auth != *auth {
            *slot = Slot::new(auth);
        }
        let found = slot.token.as_ref().filter(|token| token.life.holds_at(at.max(now)));
        let Some(token) = found else {
            slot.is_wanted = true;
            return None;
        };
        slot.is_due |= token.life.is_due(now);
        Some(Given { value: Arc::clone(&token.value), owner: owner.clone(), number: token.number })
    }

    /// Why an owner has no token, where that is known and was not tried again since.
    pub fn trouble(&self, owner: &Owner, now: Timestamp) -> Option<Trouble> {
        let slots = self.slots();
        let pause = slots.get(owner)?.pause.as_ref()?;
        (pause.until > now).then(|| pause.trouble.clone())
    }

    /// Whose tokens are to be fetched now. Each is told once, until [`Tokens::take`].
    pub fn start(&self, upstream: &str, now: Timestamp) -> Vec<(Owner, Auth)> {
        let mut slots = self.slots();
        let may = |slot: &Slot| {
            slot.needs() && slot.pause.as_ref().is_none_or(|pause| pause.until <= now)
        };
        let started =
            slots.iter_mut().filter(|(owner, slot)| owner.upstream == upstream && may(slot));
        let start = |(owner, slot): (&Owner, &mut Slot)| {
            slot.is_fetched = true;
            (owner.clone(), slot.auth.clone())
        };
        started.map(start).collect()
    }

    /// What a fetch that began at `asked_at` came to.
    pub fn take(
        &self,
        owner: &Owner,
        asked_at: Timestamp,
        now: Now,
        fetched: Result<Fetched, Failure>,
        random: f64,
    ) -> Option<Need> {
        let mut slots = self.slots();
        let slot = slots.get_mut(owner)?;
        slot.is_fetched = false;
        Some(match fetched {
            Ok(fetched) => slot.fetched(fetched, asked_at),
            Err(failure) => slot.failed(owner.clone(), failure, now, random),
        })
    }

    /// The upstream's quota file changed. What was got, or could not be, in another way is forgotten; tells
    /// whether anything was.
    pub fn change(&self, upstream: &Upstream) -> bool {
        let mut slots = self.slots();
        let before = slots.len();
        slots.retain(|owner, slot| {
            owner.upstream != upstream.name || Some(&slot.auth) == upstream.auth.as_ref()
        });
        slots.len() < before
    }

    /// Nobody fetches for this upstream any more: who did is gone.
    pub fn give_up(&self, upstream: &str) {
        let mut slots = self.slots();
        let own = slots.iter_mut().filter(|(owner, _)| owner.upstream == upstream);
        own.for_each(|(_, slot)| slot.is_fetched = false);
    }

    /// Whether a call of the upstream waits for a token that is on its way.
    pub fn awaits(&self, upstream: &str) -> bool {
        let slots = self.slots();
        let awaits = |slot: &Slot| slot.is_fetched && slot.is_wanted;
        slots.iter().any(|(owner, slot)| owner.upstream == upstream && awaits(slot))
    }

    /// When the next try is due.
    pub fn retry_at(&self, upstream: &str) -> Option<Timestamp> {
        let slots = self.slots();
        let own = slots.iter().filter(|(owner, slot)| owner.upstream == upstream && slot.needs());
        own.filter_map(|(_, slot)| Some(slot.pause.as_ref()?.until)).min()
    }

    /// A call that carried it was refused for it. The one in use is given up: the next call finds none.
    pub fn refused(&self, given: &Given) -> Standing {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(&given.owner) else { return Standing::Replaced };
        let Some(token) = slot.token.take_if(|token| token.number == given.number) else {
            // Others were refused with it before; or it was replaced since.
            let before = slot.refused.filter(|(number, _)| *number == given.number);
            return before.map_or(Standing::Replaced, |(_, standing)| standing);
        };
        let standing = if token.is_suspect { Standing::Fresh } else { Standing::Replaced };
        slot.refused = Some((token.number, standing));
        // Its job goes again, and needs the next one.
        slot.is_wanted |= standing == Standing::Replaced;
        standing
    }

    /// A call that carried it got through.
    pub fn proved(&self, given: &Given) {
        let mut slots = self.slots();
        let slot = slots.get_mut(&given.owner);
        let token = slot.and_then(|slot| slot.token.as_mut());
        if let Some(token) = token.filter(|token| token.number == given.number) {
            token.is_suspect = false;
        }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<Owner, Slot>> {
        // Each change is whole.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
