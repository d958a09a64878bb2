//! What a call took and did not use goes back.

use super::Settle;
use super::part::Part;
use crate::job::Columns;
use crate::next::Next;
use crate::quota::budget::Counts;
use crate::quota::decide::Taken;
use crate::quota::{Cost, Limit, LimitRule};
use crate::store::sqlite::instances::{TakenFrom, from_json};
use crate::store::sqlite::usage::give_back_all;
use crate::store::sqlite::{places, queries};

impl Settle<'_> {
    /// All of it where the call never left; of what counts only accepted calls, what was refused; and of
    /// the limit that refused a batch for being larger than what is left, all that the batch took.
    pub(super) fn give_back_unused(&self, parts: &[Part], moves: &[Next]) -> rusqlite::Result<()> {
        if !self.settlement.left {
            return self.give_back(&self.carried.taken);
        }
        let refused: Vec<_> = parts
            .iter()
            .zip(moves)
            .filter(|(_, next)| !next.is_open() || next.uncounted)
            .map(|(part, _)| part)
            .collect();
        match refused.len() {
            0 => Ok(()),
            some => {
                let uncounted = self.limit.filter(|_| moves.iter().all(|next| next.uncounted));
                self.give_back(&self.refundable(&refused, some == parts.len(), uncounted)?)
            }
        }
    }

    fn give_back(&self, taken: &[TakenFrom]) -> rusqlite::Result<()> {
        give_back_all(self.txn.conn, taken)?;
        taken.iter().try_for_each(|from| places::wake_now(self.txn, from.instance))
    }

    /// Of what counts only accepted calls, and of that limit, which did not count the call.
    fn refundable(
        &self,
        refused: &[&Part],
        all: bool,
        uncounted: Option<usize>,
    ) -> rusqlite::Result<Vec<TakenFrom>> {
        let accepted = |limit: &Limit| match limit.rule_for(&self.columns) {
            LimitRule::Budget(budget) => budget.counts == Counts::Accepted,
            LimitRule::Rolling(rolling) => rolling.counts == Counts::Accepted,
            LimitRule::Rate(_) | LimitRule::Concurrency(_) => false,
        };
        let limits = self.upstream.limits.iter().enumerate();
        let limits = limits.filter(|(at, limit)| Some(*at) == uncounted || accepted(limit));
        let limits: Vec<_> = limits.map(|(_, limit)| limit).collect();
        let mut refunds = Vec::new();
        if limits.is_empty() {
            return Ok(refunds);
        }
        for taken in &self.carried.taken {
            let mut query = self.txn.conn.prepare_cached(queries::INSTANCE_NAME)?;
            let name: String = query.query_row([taken.instance], |row| row.get(0))?;
            let Some(limit) = limits.iter().find(|limit| limit.name == name) else { continue };
            let units = if all { u64::MAX } else { self.units(&limit.cost, refused)? };
            refunds.extend(portion(taken, units));
        }
        Ok(refunds)
    }

    /// The units that some jobs of a batch took. The call itself was taken by others as well.
    fn units(&self, cost: &Cost, refused: &[&Part]) -> rusqlite::Result<u64> {
        match cost {
            Cost::Calls => Ok(0),
            Cost::Items => Ok(refused.len() as u64),
            Cost::Column(_) => refused.iter().try_fold(0, |units: u64, part| {
                let mut query = self.txn.conn.prepare_cached(queries::JOB_COLUMNS)?;
                let columns: String = query.query_row([part.job.0], |row| row.get(0))?;
                let columns: Columns = from_json(&columns);
                Ok(units.saturating_add(cost.of(&[&columns])))
            }),
        }
    }
}

/// So many units of what was taken, at most all.
fn portion(taken: &TakenFrom, most: u64) -> Option<TakenFrom> {
    let what = match &taken.what {
        Taken::Budget { windows, units } => {
            Taken::Budget { windows: windows.clone(), units: most.min(*units) }
        }
        Taken::Rolling { at, units } => Taken::Rolling { at: *at, units: most.min(*units) },
        Taken::Rate { .. } | Taken::Concurrency => return None,
    };
    (most > 0).then(|| TakenFrom { what, ..taken.clone() })
}
