//! Settles: each call ends once, and its job with it or not.

use std::collections::BTreeMap;

use paceline::job::{JobId, JobState};
use paceline::reading::{Reading, Reason};
use paceline::store::{Call, KeptBody, SettleEnd, Store};
use serde_json::json;

use crate::world::{FREE, Make, World, daily, millis, refusal, said, secs};

pub fn an_answer_ends_its_job<S: Store>(make: Make<'_, S>) {
    for (reason, state) in [
        (Reason::Ok, JobState::Done),
        (Reason::AcceptedPending, JobState::Done),
        (Reason::InvalidRequest, JobState::Failed),
        (Reason::NotFound, JobState::Failed),
        (Reason::TooLarge, JobState::Failed),
        (Reason::Unknown, JobState::Failed),
    ] {
        let w = World::new(make, FREE);
        let id = w.add(1, &[])[0];
        let call = w.one();
        assert_eq!(w.say(&call, said(reason)).end, SettleEnd::Ended(state), "{reason}");
        let view = w.view(id);
        assert_eq!((view.state, view.attempts), (state, 1));
        assert_eq!(view.reason.as_deref(), Some(reason.name()));
        assert!(view.ended_at.is_some());
        assert_eq!(w.count(JobState::Running), 0);
    }
}

pub fn the_attempt_is_kept_with_its_reading<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(9, ""));
    let id = w.add(1, &[])[0];
    let call = w.one();
    let hint = w.store.now().wall + secs(30);
    let mut answer = w.answer(&call, refusal(Reason::QuotaExhausted, hint, "daily"));
    answer.body = Some(KeptBody { bytes: b"slow down".to_vec(), cut: true });
    w.pass(millis(100));
    w.settle(answer);
    let attempts = w.attempts(id);
    assert_eq!(attempts.len(), 1);
    let attempt = &attempts[0];
    assert_eq!((attempt.n, attempt.call, attempt.sent_at), (1, call.id, call.slot_at));
    assert_eq!(attempt.ended_at, Some(w.now()));
    assert_eq!(attempt.status, Some(403));
    assert_eq!(attempt.reason.as_deref(), Some("quota_exhausted"));
    assert_eq!((attempt.limit.as_deref(), attempt.hint_at), (Some("daily"), Some(hint)));
    assert_eq!(attempt.source.as_deref(), Some("test"));
    assert_eq!(attempt.body, Some(KeptBody { bytes: b"slow down".to_vec(), cut: true }));
}

pub fn fields_are_kept_with_the_job<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = w.one();
    let mut answer = w.answer(&call, said(Reason::Ok));
    answer.fields = BTreeMap::from([("stock".to_owned(), json!({"n": [1, null, "ä"]}))]);
    w.settle(answer.clone());
    assert_eq!(w.view(id).fields, answer.fields);
}

pub fn settling_twice_is_the_same_as_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(9, ""));
    let id = w.add(1, &[])[0];
    let call = w.one();
    let answer = w.answer(&call, said(Reason::Ok));
    let both = w.wait(w.store.settle(w.upstream.clone(), vec![answer.clone(), answer])).unwrap();
    assert_eq!(both[0].end, SettleEnd::Ended(JobState::Done));
    assert_eq!(both[1].end, SettleEnd::Late);
    let other = w.answer(&call, said(Reason::Forbidden));
    w.settle(other);
    assert_eq!((w.state(id), w.attempts(id).len()), (JobState::Done, 1));
    assert_eq!(w.spent("daily", &[]), 1);
}

pub fn failures_back_off_and_are_used_up<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[retry]\nmax_attempts = 4");
    let id = w.add(1, &[])[0];
    let mut gaps = Vec::new();
    loop {
        let call = w.one();
        match w.say(&call, said(Reason::Transient)).end {
            SettleEnd::Again(due_at) => {
                gaps.push(due_at.since(w.now()));
                assert_eq!(w.nothing(), Some(due_at));
                w.pass_to(due_at);
            }
            end => {
                assert_eq!(end, SettleEnd::Ended(JobState::Failed));
                break;
            }
        }
    }
    assert_eq!(gaps, [1, 2, 4].map(secs));
    let view = w.view(id);
    assert_eq!((view.attempts, view.failures), (4, 3));
}

pub fn a_failure_touches_only_its_job<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add(3, &[]);
    let call = w.one();
    w.say(&call, said(Reason::Transient));
    let ids: Vec<JobId> = w.claim(9).iter().map(|call| call.job.id).collect();
    assert_eq!(ids, jobs[1..]);
}

pub fn being_told_to_wait_is_never_used_up<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[retry]\nmax_attempts = 2");
    let id = w.add(1, &[])[0];
    for n in 1..=8 {
        let call = w.one();
        assert_eq!(call.job.attempt, n);
        w.say(&call, refusal(Reason::RateLimited, w.store.now().wall + secs(9), ""));
        w.pass(secs(10));
    }
    let view = w.view(id);
    assert_eq!((view.state, view.attempts, view.failures), (JobState::Queued, 8, 0));
}

fn post<S: Store>(w: &World<S>) -> JobId {
    let mut job = w.job(&[]);
    job.request.method = "POST".to_owned();
    job.repeatable = false;
    w.add_one(job)
}

pub fn what_may_not_be_repeated_is_sent_again_only_on_proof<S: Store>(make: Make<'_, S>) {
    let again = |reading: Reading, left: bool| {
        let w = World::new(make, FREE);
        let id = post(&w);
        let call: Call = w.one();
        assert!(!call.repeatable);
        w.wait(w.store.mark(vec![call.id])).unwrap();
        let mut answer = w.answer(&call, reading);
        answer.left = left;
        w.settle(answer);
        w.state(id)
    };
    let hint = World::new(make, FREE).store.now().wall + secs(9);
    assert_eq!(again(said(Reason::Transient), true), JobState::Unsure);
    assert_eq!(again(said(Reason::Transient), false), JobState::Queued, "it never left");
    assert_eq!(again(refusal(Reason::RateLimited, hint, ""), true), JobState::Queued);
    assert_eq!(again(said(Reason::Ok), true), JobState::Done);
    let not_retryable = Reading { retryable: false, ..said(Reason::Transient) };
    assert_eq!(again(not_retryable, true), JobState::Unsure);
}

pub fn many_settle_at_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(99, ""));
    w.add(40, &[]);
    let calls = w.claim(40);
    let answers = calls.iter().map(|call| w.answer(call, said(Reason::Ok))).collect();
    let settled = w.wait(w.store.settle(w.upstream.clone(), answers)).unwrap();
    assert_eq!(settled.len(), 40);
    assert!(settled.iter().zip(&calls).all(|(settled, call)| settled.call == call.id));
    assert_eq!(w.count(JobState::Done), 40);
}
