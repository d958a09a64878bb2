//! What whoever asks for a permit or a call says of it, beside what is called.

use std::time::Duration;

use crate::clock::{Now, Timestamp};
use crate::job::{Columns, Dedupe, NewJob};
use crate::plan::AddOptions;
use crate::store::OwnedJob;

/// What both ask for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub columns: Columns,
    pub credential: Option<String>,
    pub units: u64,
    pub use_reserve: bool,
    pub deadline: Option<Timestamp>,
    pub max_wait: Option<Duration>,
    pub load: String,
}

impl Asked {
    pub fn new(load: &str) -> Asked {
        Asked {
            columns: Columns::new(),
            credential: None,
            units: 1,
            use_reserve: false,
            deadline: None,
            max_wait: None,
            load: load.to_owned(),
        }
    }

    /// `options` with what is said here.
    pub fn options(&self, options: AddOptions, now: Now) -> AddOptions {
        AddOptions {
            set: self.columns.clone(),
            credential: self.credential.clone(),
            deadline_at: self.deadline.map(|at| now.to_store(at)),
            dedupe: Dedupe::None,
            ..options
        }
    }

    pub fn owned(&self, job: NewJob, once: bool) -> OwnedJob {
        OwnedJob { job, once, units: self.units, use_reserve: self.use_reserve }
    }
}

/// The methods by which both say it, of a builder with a field `asked`.
macro_rules! asked_methods {
    ($builder:ty) => {
        impl $builder {
            /// A column, as `--set` gives it: limits with keys count by columns.
            pub fn column(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.asked.columns.insert(name.into(), value.into());
                self
            }

            /// Several columns.
            pub fn columns(mut self, columns: impl IntoIterator<Item = (String, String)>) -> Self {
                self.asked.columns.extend(columns);
                self
            }

            /// The credential of that name.
            pub fn credential(mut self, name: impl Into<String>) -> Self {
                self.asked.credential = Some(name.into());
                self
            }

            /// Whether it may use what budgets keep for people (`reserve`).
            pub fn use_reserve(mut self, use_reserve: bool) -> Self {
                self.asked.use_reserve = use_reserve;
                self
            }

            /// It is worthless after this (wall time): where it can go only later it is told so at once.
            pub fn deadline(mut self, at: $crate::clock::Timestamp) -> Self {
                self.asked.deadline = Some(at);
                self
            }

            /// Waits no longer than this, refusals included, and not at all where it is known to take
            /// longer.
            pub fn max_wait(mut self, span: std::time::Duration) -> Self {
                self.asked.max_wait = Some(span);
                self
            }

            /// The name of the load that its job is of, in `jobs` and `log`.
            pub fn load(mut self, name: impl Into<String>) -> Self {
                self.asked.load = name.into();
                self
            }
        }
    };
}
pub(super) use asked_methods;
