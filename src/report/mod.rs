//! PURE: what people and tools are told, made from the store's views.
//!
//! | file | noun |
//! | --- | --- |
//! | [`status`] | `status` as JSON |
//! | [`why`] | what holds a job or partition back, as JSON and as a sentence |
//! | [`jobs`] | jobs, attempts and results as JSON |
//! | [`limits`] | a limit in words: declared and planned |
//! | [`evidence`] | what was sent and refused against what is declared; [`conclusion`]: in a sentence |
//! | [`finish`] | when so much work would be done; [`turn`]: a job's turn |
//! | [`words`] | spans of time in words |
//!
//! Instants in JSON are RFC 3339 in UTC.

pub mod conclusion;
pub mod evidence;
pub mod finish;
pub mod jobs;
pub mod limits;
pub mod status;
pub mod turn;
pub mod why;
pub mod words;

use serde_json::Value;

use crate::clock::Timestamp;
use crate::job::Columns;
use crate::store::views::Tally;

/// An instant, or null.
pub fn instant(at: Option<Timestamp>) -> Value {
    at.map(Timestamp::to_rfc3339).into()
}

/// A key or a row as an object.
pub fn columns(columns: &Columns) -> Value {
    columns.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

/// Jobs by state as an object.
pub fn tally(tally: &Tally) -> Value {
    tally.iter().map(|(state, jobs)| (state.name().to_owned(), Value::from(*jobs))).collect()
}
