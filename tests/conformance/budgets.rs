//! Budgets and rolling limits: no window holds more than its amount.

use paceline::clock::Timestamp;
use paceline::job::JobState;
use paceline::reading::Reason;
use paceline::store::{ReleaseWhy, Store};

use crate::world::{START, Make, World, columns, daily, limit, refusal, said, secs};

/// The reset after [`START`], with the span around it in which nothing goes.
fn after_reset() -> Timestamp {
    Timestamp::from_secs(START + 11 * 3600 + 1800 + 2)
}

fn add_sites<S: Store>(w: &World<S>, sites: usize, jobs: usize) {
    for site in 0..sites {
        w.add(jobs, &[("site", &site.to_string())]);
    }
}

const BY_SITE: &str = "key = [\"site\"]";

pub fn a_window_holds_its_amount_and_no_more<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &format!("{}{}", daily(11, ""), limit("site", "budget", "amount = 5\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]")));
    add_sites(&w, 4, 10);
    let midnight = after_reset() + secs(3600);
    let sent = w.run(midnight);
    let (today, tomorrow): (Vec<_>, Vec<_>) = sent.iter().partition(|(at, _)| *at < after_reset());
    assert_eq!((today.len(), tomorrow.len()), (11, 11));
    for site in 0..4 {
        let key = columns(&[("site", &site.to_string())]);
        assert!(today.iter().filter(|(_, partition)| *partition == key).count() <= 5);
    }
}

pub fn all_processes_share_a_window<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(7, ""));
    w.add(30, &[]);
    let (other, runner) = w.another();
    let (third, third_runner) = w.another();
    let mut sent = 0;
    for _ in 0..5 {
        sent += w.claimed_by(&other, runner, 2).calls.len();
        sent += w.claim(1).len();
        sent += w.claimed_by(&third, third_runner, 3).calls.len();
    }
    assert_eq!(sent, 7);
    assert_eq!(w.spent("daily", &[]), 7);
}

pub fn what_was_spent_stays_spent_after_a_crash<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &daily(5, ""));
    w.add(9, &[]);
    assert_eq!(w.claim(3).len(), 3);
    assert_eq!(w.die().returned, 3);
    assert_eq!(w.spent("daily", &[]), 3);
    assert_eq!(w.claim(9).len(), 2);
    w.pass(secs(600));
    assert_eq!(w.sweep().returned, 2, "leases that ran out alike");
    assert!(w.claim(9).is_empty());
    assert_eq!(w.spent("daily", &[]), 5);
}

pub fn a_job_tried_again_is_charged_again<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(3, ""));
    w.add(1, &[]);
    for spent in 1..=3 {
        let call = w.one();
        w.say(&call, said(Reason::Transient));
        assert_eq!(w.spent("daily", &[]), spent);
        w.pass(secs(60));
    }
    assert_eq!(w.nothing(), Some(after_reset()));
}

pub fn what_was_released_or_never_left_goes_back<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(2, ""));
    w.add(9, &[]);
    let calls = w.claim(2);
    w.release(&calls[..1], ReleaseWhy::Drained);
    assert_eq!(w.spent("daily", &[]), 1);
    let mut unsent = w.answer(&calls[1], said(Reason::Transient));
    (unsent.left, unsent.status) = (false, None);
    w.settle(unsent.clone());
    assert_eq!(w.spent("daily", &[]), 0);
    w.settle(unsent);
    w.release(&calls, ReleaseWhy::Drained);
    assert_eq!(w.spent("daily", &[]), 0);
    assert_eq!(w.claim(9).len(), 2, "nothing goes back twice");
}

pub fn units_that_come_back_wake_who_waits<S: Store>(make: Make<'_, S>) {
    let shared = limit("pool", "budget", "amount = 2\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"pool\"]");
    let sites = limit("site", "budget", "amount = 9\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]");
    let w = World::new(make, &format!("{shared}{sites}"));
    for site in ["a", "b", "c", "d"] {
        w.add(1, &[("pool", "p"), ("site", site)]);
    }
    let calls = w.claim(9);
    assert_eq!(calls.len(), 2);
    w.nothing();
    let mut unsent = w.answer(&calls[0], said(Reason::Transient));
    (unsent.left, unsent.status) = (false, None);
    w.settle(unsent);
    assert_eq!(w.claim(9).len(), 1);
    w.release(&calls[1..], ReleaseWhy::Forfeited);
    assert_eq!(w.claim(9).len(), 1);
}

pub fn a_refused_call_is_refunded_where_only_accepted_ones_count<S: Store>(make: Make<'_, S>) {
    let refused = |counts: &str| {
        let w = World::new(make, &daily(5, &format!("counts = \"{counts}\"")));
        w.add(3, &[]);
        let call = w.one();
        w.say(&call, refusal(Reason::RateLimited, w.store.now().wall + secs(5), ""));
        w.spent("daily", &[])
    };
    assert_eq!((refused("sent"), refused("accepted")), (1, 0));
}

pub fn an_instance_with_figures_of_its_own_has_them<S: Store>(make: Make<'_, S>) {
    let exception = format!("{BY_SITE}\n[[limit.for]]\nwhen = {{ site = \"big\" }}\namount = 6");
    let w = World::new(make, &daily(2, &exception));
    w.add(9, &[("site", "big")]);
    w.add(9, &[("site", "small")]);
    let calls = w.claim(64);
    let big = calls.iter().filter(|call| call.partition["site"] == "big").count();
    assert_eq!((big, calls.len() - big), (6, 2));
}

pub fn a_reserve_is_left_for_people<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(10, "reserve = 4"));
    w.add(30, &[]);
    assert_eq!(w.claim(64).len(), 6);
}

pub fn units_spent_elsewhere_count<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(10, ""));
    w.add(30, &[]);
    let spend = |units| {
        let spend = w.store.spend(w.upstream.clone(), "daily".to_owned(), columns(&[]), units);
        w.wait(spend).unwrap();
    };
    spend(7);
    assert_eq!(w.claim(64).len(), 3);
    assert_eq!(w.nothing(), Some(after_reset()));
    spend(-2);
    assert_eq!(w.claim(64).len(), 2, "units taken back can be spent");
    spend(-100);
    assert_eq!(w.spent("daily", &[]), 0);
    let wrong = w.store.spend(w.upstream.clone(), "other".to_owned(), columns(&[]), 1);
    assert!(w.wait(wrong).is_err());
    let wrong = w.store.spend(w.upstream.clone(), "daily".to_owned(), columns(&[("a", "b")]), 1);
    assert!(w.wait(wrong).is_err());
}

pub fn a_rolling_limit_holds_in_every_span<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("span", "rolling", "amount = 5\nper = \"1h\""));
    w.add(40, &[]);
    let mut slots = Vec::new();
    for _ in 0..80 {
        let claimed = w.claimed(2);
        for call in &claimed.calls {
            slots.push(call.slot_at);
            w.ok(call);
        }
        w.pass(secs(300));
    }
    assert_eq!(slots.len(), 35, "5 an hour for 6 h 40 min");
    for (first, last) in slots.iter().zip(&slots[5..]) {
        assert!(*last >= *first + secs(3600), "six within an hour of {first}");
    }
}

pub fn units_spent_elsewhere_count_in_the_span<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("span", "rolling", "amount = 5\nper = \"1h\""));
    w.add(40, &[]);
    assert_eq!(w.claim(1).len(), 1);
    let spend = |units| {
        let spend = w.store.spend(w.upstream.clone(), "span".to_owned(), columns(&[]), units);
        w.wait(spend).unwrap();
    };
    spend(2);
    assert_eq!(w.spent("span", &[]), 3, "beside what went at the same instant");
    assert_eq!(w.claim(9).len(), 2);
    spend(-1);
    assert_eq!(w.claim(9).len(), 1);
}

pub fn a_cost_is_taken_from_the_column<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(10, "cost = \"pages\""));
    let ids: Vec<_> = ["4", "5", "0", "1"].iter().map(|n| w.add(1, &[("pages", n)])[0]).collect();
    let calls = w.claim(9);
    assert_eq!(calls.iter().map(|call| call.job.id).collect::<Vec<_>>(), ids);
    assert_eq!(w.spent("daily", &[]), 10);
    w.release(&calls[1..2], ReleaseWhy::Drained);
    assert_eq!(w.spent("daily", &[]), 5);
}

pub fn what_can_never_fit_fails_and_says_so<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(10, "cost = \"pages\""));
    let large = w.add(1, &[("pages", "11")])[0];
    let fits = w.add(1, &[("pages", "10")])[0];
    let claimed = w.claimed(9);
    assert_eq!((claimed.failed, claimed.calls.len()), (1, 1));
    assert_eq!(claimed.calls[0].job.id, fits);
    let view = w.view(large);
    assert_eq!((view.state, view.attempts), (JobState::Failed, 0));
    assert!(view.detail.unwrap().contains("daily"));
}

pub fn a_large_job_holds_back_no_other_partition<S: Store>(make: Make<'_, S>) {
    let sites = limit("site", "budget", "amount = 99\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]");
    let w = World::new(make, &format!("{}{sites}", daily(10, "cost = \"pages\"")));
    w.add(1, &[("site", "a"), ("pages", "8")]);
    assert_eq!(w.claim(1).len(), 1);
    let large = w.add(1, &[("site", "a"), ("pages", "5")])[0];
    let mut small = w.job(&[("site", "b"), ("pages", "1")]);
    small.deadline_at = Some(w.now() + secs(3600));
    let small = w.add_one(small);
    let calls = w.claim(9);
    assert_eq!(calls.len(), 1, "two units are left");
    assert_eq!(calls[0].job.id, small);
    assert_eq!(w.nothing(), Some(after_reset()));
    w.pass_to(after_reset());
    assert_eq!(w.one().job.id, large);
}

pub fn a_large_job_is_not_starved_by_small_ones<S: Store>(make: Make<'_, S>) {
    let sites = limit("site", "budget", "amount = 99999\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]");
    let rate = limit("rate", "rate", "rate = \"10/s\"\nburst = 5\ncost = \"pages\"");
    let w = World::new(make, &format!("{rate}{sites}"));
    w.add(400, &[("site", "small"), ("pages", "1")]);
    w.claim(9);
    let large = w.add(1, &[("site", "large"), ("pages", "5")])[0];
    w.run(w.now() + secs(20));
    assert_eq!(w.state(large), JobState::Done);
}

pub fn what_a_shared_window_cannot_grant_later_closes_nobody_now<S: Store>(make: Make<'_, S>) {
    // Both end at the same instant, and the shared one opens a while after its reset.
    let shared = daily(100, "settle_after_reset = \"2m\"");
    let sites = limit("site", "budget", "amount = 1\nper = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]");
    let w = World::new(make, &format!("{shared}{sites}"));
    w.add(3, &[("site", "a")]);
    let mut soon = w.job(&[("site", "b")]);
    soon.deadline_at = Some(w.now() + secs(60));
    let soon = w.add_one(soon);
    assert_eq!(w.claim(1).len(), 1);
    let calls = w.claim(9);
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].job.id, soon);
    assert_eq!(w.nothing(), Some(after_reset() + secs(118)));
    w.pass_to(after_reset() + secs(118));
    assert_eq!(w.claim(9).len(), 1);
}
