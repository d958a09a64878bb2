//! What may stand for a time only: a key that is still being verified, and what ends its time.

use std::time::Duration;

use paceline::job::JobState;
use paceline::reading::{Reading, Reason};
use paceline::store::{Call, Held, Store};

use crate::world::{Make, World, limit, said, secs};

/// How long a key may be pending.
const AT_MOST: Duration = Duration::from_secs(900);

fn pending() -> Reading {
    Reading {
        wait: Some(secs(60)),
        becomes: Some((AT_MOST, Reason::Misconfigured)),
        ..said(Reason::KeyPending)
    }
}

fn world<S: Store>(make: Make<'_, S>) -> World<S> {
    let by_site = "amount = 100000\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]";
    let w = World::new(make, &limit("site", "budget", by_site));
    w.add(40, &[("site", "a")]);
    w
}

/// The next call that may go; time passes until then.
fn next<S: Store>(w: &World<S>) -> Call {
    loop {
        let claimed = w.claimed(1);
        match claimed.calls.into_iter().next() {
            Some(call) => return call,
            None => w.pass_to(claimed.next_at.unwrap()),
        }
    }
}

/// Every second answer is a pending key's, the others are `between`; what holds it, and after how long.
fn until_held<S: Store>(w: &mut World<S>, mut between: impl FnMut(&mut World<S>) -> Reading) -> (Held, Duration) {
    let begun = w.now();
    for n in 0..80 {
        let reading = if n % 2 == 0 { pending() } else { between(w) };
        let call = next(w);
        if let Some(held) = w.say(&call, reading).hold {
            return (held, w.now().since(begun));
        }
    }
    panic!("it is pending for ever");
}

fn is_misconfigured_in_time<S: Store>(w: &mut World<S>, between: impl FnMut(&mut World<S>) -> Reading) {
    let (held, stood) = until_held(w, between);
    assert_eq!(held.reason, "misconfigured");
    assert!(stood >= AT_MOST && stood < AT_MOST + secs(400), "{stood:?}");
    assert!(held.detail.contains("did not pass within 15 min"), "{}", held.detail);
}

pub fn other_answers_do_not_give_a_pending_key_more_time<S: Store>(make: Make<'_, S>) {
    let others = [Reason::RateLimited, Reason::Transient, Reason::NotFound, Reason::Overloaded];
    for reason in others {
        let mut w = world(make);
        is_misconfigured_in_time(&mut w, |_| said(reason));
        assert_eq!(w.count(JobState::Done), 0);
    }
}

pub fn no_restart_gives_a_pending_key_more_time<S: Store>(make: Make<'_, S>) {
    let mut w = world(make);
    is_misconfigured_in_time(&mut w, |w| {
        w.die();
        pending()
    });
    assert_eq!(w.count(JobState::Queued), 40, "none is lost, and none has used up its attempts");
    let jobs = w.jobs(paceline::store::Filter::default());
    assert!(jobs.iter().all(|job| job.failures == 0));
}

pub fn a_success_ends_a_pending_keys_time<S: Store>(make: Make<'_, S>) {
    let mut w = world(make);
    for _ in 0..10 {
        let call = next(&w);
        assert_eq!(w.say(&call, pending()).hold, None);
        w.pass(AT_MOST);
        let call = next(&w);
        w.ok(&call);
    }
    let (held, stood) = until_held(&mut w, |_| pending());
    assert!(held.reason == "misconfigured" && stood >= AT_MOST, "{stood:?}");
}

pub fn a_resume_gives_a_pending_key_its_time_anew<S: Store>(make: Make<'_, S>) {
    let mut w = world(make);
    is_misconfigured_in_time(&mut w, |_| pending());
    w.pass(secs(86_400));
    assert_eq!(w.resume(&[("site", "a")]), 1);
    let probe = next(&w);
    assert_eq!(w.nothing(), None, "one probe before the rest");
    assert_eq!(w.say(&probe, pending()).hold, None);
    is_misconfigured_in_time(&mut w, |_| pending());
}

pub fn a_pending_key_is_asked_once_in_a_while<S: Store>(make: Make<'_, S>) {
    let mut w = world(make);
    w.unanswered = 4;
    let begun = w.now();
    let first = w.claim(64);
    assert_eq!(first.len(), 4);
    first.iter().for_each(|call| assert_eq!(w.say(call, pending()).hold, None));
    let mut calls = 0;
    let held = loop {
        let call = next(&w);
        calls += 1;
        assert!(w.claim(64).is_empty(), "one probe at a time");
        if w.say(&call, pending()).hold.is_some() {
            break w.now().since(begun);
        }
    };
    assert!(calls <= 15 && held < AT_MOST + secs(120), "{calls} calls in {held:?}");
}
