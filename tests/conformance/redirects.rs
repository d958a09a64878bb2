//! Redirects: one more call of the same job, with a permit and an attempt of its own.

use paceline::job::{JobId, JobState};
use paceline::reading::Reason;
use paceline::redirect::Redirect;
use paceline::store::{Act, Call, Resolution, SettleEnd, Settled, Store};

use crate::world::{FREE, Make, World, daily, refusal, said, secs};

fn to(url: &str) -> Redirect {
    Redirect { url: url.to_owned(), hops: 1, as_get: false, away: false }
}

fn send_on<S: Store>(w: &World<S>, call: &Call, redirect: Redirect) -> Settled {
    w.pass_to(call.slot_at.shifted(1));
    let mut answer = w.answer(call, said(Reason::Ok));
    answer.status = Some(302);
    answer.redirect = Some(redirect);
    w.settle(answer)
}

fn post<S: Store>(w: &World<S>) -> JobId {
    let mut job = w.job(&[]);
    job.request.method = "POST".to_owned();
    job.request.body = Some("x".to_owned());
    job.repeatable = false;
    w.add_one(job)
}

pub fn a_job_that_is_sent_on_goes_to_the_other_address<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(9, ""));
    let id = w.add(2, &[])[0];
    let first = w.one();
    assert_eq!((first.job.url(), &first.job.redirect), ("https://api.example/0", &None));
    let redirect = Redirect { hops: 3, away: true, ..to("https://b.example/x") };
    let settled = send_on(&w, &first, redirect.clone());
    assert_eq!(settled.end, SettleEnd::Again(w.now()), "at once");
    assert_eq!((settled.block, settled.hold), (None, None));
    let second = w.one();
    assert_eq!((second.job.id, second.job.attempt), (id, 2), "it keeps its place");
    assert_eq!((second.job.url(), &second.job.redirect), ("https://b.example/x", &Some(redirect)));
    assert_eq!(second.job.request, first.job.request, "what was added stays");
    w.ok(&second);
    assert_eq!(w.state(id), JobState::Done);
    assert_eq!(w.spent("daily", &[]), 2, "each hop has a permit of its own");
}

pub fn each_hop_is_on_record<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    send_on(&w, &w.one(), to("https://api.example/b"));
    send_on(&w, &w.one(), Redirect { hops: 2, ..to("https://api.example/c") });
    w.ok(&w.one());
    let attempts = w.attempts(id);
    let told: Vec<_> = attempts.iter().map(|a| (a.n, a.status, a.redirect.as_deref())).collect();
    let hop = |n, url| (n, Some(302), Some(url));
    let expected =
        [hop(1, "https://api.example/b"), hop(2, "https://api.example/c"), (3, Some(200), None)];
    assert_eq!(told, expected);
}

pub fn a_hop_is_no_failure<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[retry]\nmax_attempts = 2");
    let id = w.add(1, &[])[0];
    for hops in 1..=9 {
        send_on(&w, &w.one(), Redirect { hops, ..to("https://api.example/b") });
    }
    let SettleEnd::Again(due_at) = w.say(&w.one(), said(Reason::Transient)).end else { panic!() };
    w.pass_to(due_at);
    let call = w.one();
    assert_eq!(call.job.url(), "https://api.example/b", "a failure goes on where it happened");
    assert_eq!(w.say(&call, said(Reason::Transient)).end, SettleEnd::Ended(JobState::Failed));
    let view = w.view(id);
    assert_eq!((view.attempts, view.failures), (11, 1));
}

pub fn one_past_its_deadline_is_not_sent_on<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let mut job = w.job(&[]);
    job.deadline_at = Some(w.now() + secs(5));
    let id = w.add_one(job);
    let call = w.one();
    w.pass(secs(6));
    send_on(&w, &call, to("https://api.example/b"));
    assert_eq!(w.state(id), JobState::Expired);
}

pub fn one_that_goes_on_by_get_may_be_repeated<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = post(&w);
    let call = w.one();
    assert!(!call.repeatable);
    send_on(&w, &call, Redirect { as_get: true, ..to("https://api.example/done") });
    let call = w.one();
    assert!(call.repeatable);
    assert_eq!((call.job.method(), call.job.body()), ("GET", None));
    let end = w.say(&call, said(Reason::Transient)).end;
    assert!(matches!(end, SettleEnd::Again(_)), "{end:?}");
    assert_eq!(w.state(id), JobState::Queued);
}

pub fn one_that_goes_on_as_it_is_may_not<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = post(&w);
    send_on(&w, &w.one(), to("https://api.example/b"));
    let call = w.one();
    assert!(!call.repeatable);
    assert_eq!((call.job.method(), call.job.body()), ("POST", Some("x")));
    w.say(&call, said(Reason::Transient));
    assert_eq!(w.state(id), JobState::Unsure);
    assert_eq!(w.act_on(id, Act::Resolve(Resolution::Queued)), 1);
    assert_eq!(w.one().job.url(), "https://api.example/0", "it begins anew");
}

pub fn a_retry_begins_at_the_jobs_own_address<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let ids = w.add(2, &[]);
    for call in w.claim(2) {
        send_on(&w, &call, to("https://b.example/gone"));
    }
    let calls = w.claim(2);
    w.say(&calls[0], said(Reason::NotFound));
    w.release(&calls[1..], paceline::store::ReleaseWhy::Drained);
    assert_eq!(w.act_on(ids[0], Act::Retry), 1);
    let addresses: Vec<_> = w.claim(2).iter().map(|call| call.job.url().to_owned()).collect();
    assert_eq!(addresses, ["https://b.example/gone", "https://api.example/0"], "only its own");
}

pub fn a_lost_hop_goes_to_the_other_address_again<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, FREE);
    w.add(1, &[]);
    send_on(&w, &w.one(), to("https://api.example/b"));
    w.one();
    assert_eq!(w.die().returned, 1);
    let call = w.one();
    assert_eq!((call.job.url(), call.job.attempt), ("https://api.example/b", 3));
}

pub fn a_late_redirect_is_followed_while_nothing_was_sent_since<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, FREE);
    let id = post(&w);
    let call = w.one();
    w.wait(w.store.mark(vec![call.id])).unwrap();
    assert_eq!(w.die().unsure, 1);
    send_on(&w, &call, to("https://api.example/b"));
    assert_eq!(w.state(id), JobState::Queued);
    let second = w.one();
    assert_eq!(second.job.url(), "https://api.example/b");
    assert_eq!(send_on(&w, &call, to("https://api.example/c")).end, SettleEnd::Late);
}

pub fn the_way_opens_no_block_and_forgets_no_refusal<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    w.add(5, &[]);
    let call = w.one();
    w.say(&call, refusal(Reason::RateLimited, w.store.now().wall + secs(9), ""));
    w.pass(secs(10));
    let probe = w.one();
    send_on(&w, &probe, to("https://api.example/b"));
    let next = w.claim(9);
    assert_eq!(next.len(), 1, "one probe goes on alone");
    assert_eq!(next[0].job.url(), "https://api.example/b");
    w.ok(&next[0]);
    assert_eq!(w.claim(9).len(), 4);
}

pub fn what_nobody_gets_past_behind_a_redirect_is_held<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    for _ in 0..2 {
        w.add(1, &[]);
        send_on(&w, &w.one(), to("https://api.example/login"));
        w.say(&w.one(), said(Reason::Forbidden));
    }
    assert_eq!(w.look().partitions[0].wait.reason, "forbidden");
}
