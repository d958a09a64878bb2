//! What is kept, for how long, and what results are told by.

use std::collections::BTreeMap;

use paceline::job::{Dedupe, JobId, JobState};
use paceline::reading::Reason;
use paceline::store::retention::{Pass, too_old};
use paceline::store::{Cursor, Filter, KeptBody, Store};
use serde_json::json;

use crate::world::{FREE, Make, World, daily, limit, said, secs};

pub fn what_is_idle_is_forgotten_and_what_counts_is_not<S: Store>(make: Make<'_, S>) {
    let key = "key = [\"site\"]";
    let tables = [
        limit("rate", "rate", &format!("rate = \"1/40h\"\n{key}")),
        limit("span", "rolling", &format!("amount = 2\nper = \"24h\"\n{key}")),
        daily(2, key),
    ];
    let w = World::new(make, &tables.concat());
    w.add(9, &[("site", "a")]);
    let call = w.one();
    w.ok(&call);
    let tidy = || w.wait(w.store.tidy()).unwrap().instances;
    w.pass(secs(3600));
    assert_eq!(tidy(), 0);
    w.pass(secs(38 * 3600));
    assert_eq!(tidy(), 0, "the rate still counts");
    assert!(w.claim(9).is_empty());
    w.pass(secs(3600));
    assert_eq!(w.claim(9).len(), 1);
    let w = World::new(make, &tables.concat());
    w.add(1, &[("site", "a")]);
    let call = w.one();
    w.ok(&call);
    w.pass(secs(100 * 86_400));
    assert_eq!(tidy_all(&w), 3, "each instance that nobody uses");
    w.add(1, &[("site", "a")]);
    assert_eq!(w.claim(9).len(), 1);
}

fn tidy_all<S: Store>(w: &World<S>) -> u64 {
    w.wait(w.store.tidy()).unwrap().instances
}

pub fn a_block_that_is_not_over_is_kept<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(9, "key = [\"site\"]"));
    w.add(2, &[("site", "a")]);
    let call = w.one();
    let hint = w.store.now().wall + secs(30 * 86_400);
    w.say(&call, crate::world::refusal(Reason::QuotaExhausted, hint, "daily"));
    w.pass(secs(29 * 86_400));
    tidy_all(&w);
    assert_eq!(w.nothing(), Some(hint));
}

pub fn pruning_takes_what_is_too_old_and_the_room_is_given_back<S: Store>(make: Make<'_, S>) {
    let keep = "[keep]\nbody = \"all\"\ndone = \"2d\"\nfailed = \"9d\"";
    let w = World::new(make, keep);
    let noise: Vec<u8> = (0..4096_u32).flat_map(|n| n.wrapping_mul(n).to_be_bytes()).collect();
    let mut job = w.job(&[("isbn", "once")]);
    job.dedupe = Dedupe::Ever;
    w.add_jobs(vec![job.clone()]);
    let last = w.add(59, &[])[58];
    let calls = w.claim(60);
    for (at, call) in calls.iter().enumerate() {
        let reason = if at % 3 == 0 { Reason::Ok } else { Reason::NotFound };
        let mut answer = w.answer(call, said(reason));
        answer.body = Some(KeptBody { bytes: noise.clone(), cut: false });
        w.settle(answer);
    }
    let prune = || {
        let old = too_old("up", &w.upstream.keep, w.now());
        let mut pass = Pass::new(old.to_vec(), 7);
        let mut pruned = 0;
        while let Some(some) = w.wait(pass.step(&w.store)).unwrap() {
            pruned += some;
        }
        pruned
    };
    w.pass(secs(2 * 86_400 - 1));
    assert_eq!(prune(), 0);
    w.pass(secs(1));
    assert_eq!(prune(), 20);
    assert_eq!(w.count(JobState::Done), 0);
    assert_eq!(w.count(JobState::Failed), 40);
    w.pass(secs(7 * 86_400));
    assert_eq!(prune(), 40);
    assert_eq!(w.count(JobState::Failed), 0);
    let mut given = 0;
    while let bytes @ 1.. = w.wait(w.store.give_back(8192)).unwrap() {
        assert!(bytes <= 8192);
        given += bytes;
    }
    assert!(given > 60 * 10_000, "{given} bytes of 60 bodies");
    assert_eq!(w.add_jobs(vec![job]).duplicates, 1, "for ever outlasts its job");
    let new = w.add(2, &[]);
    assert!(last < new[0] && new[0] < new[1], "a pruned job's number is no other's: {new:?}");
}

pub fn a_result_has_the_body_of_its_last_attempt_alone<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let job = w.add(1, &[])[0];
    let text = "the same again ".repeat(99).into_bytes();
    let body = Some(KeptBody { bytes: text, cut: true });
    let call = w.one();
    let mut refused = w.answer(&call, said(Reason::Transient));
    refused.body = body.clone();
    refused.status = Some(503);
    w.settle(refused);
    let bodies = || w.wait(w.store.last_bodies(vec![job])).unwrap();
    let bodiless = |after| w.wait(w.store.bodiless(Filter::default(), after, false)).unwrap();
    assert_eq!((bodies().remove(&job), bodiless(None)), (body.clone(), 0), "whole, and not ended yet");
    w.pass(secs(60));
    let mut done = w.answer(&w.one(), said(Reason::Ok));
    done.status = Some(200);
    w.settle(done);
    assert_eq!((bodies().remove(&job), bodiless(None)), (None, 1), "a refusal's body is no result");
    let cut = w.add(2, &[])[0];
    let mut done = w.answer(&w.one(), said(Reason::Ok));
    (done.status, done.body) = (Some(200), body);
    w.settle(done);
    let whole = w.wait(w.store.bodiless(Filter::default(), None, true)).unwrap();
    assert_eq!((bodiless(None), whole), (1, 2), "what was cut is not whole: {cut:?}");
    let all = w.wait(w.store.ended(Filter::default(), None, None)).unwrap();
    assert_eq!(bodiless(all.last().copied()), 0);
}

pub fn results_are_told_in_the_order_in_which_they_ended<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add_jobs(["x", "y", "x"].map(|isbn| w.job(&[("isbn", isbn)])).to_vec()).ids;
    let calls = w.claim(3);
    for place in [1, 0, 2] {
        w.pass(secs(1));
        let mut answer = w.answer(&calls[place], said(Reason::Ok));
        answer.fields = BTreeMap::from([("stock".to_owned(), json!(place))]);
        w.settle(answer);
    }
    let ended = |after: Option<Cursor>, by: Option<&str>| -> Vec<Cursor> {
        let by = by.map(str::to_owned);
        w.wait(w.store.ended(Filter::default(), after, by)).unwrap()
    };
    let ids = |list: &[Cursor]| list.iter().map(|cursor| cursor.job).collect::<Vec<JobId>>();
    let all = ended(None, None);
    assert_eq!(ids(&all), [jobs[1], jobs[0], jobs[2]]);
    assert_eq!(ids(&ended(Some(all[0]), None)), [jobs[0], jobs[2]]);
    assert_eq!(ids(&ended(None, Some("isbn"))), [jobs[1], jobs[2]], "the last of each");
    let names = w.wait(w.store.result_names(Filter::default())).unwrap();
    assert_eq!(names.fields, ["stock"]);
    assert_eq!(names.columns, ["id", "isbn"]);
    w.add(1, &[]);
    let running = w.claim(1).len() as u64;
    assert_eq!(w.wait(w.store.running(Filter::default())).unwrap(), running);
}
