//! The pace of a limit that was refused inside what is declared is cut.

use rusqlite::named_params;

use super::Settle;
use crate::next::Next;
use crate::quota::adapt::{LONGEST_HINT, Slowed, calm};
use crate::quota::{Limit, LimitRule};
use crate::reading::Reason;
use crate::store::sqlite::queries;

impl Settle<'_> {
    /// Cuts the pace of what was refused for going too fast. `blocked` is the limit that closed.
    pub(super) fn slow_down(&mut self, next: &Next, blocked: Option<&str>) -> rusqlite::Result<()> {
        let Some(limit) = self.too_fast(next, blocked) else { return Ok(()) };
        let index = self.instances.of_limit(limit, &self.columns)?;
        let id = self.instances.row(index)?;
        let Some(declared) = self.upstream.limits.get(limit) else { return Ok(()) };
        let Some(calm) = calm(declared.rule_for(&self.columns)) else { return Ok(()) };
        let before = self.instances.get(index).and_then(|instance| instance.heard.slowed);
        let (sent_at, now) = (self.settlement.sent_at, self.txn.now.store);
        let Some(after) = Slowed::after(before, calm, sent_at, now) else { return Ok(()) };
        let mut set = self.txn.conn.prepare_cached(queries::INSTANCE_SLOW)?;
        set.execute(named_params! {
            ":id": id, ":share": after.share, ":at": after.at.as_nanos(),
        })?;
        Ok(())
    }

    /// The limit whose pace was too fast: the one that closed; else the narrowest rate that only this
    /// partition counts on, for no other may suffer for it. A hint that is far off tells of a quota.
    fn too_fast(&self, next: &Next, blocked: Option<&str>) -> Option<usize> {
        let reading = self.reading;
        let hint = reading.retry_at.map(|at| at.since(self.txn.now.wall));
        if next.reason != Reason::RateLimited || hint.is_some_and(|hint| hint > LONGEST_HINT) {
            return None;
        }
        // One copy of many refused: its connection is made anew, which is what helps.
        if self.upstream.request.connections.is_some_and(|count| count > 1) {
            return None;
        }
        let limits = self.upstream.limits.iter().enumerate();
        let named = blocked.or(reading.limit.as_deref());
        if let Some(name) = named {
            // Where the upstream says that all is used up, it is the amount that was wrong, or others
            // used it: sending stops, which is enough.
            let told = self.settlement.remaining.iter().find(|told| told.limit == name);
            if told.is_some_and(|told| told.left == 0) {
                return None;
            }
            let mut found = limits.filter(|(_, limit)| limit.name == name);
            return found.next().map(|(position, _)| position);
        }
        let is_own = |limit: &Limit| {
            matches!(limit.rule_for(&self.columns), LimitRule::Rate(_))
                && self.columns.keys().all(|column| limit.key.contains(column))
        };
        let narrowest = limits.filter(|(_, limit)| is_own(limit));
        let pace = |limit: &Limit| match limit.rule_for(&self.columns) {
            LimitRule::Rate(rate) => rate.plan().interval,
            _ => 0,
        };
        narrowest.max_by_key(|(_, limit)| pace(limit)).map(|(position, _)| position)
    }
}
