//! The claim: picks jobs, makes calls of them, takes their permits from all their limits, leases them.
//!
//! | file | noun |
//! | --- | --- |
//! | `ask` | the upstream is asked what is left |
//! | `turns` | the ready partitions at their turn, with the jobs that may be taken |
//! | `offer` | turns of other processes |
//! | `group` | how many of a partition's jobs go in one call |
//! | `take` | they become a call |
//! | `wait` | one partition, or everybody, must wait |
//! | `wake` | instants that have come, and when instances are looked at next |

mod ask;
mod group;
mod offer;
mod take;
mod turns;
mod wait;
mod wake;

use std::time::Duration;

use rusqlite::named_params;
use sha2::{Digest, Sha256};

use super::instances::{Index, Instances, lookahead};
use super::places::{Line, Side, UpstreamRow};
use super::sweep::{self, Late};
use super::writer::Txn;
use super::{places, queries};
use crate::clock::{STEP_TOLERANCE, Timestamp, nanos};
use crate::job::Columns;
use crate::quota::decide::{Ask, Decision, HORIZON, decide, grantable};
use crate::quota::{Cost, Limit, LimitRule, Upstream};
use crate::store::{Claim, Claimed};
use offer::Offers;
use turns::{Asked, Turn};
use wake::Touched;

/// A claim looks at no more partitions than this that turn out not to be able to go; the next claim
/// goes on from there.
const VISITS: usize = 1024;

pub(super) fn claim(txn: &Txn<'_>, wish: &Claim) -> rusqlite::Result<Claimed> {
    let mut claimed = claim_of(txn, wish)?;
    // Read last: what this very claim stirred up is no news to who asked.
    let mut news = txn.conn.prepare_cached(queries::STORE_NEWS)?;
    claimed.news = news.query_row([], |row| row.get(0))?;
    Ok(claimed)
}

fn claim_of(txn: &Txn<'_>, wish: &Claim) -> rusqlite::Result<Claimed> {
    let Some(row) = places::upstream(txn.conn, &wish.upstream.name)? else {
        return Ok(Claimed::default());
    };
    let mut claimed = Claimed { stepped: notice_step(txn)?, ..Claimed::default() };
    notice_change(txn, row.id, row.quota.as_deref(), &wish.upstream)?;
    claimed.expired += sweep::expire_due(txn, row.id)?;
    if row.held.is_some() {
        return Ok(claimed);
    }
    let instances = Instances::new(txn.conn, txn.now, row.id, &wish.upstream);
    let mut round = Round::new(txn, wish, &row, instances, claimed)?;
    round.show_up()?;
    round.ask_shared()?;
    if !round.shared_closed()? {
        round.wake()?;
        round.pick()?;
    }
    round.finish()
}

/// Where somebody set the wall clock, whoever waits for a calendar is looked at again.
fn notice_step(txn: &Txn<'_>) -> rusqlite::Result<Option<i64>> {
    let skew = txn.now.skew();
    let known: i64 =
        txn.conn.prepare_cached(queries::STORE_SKEW)?.query_row([], |row| row.get(0))?;
    let step = skew.saturating_sub(known);
    if step.saturating_abs() <= nanos(STEP_TOLERANCE) / 2 {
        return Ok(None);
    }
    txn.conn.prepare_cached(queries::STORE_SET_SKEW)?.execute([skew])?;
    txn.conn.prepare_cached(queries::RECONSIDER_ALL)?.execute([txn.now.store.as_nanos()])?;
    places::bump_news(txn.conn)?;
    Ok(Some(step))
}

/// Where the quota file's limits changed, whoever waits was found by the old ones.
fn notice_change(
    txn: &Txn<'_>,
    id: i64,
    known: Option<&[u8]>,
    upstream: &Upstream,
) -> rusqlite::Result<()> {
    let digest = Sha256::digest(format!("{:?}", upstream.limits));
    let digest = digest.get(..8).unwrap_or_default();
    if known == Some(digest) {
        return Ok(());
    }
    let mut set = txn.conn.prepare_cached(queries::UPSTREAM_SET_QUOTA)?;
    set.execute(named_params! { ":id": id, ":quota": digest })?;
    for limit in &upstream.limits {
        bring_near(txn, id, limit)?;
    }
    places::reconsider(txn, id)
}

/// Under its new figures a rate owes at most what a burst that was just used up owes: a wait that the
/// old figures made must not outlast them.
fn bring_near(txn: &Txn<'_>, upstream_id: i64, limit: &Limit) -> rusqlite::Result<()> {
    let rules = limit.exceptions.iter().map(|exception| &exception.rule).chain([&limit.rule]);
    let plans = rules.filter_map(|rule| match rule {
        LimitRule::Rate(rate) => Some(rate.plan()),
        _ => None,
    });
    // Slots that were handed out already lie up to the horizon ahead.
    let ahead = txn.now.store + HORIZON;
    let Some(latest) = plans.map(|plan| plan.charge(None, ahead, plan.burst)).max() else {
        return Ok(());
    };
    let mut bring = txn.conn.prepare_cached(queries::BRING_NEAR)?;
    bring.execute(named_params! {
        ":upstream": upstream_id, ":limit": limit.name, ":latest": latest.as_nanos(),
    })?;
    Ok(())
}

/// One claim at work.
struct Round<'t> {
    txn: &'t Txn<'t>,
    wish: &'t Claim,
    upstream_id: i64,
    instances: Instances<'t>,
    /// Limits without a key, with their instances: asked first, once for all partitions.
    shared: Vec<(usize, Index)>,
    keyed: Vec<usize>,
    /// Whether jobs may take more than one unit, so that one may fit where another does not.
    has_costs: bool,
    claimed: Claimed,
    earliest: Timestamp,
    block_seq: i64,
    call_seq: i64,
    visits: usize,
    /// Limits without a key let nobody go for now.
    closed: bool,
    /// Who got the last call of the upstream.
    last: Side,
    /// The line whose questions decide whether the limits without a key let nobody go: callers on the
    /// reserve find more left.
    line: Line,
    offers: Offers,
    /// Jobs and partitions that moved: while none does, what is left is others' turn.
    moves: usize,
    /// Instances that opened, and those on which somebody began to wait: when they are looked at next
    /// must be settled before the claim ends.
    touched: Vec<Touched>,
}

impl<'t> Round<'t> {
    fn new(
        txn: &'t Txn<'t>,
        wish: &'t Claim,
        row: &UpstreamRow,
        mut instances: Instances<'t>,
        claimed: Claimed,
    ) -> rusqlite::Result<Self> {
        let upstream_id = row.id;
        let limits = &wish.upstream.limits;
        let (mut shared, mut keyed) = (Vec::new(), Vec::new());
        for (limit, declared) in limits.iter().enumerate() {
            match declared.key.is_empty() {
                true => shared.push((limit, instances.of_limit(limit, &Columns::new())?)),
                false => keyed.push(limit),
            }
        }
        let mut seqs = txn.conn.prepare_cached(queries::STORE_SEQS)?;
        let (block_seq, call_seq) = seqs.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Round {
            txn,
            wish,
            upstream_id,
            instances,
            shared,
            keyed,
            has_costs: limits.iter().any(|limit| match limit.cost {
                Cost::Calls => false,
                Cost::Items => wish.upstream.batch.is_some(),
                Cost::Column(_) => true,
            }),
            claimed,
            earliest: txn.now.store + wish.lead,
            block_seq,
            call_seq,
            visits: 0,
            closed: false,
            last: row.side,
            line: if wish.owned { Line::Reserve } else { Line::Queue },
            offers: Offers::default(),
            moves: 0,
            touched: Vec::new(),
        })
    }

    fn pick(&mut self) -> rusqlite::Result<()> {
        while self.claimed.calls.len() < self.wish.most {
            if self.visits >= VISITS {
                self.claimed.next_at = Some(self.txn.now.store);
                return Ok(());
            }
            let moved = self.moves;
            let Some(turns) = self.turns()? else { return Ok(()) };
            if !self.serve(turns)? || self.shared_closed()? || self.moves == moved {
                return Ok(());
            }
        }
        Ok(())
    }

    fn limit(&self, position: usize) -> Option<&'t Limit> {
        self.wish.upstream.limits.get(position)
    }

    /// The questions to the limits without a key.
    fn shared_asks(&self) -> Vec<Ask<'_>> {
        let ask = |(limit, index): &(usize, Index)| {
            self.instances.ask_in(self.line, *limit, *index, &Columns::new(), 1)
        };
        self.shared.iter().filter_map(ask).collect()
    }

    /// Whether the limits without a key let nobody of this upstream go.
    fn shared_closed(&mut self) -> rusqlite::Result<bool> {
        match decide(&self.shared_asks(), self.txn.now, self.earliest) {
            Decision::Admit { .. } | Decision::Never { .. } => return Ok(false),
            Decision::Wait { until, limit, blocked } => {
                // Jobs that would be too late by then expire.
                let binder = self.shared_named(limit.as_deref());
                let could_go_at =
                    binder.map_or(until, |(limit, index)| self.surely(Some(limit), index, until));
                let late = Late { could_go_at, limit: limit.as_deref() };
                self.claimed.expired += sweep::expire_upstream(self.txn, self.upstream_id, late)?;
                self.close(Some(until), limit, blocked);
            }
            Decision::Busy { limit } => self.close(None, limit, false),
        }
        Ok(true)
    }

    /// Nobody of the upstream goes before `until`, or before something in flight ends.
    fn close(&mut self, until: Option<Timestamp>, limit: Option<String>, blocked: bool) {
        let declared = limit.as_deref().and_then(|name| self.wish.upstream.limit(name));
        let early = declared.map_or(Duration::ZERO, |limit| self.early(limit, blocked));
        let shared = self.shared_named(limit.as_deref());
        let until = until.map(|until| until - early);
        self.closed = true;
        self.moves += 1;
        self.claimed.next_at = match shared {
            Some((limit, index)) => self.or_asks_again(Some(limit), index, until),
            None => until,
        };
        self.claimed.limit = limit;
    }

    /// The limit of that name, where it has no key.
    fn shared_named(&self, name: Option<&str>) -> Option<(usize, Index)> {
        let named = |limit: usize| self.limit(limit).map(|limit| limit.name.as_str()) == name;
        self.shared.iter().copied().find(|(limit, _)| named(*limit))
    }

    /// How long before a limit opens its waiters are looked at, so that a claim hands out slots ahead.
    fn early(&self, limit: &Limit, blocked: bool) -> Duration {
        match limit.rule {
            LimitRule::Rate(_) if !blocked => lookahead(&self.wish.upstream, limit) / 2,
            _ => Duration::ZERO,
        }
    }

    /// How many further calls the wish, and the limits without a key, leave room for; at least 1.
    fn room(&self) -> usize {
        let room = self.wish.most.saturating_sub(self.claimed.calls.len());
        let granted = self.shared_asks().into_iter().map(|ask| {
            let lookahead = ask.lookahead.max(self.wish.lead);
            grantable(&ask, self.txn.now, lookahead, room as u64)
        });
        let granted = granted.min().and_then(|granted| usize::try_from(granted).ok());
        granted.map_or(room, |granted| granted.min(room)).max(1)
    }

    /// Takes one job of each partition in turn until nothing more can be taken. Tells whether it makes
    /// sense to look for further partitions.
    fn serve(&mut self, mut turns: Vec<Turn>) -> rusqlite::Result<bool> {
        let mut open = true;
        let mut going = true;
        while open && going {
            going = false;
            for turn in turns.iter_mut().filter(|turn| !turn.jobs.is_empty()) {
                if self.claimed.calls.len() >= self.wish.most {
                    open = false;
                    break;
                }
                match self.serve_one(turn)? {
                    Asked::Taken | Asked::Gone => going = true,
                    Asked::Offered => going = true,
                    Asked::Waits => turn.jobs.clear(),
                    Asked::Closed => {
                        open = false;
                        break;
                    }
                }
            }
        }
        for turn in &turns {
            self.leave(turn)?;
        }
        Ok(open)
    }

    fn finish(mut self) -> rusqlite::Result<Claimed> {
        if !self.claimed.calls.is_empty() {
            let mut set = self.txn.conn.prepare_cached(queries::STORE_SET_CALL_SEQ)?;
            set.execute([self.call_seq])?;
            self.note_side()?;
        }
        self.instances.save()?;
        self.settle_wakes()?;
        if !self.closed {
            let wake = self.next_wake()?;
            let lapses = self.offers.until.filter(|_| self.offers.is_waited_for);
            let known = self.claimed.next_at.into_iter().chain(wake).chain(lapses).min();
            self.claimed.next_at = known;
        }
        self.claimed.calls.sort_by_key(|call| call.slot_at);
        Ok(self.claimed)
    }

    /// Notes whose turn it was, where that changes.
    fn note_side(&self) -> rusqlite::Result<()> {
        let side = self.side();
        if side == self.last {
            return Ok(());
        }
        let mut set = self.txn.conn.prepare_cached(queries::UPSTREAM_SIDE)?;
        set.execute(named_params! { ":id": self.upstream_id, ":side": side.number() }).map(drop)
    }

    /// Whose jobs it takes.
    fn side(&self) -> Side {
        if self.wish.owned { Side::Callers } else { Side::Queue }
    }
}
