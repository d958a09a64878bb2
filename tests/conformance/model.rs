//! A random life: several processes add, claim, send, are told all kinds of things, die and come
//! back, one of them with jobs of its own, while somebody sets the clock. What must hold is checked from outside, by plain counting.

mod model_check;
mod model_ops;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use paceline::clock::{NANOS_PER_SEC, Timestamp};
use paceline::job::{CallId, Columns, Dedupe, JobId, JobState};
use paceline::reading::{Reading, Reason};
use paceline::redirect::Redirect;
use paceline::store::{
    Act, Call, Claim, Claimed, Filter, OwnedJob, ReleaseWhy, RunnerId, Serves, SettleEnd, Store,
};
use model_ops::{Op, Said, any_op};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::world::{Make, World, limit, millis, refusal, said, secs};

const RATE: usize = 20;
const HOURLY: u64 = 14;
const SPAN: usize = 4;
const PLACES: usize = 2;
const UNANSWERED: usize = 1;

/// The process that sends jobs of its own; the others send the queue's.
const CALLER: usize = 2;

fn limits() -> String {
    let hourly = format!("amount = {HOURLY}\nper = \"hour\"\ntime_zone = \"UTC\"");
    [
        limit("rate", "rate", &format!("rate = \"{RATE}/s\"\nburst = 3")),
        limit("hourly", "budget", &hourly),
        limit("span", "rolling", &format!("amount = {SPAN}\nper = \"1m\"\nkey = [\"site\"]")),
        limit("places", "concurrency", &format!("amount = {PLACES}\nkey = [\"pool\"]")),
        "[retry]\nmax_attempts = 4\nmax_interval = \"1m\"\n".to_owned(),
    ]
    .concat()
}

/// A call that is, or may be, out.
struct Out {
    call: Call,
    /// What the wall clock will show at its slot, as the claim saw it.
    wall_at: Timestamp,
    who: usize,
    marked: bool,
}

/// A call that left, or may have.
#[derive(Clone)]
struct Sent {
    slot_at: Timestamp,
    wall_at: Timestamp,
    site: String,
}

struct Life<'w, S: Store> {
    w: &'w World<S>,
    processes: [Option<(S, RunnerId)>; 3],
    out: BTreeMap<CallId, Out>,
    stale: Vec<Out>,
    sent: Vec<Sent>,
    added: Vec<JobId>,
    /// What must stay closed, by limit and key, and until when.
    shut: BTreeMap<(String, Columns), Timestamp>,
    /// Partitions that were refused and not answered since, with the last call before the refusal: of
    /// those after it one goes at a time.
    probing: BTreeMap<String, CallId>,
    held: BTreeSet<String>,
    /// Sites that were answered once, whatever was said.
    answered: BTreeSet<String>,
    /// The last call that was claimed.
    last: CallId,
    /// Jobs that may have been done and must not be sent again.
    unsure: BTreeSet<JobId>,
}

fn pool_of(site: u8) -> &'static str {
    if site.is_multiple_of(2) { "even" } else { "odd" }
}

fn site_of(call: &Call) -> String {
    call.partition["site"].clone()
}

impl<'w, S: Store> Life<'w, S> {
    fn new(w: &'w World<S>) -> Self {
        let (out, stale, sent, added) = Default::default();
        let (shut, probing, held, answered, unsure) = Default::default();
        let last = CallId(0);
        let processes = [const { None }; 3];
        Life { w, processes, out, stale, sent, added, shut, probing, held, answered, last, unsure }
    }

    fn live(&mut self, op: &Op) {
        match op.clone() {
            Op::Add { .. } => self.add(op),
            Op::Enter { site, count, once, post } => self.own(site, count, once, post),
            Op::Claim { who, most } => self.claim(who, most),
            Op::Settle { which, said } => self.settle(which, said),
            Op::Late { which, said } => self.late(which, said),
            Op::Release { which } => self.release(which),
            Op::Die { who } => self.processes[who] = None,
            Op::Sweep => {
                self.w.sweep();
                self.buried();
            }
            Op::Pass { millis: span } => self.w.pass(millis(u64::from(span))),
            Op::Step { secs } => self.w.fixture.clock.step_wall(i64::from(secs) * NANOS_PER_SEC),
            Op::Hold { site } => {
                self.w.hold(&[("site", &site.to_string())]);
                if self.has_partition(site) {
                    self.held.insert(site.to_string());
                }
            }
            Op::Resume { site } => self.resume(site),
            Op::Cancel { which } => {
                if let Some(id) = pick(&self.added, which) {
                    self.w.act_on(*id, Act::Cancel);
                }
            }
            Op::Tidy => {
                self.w.wait(self.w.store.tidy()).unwrap();
            }
            Op::Retry => {
                self.w.act(Filter::default(), Act::Retry);
                self.unsure.clear();
            }
        }
        self.check();
    }

    fn has_partition(&self, site: u8) -> bool {
        let jobs = self.w.jobs(Filter::default());
        jobs.iter().any(|job| job.partition["site"] == site.to_string())
    }

    fn add(&mut self, op: &Op) {
        let Op::Add { site, count, priority, delay, deadline, post } = op else { return };
        let pool = pool_of(*site);
        let jobs = (0..*count).map(|_| {
            let mut job = self.w.job(&[("site", &site.to_string()), ("pool", pool)]);
            job.priority = *priority;
            job.not_before = Some(self.w.now() + secs(u64::from(*delay)));
            job.deadline_at = deadline.map(|at| self.w.now() + secs(u64::from(at)));
            if *post {
                job.request.method = "POST".to_owned();
                job.repeatable = false;
            }
            job
        });
        let added = self.w.add_jobs(jobs.collect());
        self.added.extend(added.ids);
    }

    fn own(&mut self, site: u8, count: u8, once: bool, post: bool) {
        self.enter(CALLER);
        let Some((store, runner)) = &self.processes[CALLER] else { return };
        let pool = pool_of(site);
        let jobs = (0..count).map(|_| {
            let mut job = self.w.job(&[("site", &site.to_string()), ("pool", pool)]);
            job.dedupe = Dedupe::None;
            if post {
                job.request.method = "POST".to_owned();
                job.repeatable = false;
            }
            OwnedJob { job, once, units: 1, use_reserve: false }
        });
        let (upstream, load) = (Arc::clone(&self.w.upstream), "call".to_owned());
        let entered = store.enter(upstream, *runner, load, jobs.collect());
        self.added.extend(self.w.wait(entered).unwrap());
    }

    /// What the caller may send now.
    fn claimed_own(&self, store: &S, runner: RunnerId, most: usize) -> Claimed {
        for _ in 0..500 {
            let wish = Claim::new(Arc::clone(&self.w.upstream), runner, most).owned();
            let claimed = self.w.wait(store.claim(wish)).unwrap();
            let now = self.w.now();
            assert!(claimed.calls.iter().all(|call| call.slot_at >= now && call.marked));
            if !claimed.calls.is_empty() || claimed.next_at.is_none_or(|at| at > now) {
                return claimed;
            }
        }
        panic!("500 claims at one instant came to nothing");
    }

    /// Enters a process that is not there; it finds what dead ones left.
    fn enter(&mut self, who: usize) {
        if self.processes[who].is_none() {
            self.processes[who] = Some(match who {
                CALLER => {
                    let store = (self.w.fixture.open)();
                    let (runner, _) = self.w.wait(store.register(Serves::Itself)).unwrap();
                    (store, runner)
                }
                _ => self.w.another(),
            });
            self.buried_but(who);
        }
    }

    fn claim(&mut self, who: usize, most: usize) {
        self.enter(who);
        let Some((store, runner)) = &self.processes[who] else { return };
        let now = self.w.store.now();
        let claimed = match who {
            CALLER => self.claimed_own(store, *runner, most),
            _ => self.w.claimed_by(store, *runner, most),
        };
        for call in claimed.calls {
            self.may_go(&call, who);
            self.last = self.last.max(call.id);
            let mark = who != CALLER && call.id.0 % 2 == 0;
            if mark {
                self.w.wait(store.mark(vec![call.id])).unwrap();
            }
            let wall_at = now.to_wall(call.slot_at);
            let marked = mark || call.repeatable || call.marked;
            let before = self.out.insert(call.id, Out { call, wall_at, who, marked });
            assert!(before.is_none(), "a call id given out twice");
        }
    }

    fn may_go(&self, call: &Call, who: usize) {
        let site = site_of(call);
        assert!(!self.held.contains(&site), "site {site} is held");
        assert!(!self.unsure.contains(&call.job.id), "job {} may have been done", call.job.id);
        for ((limit, key), until) in &self.shut {
            let concerned = key.iter().all(|(name, value)| call.partition.get(name) == Some(value));
            assert!(
                !concerned || call.slot_at >= *until,
                "`{limit}` of {key:?} is closed until {until}, not {}",
                call.slot_at
            );
        }
        if let Some(refused) = self.probing.get(&site) {
            let after = |out: &&Out| site_of(&out.call) == site && out.call.id > *refused;
            let others = self.out.values().filter(after).count();
            assert_eq!(others, 0, "site {site} was refused: one probe goes first, and alone");
        }
        assert!(self.out.values().all(|out| out.call.job.id != call.job.id), "a job in two calls");
        if who != CALLER && !self.answered.contains(&site) {
            let queued = self.out.values().filter(|out| out.who != CALLER);
            let others = queued.filter(|out| site_of(&out.call) == site).count();
            assert!(others < UNANSWERED, "site {site} was never answered: {others} are out already");
        }
    }

    fn reading(&self, said_: Said) -> Reading {
        match said_ {
            Said::Ok | Said::Redirect { .. } => said(Reason::Ok),
            Said::NotFound => said(Reason::NotFound),
            Said::Fault | Said::NoAnswer | Said::NeverLeft => said(Reason::Transient),
            Said::Wait { secs: wait, limit } => {
                let hint = self.w.store.now().wall + secs(u64::from(wait));
                refusal(Reason::RateLimited, hint, limit)
            }
            Said::TooFast => said(Reason::RateLimited),
            Said::Overloaded => said(Reason::Overloaded),
            Said::Misconfigured => said(Reason::Misconfigured),
        }
    }

    fn settle(&mut self, which: usize, said: Said) {
        // Only processes that are alive settle.
        let alive = |out: &&Out| self.processes[out.who].is_some();
        let ids: Vec<_> = self.out.values().filter(alive).map(|out| out.call.id).collect();
        let Some(id) = pick(&ids, which).copied() else { return };
        let Some(out) = self.out.remove(&id) else { return };
        self.answer(&out, said);
    }

    fn answer(&mut self, out: &Out, said: Said) {
        let call = &out.call;
        self.w.pass_to(call.slot_at.shifted(1));
        let mut answer = self.w.answer(call, self.reading(said));
        if matches!(said, Said::NoAnswer | Said::NeverLeft) {
            answer.status = None;
        }
        if let Said::Redirect { as_get } = said {
            let hops = call.job.redirect.as_ref().map_or(1, |by| by.hops % 10 + 1);
            let url = "https://b.example/".to_owned();
            answer.redirect = Some(Redirect { url, hops, as_get, away: true });
        }
        answer.left = !matches!(said, Said::NeverLeft);
        let (left, hint) = (answer.left, answer.reading.retry_at);
        if answer.status.is_some() {
            self.answered.insert(site_of(call));
        }
        let settled = self.w.settle(answer);
        if left {
            self.sent.push(Sent { slot_at: call.slot_at, wall_at: out.wall_at, site: site_of(call) });
        }
        if let (Said::Wait { limit, .. }, Some(hint)) = (said, hint) {
            let until = self.w.store.now().to_store(hint);
            let key = match limit {
                "" => call.partition.clone(),
                "hourly" => Columns::new(),
                name => {
                    let column = if name == "span" { "site" } else { "pool" };
                    Columns::from([(column.to_owned(), call.partition[column].clone())])
                }
            };
            let shut = self.shut.entry((limit.to_owned(), key)).or_insert(until);
            *shut = (*shut).max(until);
        }
        if settled.end == SettleEnd::Ended(JobState::Unsure) {
            self.unsure.insert(call.job.id);
        }
        if settled.hold.is_some() {
            self.held.insert(site_of(call));
        }
        let site = site_of(call);
        match said {
            Said::Ok | Said::NotFound | Said::Fault
                if self.probing.get(&site).is_some_and(|refused| call.id > *refused) =>
            {
                self.probing.remove(&site);
            }
            Said::TooFast | Said::Wait { limit: "", .. } if settled.block.is_some() => {
                self.probing.insert(site, self.last);
            }
            _ => {}
        }
    }

    fn late(&mut self, which: usize, said: Said) {
        if self.stale.is_empty() {
            return;
        }
        let out = self.stale.swap_remove(which % self.stale.len());
        let (before, held) = (self.sent.len(), self.held.clone());
        let state = self.w.state(out.call.job.id);
        self.answer(&out, if matches!(said, Said::NeverLeft) { Said::NoAnswer } else { said });
        self.sent.truncate(before);
        assert!(held.is_subset(&self.held));
        if self.w.state(out.call.job.id) != JobState::Unsure || state != JobState::Unsure {
            self.unsure.remove(&out.call.job.id);
        }
    }

    fn release(&mut self, which: usize) {
        let alive = |out: &&Out| self.processes[out.who].is_some();
        let ids: Vec<_> = self.out.values().filter(alive).map(|out| out.call.id).collect();
        let Some(id) = pick(&ids, which).copied() else { return };
        let Some(out) = self.out.remove(&id) else { return };
        self.w.release(&[out.call], ReleaseWhy::Drained);
    }

    fn resume(&mut self, site: Option<u8>) {
        match site {
            Some(site) => {
                self.w.resume(&[("site", &site.to_string())]);
                self.held.remove(&site.to_string());
            }
            None => {
                self.w.resume(&[]);
                self.held.clear();
            }
        }
    }

    fn buried(&mut self) {
        self.buried_but(usize::MAX);
    }

    /// A sweep has been: the calls of the dead (but for who has just come back), and those whose lease
    /// ran out, are over.
    fn buried_but(&mut self, back: usize) {
        let now = self.w.now();
        let over = |out: &Out| {
            out.call.expires_at <= now || out.who == back || self.processes[out.who].is_none()
        };
        let ids: Vec<_> = self.out.values().filter(|out| over(out)).map(|out| out.call.id).collect();
        for id in ids {
            let Some(out) = self.out.remove(&id) else { continue };
            if out.marked {
                let (slot_at, wall_at) = (out.call.slot_at, out.wall_at);
                self.sent.push(Sent { slot_at, wall_at, site: site_of(&out.call) });
                if !out.call.repeatable || out.who == CALLER {
                    self.unsure.insert(out.call.job.id);
                }
            }
            if out.marked {
                self.stale.push(out);
            }
        }
    }
}

fn pick<T>(list: &[T], which: usize) -> Option<&T> {
    list.get(which.checked_rem(list.len())?)
}

/// The seed of an ordinary run, so that it is the same each time.
const SEED: u64 = 20_261_130;

/// Runs random lives: `CONFORMANCE_CASES` says how many, `CONFORMANCE_SEED` (a number, or `random`)
/// which.
pub fn any_life_keeps_the_promises<S: Store>(make: Make<'_, S>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let is_random = std::env::var("CONFORMANCE_SEED").is_ok_and(|seed| seed == "random");
    let seed = match is_random {
        true => RandomState::new().hash_one(0),
        false => number("CONFORMANCE_SEED").unwrap_or(SEED),
    };
    let cases = number("CONFORMANCE_CASES").unwrap_or(32);
    println!("CONFORMANCE_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let lives = prop::collection::vec(any_op(), 1..90);
    let run = TestRunner::new_with_rng(config, rng).run(&lives, |ops| {
        let mut w = World::new(make, &limits());
        w.unanswered = UNANSWERED;
        let mut life = Life::new(&w);
        for op in &ops {
            life.live(op);
        }
        life.end();
        Ok(())
    });
    if let Err(error) = run {
        panic!("CONFORMANCE_SEED={seed}: {error}");
    }
}
