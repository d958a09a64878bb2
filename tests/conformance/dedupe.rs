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

pub fn a_row_that_replaces_one_of_its_own_addition_is_counted_once<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = NewJob { replace: true, ..w.job(&[]) };
    // In a new load, and in one of which nothing is queued any more.
    for times in 1..=2 {
        let added = w.add_jobs(vec![job.clone(), job.clone(), job.clone()]);
        assert_eq!((added.ids.len(), added.replaced), (3, 2));
        assert_eq!((w.count(JobState::Queued), w.count(JobState::Cancelled)), (1, 2 * times));
        w.ok(&w.one());
        assert_eq!((w.count(JobState::Queued), w.count(JobState::Done)), (0, times));
    }
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

fn changed(job: &NewJob, lastmod: &str) -> NewJob {
    NewJob { lastmod: Some(lastmod.to_owned()), changed: true, ..job.clone() }
}

pub fn what_has_not_changed_is_not_added_again<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = w.job(&[]);
    let noted = NewJob { changed: false, ..changed(&job, "monday") };
    let first = w.add_one(noted.clone());
    assert_eq!(w.add_jobs(vec![changed(&job, "tuesday")]).duplicates, 1, "while it is active");
    let call = w.one();
    w.ok(&call);
    assert_eq!(w.add_jobs(vec![changed(&job, "monday")]).duplicates, 1);
    assert_eq!(w.act_on(first, Act::Prune), 1);
    assert_eq!(w.add_jobs(vec![changed(&job, "monday")]).duplicates, 1, "it outlasts the job");
    w.add_one(changed(&job, "tuesday"));
    let call = w.one();
    w.ok(&call);
    assert_eq!(w.add_jobs(vec![changed(&job, "tuesday")]).duplicates, 1);
    w.add_one(changed(&job, "monday"));
    let call = w.one();
    w.ok(&call);
    w.add_one(noted);
}

pub fn what_came_to_nothing_counts_as_never_added<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = changed(&w.job(&[]), "monday");
    let id = w.add_one(job.clone());
    assert_eq!(w.act_on(id, Act::Cancel), 1);
    let id = w.add_one(job.clone());
    let call = w.one();
    w.say(&call, said(Reason::NotFound));
    assert_eq!(w.state(id), JobState::Failed);
    w.add_one(job.clone());
    let call = w.one();
    w.ok(&call);
    assert_eq!(w.add_jobs(vec![job]).duplicates, 1);
}

pub fn a_newer_one_takes_the_place_of_one_that_waits<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let keyed = |key: &str, price: &str| {
        let job = w.job(&[("price", price)]);
        NewJob { dedupe_key: Some(key.to_owned()), replace: true, ..job }
    };
    let stale = w.add_one(keyed("a", "1"));
    w.pass(secs(60));
    let other = w.add_one(keyed("b", "1"));
    w.pass(secs(60));
    let added = w.add_jobs(vec![keyed("a", "2"), keyed("c", "1")]);
    assert_eq!((added.ids.len(), added.duplicates, added.replaced), (2, 0, 1));
    assert_eq!(w.state(stale), JobState::Cancelled);
    let call = w.one();
    assert_eq!(call.job.id, added.ids[0], "it stands where the older one stood");
    assert_eq!(call.job.columns["price"], "2");
    let running = w.add_jobs(vec![keyed("a", "3")]);
    assert_eq!((running.duplicates, running.replaced), (1, 0), "what runs is left alone");
    assert_eq!(w.one().job.id, other);
}

pub fn one_of_the_day_that_waits_is_replaced_and_one_that_went_is_not<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = NewJob { dedupe: Dedupe::Day, replace: true, ..w.job(&[]) };
    w.add_one(job.clone());
    assert_eq!(w.add_jobs(vec![job.clone()]).replaced, 1);
    let call = w.one();
    w.ok(&call);
    assert_eq!(w.add_jobs(vec![job]).duplicates, 1);
}

pub fn a_newer_one_keeps_a_wait_that_was_told<S: Store>(make: Make<'_, S>) {
    let w = world(make);
    let job = NewJob { replace: true, ..w.job(&[]) };
    w.add_one(job.clone());
    let call = w.one();
    w.say(&call, said(Reason::Transient));
    let again = w.nothing().unwrap();
    assert_eq!(w.add_jobs(vec![job.clone()]).replaced, 1);
    assert_eq!(w.nothing(), Some(again));
    let later = NewJob { not_before: Some(again + secs(60)), ..job.clone() };
    assert_eq!(w.add_jobs(vec![later]).replaced, 1);
    assert_eq!(w.nothing(), Some(again + secs(60)));
    assert_eq!(w.add_jobs(vec![job]).replaced, 1);
    w.one();
}

pub fn one_that_moves_to_another_partition_leaves_its_own<S: Store>(make: Make<'_, S>) {
    let keyed = limit("rate", "rate", "rate = \"10/s\"\nkey = [\"site\"]");
    let w = World::new(make, &keyed);
    let of = |site: &str| {
        let job = w.job(&[("site", site)]);
        NewJob { dedupe_key: Some("book".to_owned()), replace: true, ..job }
    };
    w.add_one(of("a"));
    let added = w.add_jobs(vec![of("b")]);
    assert_eq!(added.replaced, 1);
    assert_eq!(w.one().job.id, added.ids[0]);
}
