//! What must hold of a life, after each of its steps and at its end.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline::clock::{NANOS_PER_SEC, Timestamp};
use paceline::job::JobState;
use paceline::store::{Filter, Store};

use super::{HOURLY, Life, PLACES, RATE, SPAN, Sent, site_of};
use crate::world::secs;

impl<S: Store> Life<'_, S> {
    /// All that left, may have, or may yet.
    fn all_sent(&self) -> Vec<Sent> {
        let out = self.out.values().map(|out| Sent {
            slot_at: out.call.slot_at,
            wall_at: out.wall_at,
            site: site_of(&out.call),
        });
        let mut all: Vec<_> = self.sent.iter().cloned().chain(out).collect();
        all.sort_by_key(|sent| sent.slot_at);
        all
    }

    pub(super) fn check(&self) {
        let tally = self.w.tally();
        assert_eq!(tally.values().sum::<u64>(), self.added.len() as u64, "{tally:?}");
        assert_eq!(tally[&JobState::Running], self.out.len() as u64);
        let jobs = self.w.jobs(Filter::default());
        for (state, counted) in tally {
            let found = jobs.iter().filter(|job| job.state == state).count();
            assert_eq!(found as u64, counted, "{state}");
        }
        let all = self.all_sent();
        let slots: Vec<_> = all.iter().map(|sent| sent.slot_at).collect();
        crate::rates::assert_rolling(&slots, RATE, secs(1));
        for site in 0..4 {
            let own = all.iter().filter(|sent| sent.site == site.to_string());
            let own: Vec<_> = own.map(|sent| sent.slot_at).collect();
            crate::rates::assert_rolling(&own, SPAN, secs(60));
        }
        let hour = |at: Timestamp| at.as_nanos().div_euclid(3600 * NANOS_PER_SEC);
        for of in [|sent: &Sent| sent.wall_at, |sent: &Sent| sent.slot_at] {
            let mut hours = BTreeMap::<i64, u64>::new();
            for sent in &all {
                *hours.entry(hour(of(sent))).or_default() += 1;
            }
            assert!(hours.values().all(|sent| *sent <= HOURLY), "{hours:?}");
        }
        let now = self.w.store.now().wall;
        let this_hour = all.iter().filter(|sent| hour(sent.wall_at) == hour(now)).count() as u64;
        assert!(self.w.spent("hourly", &[]) >= this_hour, "what was sent is spent");
        let mut pools = BTreeMap::<&str, usize>::new();
        for out in self.out.values() {
            *pools.entry(&out.call.partition["pool"]).or_default() += 1;
        }
        assert!(pools.values().all(|out| *out <= PLACES), "{pools:?}");
    }

    /// In the end all that is queued goes.
    pub(super) fn end(mut self) {
        self.processes = [const { None }; 3];
        self.w.sweep();
        self.buried();
        self.resume(None);
        let day = Duration::from_secs(86_400);
        let queued = self.w.count(JobState::Queued);
        let patience = day * 2 + day * u32::try_from(queued / HOURLY).unwrap();
        let until = self.w.now() + patience;
        while self.w.count(JobState::Queued) > 0 && self.w.now() < until {
            let claimed = self.w.claimed(9);
            for call in &claimed.calls {
                self.may_go(call, 0);
                self.probing.remove(&site_of(call));
                self.w.ok(call);
            }
            if let Some(next) = claimed.next_at
                && claimed.calls.is_empty()
            {
                self.w.pass_to(next);
            }
        }
        assert_eq!(self.w.count(JobState::Queued), 0, "all go in the end");
    }
}
