//! Claims: what a call is, and what is known of it before it leaves.

use std::time::Duration;

use paceline::job::JobState;
use paceline::reading::Reason;
use paceline::store::{Claim, Store};

use crate::world::{FREE, Make, World, limit, millis, said, secs};

pub fn an_attempt_is_on_record_before_it_is_sent<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = w.one();
    assert_eq!(call.job.attempt, 1);
    assert_eq!(w.state(id), JobState::Running);
    assert_eq!((w.count(JobState::Running), w.count(JobState::Queued)), (1, 0));
    // Whatever happens to the process now, the attempt is known.
    assert_eq!(w.die().returned, 1);
    let attempts = w.attempts(id);
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].n, attempts[0].call), (1, call.id));
    assert_eq!((attempts[0].ended_at, attempts[0].reason.as_deref()), (None, None));
    assert_eq!(w.one().job.attempt, 2);
}

pub fn no_job_is_in_two_calls<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    w.add(10, &[]);
    let (other, runner) = w.another();
    let mut calls = w.claim(4);
    calls.extend(w.claimed_by(&other, runner, 4).calls);
    calls.extend(w.claim(4));
    assert!(w.claim(4).is_empty());
    let mut jobs: Vec<_> = calls.iter().map(|call| call.job.id).collect();
    jobs.sort_unstable();
    jobs.dedup();
    assert_eq!(jobs.len(), 10);
}

pub fn no_call_id_is_used_twice<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, FREE);
    w.add(2, &[]);
    let first = w.one();
    w.say(&first, said(Reason::Ok));
    w.die();
    let second = w.one();
    assert!(second.id > first.id);
}

pub fn a_lease_lasts_for_the_call_and_longer<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[request]\nurl = \"https://api.example/\"\ntimeout = \"7s\"");
    w.add(1, &[]);
    let call = w.one();
    assert_eq!(call.expires_at, call.slot_at + secs(37));
}

pub fn the_lead_is_kept<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"100/s\""));
    w.add(9, &[]);
    let lead = millis(30);
    let wish = |lead| Claim { lead, ..Claim::new(w.upstream.clone(), w.runner, 3) };
    let claimed = w.wait(w.store.claim(wish(lead))).unwrap();
    assert_eq!(claimed.calls.len(), 3);
    assert_eq!(claimed.calls[0].slot_at, w.now() + lead);
    let claimed = w.wait(w.store.claim(wish(Duration::ZERO))).unwrap();
    assert!(claimed.calls[0].slot_at > w.now() + lead, "slots are never handed out twice");
}

pub fn an_unknown_upstream_has_nothing<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let claimed = w.claimed(1);
    assert!(claimed.calls.is_empty() && claimed.next_at.is_none());
    let names = w.wait(w.store.upstream_names()).unwrap();
    assert!(names.is_empty(), "asking leaves nothing behind: {names:?}");
}

pub fn a_call_says_whether_it_is_repeatable<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let mut post = w.job(&[]);
    post.request.method = "POST".to_owned();
    post.repeatable = false;
    w.add_jobs(vec![w.job(&[]), post]);
    let calls = w.claim(2);
    assert_eq!(calls.iter().map(|call| call.repeatable).collect::<Vec<_>>(), [true, false]);
}

pub fn what_was_added_as_unrepeatable_stays_so<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let mut job = w.job(&[]);
    job.repeatable = false;
    w.add_one(job);
    assert!(!w.one().repeatable, "though a GET usually may be sent twice");
}
