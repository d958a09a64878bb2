//! What people do with jobs, one or many.

use paceline::job::JobState;
use paceline::reading::Reason;
use paceline::store::{Act, Filter, KeptBody, Store};

use crate::world::{FREE, Make, World, columns, daily, said, secs};

fn of_load(name: &str) -> Filter {
    Filter { load: Some(name.to_owned()), ..Filter::default() }
}

pub fn a_load_is_counted_cancelled_and_gone<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    w.add_to("wrong", (0..300).map(|_| w.job(&[])).collect());
    w.add_to("right", (0..5).map(|_| w.job(&[])).collect());
    let running = w.claim(2);
    assert_eq!(w.wait(w.store.count(of_load("wrong"), Act::Cancel)).unwrap(), 298);
    assert_eq!(w.act(of_load("wrong"), Act::Cancel), 298);
    assert_eq!(w.act(of_load("wrong"), Act::Cancel), 0);
    assert_eq!(w.claim(64).len(), 5, "the other load is untouched");
    for call in &running {
        w.ok(call);
    }
    assert_eq!(w.act(of_load("wrong"), Act::Prune), 300);
    assert_eq!(w.wait(w.store.loads()).unwrap().len(), 1);
    assert_eq!(w.claim(64).len(), 0);
}

pub fn retry_leads_back_from_any_end<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[retry]\nmax_attempts = 1");
    let jobs = w.add(4, &[]);
    let calls = w.claim(3);
    w.ok(&calls[0]);
    w.say(&calls[1], said(Reason::NotFound));
    w.say(&calls[2], said(Reason::Transient));
    w.act_on(jobs[3], Act::Cancel);
    assert_eq!(w.act(Filter::default(), Act::Retry), 4);
    assert_eq!(w.count(JobState::Queued), 4);
    let again = w.claim(9);
    assert_eq!(again.iter().map(|call| call.job.attempt).collect::<Vec<_>>(), [2, 2, 2, 1]);
    let view = w.view(jobs[2]);
    assert_eq!((view.failures, view.attempts), (0, 1), "failures are forgotten, attempts are not");
}

pub fn filters_pick_what_they_say<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(99, "key = [\"site\"]"));
    let a = w.add(3, &[("site", "a"), ("colour", "red")]);
    w.add(2, &[("site", "b"), ("colour", "red")]);
    let call = w.one();
    w.say(&call, said(Reason::NotFound));
    let count = |filter: Filter| w.jobs(filter).len();
    let states = |states: &[JobState]| Filter { states: states.to_vec(), ..Filter::default() };
    assert_eq!(count(states(&[JobState::Queued])), 4);
    assert_eq!(count(states(&[JobState::Failed, JobState::Queued])), 5);
    assert_eq!(count(states(&[JobState::Running])), 0);
    let running = w.one();
    assert_eq!(count(states(&[JobState::Running])), 1);
    assert_eq!(count(states(&[JobState::Queued])), 3, "a running job is not queued");
    w.ok(&running);
    assert_eq!(count(Filter { columns: columns(&[("site", "a")]), ..Filter::default() }), 3);
    assert_eq!(count(Filter { columns: columns(&[("colour", "red"), ("site", "b")]), ..Filter::default() }), 2);
    assert_eq!(count(Filter { reason: Some("not_found".to_owned()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { upstreams: vec!["down".to_owned()], ..Filter::default() }), 0);
    assert_eq!(count(Filter { after: Some(a[2]), ..Filter::default() }), 2);
    assert_eq!(count(Filter { limit: Some(2), ..Filter::default() }), 2);
    let url = w.view(a[1]).url;
    assert_eq!(count(Filter { url: Some(url), ..Filter::default() }), 1);
    w.pass(secs(10));
    let since = Some(w.now());
    w.add(1, &[("site", "a")]);
    assert_eq!(count(Filter { since, ..Filter::default() }), 1);
}

pub fn an_act_is_bounded_by_its_limit<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    w.add(5, &[]);
    assert_eq!(w.act(Filter { limit: Some(2), ..Filter::default() }, Act::Cancel), 2);
    assert_eq!(w.count(JobState::Queued), 3);
}

pub fn what_runs_or_must_not_is_left_alone<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = w.one();
    for act in [Act::Cancel, Act::Retry, Act::Prune] {
        assert_eq!(w.act_on(id, act.clone()), 0, "{act:?} of a running job");
    }
    w.ok(&call);
    assert_eq!(w.act_on(id, Act::Cancel), 0, "it has ended");
}

pub fn due_and_deadline_can_be_set<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add(2, &[]);
    let later = w.now() + secs(60);
    let set = |due, deadline| Act::Set { priority: None, due_at: due, deadline_at: deadline };
    assert_eq!(w.act(Filter::default(), set(Some(later), None)), 2);
    assert_eq!(w.nothing(), Some(later));
    w.act_on(jobs[0], set(Some(w.now()), Some(Some(w.now() + secs(5)))));
    assert_eq!(w.one().job.id, jobs[0]);
    w.act_on(jobs[1], set(None, Some(Some(later))));
    assert_eq!(w.state(jobs[1]), JobState::Queued);
    w.act_on(jobs[1], set(None, Some(Some(later.shifted(-1)))));
    assert_eq!(w.state(jobs[1]), JobState::Expired, "it is due too late");
}

pub fn pruning_takes_attempts_and_bodies_along<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add(2, &[]);
    for call in w.claim(2) {
        let mut answer = w.answer(&call, said(Reason::NotFound));
        answer.body = Some(KeptBody { bytes: vec![b'x'; 1000], cut: false });
        w.settle(answer);
    }
    let bodies = || w.wait(w.store.last_bodies(jobs.clone())).unwrap().len();
    assert_eq!(bodies(), 2);
    assert_eq!(w.act_on(jobs[0], Act::Prune), 1);
    assert_eq!(bodies(), 1);
    assert!(w.attempts(jobs[0]).is_empty());
    assert_eq!(w.attempts(jobs[1]).len(), 1);
    let old = Filter { ended_before: Some(w.now()), ..Filter::default() };
    assert_eq!(w.act(old, Act::Prune), 1);
    assert!(w.tally().values().all(|jobs| *jobs == 0));
}

pub fn the_last_body_is_told<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    for text in ["first", "second"] {
        let call = w.one();
        let mut answer = w.answer(&call, said(Reason::Transient));
        answer.body = Some(KeptBody { bytes: text.as_bytes().to_vec(), cut: false });
        w.settle(answer);
        w.pass(secs(10));
    }
    let bodies = w.wait(w.store.last_bodies(vec![id])).unwrap();
    assert_eq!(bodies[&id].bytes, b"second");
}
