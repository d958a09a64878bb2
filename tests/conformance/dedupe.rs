//! Duplicates.

use paceline::job::{Dedupe, JobState, NewJob};
use paceline::reading::Reason;
use paceline::store::{Act, Filter, Store};

use crate::world::{FREE, Make, World, limit, said, secs};

fn world<S: Store>(make: Make<'_, S>) -> World<S> {
    World::new(make, FREE)
}

fn twice(job: &NewJob) -> Vec<NewJob> {
    vec![job.clone(), job.clone()]
}

pub fn an_active_one_is_not_added_again<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = w.job(&[]);
    let added = w.add_jobs(twice(&job));
    assert_eq!((added.ids.len(), added.duplicates), (1, 1), "within one addition");
    assert_eq!(w.add_jobs(twice(&job)).duplicates, 2);
    let call = w.one();
    assert_eq!(w.add_jobs(twice(&job)).duplicates, 2, "while it runs");
    w.ok(&call);
    assert_eq!(w.add_jobs(twice(&job)).duplicates, 1, "once it has ended it may come again");
}

pub fn what_is_different_is_no_duplicate<S: Store>(make: Make<'_, S>) {
    let keyed = limit("rate", "rate", "rate = \"10/s\"\nkey = [\"site\"]");
    let w = World::new(make, &keyed);
    let job = w.job(&[("site", "a")]);
    let mut others = vec![job.clone(); 4];
    others[0].request.method = "PUT".to_owned();
    others[1].request.body = Some("{id}".to_owned());
    others[2].request.url.push('x');
    others[3].partition.insert("site".to_owned(), "b".to_owned());
    w.add_one(job.clone());
    assert_eq!(w.add_jobs(others).duplicates, 0);
    let mut body = job;
    body.request.body = Some("{id}".to_owned());
    body.columns.insert("id".to_owned(), "another".to_owned());
    assert_eq!(w.add_jobs(vec![body]).duplicates, 0, "bodies are compared as they are filled");
}

pub fn the_users_own_key_decides<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let key = |job: NewJob, key: &str| NewJob { dedupe_key: Some(key.to_owned()), ..job };
    w.add_one(key(w.job(&[]), "book 1"));
    assert_eq!(w.add_jobs(vec![key(w.job(&[]), "book 1")]).duplicates, 1);
    assert_eq!(w.add_jobs(vec![key(w.job(&[]), "book 2")]).duplicates, 0);
}

pub fn none_lets_all_in<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = NewJob { dedupe: Dedupe::None, ..w.job(&[]) };
    assert_eq!(w.add_jobs(twice(&job)).duplicates, 0);
}

pub fn a_day_lasts_to_midnight_utc<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = NewJob { dedupe: Dedupe::Day, ..w.job(&[]) };
    w.add_one(job.clone());
    let call = w.one();
    w.ok(&call);
    w.pass(secs(11 * 3600));
    assert_eq!(w.add_jobs(vec![job.clone()]).duplicates, 1);
    w.pass(secs(3600));
    assert_eq!(w.add_jobs(vec![job]).duplicates, 0);
}

pub fn for_ever_outlasts_the_job<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = NewJob { dedupe: Dedupe::Ever, ..w.job(&[]) };
    w.add_one(job.clone());
    let call = w.one();
    w.ok(&call);
    assert_eq!(w.act(Filter::default(), Act::Prune), 1);
    w.pass(secs(400 * 86_400));
    assert_eq!(w.add_jobs(vec![job]).duplicates, 1);
}

pub fn one_that_may_have_been_sent_is_active<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[request]\nurl = \"https://api.example/\"\nmethod = \"POST\"");
    let mut job = w.job(&[]);
    job.request.method = "POST".to_owned();
    let id = w.add_one(job.clone());
    let call = w.one();
    w.say(&call, said(Reason::Transient));
    assert_eq!(w.state(id), JobState::Unsure);
    assert_eq!(w.add_jobs(vec![job]).duplicates, 1);
}

pub fn one_whose_like_is_active_is_not_tried_again<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = w.job(&[]);
    let first = w.add_one(job.clone());
    let call = w.one();
    w.ok(&call);
    let second = w.add_one(job);
    assert_eq!(w.act_on(first, Act::Retry), 0);
    assert_eq!((w.state(first), w.state(second)), (JobState::Done, JobState::Queued));
    let call = w.one();
    w.ok(&call);
    assert_eq!(w.act(Filter::default(), Act::Retry), 1, "one of both at most");
}
