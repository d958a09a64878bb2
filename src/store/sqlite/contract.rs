//! The store's contract, each transition handed to the file that does it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::writer::{Durability, Txn};
use super::{
    PEEK_INTERVAL, SqliteStore, acts, add, claim, durability, inspect, release, results, runners,
    settle, sweep, tidy, told,
};
use crate::clock::Timeline;
use crate::crash;
use crate::job::{CallId, Columns, JobId, NewJob};
use crate::quota::Upstream;
use crate::quota::forecast::Backlog;
use crate::store::views::{
    AttemptView, HoldNews, JobView, LoadView, ResetsView, ResultNames, RunnerView, Tally, Tidied,
    UpstreamView,
};
use crate::store::{
    Act, Added, AttemptFilter, Claim, Claimed, Cursor, Filter, Hold, KeptBody, OwnedJob,
    QuotaAnswer, Release, Remaining, RunnerId, Serves, Settled, Settlement, Store, StoreError,
    Swept, Withdrawal,
};

impl Store for SqliteStore {
    fn timeline(&self) -> &Timeline {
        &self.inner.timeline
    }

    async fn add(
        &self,
        upstream: Arc<Upstream>,
        load: String,
        jobs: Vec<NewJob>,
    ) -> Result<Added, StoreError> {
        let work = move |txn: &Txn<'_>| {
            let added = add::add(txn, &upstream, &load, &jobs);
            crash::stop("add");
            added
        };
        let added = self.inner.writer.write(Durability::Normal, work).await;
        crash::stop("store");
        added
    }

    async fn enter(
        &self,
        upstream: Arc<Upstream>,
        owner: RunnerId,
        load: String,
        jobs: Vec<OwnedJob>,
    ) -> Result<Vec<JobId>, StoreError> {
        let work = move |txn: &Txn<'_>| add::enter(txn, &upstream, owner, &load, &jobs);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn withdraw(&self, owner: RunnerId, jobs: Vec<Withdrawal>) -> Result<(), StoreError> {
        let work = move |txn: &Txn<'_>| release::withdraw(txn, owner, &jobs);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn register(&self, serves: Serves) -> Result<(RunnerId, Swept), StoreError> {
        let runner = self.inner.locks.take()?;
        let locks = self.inner.locks.clone();
        let work = move |txn: &Txn<'_>| sweep::register(txn, runner, &serves, &locks);
        let swept = self.inner.writer.write(Durability::Normal, work).await;
        let swept = swept.inspect_err(|_| self.inner.locks.free(runner))?;
        Ok((runner, swept))
    }

    async fn retire(&self, runner: RunnerId) -> Result<(), StoreError> {
        let work = move |txn: &Txn<'_>| runners::retire(txn, runner);
        self.inner.writer.write(Durability::Normal, work).await?;
        self.inner.locks.free(runner);
        Ok(())
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        let durability = durability(&claim.upstream);
        crash::stop("wake");
        let work = move |txn: &Txn<'_>| {
            let claimed = claim::claim(txn, &claim);
            crash::stop("claim");
            claimed
        };
        let claimed = self.inner.writer.write_calls(durability, work).await;
        crash::stop("claimed");
        claimed
    }

    async fn mark(&self, calls: Vec<CallId>) -> Result<(), StoreError> {
        let work = move |txn: &Txn<'_>| settle::mark(txn, &calls);
        let marked = self.inner.writer.write_calls(Durability::Synced, work).await;
        crash::stop("marked");
        marked
    }

    async fn release(&self, releases: Vec<Release>) -> Result<(), StoreError> {
        let work = move |txn: &Txn<'_>| release::release(txn, &releases);
        self.inner.writer.write_calls(Durability::Normal, work).await
    }

    async fn settle(
        &self,
        upstream: Arc<Upstream>,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let work = move |txn: &Txn<'_>| {
            let settled = settle::settle(txn, &upstream, &settlements);
            crash::stop("settle");
            settled
        };
        let settled = self.inner.writer.write_calls(Durability::Normal, work).await;
        crash::stop("settled");
        settled
    }

    async fn quota_told(
        &self,
        upstream: Arc<Upstream>,
        answer: QuotaAnswer,
    ) -> Result<(), StoreError> {
        let work = move |txn: &Txn<'_>| settle::remaining::quota_told(txn, &upstream, &answer);
        self.inner.writer.write_calls(Durability::Normal, work).await
    }

    async fn sweep(&self) -> Result<Swept, StoreError> {
        let locks = self.inner.locks.clone();
        let work = move |txn: &Txn<'_>| sweep::sweep(txn, &locks);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn hold(&self, hold: Hold) -> Result<u64, StoreError> {
        let work = move |txn: &Txn<'_>| acts::hold(txn, &hold);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn tell_holds(&self) -> Result<Vec<HoldNews>, StoreError> {
        self.inner.writer.write(Durability::Normal, told::tell).await
    }

    async fn holds_untold(&self, holds: Vec<HoldNews>) -> Result<(), StoreError> {
        let work = move |txn: &Txn<'_>| told::set(txn, &holds, false);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn resume(&self, upstream: String, key: Columns) -> Result<u64, StoreError> {
        let work = move |txn: &Txn<'_>| acts::resume(txn, &upstream, &key, None);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn let_go(&self, upstream: String, reason: String) -> Result<u64, StoreError> {
        let every = Columns::new();
        let work = move |txn: &Txn<'_>| acts::resume(txn, &upstream, &every, Some(&reason));
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn act(&self, filter: Filter, act: Act) -> Result<u64, StoreError> {
        if acts::queues_again(&act) {
            return self.queue_again(filter, act).await;
        }
        let work = move |txn: &Txn<'_>| acts::act(txn, &filter, &act);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn count(&self, filter: Filter, act: Act) -> Result<u64, StoreError> {
        self.read(|conn, _| acts::count(conn, &filter, &act))
    }

    async fn running(&self, filter: Filter) -> Result<u64, StoreError> {
        self.read(|conn, _| results::running(conn, &filter))
    }

    async fn tidy(&self) -> Result<Tidied, StoreError> {
        self.inner.writer.write(Durability::Normal, tidy::tidy).await
    }

    async fn give_back(&self, most: u64) -> Result<u64, StoreError> {
        let work = move |txn: &Txn<'_>| tidy::give_back(txn, most);
        self.inner.writer.write(Durability::Normal, work).await
    }

    async fn spend(
        &self,
        upstream: Arc<Upstream>,
        limit: String,
        key: Columns,
        units: i64,
    ) -> Result<(), StoreError> {
        acts::check_spend(&upstream, &limit, &key)?;
        let work = move |txn: &Txn<'_>| acts::spend(txn, &upstream, &limit, &key, units);
        self.inner.writer.write(Durability::Synced, work).await
    }

    fn block_seq(&self) -> Result<i64, StoreError> {
        self.peek(PEEK_INTERVAL).map(|(block_seq, _)| block_seq)
    }

    fn news(&self) -> Result<i64, StoreError> {
        self.peek(Duration::ZERO).map(|(_, news)| news)
    }

    async fn is_blocked(&self, call: CallId) -> Result<bool, StoreError> {
        self.read(|conn, now| release::is_blocked(conn, call, now))
    }

    async fn tally(&self) -> Result<Tally, StoreError> {
        self.read(|conn, _| inspect::tally(conn, None))
    }

    async fn upstream_names(&self) -> Result<Vec<String>, StoreError> {
        self.read(|conn, _| inspect::upstream_names(conn))
    }

    async fn is_load(&self, name: String) -> Result<bool, StoreError> {
        self.read(|conn, _| inspect::is_load(conn, &name))
    }

    async fn loads(&self) -> Result<Vec<LoadView>, StoreError> {
        self.read(inspect::loads)
    }

    async fn runners(&self) -> Result<Vec<RunnerView>, StoreError> {
        self.read(|conn, _| inspect::runners(conn, &self.inner.locks))
    }

    async fn upstream(&self, upstream: Arc<Upstream>) -> Result<UpstreamView, StoreError> {
        self.read(|conn, now| inspect::upstream(conn, now, &upstream))
    }

    async fn backlog(
        &self,
        upstream: Arc<Upstream>,
        load: Option<String>,
    ) -> Result<Backlog, StoreError> {
        self.read(|conn, now| inspect::backlog(conn, now, &upstream, load.as_deref()))
    }

    async fn resets(&self, upstream: Arc<Upstream>) -> Result<Vec<ResetsView>, StoreError> {
        self.read(|conn, now| inspect::resets(conn, now, &upstream))
    }

    async fn jobs(
        &self,
        filter: Filter,
        upstreams: BTreeMap<String, Arc<Upstream>>,
    ) -> Result<Vec<JobView>, StoreError> {
        self.read(|conn, now| inspect::jobs(conn, now, &filter, &upstreams))
    }

    async fn attempts(&self, filter: AttemptFilter) -> Result<Vec<AttemptView>, StoreError> {
        self.read(|conn, now| inspect::attempts(conn, now, &filter))
    }

    async fn ended(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        latest_by: Option<String>,
    ) -> Result<Vec<Cursor>, StoreError> {
        self.read(|conn, _| results::ended(conn, &filter, after, latest_by.as_deref()))
    }

    async fn bodiless(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        whole: bool,
    ) -> Result<u64, StoreError> {
        self.read(|conn, _| results::bodiless(conn, &filter, after, whole))
    }

    async fn result_names(&self, filter: Filter) -> Result<ResultNames, StoreError> {
        self.read(|conn, _| results::names(conn, &filter))
    }

    async fn last_bodies(&self, jobs: Vec<JobId>) -> Result<BTreeMap<JobId, KeptBody>, StoreError> {
        self.read(|conn, _| inspect::last_bodies(conn, &jobs))
    }

    async fn remaining(&self, upstream: String) -> Result<Remaining, StoreError> {
        self.read(|conn, _| inspect::remaining(conn, &upstream))
    }

    async fn changed(&self, news: i64) {
        loop {
            let stirs = self.inner.stirs();
            // Where the store cannot be read just now, the next look will tell.
            if self.peek(Duration::ZERO).is_ok_and(|peeked| peeked.1 > news) {
                return;
            }
            self.inner.stirred(stirs).await;
        }
    }
}

/// Jobs that are queued again in one transaction: others wait no longer for theirs.
const STEP: u64 = 5000;

impl SqliteStore {
    /// Step by step, in the order of their numbers.
    async fn queue_again(&self, mut filter: Filter, act: Act) -> Result<u64, StoreError> {
        let (mut left, mut queued) = (filter.limit.unwrap_or(u64::MAX), 0);
        loop {
            filter.limit = Some(left.min(STEP));
            let (filter_now, act) = (filter.clone(), act.clone());
            let work = move |txn: &Txn<'_>| acts::queue_again(txn, &filter_now, &act);
            let step = self.inner.writer.write(Durability::Normal, work).await?;
            queued += step.queued;
            left = left.saturating_sub(step.looked_at);
            filter.after = step.last;
            if step.last.is_none() || left == 0 {
                return Ok(queued);
            }
        }
    }
}
