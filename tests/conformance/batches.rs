//! Batches: many jobs of a partition in one call.

use std::collections::BTreeMap;

use paceline::job::{JobId, JobState, NewJob, Request};
use paceline::reading::remaining::Left;
use paceline::reading::{Reading, Reason};
use paceline::store::views::WaitView;
use paceline::store::{Call, ItemEnd, ReleaseWhy, SettleEnd, Settlement, Store};
use serde_json::json;

use crate::world::{Make, World, columns, refusal, said, secs};

/// A quota file with a batch of at most `max` items and these limits.
fn batch(max: usize, more: &str) -> String {
    format!(
        "[request]\nmethod = \"POST\"\nurl = \"https://api.example/batch\"\nrepeatable = true\n\
         [batch]\nmax_items = {max}\nbody = '{{\"site\": \"{{site}}\", \"ids\": {{items.id}}}}'\n{more}"
    )
}

fn items(kind: &str, amount: usize) -> String {
    let time = if kind == "budget" { "per = \"day\"\ntime_zone = \"UTC\"" } else { "per = \"1h\"" };
    format!("[[limit]]\nname = \"urls\"\nkind = \"{kind}\"\namount = {amount}\n{time}\ncost = \"items\"\n")
}

fn job<S: Store>(w: &World<S>, site: &str) -> NewJob {
    let job = w.job(&[("site", site)]);
    let request = Request {
        method: "POST".to_owned(),
        url: "https://api.example/batch".to_owned(),
        headers: BTreeMap::new(),
        body: w.upstream.batch.as_ref().map(|batch| batch.body.clone()),
    };
    NewJob { request, ..job }
}

fn add<S: Store>(w: &World<S>, count: usize, site: &str) -> Vec<JobId> {
    w.add_jobs((0..count).map(|_| job(w, site)).collect()).ids
}

fn ids(call: &Call) -> Vec<JobId> {
    call.jobs().map(|job| job.id).collect()
}

fn sizes(calls: &[Call]) -> Vec<usize> {
    calls.iter().map(|call| call.jobs().count()).collect()
}

pub fn jobs_of_a_partition_share_a_call<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(3, ""));
    let (a, b) = (add(&w, 7, "a"), add(&w, 2, "b"));
    let calls = w.claim(64);
    let mut carried: Vec<_> = calls.iter().flat_map(ids).collect();
    assert!(calls.iter().all(|call| call.jobs().all(|job| job.columns["site"] == call.partition["site"])));
    let mut sizes = sizes(&calls);
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 3, 3]);
    carried.sort_unstable();
    assert_eq!(carried, [a, b].concat());
    for call in &calls {
        assert_eq!(w.ok(call), SettleEnd::Ended(JobState::Done));
    }
    assert_eq!(w.count(JobState::Done), 9);
}

pub fn a_call_is_one_call_however_many_it_carries<S: Store>(make: Make<'_, S>) {
    let limits = "[[limit]]\nname = \"calls\"\nkind = \"budget\"\namount = 2\nper = \"day\"\ntime_zone = \"UTC\"\n";
    let w = World::new(make, &batch(4, limits));
    add(&w, 9, "a");
    assert_eq!(sizes(&w.claim(64)), [4, 4]);
    assert_eq!(w.spent("calls", &[]), 2);
    assert!(w.nothing().is_some());
}

pub fn a_batch_never_exceeds_what_is_left<S: Store>(make: Make<'_, S>) {
    for kind in ["budget", "rolling"] {
        let w = World::new(make, &batch(100, &items(kind, 10)));
        add(&w, 25, "a");
        let calls = w.claim(64);
        assert_eq!(sizes(&calls), [10], "{kind}");
        assert_eq!(w.spent("urls", &[]), 10);
        let next_at = w.nothing().unwrap();
        assert_eq!(w.ok(&calls[0]), SettleEnd::Ended(JobState::Done));
        w.pass_to(next_at + secs(3));
        assert_eq!(sizes(&w.claim(64)), [10], "{kind}: the next span");
        w.pass(secs(2 * 86_400));
        assert_eq!(sizes(&w.claim(64)), [5], "{kind}: the rest");
    }
}

pub fn for_a_rate_of_items_a_batch_waits_to_be_whole<S: Store>(make: Make<'_, S>) {
    let limit = "[[limit]]\nname = \"items\"\nkind = \"rate\"\nrate = \"10/s\"\nburst = 20\n\
        counted = \"bucket\"\ncost = \"items\"\n";
    let w = World::new(make, &batch(10, limit));
    add(&w, 40, "a");
    let mut sent = Vec::new();
    let until = w.now() + secs(4);
    while w.now() < until {
        let claimed = w.claimed(64);
        for call in &claimed.calls {
            sent.push((call.slot_at, call.jobs().count()));
            w.ok(call);
        }
        w.pass_to(claimed.next_at.unwrap_or(until).max(w.now() + secs(1) / 20));
    }
    assert!(sent.iter().all(|(_, jobs)| *jobs == 10), "{sent:?}");
    assert_eq!(sent.len(), 4, "{sent:?}");
    for (n, (at, _)) in sent.iter().enumerate() {
        let within = sent.iter().skip(n).filter(|(later, _)| later.since(*at) < secs(1)).count();
        assert!(within <= 3, "30 is a burst and a second's worth: {sent:?}");
    }
}

pub fn a_batch_that_is_not_full_lingers<S: Store>(make: Make<'_, S>) {
    let with = batch(3, "").replace("max_items", "linger = \"5s\"\nmax_items");
    let w = World::new(make, &with);
    let first = add(&w, 2, "a")[0];
    let began = w.now();
    assert_eq!(w.nothing(), Some(began + secs(5)));
    let until = Some(w.store.now().to_wall(began + secs(5)));
    let waits = |wait: &WaitView| (wait.reason.clone(), wait.until) == ("linger".to_owned(), until);
    assert!(w.view(first).waiting.as_ref().is_some_and(waits), "{:?}", w.view(first));
    let view = w.look();
    assert!(view.partitions.iter().any(|one| waits(&one.wait)), "{view:?}");
    assert_eq!(view.next_at, until);
    w.pass(secs(4));
    assert_eq!(w.nothing(), Some(began + secs(5)));
    add(&w, 1, "a");
    assert_eq!(sizes(&w.claim(64)), [3], "full: at once");
    add(&w, 1, "a");
    w.pass_to(w.nothing().unwrap());
    let calls = w.claim(64);
    assert_eq!(sizes(&calls), [1], "long enough");
    w.say(&calls[0], said(Reason::Transient));
    w.pass(secs(2));
    assert_eq!(sizes(&w.claim(64)), [1], "one that goes again does not wait for company");
    add(&w, 1, "a");
    let (now, mut urgent) = (w.now(), job(&w, "a"));
    assert_eq!(w.nothing(), Some(now + secs(5)));
    urgent.deadline_at = Some(now + secs(3));
    w.add_jobs(vec![urgent]);
    assert_eq!(w.nothing(), Some(now + secs(2)), "in time for the deadline of one of them");
    w.pass(secs(2));
    assert_eq!(sizes(&w.claim(64)), [2]);
}

pub fn one_that_is_full_by_bytes_goes_at_once<S: Store>(make: Make<'_, S>) {
    let with = batch(9, "").replace("max_items", "linger = \"5s\"\nmax_bytes = 40\nmax_items");
    let w = World::new(make, &with);
    let numbered = |id: &str| {
        let mut job = job(&w, "a");
        job.columns.insert("id".to_owned(), id.to_owned());
        job
    };
    w.add_jobs(vec![numbered("111111"), numbered("222222")]);
    assert!(w.nothing().is_some(), "36 bytes: it waits for more");
    w.add_jobs(vec![numbered("333333")]);
    let calls = w.claim(64);
    assert_eq!(sizes(&calls), [2], "36 bytes, and the third would make it 43");
    w.ok(&calls[0]);
    w.pass(secs(5));
    w.ok(&w.one());
    let large = w.add_jobs(vec![numbered("1234567890123456789012")]).ids[0];
    w.nothing();
    w.pass(secs(5));
    assert!(w.claim(64).is_empty());
    assert_eq!(w.state(large), JobState::Failed, "it can never go");
    assert_eq!(w.view(large).reason.as_deref(), Some("too_large"));
}

pub fn each_item_ends_as_the_answer_says<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(9, &items("budget", 100).replace("cost", "counts = \"accepted\"\ncost")));
    let jobs = add(&w, 4, "a");
    let call = w.one();
    let item = |at: usize, reason: Reason| ItemEnd {
        job: jobs[at],
        status: Some(400),
        reading: said(reason),
        fields: BTreeMap::from([("n".to_owned(), json!(at))]),
    };
    let items = vec![item(1, Reason::NotFound), item(2, Reason::RateLimited)];
    let whole = w.answer(&call, said(Reason::Ok));
    let settled = w.settle(Settlement { items, ..whole });
    let ends: Vec<_> = settled.jobs().collect();
    assert_eq!(ends[0], (jobs[0], SettleEnd::Ended(JobState::Done)));
    assert_eq!(ends[1], (jobs[1], SettleEnd::Ended(JobState::Failed)));
    assert!(matches!(ends[2].1, SettleEnd::Again(_)));
    assert_eq!(ends[3], (jobs[3], SettleEnd::Ended(JobState::Done)));
    assert_eq!(w.view(jobs[1]).fields, BTreeMap::from([("n".to_owned(), json!(1))]));
    assert_eq!(w.view(jobs[1]).status, Some(400));
    assert_eq!(w.attempts(jobs[0])[0].reason.as_deref(), Some("ok"));
    assert_eq!(w.attempts(jobs[2])[0].reason.as_deref(), Some("rate_limited"));
    assert!(settled.block.is_some(), "the refusal of an item is one");
    assert_eq!(w.spent("urls", &[]), 3, "what was refused is refunded, and no more");
}

pub fn what_was_refused_for_another_item_goes_again<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(9, "").replace("repeatable = true", "repeatable = false"));
    let jobs = add(&w, 4, "a");
    let item = |job: JobId, status: u16| ItemEnd {
        job,
        status: Some(status),
        reading: said(Reason::Unprocessable),
        fields: BTreeMap::new(),
    };
    let say = |of: &[(JobId, u16)]| {
        let items = of.iter().map(|(job, status)| item(*job, *status)).collect();
        let whole = w.answer(&w.one(), said(Reason::InvalidRequest));
        w.settle(Settlement { items, status: Some(400), ..whole })
    };
    say(&[(jobs[0], 424), (jobs[1], 422), (jobs[2], 424), (jobs[3], 424)]);
    assert_eq!(w.state(jobs[1]), JobState::Failed);
    for job in [jobs[0], jobs[2], jobs[3]] {
        assert_eq!((w.state(job), w.view(job).failures), (JobState::Queued, 0));
    }
    // Where none is at fault nothing would be different the next time.
    say(&[(jobs[0], 424), (jobs[2], 424), (jobs[3], 424)]);
    assert_eq!(w.count(JobState::Failed), 4);
}

pub fn a_refusal_that_says_less_is_left_counted_nothing<S: Store>(make: Make<'_, S>) {
    let reported = "cost = \"items\"\nreported = { json = \"/left\" }\n";
    for kind in ["budget", "rolling"] {
        let w = World::new(make, &batch(100, &items(kind, 100).replace("cost = \"items\"\n", reported)));
        add(&w, 250, "a");
        let call = w.one();
        assert_eq!(call.jobs().count(), 100);
        let refused = Reading { limit: Some("urls".to_owned()), ..said(Reason::QuotaExhausted) };
        let told = vec![Left { limit: "urls".to_owned(), left: 10, resets_at: None }];
        let settled = w.settle(Settlement { remaining: told, ..w.answer(&call, refused.clone()) });
        assert!(settled.block.is_none(), "{kind}: not used up");
        assert_eq!(w.spent("urls", &[]), 0, "{kind}");
        let call = w.one();
        assert_eq!(call.jobs().count(), 10, "{kind}: what is left goes");
        // That as much is left as the batch asked for explains no refusal: it counts, and closes.
        let told = vec![Left { limit: "urls".to_owned(), left: 10, resets_at: None }];
        let settled = w.settle(Settlement { remaining: told, ..w.answer(&call, refused) });
        assert!(settled.block.is_some(), "{kind}");
        assert_eq!(w.spent("urls", &[]), 10, "{kind}");
    }
}

pub fn one_refused_as_a_whole_is_halved_until_one_is_found<S: Store>(make: Make<'_, S>) {
    for reason in [Reason::TooLarge, Reason::InvalidRequest, Reason::Unprocessable] {
        let w = World::new(make, &batch(64, ""));
        let jobs = add(&w, 64, "a");
        let bad = jobs[37];
        let mut calls = 0;
        while w.count(JobState::Queued) > 0 {
            let call = w.one();
            calls += 1;
            let reason = if ids(&call).contains(&bad) { reason } else { Reason::Ok };
            w.say(&call, said(reason));
        }
        assert_eq!(w.state(bad), JobState::Failed, "{reason}");
        assert_eq!(w.count(JobState::Done), 63, "{reason}");
        assert!(calls <= 30, "{reason}: {calls}");
        add(&w, 64, "a");
        let mut last = 0;
        while w.count(JobState::Queued) > 0 {
            let call = w.one();
            last = last.max(call.jobs().count());
            w.ok(&call);
        }
        assert!(last >= 16, "{reason}: it grows again: {last}");
    }
}

pub fn a_number_that_is_too_large_is_left<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(64, ""));
    add(&w, 400, "a");
    let (mut refused, mut passed) = (0, 0);
    while w.count(JobState::Queued) > 0 {
        let call = w.one();
        let many = call.jobs().count() > 10;
        if many { refused += 1 } else { passed += 1 }
        let settled = w.say(&call, said(if many { Reason::TooLarge } else { Reason::Ok }));
        assert_eq!(settled.split.is_some(), many);
    }
    assert_eq!(w.count(JobState::Done), 400);
    assert!(refused <= 6 && passed <= 60, "{refused} {passed}");
}

pub fn a_lost_batch_gives_all_its_jobs_back<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(5, &items("budget", 100)));
    let jobs = add(&w, 5, "a");
    let call = w.one();
    w.pass(call.expires_at.since(w.now()) + secs(1));
    assert_eq!(w.sweep().returned, 5);
    assert_eq!(w.spent("urls", &[]), 5, "what was spent stays spent");
    let again = w.one();
    assert_eq!(ids(&again), jobs);
    assert!(again.jobs().all(|job| job.attempt == 2));
    // The first answer comes after all: it was overtaken.
    let late = w.settle(w.answer(&call, said(Reason::Ok)));
    assert!(late.jobs().all(|(_, end)| end == SettleEnd::Late));
    w.ok(&again);
    assert_eq!(w.count(JobState::Done), 5);
}

pub fn one_that_must_not_be_repeated_is_unsure_as_a_whole<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(5, "").replace("repeatable = true", "repeatable = false"));
    let jobs = add(&w, 5, "a");
    let call = w.one();
    assert!(!call.repeatable);
    w.wait(w.store.mark(vec![call.id])).unwrap();
    w.pass(call.expires_at.since(w.now()) + secs(1));
    assert_eq!(w.sweep().unsure, 5);
    let settled = w.settle(w.answer(&call, said(Reason::Ok)));
    assert!(settled.jobs().all(|(_, end)| end == SettleEnd::Ended(JobState::Done)));
    assert!(jobs.iter().all(|job| w.state(*job) == JobState::Done));
}

pub fn one_given_back_unsent_takes_nothing<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(5, &items("budget", 7)));
    add(&w, 7, "a");
    let call = w.one();
    w.release(std::slice::from_ref(&call), ReleaseWhy::Drained);
    assert_eq!(w.spent("urls", &[]), 0);
    assert_eq!(sizes(&w.claim(64)), [5, 2]);
}

pub fn a_job_too_late_for_the_slot_leaves_its_batch<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(5, &items("budget", 4)));
    let mut jobs: Vec<NewJob> = (0..4).map(|_| job(&w, "a")).collect();
    jobs[1].deadline_at = Some(w.now() + secs(60));
    w.add_jobs(jobs);
    w.ok(&w.one());
    let mut more: Vec<NewJob> = (0..3).map(|_| job(&w, "a")).collect();
    more[1].deadline_at = Some(w.now() + secs(60));
    let more = w.add_jobs(more).ids;
    assert!(w.nothing().is_some());
    assert_eq!(w.state(more[1]), JobState::Expired, "the window opens too late for it");
    w.pass(secs(86_400));
    assert_eq!(ids(&w.one()), [more[0], more[2]]);
}

pub fn other_requests_do_not_share_a_call<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(9, ""));
    let mut jobs: Vec<NewJob> = (0..4).map(|_| job(&w, "a")).collect();
    jobs[1].request.headers.insert("X-Own".to_owned(), "1".to_owned());
    jobs[2].request.body = Some("alone".to_owned());
    w.add_jobs(jobs);
    let calls = w.claim(64);
    assert_eq!(calls.iter().map(|call| call.jobs().count()).sum::<usize>(), 4);
    assert_eq!(calls.len(), 4, "in the order in which they came");
    assert_eq!(columns(&[("site", "a")]), calls[0].partition);
}

/// Two refusals in a row that only a person can lift.
fn held<S: Store>(w: &World<S>) {
    w.say(&w.one(), said(Reason::Forbidden));
    w.pass(secs(60));
    assert!(w.say(&w.one(), said(Reason::Forbidden)).hold.is_some());
}

pub fn after_a_resume_one_job_goes_before_whole_batches<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(100, "").replace("max_items", "linger = \"5s\"\nmax_items"));
    add(&w, 400, "a");
    held(&w);
    w.resume(&[]);
    let probe = w.claim(64);
    assert_eq!(sizes(&probe), [1], "and it waits for no others");
    assert_eq!(w.nothing(), None, "nobody goes beside it");
    // Told to wait, it says nothing of the hold: the next one is one job too, and so is the one after
    // no answer at all.
    let hint = w.store.now().to_wall(w.now() + secs(30));
    w.say(&probe[0], refusal(Reason::RateLimited, hint, ""));
    w.pass_to(w.nothing().unwrap());
    let probe = w.claim(64);
    assert_eq!(sizes(&probe), [1]);
    let silent = w.answer(&probe[0], said(Reason::Transient));
    w.settle(Settlement { status: None, ..silent });
    w.pass(secs(60));
    let probe = w.claim(64);
    assert_eq!(sizes(&probe), [1]);
    w.ok(&probe[0]);
    assert_eq!(sizes(&w.claim(64)), [100, 100, 100, 99]);
}

pub fn a_resume_that_is_refused_cost_one_job<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(100, ""));
    add(&w, 150, "a");
    held(&w);
    w.resume(&[]);
    let probe = w.one();
    assert_eq!(sizes(std::slice::from_ref(&probe)), [1]);
    assert!(w.say(&probe, said(Reason::Forbidden)).hold.is_some());
    assert_eq!(w.nothing(), None);
}

pub fn after_a_block_a_whole_batch_probes<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &batch(100, ""));
    add(&w, 300, "a");
    let hint = w.store.now().to_wall(w.now() + secs(30));
    w.say(&w.one(), refusal(Reason::RateLimited, hint, ""));
    w.pass_to(w.nothing().unwrap());
    let probe = w.claim(64);
    assert_eq!(sizes(&probe), [100], "waiting was all that it asked for");
    w.ok(&probe[0]);
    assert_eq!(sizes(&w.claim(64)), [100, 100]);
}
