//! For tests: a store that fails where it is told to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::views::{
    AttemptView, HoldNews, JobView, LoadView, ResetsView, ResultNames, RunnerView, Tally, Tidied,
    UpstreamView,
};
use super::*;

/// Told the name of a method, and for `enter` the load's too (`"enter NAME"`): whether it fails.
type Fault = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A store that may fail, with trouble that may pass.
#[derive(Clone)]
pub(crate) struct Faulty<S> {
    store: S,
    fault: Fault,
}

impl<S: Store> Faulty<S> {
    pub fn new(store: S, fault: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Faulty { store, fault: Arc::new(fault) }
    }

    fn may(&self, what: &str) -> Result<(), StoreError> {
        match (self.fault)(what) {
            true => Err(StoreError::Locked { path: "store.db".into() }),
            false => Ok(()),
        }
    }
}

macro_rules! pass_on {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {$(
        async fn $name(&self, $($arg: $type),*) -> Result<$out, StoreError> {
            self.may(stringify!($name))?;
            self.store.$name($($arg),*).await
        }
    )*};
}

impl<S: Store> Store for Faulty<S> {
    fn timeline(&self) -> &Timeline {
        self.store.timeline()
    }

    async fn enter(
        &self,
        upstream: Arc<Upstream>,
        owner: RunnerId,
        load: String,
        jobs: Vec<OwnedJob>,
    ) -> Result<Vec<JobId>, StoreError> {
        self.may(&format!("enter {load}"))?;
        self.store.enter(upstream, owner, load, jobs).await
    }

    fn block_seq(&self) -> Result<i64, StoreError> {
        self.may("block_seq")?;
        self.store.block_seq()
    }

    fn news(&self) -> Result<i64, StoreError> {
        self.may("news")?;
        self.store.news()
    }

    async fn changed(&self, news: i64) {
        self.store.changed(news).await;
    }

    pass_on! {
        add(upstream: Arc<Upstream>, load: String, jobs: Vec<NewJob>) -> Added;
        withdraw(owner: RunnerId, jobs: Vec<Withdrawal>) -> ();
        register(serves: Serves) -> (RunnerId, Swept);
        retire(runner: RunnerId) -> ();
        claim(claim: Claim) -> Claimed;
        mark(calls: Vec<CallId>) -> ();
        release(releases: Vec<Release>) -> ();
        settle(upstream: Arc<Upstream>, settlements: Vec<Settlement>) -> Vec<Settled>;
        quota_told(upstream: Arc<Upstream>, answer: QuotaAnswer) -> ();
        sweep() -> Swept;
        hold(hold: Hold) -> u64;
        tell_holds() -> Vec<HoldNews>;
        holds_untold(holds: Vec<HoldNews>) -> ();
        resume(upstream: String, key: Columns) -> u64;
        let_go(upstream: String, reason: String) -> u64;
        act(filter: Filter, act: Act) -> u64;
        count(filter: Filter, act: Act) -> u64;
        running(filter: Filter) -> u64;
        tidy() -> Tidied;
        give_back(most: u64) -> u64;
        spend(upstream: Arc<Upstream>, limit: String, key: Columns, units: i64) -> ();
        is_blocked(call: CallId) -> bool;
        tally() -> Tally;
        upstream_names() -> Vec<String>;
        is_load(name: String) -> bool;
        loads() -> Vec<LoadView>;
        runners() -> Vec<RunnerView>;
        upstream(upstream: Arc<Upstream>) -> UpstreamView;
        backlog(upstream: Arc<Upstream>, load: Option<String>) -> Backlog;
        resets(upstream: Arc<Upstream>) -> Vec<ResetsView>;
        jobs(filter: Filter, upstreams: BTreeMap<String, Arc<Upstream>>) -> Vec<JobView>;
        attempts(filter: AttemptFilter) -> Vec<AttemptView>;
        ended(filter: Filter, after: Option<Cursor>, latest_by: Option<String>) -> Vec<Cursor>;
        bodiless(filter: Filter, after: Option<Cursor>, whole: bool) -> u64;
        result_names(filter: Filter) -> ResultNames;
        last_bodies(jobs: Vec<JobId>) -> BTreeMap<JobId, KeptBody>;
        remaining(upstream: String) -> Remaining;
    }
}
