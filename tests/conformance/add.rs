//! Additions.

use std::collections::BTreeMap;

use paceline::job::JobState;
use paceline::store::Store;

use crate::world::{FREE, Make, World, daily, secs};

pub fn jobs_are_numbered_in_the_order_given<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let added = w.add_jobs(vec![w.job(&[]), w.job(&[]), w.job(&[])]);
    assert_eq!((added.ids.len(), added.duplicates), (3, 0));
    assert!(added.ids.is_sorted());
    assert_eq!(w.count(JobState::Queued), 3);
    let later = w.add(1, &[]);
    assert!(later[0] > added.ids[2]);
}

pub fn an_addition_that_fails_adds_nothing<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let wrong = paceline::job::NewJob { priority: 10, ..w.job(&[]) };
    let jobs = vec![w.job(&[]), wrong];
    let added = w.wait(w.store.add(w.upstream.clone(), "load".to_owned(), jobs));
    assert!(added.is_err());
    assert_eq!(w.count(JobState::Queued), 0);
    assert!(!w.wait(w.store.is_load("load".to_owned())).unwrap());
}

pub fn what_is_sent_comes_back_whole<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "");
    let mut job = w.job(&[("isbn", "978-ä \"quoted\"")]);
    job.request.method = "POST".to_owned();
    job.request.headers = BTreeMap::from([("X-Trace".to_owned(), "${env:T} {isbn}".to_owned())]);
    job.request.body = Some("{\"isbn\": \"{isbn}\"}".to_owned());
    let mut empty = w.job(&[]);
    empty.request.body = Some(String::new());
    w.add_jobs(vec![job.clone(), empty.clone(), w.job(&[])]);
    let calls = w.claim(3);
    assert_eq!(calls[0].job.request, job.request);
    assert_eq!(calls[0].job.columns, job.columns);
    assert_eq!(calls[1].job.request.body.as_deref(), Some(""), "an empty body is a body");
    assert_eq!(calls[2].job.request.body, None);
}

pub fn a_job_for_later_waits_for_its_instant<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let mut job = w.job(&[]);
    let at = w.now() + secs(60);
    job.not_before = Some(at);
    let id = w.add_one(job);
    assert_eq!(w.nothing(), Some(at));
    w.pass(secs(59));
    assert_eq!(w.nothing(), Some(at));
    w.pass(secs(1));
    assert_eq!(w.one().job.id, id);
}

pub fn a_job_that_is_due_earlier_wakes_its_partition<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let at = |after| Some(w.now() + secs(after));
    let (mut late, mut early) = (w.job(&[]), w.job(&[]));
    (late.not_before, early.not_before) = (at(100), at(50));
    w.add_one(late);
    let early = w.add_one(early);
    assert_eq!(w.nothing(), at(50));
    let now = w.add_one(w.job(&[]));
    assert_eq!(w.one().job.id, now);
    assert_eq!(w.nothing(), at(50));
    w.pass(secs(50));
    assert_eq!(w.one().job.id, early);
}

pub fn loads_are_told_with_their_jobs<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    w.add_to("one", vec![w.job(&[]), w.job(&[])]);
    w.pass(secs(1));
    w.add_to("two", vec![w.job(&[])]);
    w.add_to("one", vec![w.job(&[])]);
    let call = w.one();
    w.ok(&call);
    let loads = w.wait(w.store.loads()).unwrap();
    assert_eq!(loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(loads[0].jobs.get(&JobState::Done), Some(&1));
    assert_eq!(loads[0].jobs.get(&JobState::Queued), Some(&2));
    assert!(w.wait(w.store.is_load("two".to_owned())).unwrap());
}

pub fn an_addition_is_news_to_other_processes<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(5, ""));
    w.add(1, &[]);
    let call = w.one();
    w.ok(&call);
    let claimed = w.claimed(1);
    let (other, runner) = w.another();
    assert!(!w.has_news(&w.store, claimed.news), "nothing new yet");
    w.wait(other.add(w.upstream.clone(), "load".to_owned(), vec![w.job(&[])])).unwrap();
    assert!(w.has_news(&w.store, claimed.news));
    assert_eq!(w.claimed_by(&other, runner, 9).calls.len(), 1);
}
