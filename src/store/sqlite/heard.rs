//! What an instance's row holds of the upstream's side: what it told is left, how far the pace was cut,
//! when it is asked.

use std::time::Duration;

use rusqlite::{Connection, named_params};

use super::fields::Fields;
use super::queries;
use super::usage::{stored, units};
use crate::clock::Timestamp;
use crate::quota::LimitRule;
use crate::quota::adapt::{Slowed, calm, slowed};
use crate::quota::reported::{Reported, Told};

/// Questions that fail are asked up to eight times as seldom.
const MOST_DOUBLINGS: u32 = 3;

/// What was heard of one instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub reported: Reported,
    /// How far the pace was cut, and when; long ago it counts no more.
    pub slowed: Option<Slowed>,
    pub asked: Asked,
}

/// When the upstream is asked what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Next; `None`: it never was.
    pub next_at: Option<Timestamp>,
    /// Nobody goes before this, while the answer is out.
    pub until: Option<Timestamp>,
    /// In a row.
    pub failures: u32,
}

impl Heard {
    pub fn read(row: &Fields<'_, '_>) -> rusqlite::Result<Heard> {
        let at = || -> rusqlite::Result<Option<Timestamp>> {
            Ok(row.next::<Option<i64>>()?.map(Timestamp::from_nanos))
        };
        let figure: Option<i64> = row.next()?;
        let left: Option<i64> = row.next()?;
        let until = at()?;
        let last_call = row.next::<Option<i64>>()?.unwrap_or_default();
        let told = figure.zip(until).map(|(figure, until)| {
            let left = left.unwrap_or(figure);
            Told { figure: units(figure), left, until, last_call }
        });
        let silent = units(row.next()?);
        let slowed = match (row.next()?, at()?) {
            (Some(share), Some(at)) => Some(Slowed { share, at }),
            _ => None,
        };
        Ok(Heard {
            reported: Reported { silent, told },
            slowed,
            asked: Asked { next_at: at()?, until: at()?, failures: row.next()? },
        })
    }

    /// The sixteenths of its declared pace at which a limit with that rule goes; `None`: all of it.
    pub fn share(&self, rule: &LimitRule, now: Timestamp) -> Option<u32> {
        self.slowed?.share_at(calm(rule)?, now)
    }

    /// When all of the declared pace of a limit with that rule is back (store time).
    pub fn full_at(&self, rule: &LimitRule) -> Option<Timestamp> {
        Some(self.slowed?.whole_at(calm(rule)?))
    }

    /// The rule as it is paced now; `None`: as declared.
    pub fn slowed_rule(&self, rule: &LimitRule, now: Timestamp) -> Option<LimitRule> {
        self.share(rule, now).map(|share| slowed(rule, share))
    }
}

impl Asked {
    /// After a question that went out at `at`.
    pub fn out(self, at: Timestamp, every: Duration, patience: Duration) -> Asked {
        Asked { next_at: Some(at + every), until: Some(at + patience), ..self }
    }

    /// After the answer to a question that went out at `at`. Where none came that could be read, the next
    /// question is the further off the more failed in a row.
    pub fn answered(self, at: Timestamp, every: Duration, told: bool) -> Asked {
        let failures = if told { 0 } else { self.failures.saturating_add(1) };
        let every = every.saturating_mul(1 << failures.min(MOST_DOUBLINGS));
        Asked { next_at: Some(at + every), until: None, failures }
    }
}

pub(super) fn save_reported(
    conn: &Connection,
    instance: i64,
    reported: &Reported,
) -> rusqlite::Result<()> {
    conn.prepare_cached(queries::INSTANCE_REPORTED)?.execute(named_params! {
        ":id": instance, ":silent": stored(reported.silent),
        ":figure": reported.told.map(|told| stored(told.figure)),
        ":left": reported.told.map(|told| told.left),
        ":until": reported.told.map(|told| told.until.as_nanos()),
        ":call": reported.told.map(|told| told.last_call),
    })?;
    Ok(())
}

pub(super) fn save_asked(conn: &Connection, instance: i64, asked: &Asked) -> rusqlite::Result<()> {
    conn.prepare_cached(queries::INSTANCE_ASKED)?.execute(named_params! {
        ":id": instance, ":next": asked.next_at.map(Timestamp::as_nanos),
        ":until": asked.until.map(Timestamp::as_nanos), ":failures": asked.failures,
    })?;
    Ok(())
}
