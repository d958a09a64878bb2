//! What every case of the suite stands on: a store on a clock that only the test moves, with helpers
//! that check after each claim what must hold after any.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use paceline::clock::{ManualClock, Timestamp};
use paceline::job::{Columns, Dedupe, JobId, JobState, NewJob, Request};
use paceline::quota::decide::HORIZON;
use paceline::quota::{Upstream, declare};
use paceline::reading::{Reading, Reason};
use paceline::store::views::{AttemptView, JobView, Tally, UpstreamView};
use paceline::store::{
    Act, Added, AttemptFilter, Call, Claim, Claimed, Filter, Hold, Release, ReleaseWhy, RunnerId,
    Serves, SettleEnd, Settled, Settlement, Store, Swept,
};

/// 2026-06-01T12:30:00Z: no reset is near, and no zone changes its clocks near it.
pub const START: i64 = 1_780_317_000;

/// One store's data, and the way to open it again as another process would.
pub struct Fixture<S> {
    /// The clock of all who open it.
    pub clock: ManualClock,
    /// A further handle on the same data, on the same clock.
    pub open: Box<dyn Fn() -> S>,
}

/// Makes an empty store whose clock shows [`START`].
pub type Make<'a, S> = &'a dyn Fn() -> Fixture<S>;

/// No limits at all: what most cases do with.
pub const FREE: &str = "";

/// A store with one upstream, `up`, and one process that sends.
pub struct World<S: Store> {
    pub fixture: Fixture<S>,
    pub store: S,
    pub runner: RunnerId,
    pub upstream: Arc<Upstream>,
    /// What claims say of partitions that were never answered: anything goes, where a case is not about it.
    pub unanswered: usize,
    runtime: tokio::runtime::Runtime,
    numbers: Cell<u32>,
}

/// Reads the upstream `up` from its limits (and other tables), as a quota file gives them.
pub fn upstream(tables: &str) -> Arc<Upstream> {
    let request = match tables.contains("[request]") {
        true => "",
        false => "[request]\nurl = \"https://api.example/{id}\"\n",
    };
    let text = format!("schema = 1\nname = \"up\"\n{request}{tables}");
    Arc::new(declare::parse("up", "up.toml", &text).unwrap())
}

pub fn columns(pairs: &[(&str, &str)]) -> Columns {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A reading as the answer of that reason usually gives it.
pub fn said(reason: Reason) -> Reading {
    Reading::plain(reason, "test", format!("it said {reason}"))
}

/// A refusal with a hint (wall time), concerning a limit or (`""`) the partition.
pub fn refusal(reason: Reason, hint: Timestamp, limit: &str) -> Reading {
    let limit = Some(limit.to_owned()).filter(|name| !name.is_empty());
    Reading { retry_at: Some(hint), limit, ..said(reason) }
}

impl<S: Store> World<S> {
    pub fn new(make: Make<'_, S>, tables: &str) -> World<S> {
        World::of(make, upstream(tables))
    }

    pub fn of(make: Make<'_, S>, upstream: Arc<Upstream>) -> World<S> {
        let fixture = make();
        let store = (fixture.open)();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (runner, _) = runtime.block_on(store.register(Serves::Queue(Vec::new()))).unwrap();
        let (unanswered, numbers) = (usize::MAX, Cell::new(0));
        World { fixture, store, runner, upstream, unanswered, runtime, numbers }
    }

    pub fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub fn now(&self) -> Timestamp {
        self.store.now().store
    }

    pub fn pass(&self, span: Duration) {
        self.fixture.clock.advance(span);
    }

    /// Lets time pass up to that instant (store time).
    pub fn pass_to(&self, at: Timestamp) {
        self.pass(at.since(self.now()));
    }

    // ---- jobs

    /// A job of its own address, with these columns.
    pub fn job(&self, pairs: &[(&str, &str)]) -> NewJob {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        let mut columns = columns(pairs);
        columns.insert("id".to_owned(), number.to_string());
        let names = self.upstream.partition_columns();
        let part = |(name, _): &(&String, &String)| names.contains(name.as_str());
        let partition = columns.iter().filter(part).map(|(n, v)| (n.clone(), v.clone())).collect();
        NewJob {
            request: Request {
                method: "GET".to_owned(),
                url: format!("https://api.example/{number}"),
                headers: BTreeMap::new(),
                body: None,
            },
            columns,
            partition,
            priority: 0,
            not_before: None,
            deadline_at: None,
            dedupe: Dedupe::Active,
            dedupe_key: None,
            line_at: None,
            lastmod: None,
            changed: false,
            replace: false,
            keeps_priority: false,
            repeatable: true,
        }
    }

    pub fn add_jobs(&self, jobs: Vec<NewJob>) -> Added {
        self.add_to("load", jobs)
    }

    pub fn add_to(&self, load: &str, jobs: Vec<NewJob>) -> Added {
        let upstream = Arc::clone(&self.upstream);
        self.wait(self.store.add(upstream, load.to_owned(), jobs)).unwrap()
    }

    /// Adds one job.
    pub fn add_one(&self, job: NewJob) -> JobId {
        self.add_jobs(vec![job]).ids[0]
    }

    /// Adds `count` jobs with these columns.
    pub fn add(&self, count: usize, pairs: &[(&str, &str)]) -> Vec<JobId> {
        self.add_jobs((0..count).map(|_| self.job(pairs)).collect()).ids
    }

    pub fn view(&self, id: JobId) -> JobView {
        let filter = Filter { ids: vec![id], ..Filter::default() };
        self.jobs(filter).pop().unwrap()
    }

    pub fn jobs(&self, filter: Filter) -> Vec<JobView> {
        let known = BTreeMap::from([("up".to_owned(), Arc::clone(&self.upstream))]);
        self.wait(self.store.jobs(filter, known)).unwrap()
    }

    pub fn state(&self, id: JobId) -> JobState {
        self.view(id).state
    }

    pub fn tally(&self) -> Tally {
        self.wait(self.store.tally()).unwrap()
    }

    pub fn count(&self, state: JobState) -> u64 {
        self.tally().get(&state).copied().unwrap_or(0)
    }

    pub fn attempts(&self, job: JobId) -> Vec<AttemptView> {
        let filter = AttemptFilter { job: Some(job), bodies: true, ..AttemptFilter::default() };
        self.wait(self.store.attempts(filter)).unwrap()
    }

    pub fn look(&self) -> UpstreamView {
        self.wait(self.store.upstream(Arc::clone(&self.upstream))).unwrap()
    }

    /// Spent units of the only instance of a limit, or of that with this key.
    pub fn spent(&self, limit: &str, key: &[(&str, &str)]) -> u64 {
        let (limits, key) = (self.look().limits, columns(key));
        let found = limits.iter().find(|view| view.name == limit && view.key == key);
        found.and_then(|view| view.spent).unwrap_or(0)
    }

    // ---- the way of a call

    /// Whether a process that sleeps since that claim would be woken now.
    pub fn has_news(&self, store: &S, news: i64) -> bool {
        let _guard = self.runtime.enter();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(store.changed(news)).poll(&mut context).is_ready()
    }

    /// One claim, checked by [`World::check`].
    pub fn claimed(&self, most: usize) -> Claimed {
        self.claimed_by(&self.store, self.runner, most)
    }

    pub fn claimed_by(&self, store: &S, runner: RunnerId, most: usize) -> Claimed {
        const PATIENCE: usize = 500;
        let mut all = Claimed::default();
        for _ in 0..PATIENCE {
            let wish = Claim::new(Arc::clone(&self.upstream), runner, most);
            let wish = Claim { unanswered: self.unanswered, ..wish };
            let claimed = self.wait(store.claim(wish)).unwrap();
            let again = self.check(&claimed, most);
            let (expired, failed) = (all.expired + claimed.expired, all.failed + claimed.failed);
            let stepped = all.stepped.or(claimed.stepped);
            all = Claimed { expired, failed, stepped, ..claimed };
            if !again {
                return all;
            }
        }
        panic!("{PATIENCE} claims at one instant came to nothing: {all:?}");
    }

    /// What holds after every claim. Tells whether it must be asked again at once: that is right only
    /// while it gets on, which the caller bounds.
    fn check(&self, claimed: &Claimed, most: usize) -> bool {
        let now = self.now();
        assert!(claimed.calls.len() <= most);
        assert!(claimed.calls.is_sorted_by_key(|call| call.slot_at), "by slot: {claimed:?}");
        for call in &claimed.calls {
            assert!(call.slot_at >= now, "a slot in the past: {call:?}");
            assert!(call.slot_at <= now + HORIZON, "a slot beyond the horizon: {call:?}");
            assert!(call.expires_at > call.slot_at);
        }
        if !claimed.calls.is_empty() {
            return false;
        }
        if claimed.next_at.is_some_and(|at| at <= now) {
            return true;
        }
        let remaining = self.wait(self.store.remaining("up".to_owned())).unwrap();
        let idle = self.count(JobState::Running) == 0;
        if claimed.next_at.is_none() && remaining.waiting > 0 && idle {
            panic!("{} jobs wait, nothing runs, and no instant is named", remaining.waiting);
        }
        false
    }

    pub fn claim(&self, most: usize) -> Vec<Call> {
        self.claimed(most).calls
    }

    /// The one call that can be claimed now.
    pub fn one(&self) -> Call {
        let mut calls = self.claim(1);
        assert_eq!(calls.len(), 1, "one call can be claimed");
        calls.remove(0)
    }

    /// That nothing can be claimed now; when asking again makes sense.
    pub fn nothing(&self) -> Option<Timestamp> {
        let claimed = self.claimed(64);
        assert!(claimed.calls.is_empty(), "nothing may go now: {:?}", claimed.calls);
        claimed.next_at
    }

    /// The settlement of an answer that came at the call's slot.
    pub fn answer(&self, call: &Call, reading: Reading) -> Settlement {
        let status = match reading.reason {
            reason if reason.is_success() => 200,
            Reason::RateLimited => 429,
            Reason::Transient => 500,
            _ => 403,
        };
        Settlement { status: Some(status), ..Settlement::of(call, reading) }
    }

    pub fn settle(&self, settlement: Settlement) -> Settled {
        let upstream = Arc::clone(&self.upstream);
        let mut settled = self.wait(self.store.settle(upstream, vec![settlement])).unwrap();
        assert_eq!(settled.len(), 1);
        settled.remove(0)
    }

    /// Settles a call with that answer; an instant passes, as between any two calls.
    pub fn say(&self, call: &Call, reading: Reading) -> Settled {
        self.pass_to(call.slot_at.shifted(1));
        self.settle(self.answer(call, reading))
    }

    pub fn ok(&self, call: &Call) -> SettleEnd {
        self.say(call, said(Reason::Ok)).end
    }

    pub fn release(&self, calls: &[Call], why: ReleaseWhy) {
        let releases = calls.iter().map(|call| Release { call: call.id, why }).collect();
        self.wait(self.store.release(releases)).unwrap();
    }

    pub fn sweep(&self) -> Swept {
        self.wait(self.store.sweep()).unwrap()
    }

    pub fn is_blocked(&self, call: &Call) -> bool {
        self.wait(self.store.is_blocked(call.id)).unwrap()
    }

    /// Lets time pass and answers `ok` to all that can go, until the queue is empty or nothing goes
    /// before `until`. The slots, in order, with the partitions.
    pub fn run(&self, until: Timestamp) -> Vec<(Timestamp, Columns)> {
        let mut sent = Vec::new();
        loop {
            let claimed = self.claimed(64);
            for call in &claimed.calls {
                sent.push((call.slot_at, call.partition.clone()));
                self.ok(call);
            }
            if claimed.calls.is_empty() {
                match claimed.next_at.filter(|at| *at <= until) {
                    Some(at) => self.pass_to(at),
                    None => return sent,
                }
            }
        }
    }

    // ---- people

    pub fn act(&self, filter: Filter, act: Act) -> u64 {
        self.wait(self.store.act(filter, act)).unwrap()
    }

    pub fn act_on(&self, id: JobId, act: Act) -> u64 {
        self.act(Filter { ids: vec![id], ..Filter::default() }, act)
    }

    pub fn hold(&self, key: &[(&str, &str)]) -> u64 {
        let (upstream, key) = ("up".to_owned(), columns(key));
        let (reason, detail) = ("by_hand".to_owned(), "a person looks at it".to_owned());
        self.wait(self.store.hold(Hold { upstream, key, reason, detail, until: None })).unwrap()
    }

    /// Closes until an instant, for a token that does not come.
    pub fn pause(&self, key: &[(&str, &str)], until: Timestamp) -> u64 {
        let (upstream, key, until) = ("up".to_owned(), columns(key), Some(until));
        let (reason, detail) = ("no_token".to_owned(), "the token server answered 503".to_owned());
        self.wait(self.store.hold(Hold { upstream, key, reason, detail, until })).unwrap()
    }

    pub fn resume(&self, key: &[(&str, &str)]) -> u64 {
        self.wait(self.store.resume("up".to_owned(), columns(key))).unwrap()
    }

    // ---- processes

    /// Another process that sends.
    pub fn another(&self) -> (S, RunnerId) {
        let store = (self.fixture.open)();
        let (runner, _) = self.wait(store.register(Serves::Queue(Vec::new()))).unwrap();
        (store, runner)
    }

    /// This process dies; another one takes its place and finds what it left.
    pub fn die(&mut self) -> Swept {
        let store = (self.fixture.open)();
        self.store = store;
        let (runner, swept) =
            self.runtime.block_on(self.store.register(Serves::Queue(Vec::new()))).unwrap();
        self.runner = runner;
        swept
    }
}

/// A `[[limit]]` table; `slack` and `path_jitter` are none, so that slots come at round instants.
pub fn limit(name: &str, kind: &str, fields: &str) -> String {
    let exact = if matches!(kind, "rate" | "rolling") {
        "slack = \"0ms\"\npath_jitter = \"0ms\"\n"
    } else {
        ""
    };
    format!("[[limit]]\nname = \"{name}\"\nkind = \"{kind}\"\n{exact}{fields}\n")
}

/// A budget a day in UTC.
pub fn daily(amount: u64, more: &str) -> String {
    let fields = format!("amount = {amount}\nper = \"day\"\ntime_zone = \"UTC\"\n{more}");
    limit("daily", "budget", &fields)
}
