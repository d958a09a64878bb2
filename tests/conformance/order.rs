//! Who goes first.

use paceline::job::{JobId, JobState, NewJob};
use paceline::reading::Reason;
use paceline::store::{Act, Store};

use crate::world::{FREE, Make, World, limit, refusal, said, secs};

const BY_SITE: &str = "[[limit]]\nname = \"site\"\nkind = \"budget\"\namount = 100000\n\
    per = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]\n";

fn ids(calls: &[paceline::store::Call]) -> Vec<JobId> {
    calls.iter().map(|call| call.job.id).collect()
}

pub fn priority_then_due_then_arrival<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let job = |priority, due: Option<u64>| {
        let mut job = w.job(&[]);
        (job.priority, job.not_before) = (priority, due.map(|at| w.now() + secs(at)));
        w.add_one(job)
    };
    let (late, early) = (job(0, Some(20)), job(0, Some(10)));
    let (third, first, second) = (job(3, Some(10)), job(9, Some(20)), job(9, Some(20)));
    w.pass(secs(20));
    let mut order = Vec::new();
    for _ in 0..5 {
        order.extend(ids(&w.claim(1)));
    }
    assert_eq!(order, [first, second, third, early, late]);
}

pub fn partitions_share_fairly<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, BY_SITE);
    w.add(100, &[("site", "big")]);
    for site in ["a", "b", "c"] {
        w.add(5, &[("site", site)]);
    }
    let mut count = std::collections::BTreeMap::<_, usize>::new();
    for most in [1, 2, 3, 4, 6] {
        for call in w.claim(most) {
            *count.entry(call.partition["site"].clone()).or_default() += 1;
        }
    }
    assert_eq!(count.values().copied().collect::<Vec<_>>(), [4, 4, 4, 4], "{count:?}");
}

pub fn a_later_partition_is_not_kept_waiting<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, BY_SITE);
    for site in 0..50 {
        w.add(10, &[("site", &site.to_string())]);
    }
    w.claim(64);
    let new = w.add(1, &[("site", "new")])[0];
    assert!(ids(&w.claim(10)).contains(&new));
}

pub fn a_due_job_of_high_priority_is_seen_among_low_ones<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, BY_SITE);
    let mut high = w.job(&[("site", "a")]);
    (high.priority, high.not_before) = (9, Some(w.now() + secs(10)));
    let high = w.add_one(high);
    w.add(50, &[("site", "a")]);
    let middle = |w: &World<S>| {
        let mut job = w.job(&[("site", "b")]);
        job.priority = 5;
        job
    };
    w.add_jobs((0..50).map(|_| middle(&w)).collect());
    for call in w.claim(3) {
        assert_eq!(call.partition["site"], "b", "5 goes before 0");
    }
    w.pass(secs(10));
    assert_eq!(ids(&w.claim(1)), [high], "9 goes before 5");
}

pub fn a_job_that_backed_off_comes_back_at_its_priority<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, BY_SITE);
    let mut high = w.job(&[("site", "a")]);
    high.priority = 9;
    let high = w.add_one(high);
    w.add(50, &[("site", "a")]);
    let mut middle = w.job(&[("site", "b")]);
    middle.priority = 5;
    let call = w.one();
    assert_eq!(call.job.id, high);
    w.say(&call, said(Reason::Transient));
    let low = w.one();
    assert_eq!(w.view(low.job.id).priority, 0, "it backs off, others go");
    w.pass(secs(1));
    w.add_one(middle);
    assert_eq!(ids(&w.claim(1)), [high]);
}

pub fn a_job_told_to_wait_keeps_its_place<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add(5, &[]);
    w.pass(secs(5));
    let call = w.one();
    w.say(&call, refusal(Reason::RateLimited, w.now() + secs(10), ""));
    w.pass(secs(11));
    assert_eq!(w.one().job.id, jobs[0]);
}

pub fn a_new_priority_counts_at_once<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let jobs = w.add(5, &[]);
    let set = |priority| Act::Set { priority: Some(priority), deadline_at: None, due_at: None };
    assert_eq!(w.act_on(jobs[4], set(7)), 1);
    assert_eq!(w.one().job.id, jobs[4]);
    assert_eq!(w.act_on(jobs[0], Act::Cancel), 1);
    assert_eq!(w.one().job.id, jobs[1]);
    assert_eq!(w.state(jobs[0]), JobState::Cancelled);
}

pub fn who_waits_with_a_high_priority_is_let_go_first<S: Store>(make: Make<'_, S>) {
    let shared = limit("pool", "budget", "amount = 1\nper = \"hour\"\ntime_zone = \"UTC\"\nkey = [\"pool\"]");
    let w = World::new(make, &format!("{shared}{BY_SITE}"));
    w.add(1, &[("pool", "p"), ("site", "first")]);
    w.one();
    for site in ["a", "b", "c"] {
        w.add(1, &[("pool", "p"), ("site", site)]);
    }
    w.nothing();
    let mut urgent = w.job(&[("pool", "p"), ("site", "c")]);
    urgent.priority = 1;
    let urgent = w.add_one(urgent);
    w.pass(secs(3602));
    assert_eq!(w.one().job.id, urgent);
}

pub fn of_what_came_due_meanwhile_the_best_goes_first<S: Store>(make: Make<'_, S>) {
    for with_one_more in [false, true] {
        let w = World::new(make, BY_SITE);
        let timed = |site: &str, priority, at| {
            let mut job = w.job(&[("site", site)]);
            (job.priority, job.not_before) = (priority, Some(w.now() + secs(at)));
            w.add_one(job)
        };
        let (low, high) = (timed("a", 0, 10), timed("a", 9, 20));
        if with_one_more {
            w.add(3, &[("site", "a")]);
            assert_eq!(w.claim(1).len(), 1);
        }
        let middle = timed("b", 5, 25);
        w.pass(secs(30));
        let order = [w.claim(1), w.claim(1), w.claim(2)].concat();
        assert_eq!(ids(&order)[..2], [high, middle]);
        assert!(with_one_more || order[2].job.id == low);
    }
}

pub fn a_job_can_stand_where_it_would_had_it_come_earlier<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, FREE);
    let at = |ago: u64| NewJob { line_at: Some(w.now() - secs(ago)), ..w.job(&[]) };
    let to_come = NewJob { line_at: Some(w.now() + secs(60)), ..w.job(&[]) };
    let added = w.add_jobs(vec![w.job(&[]), at(60), at(3600), to_come, at(60)]);
    let order: Vec<_> = w.claim(5).iter().map(|call| call.job.id).collect();
    let expected = [2, 1, 4, 0, 3].map(|at| added.ids[at]);
    assert_eq!(order, expected);
}
