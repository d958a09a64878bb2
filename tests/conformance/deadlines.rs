//! Deadlines: a job that could only go too late ends at once, and says when it could have gone.

use paceline::clock::Timestamp;
use paceline::job::{JobId, JobState};
use paceline::reading::Reason;
use paceline::store::{Act, Filter, ReleaseWhy, SettleEnd, Store, Swept};

use crate::world::{FREE, Make, World, daily, limit, refusal, said, secs};

fn until<S: Store>(w: &World<S>, pairs: &[(&str, &str)], at: Timestamp) -> JobId {
    let mut job = w.job(pairs);
    job.deadline_at = Some(at);
    w.add_one(job)
}

fn assert_expired<S: Store>(w: &World<S>, id: JobId, could_go_at: Timestamp) {
    let view = w.view(id);
    assert_eq!(view.state, JobState::Expired);
    assert_eq!(view.could_go_at, Some(could_go_at));
    let detail = view.detail.unwrap();
    assert!(detail.contains(&could_go_at.to_rfc3339_seconds()), "{detail} names {could_go_at}");
}

pub fn it_expires_when_it_has_passed<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let at = w.now() + secs(10);
    let (id, other) = (until(&w, &[], at), until(&w, &[], at.shifted(1)));
    w.pass_to(at.shifted(1));
    let claimed = w.claimed(9);
    assert_eq!((claimed.expired, claimed.calls.len()), (1, 1));
    assert_eq!((w.state(id), w.state(other)), (JobState::Expired, JobState::Running));
}

pub fn a_sweep_finds_it_too<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    until(&w, &[], w.now() + secs(10));
    w.pass(secs(11));
    assert_eq!(w.sweep(), Swept { expired: 1, ..Swept::default() });
}

pub fn it_expires_at_once_behind_a_shared_limit<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(1, ""));
    w.add(1, &[]);
    assert_eq!(w.claim(1).len(), 1);
    let (soon, late) = (w.now() + secs(3600), w.now() + secs(20 * 3600));
    let (soon, late) = (until(&w, &[], soon), until(&w, &[], late));
    let claimed = w.claimed(9);
    assert_eq!(claimed.expired, 1);
    assert_expired(&w, soon, claimed.next_at.unwrap());
    assert_eq!(w.state(late), JobState::Queued);
}

pub fn it_expires_at_once_behind_a_keyed_limit<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(1, "key = [\"site\"]"));
    w.add(1, &[("site", "a")]);
    assert_eq!(w.claim(1).len(), 1);
    let at = w.now() + secs(3600);
    let (behind, free) = (until(&w, &[("site", "a")], at), until(&w, &[("site", "b")], at));
    let last = until(&w, &[("site", "a")], w.now() + secs(20 * 3600));
    let claimed = w.claimed(9);
    assert_eq!((claimed.expired, claimed.calls.len()), (1, 1));
    assert_eq!(claimed.calls[0].job.id, free);
    assert_expired(&w, behind, claimed.next_at.unwrap());
    assert_eq!(w.state(last), JobState::Queued);
}

pub fn it_expires_at_once_behind_a_block<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = until(&w, &[], w.now() + secs(60));
    let other = until(&w, &[], w.now() + secs(60));
    let call = w.one();
    let hint = w.store.now().wall + secs(61);
    let settled = w.say(&call, refusal(Reason::RateLimited, hint, ""));
    assert_eq!(settled.end, SettleEnd::Ended(JobState::Expired));
    assert_expired(&w, id, hint);
    assert_eq!(w.claimed(9).expired, 1);
    assert_expired(&w, other, hint);
    assert_eq!(w.nothing(), None);
}

pub fn a_hint_within_the_deadline_is_waited_for<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let hint = w.store.now().wall + secs(60);
    let id = until(&w, &[], hint);
    let call = w.one();
    w.say(&call, refusal(Reason::RateLimited, hint, ""));
    w.pass_to(hint);
    assert_eq!(w.one().job.id, id, "the deadline itself is in time");
}

pub fn it_expires_at_once_where_its_back_off_is_longer<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, "[retry]\ninitial = \"1m\"");
    let id = until(&w, &[], w.now() + secs(30));
    let call = w.one();
    let settled = w.say(&call, said(Reason::Transient));
    assert_eq!(settled.end, SettleEnd::Ended(JobState::Expired));
    assert_expired(&w, id, call.slot_at.shifted(1) + secs(60));
}

pub fn a_slot_after_the_deadline_is_not_taken<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("rate", "rate", "rate = \"5/s\""));
    w.add(1, &[]);
    w.one();
    let id = until(&w, &[], w.now().shifted(100_000_000));
    let last = w.add(1, &[])[0];
    let calls = w.claim(9);
    assert_eq!((calls.len(), calls[0].job.id), (1, last), "the slot goes to the next");
    assert_expired(&w, id, calls[0].slot_at);
}

pub fn a_running_job_is_left_alone<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = until(&w, &[], w.now() + secs(5));
    let call = w.one();
    w.pass(secs(10));
    assert_eq!(w.sweep().expired, 0);
    assert_eq!(w.state(id), JobState::Running);
    w.release(&[call], ReleaseWhy::Expired);
    assert_eq!(w.claimed(9).expired, 1);
}

pub fn it_expires_at_once_whenever_it_comes_behind_a_block<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(100, "key = [\"site\"]"));
    let at = w.now() + secs(600);
    let jobs: Vec<_> = (0..6).map(|_| until(&w, &[("site", "a")], at)).collect();
    w.add(9, &[("site", "a")]);
    let calls = w.claim(3);
    let hint = w.store.now().wall + secs(3600);
    w.say(&calls[0], refusal(Reason::RateLimited, hint, ""));
    assert_eq!(w.claimed(9).expired, 3, "those that wait");
    // Those that had a slot come back; others are added, or given a deadline.
    w.release(&calls[1..], ReleaseWhy::Blocked);
    assert_eq!(w.claimed(9).expired, 2);
    jobs.iter().for_each(|id| assert_expired(&w, *id, hint));
    let late = until(&w, &[("site", "a")], at);
    assert_eq!(w.claimed(9).expired, 1);
    assert_expired(&w, late, hint);
    let any = w.jobs(Filter { states: vec![JobState::Queued], ..Filter::default() }).pop().unwrap();
    let (priority, due_at) = (None, None);
    w.act_on(any.id, Act::Set { priority, deadline_at: Some(Some(at)), due_at });
    assert_eq!(w.claimed(9).expired, 1);
    assert_expired(&w, any.id, hint);
    assert_eq!(w.nothing(), Some(hint), "the others wait");
}

pub fn it_tells_the_limit_that_kept_it<S: Store>(make: Make<'_, S>) {
    for key in ["", "key = [\"site\"]"] {
        let w = World::new(make, &daily(1, key));
        w.add(1, &[("site", "a")]);
        assert_eq!(w.claim(1).len(), 1);
        let late = until(&w, &[("site", "a")], w.now() + secs(60));
        assert_eq!(w.claimed(9).expired, 1);
        let view = w.view(late);
        assert_eq!(view.limit.as_deref(), Some("daily"));
        assert!(view.detail.unwrap().contains("`daily`"));
        w.act_on(late, Act::Retry);
        let (limit, could_go_at) = (w.view(late).limit, w.view(late).could_go_at);
        assert_eq!((limit, could_go_at), (None, None), "it is queued again");
    }
}

pub fn one_that_is_set_to_be_due_too_late_expires<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let id = w.add(1, &[])[0];
    let call = w.one();
    w.say(&call, said(Reason::Transient));
    let due = w.view(id).due_at;
    let act = |at| Act::Set { priority: None, deadline_at: Some(Some(at)), due_at: None };
    w.act_on(id, act(due));
    assert_eq!(w.state(id), JobState::Queued);
    w.act_on(id, act(due.shifted(-1)));
    let view = w.view(id);
    assert_eq!((view.state, view.could_go_at), (JobState::Expired, Some(due)));
}

pub fn one_that_passes_while_it_waits_tells_what_for<S: Store>(make: Make<'_, S>) {
    let places = limit("places", "concurrency", "amount = 1\nkey = [\"site\"]");
    let w = World::new(make, &places);
    w.add(2, &[("site", "a"), ("site", "a")]);
    assert_eq!(w.claim(9).len(), 1);
    let at = w.now() + secs(10);
    let (behind, held) = (until(&w, &[("site", "a")], at), until(&w, &[("site", "b")], at));
    w.hold(&[("site", "b")]);
    w.claim(9);
    w.pass(secs(11));
    assert_eq!(w.claimed(9).expired, 2);
    let (behind, held) = (w.view(behind), w.view(held));
    assert_eq!(behind.limit.as_deref(), Some("places"));
    assert!(behind.detail.unwrap().contains("while it waited for the limit `places`"));
    assert!(held.detail.unwrap().contains("while it was held: by_hand"));
}
