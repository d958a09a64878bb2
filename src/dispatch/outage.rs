//! A time in which the store cannot answer: told once when it begins, and when it is over.

use std::time::Duration;

use super::{Event, Tell};
use crate::clock::{Timeline, Timestamp};
use crate::store::StoreError;

/// How long whoever leaves, or does not want to wait, waits for a store that cannot answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long after trouble the store is asked again.
const INTERVAL: Duration = Duration::from_millis(500);

/// Whether the store answers, as one lane or desk knows it.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Timestamp>,
    is_told: bool,
}

impl Outage {
    /// The store did not answer: for how long it has not.
    pub fn lasts(&mut self, now: Timestamp) -> Duration {
        now.since(*self.since.get_or_insert(now))
    }

    /// Waits until the store is to be asked again.
    pub async fn sit_out(&mut self, error: &StoreError, timeline: &Timeline, tell: &Tell) {
        if !std::mem::replace(&mut self.is_told, true) {
            tell(&Event::StoreTrouble { message: error.to_string() });
        }
        timeline.sleep(INTERVAL).await;
    }

    /// The store answered.
    pub fn is_over(&mut self, tell: &Tell) {
        self.is_told = false;
        if self.since.take().is_some() {
            tell(&Event::StoreBack);
        }
    }
}
