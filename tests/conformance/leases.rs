//! Leases that ran out, processes that died, and answers that come late.

use paceline::job::{JobId, JobState};
use paceline::reading::Reason;
use paceline::store::{Act, Resolution, SettleEnd, Store, Swept};

use crate::world::{FREE, Make, World, daily, limit, millis, refusal, said, secs};

fn post<S: Store>(w: &World<S>) -> JobId {
    let mut job = w.job(&[]);
    job.request.method = "POST".to_owned();
    job.repeatable = false;
    w.add_one(job)
}

pub fn a_lease_that_ran_out_gives_the_job_back<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = w.one();
    w.pass_to(call.expires_at.shifted(-1));
    assert_eq!(w.sweep(), Swept::default());
    assert!(w.claim(9).is_empty());
    w.pass_to(call.expires_at);
    assert_eq!(w.sweep(), Swept { returned: 1, ..Swept::default() });
    assert_eq!(w.state(id), JobState::Queued);
    assert!(w.is_blocked(&call), "should it live after all, it must not be sent");
    assert_eq!(w.one().job.attempt, 2);
}

pub fn a_lost_lease_is_told_to_who_looks_before_sending<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    post(&w);
    let call = w.one();
    w.pass(secs(3600));
    w.sweep();
    w.wait(w.store.mark(vec![call.id])).unwrap();
    assert!(w.store.block_seq().unwrap() > call.block_seq);
    assert!(w.is_blocked(&call));
}

pub fn what_must_not_be_repeated_is_unsure_once_marked<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &daily(9, ""));
    let (marked, unmarked) = (post(&w), post(&w));
    let calls = w.claim(2);
    w.wait(w.store.mark(vec![calls[0].id])).unwrap();
    assert_eq!(w.die(), Swept { returned: 1, unsure: 1, expired: 0, restored: None });
    assert_eq!((w.state(marked), w.state(unmarked)), (JobState::Unsure, JobState::Queued));
    assert_eq!((w.attempts(marked).len(), w.attempts(unmarked).len()), (1, 0));
    assert_eq!(w.spent("daily", &[]), 2, "what was spent stays spent");
    let again = w.one();
    assert_eq!((again.job.id, again.job.attempt), (unmarked, 1), "it had not left");
    assert!(w.claim(9).is_empty());
}

pub fn an_unsure_job_is_resolved_by_a_person<S: Store>(make: Make<'_, S>) {
    for (how, state) in [
        (Resolution::Done, JobState::Done),
        (Resolution::Failed, JobState::Failed),
        (Resolution::Queued, JobState::Queued),
    ] {
        let mut w = World::new(make, FREE);
        let id = post(&w);
        let call = w.one();
        w.wait(w.store.mark(vec![call.id])).unwrap();
        w.die();
        assert_eq!(w.act_on(id, Act::Resolve(how)), 1);
        assert_eq!(w.state(id), state);
        assert_eq!(w.claim(9).len(), usize::from(state == JobState::Queued));
    }
}

/// A call whose lease ran out before it was answered.
fn lost<S: Store>(w: &World<S>) -> paceline::store::Call {
    let call = w.one();
    w.wait(w.store.mark(vec![call.id])).unwrap();
    w.pass_to(call.expires_at);
    w.sweep();
    call
}

pub fn a_late_answer_counts_while_nothing_was_sent_since<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = lost(&w);
    let late = w.answer(&call, said(Reason::Ok));
    assert_eq!(w.settle(late.clone()).end, SettleEnd::Ended(JobState::Done));
    assert_eq!(w.state(id), JobState::Done);
    assert!(w.claim(9).is_empty(), "it is not sent again");
    assert_eq!(w.settle(late).end, SettleEnd::Late);
    let attempts = w.attempts(id);
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].reason.as_deref(), Some("ok"));
}

pub fn a_late_answer_resolves_an_unsure_job<S: Store>(make: Make<'_, S>) {
    for (reason, state) in [
        (Reason::Ok, JobState::Done),
        (Reason::NotFound, JobState::Failed),
        (Reason::Transient, JobState::Unsure),
        (Reason::RateLimited, JobState::Queued),
    ] {
        let w = World::new(make, FREE);
        let id = post(&w);
        let call = lost(&w);
        assert_eq!(w.state(id), JobState::Unsure);
        let late = w.answer(&call, said(reason));
        w.settle(late);
        assert_eq!(w.state(id), state, "{reason}");
        w.pass(secs(60));
        assert_eq!(w.claim(9).len(), usize::from(state == JobState::Queued));
    }
}

pub fn a_stale_answer_is_recorded_and_moves_nothing<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let stale = lost(&w);
    let fresh = w.one();
    let late = w.answer(&stale, said(Reason::NotFound));
    assert_eq!(w.settle(late).end, SettleEnd::Late);
    assert_eq!(w.state(id), JobState::Running);
    w.say(&fresh, said(Reason::Transient));
    assert_eq!(w.state(id), JobState::Queued);
    let attempts = w.attempts(id);
    assert_eq!(attempts.iter().map(|attempt| attempt.n).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(attempts[0].reason.as_deref(), Some("not_found"));
}

pub fn a_stale_answer_after_a_later_one_moves_nothing<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let stale = lost(&w);
    let fresh = w.one();
    w.say(&fresh, said(Reason::Transient));
    let late = w.answer(&stale, said(Reason::Ok));
    assert_eq!(w.settle(late).end, SettleEnd::Late);
    assert_eq!(w.state(id), JobState::Queued);
}

pub fn the_hint_of_a_late_refusal_is_kept_to<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(99, ""));
    w.add(2, &[]);
    let stale = lost(&w);
    let hint = w.store.now().wall + secs(500);
    let fresh = w.claim(1);
    assert_eq!(fresh.len(), 1);
    let late = w.answer(&stale, refusal(Reason::RateLimited, hint, ""));
    assert!(w.settle(late).block.is_some());
    assert_eq!(w.nothing(), Some(hint));
    let w = World::new(make, &daily(99, ""));
    w.add(2, &[]);
    let stale = lost(&w);
    let late = w.answer(&stale, refusal(Reason::RateLimited, hint, "daily"));
    assert!(w.settle(late).block.is_some(), "and where the job waits for its answer");
    assert_eq!(w.nothing(), Some(hint));
}

pub fn a_late_answer_to_a_job_that_was_ended_moves_nothing<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let stale = lost(&w);
    assert_eq!(w.act_on(id, Act::Cancel), 1);
    let late = w.answer(&stale, said(Reason::Ok));
    assert_eq!(w.settle(late).end, SettleEnd::Late);
    assert_eq!(w.state(id), JobState::Cancelled);
}

pub fn the_living_keep_their_leases<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, FREE);
    w.add(4, &[]);
    let (other, runner) = w.another();
    assert_eq!(w.claimed_by(&other, runner, 2).calls.len(), 2);
    assert_eq!(w.claim(9).len(), 2);
    assert_eq!(w.die().returned, 2, "those of the dead, and no others");
    assert_eq!(w.count(JobState::Running), 2);
    drop(other);
    assert_eq!(w.sweep().returned, 2);
}

pub fn a_process_that_leaves_is_gone<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let (other, runner) = w.another();
    assert_eq!(w.wait(w.store.runners()).unwrap().len(), 2);
    w.wait(other.retire(runner)).unwrap();
    assert_eq!(w.wait(w.store.runners()).unwrap().len(), 1);
    w.add(1, &[]);
    // One that leaves with calls that it could not settle leaves them to be found.
    let (third, third_runner) = w.another();
    assert_eq!(w.claimed_by(&third, third_runner, 1).calls.len(), 1);
    w.wait(third.retire(third_runner)).unwrap();
    assert_eq!(w.sweep().returned, 1);
    assert_eq!(w.wait(w.store.runners()).unwrap().len(), 1);
}

pub fn what_a_dead_process_had_is_news<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("places", "concurrency", "amount = 1"));
    w.add(2, &[]);
    let (other, runner) = w.another();
    assert_eq!(w.claimed_by(&other, runner, 1).calls.len(), 1);
    let claimed = w.claimed(1);
    drop(other);
    w.sweep();
    assert!(w.has_news(&w.store, claimed.news));
    w.pass(millis(1));
    assert_eq!(w.claim(1).len(), 1);
}

pub fn a_late_silence_is_not_told_twice<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = post(&w);
    let call = w.one();
    w.wait(w.store.mark(vec![call.id])).unwrap();
    w.pass_to(call.expires_at);
    assert_eq!(w.sweep().unsure, 1);
    let mut lost = w.answer(&call, said(Reason::Transient));
    lost.status = None;
    assert_eq!(w.settle(lost).end, SettleEnd::Late, "it is unsure already");
    assert_eq!(w.state(id), JobState::Unsure);
}
