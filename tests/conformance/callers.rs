//! Jobs that a process waits for and sends itself: they take turns with the queue, in both directions, and
//! end with their owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::job::{Dedupe, JobId, JobState};
use paceline::reading::Reason;
use paceline::store::{
    Act, Call, Claim, Claimed, Filter, OwnedJob, Release, ReleaseWhy, RunnerId, Serves, SettleEnd,
    Store, Withdrawal,
};

use crate::world::{FREE, Make, World, daily, limit, millis, refusal, said, secs};

/// A process with jobs of its own.
struct Caller<S> {
    store: S,
    runner: RunnerId,
}

fn caller<S: Store>(w: &World<S>) -> Caller<S> {
    let store = (w.fixture.open)();
    let (runner, _) = w.wait(store.register(Serves::Itself)).unwrap();
    Caller { store, runner }
}

fn owned<S: Store>(w: &World<S>, pairs: &[(&str, &str)]) -> OwnedJob {
    let job = w.job(pairs);
    let job = paceline::job::NewJob { dedupe: Dedupe::None, ..job };
    OwnedJob { job, once: false, units: 1, use_reserve: false }
}

impl<S: Store> Caller<S> {
    fn enter(&self, w: &World<S>, jobs: Vec<OwnedJob>) -> Vec<JobId> {
        let upstream = Arc::clone(&w.upstream);
        w.wait(self.store.enter(upstream, self.runner, "call".to_owned(), jobs)).unwrap()
    }

    fn enter_some(&self, w: &World<S>, count: usize) -> Vec<JobId> {
        self.enter(w, (0..count).map(|_| owned(w, &[])).collect())
    }

    fn claimed(&self, w: &World<S>, most: usize) -> Claimed {
        let wish = Claim::new(Arc::clone(&w.upstream), self.runner, most).owned();
        w.wait(self.store.claim(wish)).unwrap()
    }

    fn claim(&self, w: &World<S>, most: usize) -> Vec<Call> {
        self.claimed(w, most).calls
    }
}

fn places(amount: u64) -> String {
    limit("places", "concurrency", &format!("amount = {amount}"))
}

fn ids(calls: &[Call]) -> Vec<JobId> {
    calls.iter().map(|call| call.job.id).collect()
}

pub fn only_its_owner_takes_it<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let (a, b) = (caller(&w), caller(&w));
    let jobs = a.enter_some(&w, 2);
    let queued = w.add(2, &[]);
    assert!(b.claim(&w, 9).is_empty());
    assert_eq!(ids(&w.claim(9)), queued, "a runner takes the queue's alone");
    let mut taken = ids(&a.claim(&w, 9));
    taken.sort();
    assert_eq!(taken, jobs);
}

/// Both sides want the one place, and claim whenever it comes free, `first` first. Who gets it, in order.
fn turns<S: Store>(w: &World<S>, c: &Caller<S>, callers_first: bool) -> String {
    let mut got = String::new();
    for _ in 0..8 {
        let mut call = None;
        for side in 0..4 {
            let is_caller = (side % 2 == 0) == callers_first;
            let calls = if is_caller { c.claim(w, 4) } else { w.claim(4) };
            if let Some(found) = calls.into_iter().next() {
                got.push(if is_caller { 'c' } else { 'q' });
                call = Some(found);
                break;
            }
        }
        w.ok(&call.expect("one of the two takes the place"));
    }
    got
}

pub fn they_take_turns_with_the_queue_for_a_place<S: Store>(make: Make<'_, S>) {
    for callers_first in [true, false] {
        let w = World::new(make, &places(1));
        let c = caller(&w);
        c.enter_some(&w, 9);
        w.add(9, &[]);
        let got = turns(&w, &c, callers_first);
        assert!(["cqcqcqcq", "qcqcqcqc"].contains(&got.as_str()), "{got}");
    }
}

pub fn they_take_turns_for_a_keyed_place<S: Store>(make: Make<'_, S>) {
    for callers_first in [true, false] {
        let pool = limit("places", "concurrency", "amount = 1\nkey = [\"pool\"]");
        let sites = limit("site", "rate", "rate = \"1000/s\"\nburst = 99\nkey = [\"site\"]");
        let w = World::new(make, &format!("{pool}{sites}"));
        let c = caller(&w);
        // Many partitions of the queue are no more turns than one of a caller.
        for site in ["a", "b", "d", "e"] {
            w.add(3, &[("pool", "one"), ("site", site)]);
        }
        let one = [("pool", "one"), ("site", "c")];
        c.enter(&w, (0..9).map(|_| owned(&w, &one)).collect());
        let got = turns(&w, &c, callers_first);
        assert!(["cqcqcqcq", "qcqcqcqc"].contains(&got.as_str()), "{got}");
    }
}

pub fn neither_starves_under_a_rate<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"10/s\""));
    let c = caller(&w);
    c.enter_some(&w, 40);
    w.add(40, &[]);
    let (mut called, mut queued) = (0, 0);
    for _ in 0..300 {
        // The runner is always the first to ask.
        for (calls, count) in [(w.claim(4), &mut queued), (c.claim(&w, 4), &mut called)] {
            *count += calls.len();
            for call in &calls {
                w.ok(call);
            }
        }
        w.pass(millis(10));
    }
    assert!(called >= 10 && queued >= 10, "{called} called, {queued} of the queue");
    assert!(called + queued >= 29, "no slot is lost between them: {called} and {queued}");
}

pub fn who_lets_its_turn_pass_is_not_waited_for<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &places(1));
    let c = caller(&w);
    w.add(6, &[]);
    let first = w.one();
    let jobs = c.enter_some(&w, 2);
    w.ok(&first);
    let claimed = w.claimed(4);
    assert!(claimed.calls.is_empty(), "it is the caller's turn");
    let lapses = claimed.next_at.expect("which lapses");
    assert!(lapses.since(w.now()) <= millis(100));
    w.pass_to(lapses);
    for _ in 0..3 {
        let call = w.one();
        w.ok(&call);
    }
    // It wakes, and has its turn again.
    let away = w.view(jobs[1]).waiting.expect("it is set aside");
    assert_eq!((away.reason.as_str(), away.until), ("away", None));
    assert_eq!(ids(&c.claim(&w, 1)), jobs[..1]);
}

pub fn a_queue_that_nobody_sends_is_not_waited_for<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &places(1));
    w.add(6, &[]);
    let first = w.one();
    w.ok(&first);
    let c = caller(&w);
    c.enter_some(&w, 4);
    let mut waited = 0;
    for _ in 0..3 {
        let mut calls = c.claim(&w, 1);
        if calls.is_empty() {
            waited += 1;
            w.pass(millis(101));
            calls = c.claim(&w, 1);
        }
        w.ok(&calls[0]);
    }
    assert!(waited <= 1, "its runner let one turn pass, and is not waited for again");
    w.wait(w.store.retire(w.runner)).unwrap();
    assert_eq!(c.claim(&w, 1).len(), 1, "and no process sends it");
}

pub fn what_is_plenty_is_waited_for_by_nobody<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &places(10));
    let c = caller(&w);
    c.enter_some(&w, 1);
    w.add(3, &[]);
    assert_eq!(w.claim(3).len(), 3);
    assert_eq!(c.claim(&w, 3).len(), 1);
}

pub fn it_ends_with_its_owner<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &places(1));
    let c = caller(&w);
    let jobs = c.enter_some(&w, 2);
    assert_eq!(c.claim(&w, 2).len(), 1);
    let Caller { store, .. } = c;
    drop(store);
    let swept = w.sweep();
    assert_eq!((swept.unsure, swept.returned), (1, 0));
    assert_eq!(w.state(jobs[0]), JobState::Unsure);
    let waited = w.view(jobs[1]);
    assert_eq!(waited.state, JobState::Cancelled);
    assert_eq!(waited.reason.as_deref(), Some("owner_gone"));
    w.add(1, &[]);
    assert_eq!(w.claim(1).len(), 1, "its place is free");
    assert_eq!(w.die().returned, 1, "what is the queue's goes again");
}

pub fn who_gives_up_gets_no_call<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &places(1));
    let c = caller(&w);
    let jobs = c.enter_some(&w, 3);
    let call = c.claim(&w, 1).remove(0);
    let gone = |job: JobId| Withdrawal {
        job,
        state: JobState::Cancelled,
        reason: "gave_up".to_owned(),
        detail: String::new(),
        could_go_at: None,
        limit: None,
    };
    w.wait(c.store.withdraw(c.runner, vec![gone(jobs[0]), gone(jobs[1])])).unwrap();
    assert_eq!(w.state(jobs[0]), JobState::Running, "its call is out: that ends it");
    assert_eq!(w.state(jobs[1]), JobState::Cancelled);
    let release = Release { call: call.id, why: ReleaseWhy::Drained };
    w.wait(c.store.release(vec![release])).unwrap();
    w.wait(c.store.withdraw(c.runner, vec![gone(jobs[0])])).unwrap();
    assert_eq!(ids(&c.claim(&w, 9)), jobs[2..]);
    assert!(w.attempts(jobs[0]).is_empty());
}

pub fn a_permit_ends_with_its_call<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let c = caller(&w);
    let again = c.enter(&w, vec![owned(&w, &[])])[0];
    let call = c.claim(&w, 1).remove(0);
    let hint = w.store.now().wall + secs(60);
    let settled = w.say(&call, refusal(Reason::RateLimited, hint, ""));
    assert!(matches!(settled.end, SettleEnd::Again(_)));
    assert_eq!(w.state(again), JobState::Queued);
    w.pass(secs(120));
    let call = c.claim(&w, 1).remove(0);
    assert_eq!(w.ok(&call), SettleEnd::Ended(JobState::Done));
    let once = OwnedJob { once: true, ..owned(&w, &[]) };
    let job = c.enter(&w, vec![once])[0];
    let call = c.claim(&w, 1).remove(0);
    w.pass(secs(7 * 86_400));
    assert_eq!(w.sweep().unsure, 0, "its lease lasts as long as its owner");
    let settled = w.say(&call, said(Reason::RateLimited));
    assert_eq!(settled.end, SettleEnd::Ended(JobState::Failed));
    assert_eq!(w.view(job).reason.as_deref(), Some("rate_limited"));
    assert!(settled.block.is_some(), "the others wait all the same");
}

pub fn the_reserve_is_for_who_may_use_it<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(4, "reserve = 2"));
    let c = caller(&w);
    w.add(9, &[]);
    assert_eq!(w.claim(9).len(), 2);
    c.enter(&w, vec![owned(&w, &[]), owned(&w, &[])]);
    assert!(c.claim(&w, 9).is_empty(), "a caller alone may not");
    let entitled = || OwnedJob { use_reserve: true, ..owned(&w, &[]) };
    let jobs = c.enter(&w, (0..4).map(|_| entitled()).collect());
    assert!(w.claim(9).is_empty());
    assert_eq!(ids(&c.claim(&w, 9)), jobs[..2]);
    assert_eq!(w.spent("daily", &[]), 4);
    w.pass(secs(86_400));
    let more = w.claim(9).len() + c.claim(&w, 9).len() + w.claim(9).len() + c.claim(&w, 9).len();
    assert_eq!(more, 4, "and all of them have the next day");
}

pub fn it_takes_the_units_that_it_says<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &format!("{}{}", daily(10, ""), places(3)));
    let c = caller(&w);
    let dear = |units| OwnedJob { units, ..owned(&w, &[]) };
    let jobs = c.enter(&w, vec![dear(7), dear(11), dear(3)]);
    assert_eq!(ids(&c.claim(&w, 9)), [jobs[0], jobs[2]]);
    assert_eq!(w.spent("daily", &[]), 10);
    assert_eq!(w.spent("places", &[]), 2, "a call has one place, whatever it costs");
    let never = w.view(jobs[1]);
    assert_eq!((never.state, never.limit.as_deref()), (JobState::Failed, Some("daily")));
}

pub fn what_is_held_is_held_for_them_too<S: Store>(make: Make<'_, S>) {
    let keyed = limit("site", "rate", "rate = \"1000/s\"\nburst = 99\nkey = [\"site\"]");
    let w = World::new(make, &keyed);
    let c = caller(&w);
    let site = [("site", "a")];
    w.add(1, &site);
    assert_eq!(w.hold(&site), 1);
    let job = c.enter(&w, vec![owned(&w, &site)])[0];
    assert!(c.claim(&w, 9).is_empty(), "a line that is new is held with the others");
    assert_eq!(w.view(job).waiting.map(|wait| wait.reason).as_deref(), Some("by_hand"));
    assert_eq!(w.resume(&site), 1, "one partition to people");
    let first = w.claim(9).len() + c.claim(&w, 9).len();
    assert_eq!(first, 1, "one probe goes first, of whichever line");
}

pub fn a_refusal_of_one_line_closes_all<S: Store>(make: Make<'_, S>) {
    let keyed = limit("site", "rate", "rate = \"1000/s\"\nburst = 99\nkey = [\"site\"]");
    let w = World::new(make, &keyed);
    let c = caller(&w);
    let site = [("site", "a")];
    w.add(2, &site);
    c.enter(&w, vec![owned(&w, &site), owned(&w, &site)]);
    let call = c.claim(&w, 1).remove(0);
    let queued = w.claim(1).remove(0);
    let hint = w.store.now().wall + secs(60);
    w.say(&call, refusal(Reason::RateLimited, hint, ""));
    assert!(w.is_blocked(&queued), "also what was claimed before");
    w.release(&[queued], ReleaseWhy::Blocked);
    w.pass(secs(59));
    assert!(w.claim(9).is_empty() && c.claim(&w, 9).is_empty());
}

pub fn no_run_waits_for_them<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let c = caller(&w);
    c.enter_some(&w, 2);
    w.add(1, &[]);
    let remaining = || w.wait(w.store.remaining("up".to_owned())).unwrap();
    assert_eq!((remaining().waiting, remaining().running), (1, 0));
    let call = c.claim(&w, 1).remove(0);
    assert_eq!((remaining().waiting, remaining().running), (1, 0));
    w.ok(&call);
    w.claim(9);
    assert_eq!((remaining().waiting, remaining().running), (0, 1));
}

pub fn nobody_sends_it_again<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let c = caller(&w);
    let job = c.enter_some(&w, 1)[0];
    let call = c.claim(&w, 1).remove(0);
    w.say(&call, said(Reason::NotFound));
    assert_eq!(w.act_on(job, Act::Retry), 0);
    assert_eq!(w.state(job), JobState::Failed);
    let known = BTreeMap::new();
    assert_eq!(w.wait(w.store.jobs(Filter::default(), known)).unwrap().len(), 1);
    let waits = c.enter_some(&w, 1)[0];
    assert_eq!(w.act_on(waits, Act::Cancel), 1, "but a person may withdraw one that waits");
    assert!(c.claim(&w, 9).is_empty());
}

pub fn one_bad_call_does_not_hold_the_queue<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let c = caller(&w);
    let refuse = |job| {
        assert_eq!(w.say(&c.claim(&w, 1)[0], said(Reason::Forbidden)).hold, None);
        w.pass(secs(10));
        let held = w.say(&c.claim(&w, 1)[0], said(Reason::Forbidden)).hold.is_some();
        (held, w.state(job))
    };
    let never_answered = c.enter_some(&w, 1)[0];
    assert_eq!(refuse(never_answered), (true, JobState::Queued), "nobody ever got through");
    w.resume(&[]);
    w.ok(&c.claim(&w, 1)[0]);
    let bad = c.enter_some(&w, 1)[0];
    assert_eq!(refuse(bad), (false, JobState::Failed));
    w.add(1, &[]);
    assert!(w.say(&w.one(), said(Reason::Forbidden)).hold.is_some(), "but another one does");
}

pub fn its_deadline_is_told_at_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(1, ""));
    let c = caller(&w);
    w.add(1, &[]);
    w.claim(1);
    let mut late = owned(&w, &[]);
    late.job.deadline_at = Some(w.now() + secs(60));
    let job = c.enter(&w, vec![late, owned(&w, &[])])[0];
    c.claim(&w, 1);
    let view = w.view(job);
    assert_eq!((view.state, view.limit.as_deref()), (JobState::Expired, Some("daily")));
    assert!(view.could_go_at.is_some());
}
