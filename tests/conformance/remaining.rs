//! What the upstream says is left: sending stops at the lower of its figure and our own count.

use paceline::clock::Timestamp;
use paceline::job::JobState;
use paceline::reading::Reason;
use paceline::reading::remaining::Left;
use paceline::store::{Call, QuotaAnswer, QuotaQuestion, ReleaseWhy, Settlement, Store};

use crate::world::{Make, World, columns, daily, limit, millis, said, secs};

const REPORTED: &str = "reported = { header = \"x-left\" }\n";

fn budget() -> String {
    daily(100, REPORTED)
}

fn rolling() -> String {
    limit("daily", "rolling", &format!("amount = 100\nper = \"1h\"\n{REPORTED}"))
}

/// An `ok` that says so many are left, and perhaps until when.
fn left<S: Store>(w: &World<S>, call: &Call, left: u64, resets_at: Option<Timestamp>) -> Settlement {
    let remaining = vec![Left { limit: "daily".to_owned(), left, resets_at }];
    Settlement { remaining, ..w.answer(call, said(Reason::Ok)) }
}

fn told<S: Store>(w: &World<S>) -> Option<u64> {
    w.look().limits.iter().find(|limit| limit.name == "daily").and_then(|limit| limit.remaining)
}

/// The instant in wall time that lies so far ahead.
fn ahead<S: Store>(w: &World<S>, span: u64) -> Option<Timestamp> {
    Some(w.store.now().wall + secs(span))
}

pub fn sending_stops_at_what_was_reported<S: Store>(make: Make<'_, S>) {
    for limits in [budget(), rolling()] {
        let w = World::new(make, &limits);
        w.add(50, &[]);
        let call = w.one();
        assert_eq!(told(&w), None);
        w.settle(left(&w, &call, 3, ahead(&w, 60)));
        assert_eq!(told(&w), Some(3));
        let calls = w.claim(64);
        assert_eq!((calls.len(), told(&w)), (3, Some(0)));
        assert!(w.nothing().is_some_and(|at| at > w.now()));
        // They are answered with less, and less: no more goes.
        for (number, call) in calls.iter().enumerate() {
            w.settle(left(&w, call, 2 - number as u64, ahead(&w, 60)));
        }
        assert!(w.claim(64).is_empty());
        assert_eq!(w.count(JobState::Done), 4);
    }
}

pub fn a_window_of_its_own_ends_as_it_was_told<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &rolling());
    w.add(50, &[]);
    let call = w.one();
    let resets_at = ahead(&w, 60);
    w.settle(left(&w, &call, 0, resets_at));
    assert_eq!(w.nothing(), resets_at);
    w.pass_to(resets_at.unwrap());
    assert_eq!(told(&w), None, "nothing is known of the next window");
    assert_eq!(w.claim(64).len(), 49);
}

pub fn a_calendars_window_ends_with_the_day<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &budget());
    w.add(150, &[]);
    let call = w.one();
    // Whatever reset the answer names: the calendar is declared.
    w.settle(left(&w, &call, 0, ahead(&w, 60)));
    let reset = w.look().limits[0].resets_at.unwrap();
    assert!(w.nothing().is_some_and(|at| at >= reset));
    w.pass_to(reset + secs(3));
    assert_eq!(told(&w), None);
    assert_eq!(w.claim(200).len(), 100, "our own count still limits");
}

pub fn our_own_count_still_limits<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &daily(5, REPORTED));
    w.add(50, &[]);
    let call = w.one();
    w.settle(left(&w, &call, 90, None));
    assert_eq!((w.claim(64).len(), told(&w)), (4, Some(86)));
}

pub fn a_figure_that_rises_within_the_window_is_no_news<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &budget());
    w.add(50, &[]);
    for (figure, known) in [(9, 9), (4, 4), (30, 3), (2, 2)] {
        let call = w.one();
        w.settle(left(&w, &call, figure, None));
        assert_eq!(told(&w), Some(known));
    }
}

pub fn an_answer_of_yesterday_says_nothing_of_today<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &budget());
    w.add(50, &[]);
    let reset = w.look().limits[0].resets_at.unwrap();
    w.pass_to(Timestamp::from_nanos((reset - secs(3)).as_nanos()));
    let call = w.one();
    w.pass(secs(10));
    w.settle(left(&w, &call, 0, None));
    assert_eq!(told(&w), None);
    assert_eq!(w.claim(64).len(), 49);
}

pub fn what_was_claimed_beyond_it_stays<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &budget());
    w.add(50, &[]);
    let calls = w.claim(8);
    assert!(calls.iter().all(|call| !w.is_blocked(call)));
    let seq = w.store.block_seq().unwrap();
    w.settle(left(&w, &calls[0], 2, None));
    w.pass(millis(20));
    assert!(w.store.block_seq().unwrap() > seq, "whoever is about to send looks");
    // Seven are out, and two may go: the last five have to stay.
    let blocked: Vec<bool> = calls[1..].iter().map(|call| w.is_blocked(call)).collect();
    assert_eq!(blocked, [false, false, true, true, true, true, true]);
    w.release(&calls[3..], ReleaseWhy::Blocked);
    assert_eq!(told(&w), Some(0));
    assert!(w.claim(64).is_empty());
    for (call, figure) in calls[1..3].iter().zip([1, 0]) {
        assert!(!w.is_blocked(call));
        w.settle(left(&w, call, figure, None));
    }
    assert!(w.claim(64).is_empty());
}

pub fn what_never_left_comes_back<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &budget());
    w.add(50, &[]);
    let call = w.one();
    w.settle(left(&w, &call, 2, None));
    let calls = w.claim(64);
    assert_eq!(calls.len(), 2);
    w.release(&calls[..1], ReleaseWhy::Drained);
    w.settle(Settlement { left: false, status: None, ..w.answer(&calls[1], said(Reason::Transient)) });
    assert_eq!(told(&w), Some(2));
    assert_eq!(w.claim(64).len(), 2);
}

pub fn another_process_is_held_to_it_and_a_restart_forgets_nothing<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &rolling());
    w.add(50, &[]);
    let (other, runner) = w.another();
    let call = w.one();
    w.settle(left(&w, &call, 1, ahead(&w, 600)));
    w.die();
    assert_eq!(w.claimed_by(&other, runner, 64).calls.len(), 1);
    assert_eq!(w.claim(64).len(), 0);
}

pub fn it_is_said_who_counts_what<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &budget());
    w.add(50, &[]);
    let calls = w.claim(10);
    for (call, figure) in calls.iter().zip((0..10).rev()) {
        w.settle(left(&w, call, figure, None));
    }
    w.nothing();
    let wait = w.look().partitions[0].wait.clone();
    assert_eq!((wait.limit.as_deref(), wait.reason.as_str()), (Some("daily"), "budget"));
    assert_eq!(wait.detail, "the upstream says 0 are left (we count 10 of 100)");
    assert_eq!(wait.until, w.look().limits[0].next_at);
}

pub fn a_rate_waits_for_the_window_that_was_told<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &limit("daily", "rate", &format!("rate = \"10/s\"\n{REPORTED}")));
    w.add(50, &[]);
    let call = w.one();
    let resets_at = ahead(&w, 30);
    w.settle(left(&w, &call, 0, resets_at));
    assert_eq!(w.nothing().map(|at| at.since(w.now()) > secs(29)), Some(true));
    w.pass_to(resets_at.unwrap());
    assert!(!w.claim(64).is_empty());
}

/// An upstream whose own quota is a third of what is declared, and tells what is left, in answers that are
/// late and out of order: it refuses nothing, and all that it has is used.
pub fn an_upstream_that_tells_refuses_nothing<S: Store>(make: Make<'_, S>) {
    for (limits, window) in [(budget(), None), (rolling(), Some(600))] {
        let w = World::new(make, &limits);
        w.add(80, &[]);
        let (mut left_over, begun) = (33_u64, w.now());
        let mut resets_at = window.map(|window| begun + secs(window));
        let mut out: Vec<(Call, u64)> = Vec::new();
        for turn in 0..60 {
            let calls = w.claim(7);
            if calls.is_empty() && out.is_empty() {
                let Some(at) = w.nothing().filter(|at| at.since(begun) < secs(3_000)) else { break };
                w.pass_to(at);
            }
            if out.is_empty() && resets_at.is_some_and(|at| w.now() >= at) {
                left_over = 33;
                resets_at = window.map(|window| w.now() + secs(window));
            }
            for call in calls {
                // What was claimed before it was known to be too much stays.
                if w.is_blocked(&call) {
                    w.release(&[call], ReleaseWhy::Blocked);
                    continue;
                }
                assert!(left_over > 0, "it would have been refused");
                left_over -= 1;
                out.push((call, left_over));
            }
            // The later ones are answered first; some of the earlier ones only next time.
            let keep = if turn % 3 == 2 { 0 } else { out.len() / 2 };
            for (call, figure) in out.drain(keep..).rev() {
                w.settle(left(&w, &call, figure, resets_at));
            }
        }
        let expected = if window.is_some() { 80 } else { 33 };
        assert_eq!(w.count(JobState::Done), expected, "all that it has is used");
    }
}

// ---- asked what is left

const ASKED: &str = "\n[quota_call]\nurl = \"https://api.example/left?site={site}\"\nevery = \"1h\"\n\
    remaining = \"/left\"\nlimit = \"daily\"\n";

fn asked() -> String {
    daily(100, "key = [\"site\"]\n") + ASKED
}

fn question<S: Store>(w: &World<S>, most: usize) -> QuotaQuestion {
    let mut claimed = w.claimed(most);
    assert!(claimed.calls.is_empty(), "nobody goes before it is answered");
    assert_eq!(claimed.questions.len(), 1, "{claimed:?}");
    claimed.questions.remove(0)
}

fn answer<S: Store>(w: &World<S>, question: &QuotaQuestion, remaining: Option<u64>) {
    let QuotaQuestion { partition, slot_at, mark } = question.clone();
    let answer = QuotaAnswer { partition, slot_at, mark, remaining };
    w.wait(w.store.quota_told(w.upstream.clone(), answer)).unwrap();
}

pub fn the_upstream_is_asked_before_the_first_call<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &asked());
    w.add(5, &[("site", "a")]);
    let question = question(&w, 64);
    assert_eq!(question.partition, columns(&[("site", "a")]));
    assert!(w.claimed(64).questions.is_empty(), "once");
    let wait = w.look().partitions[0].wait.clone();
    assert_eq!((wait.reason.as_str(), wait.limit.as_deref()), ("asking", Some("daily")));
    w.pass(millis(40));
    let before = w.claimed(64).news;
    answer(&w, &question, Some(2));
    assert!(w.has_news(&w.store, before));
    assert_eq!(w.claim(64).len(), 2);
    assert_eq!(w.spent("daily", &[("site", "a")]), 2, "the question costs nothing");
    assert_eq!(w.tally().get(&JobState::Running), Some(&2));
}

pub fn a_question_without_an_answer_holds_nobody_for_long<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &asked());
    w.add(50, &[("site", "a")]);
    let first = question(&w, 64);
    answer(&w, &first, None);
    assert_eq!(w.claim(64).len(), 50, "our own count stands");
    // One whose process died: the wait ends by itself.
    let w = World::new(make, &asked());
    w.add(50, &[("site", "a")]);
    question(&w, 64);
    w.pass(secs(10));
    assert_eq!(w.claim(64).len(), 50);
}

pub fn a_question_lets_no_job_expire_that_its_answer_may_let_go<S: Store>(make: Make<'_, S>) {
    let unknown = "kind = \"budget\"\namount = 100\nper = \"day\"\ntime_zone = \"unknown\"";
    for key in ["key = [\"site\"]\n", ""] {
        let ask = if key.is_empty() { ASKED.replace("?site={site}", "") } else { ASKED.to_owned() };
        let w = World::new(make, &format!("[[limit]]\nname = \"daily\"\n{unknown}\n{key}{ask}"));
        let due_in = |span| {
            let mut job = w.job(&[("site", "a")]);
            job.deadline_at = Some(w.now() + secs(span));
            w.add_one(job)
        };
        let (soon, later, last) = (due_in(5), due_in(1_800), due_in(7_200));
        let first = question(&w, 64);
        assert_eq!(w.state(soon), JobState::Queued, "the answer may come at once");
        answer(&w, &first, Some(0));
        w.nothing();
        // Nobody asks again within half an hour; but within two.
        assert_eq!((w.state(soon), w.state(later)), (JobState::Expired, JobState::Expired));
        assert_eq!(w.state(last), JobState::Queued);
    }
}

pub fn a_question_is_put_again_in_time_by_one_process<S: Store>(make: Make<'_, S>) {
    let mut w = World::new(make, &asked());
    let (other, runner) = w.another();
    w.add(30, &[("site", "a")]);
    let first = question(&w, 3);
    answer(&w, &first, Some(20));
    w.run(w.now() + secs(1));
    w.add(5, &[("site", "a")]);
    w.die();
    assert!(w.claimed(1).questions.is_empty(), "a restart asks no sooner");
    w.pass(secs(3_600));
    let ours = w.claimed(1).questions.len();
    assert_eq!((ours, w.claimed_by(&other, runner, 1).questions.len()), (1, 0));
}

pub fn questions_that_fail_are_put_more_seldom<S: Store>(make: Make<'_, S>) {
    let w = World::new(make, &asked());
    let mut gaps = Vec::new();
    w.add(1, &[("site", "a")]);
    let mut last = question(&w, 1);
    for _ in 0..5 {
        answer(&w, &last, None);
        let mut hours = 0;
        loop {
            w.add(1, &[("site", "a")]);
            let claimed = w.claimed(1);
            if let Some(next) = claimed.questions.first() {
                last = next.clone();
                break;
            }
            for call in &claimed.calls {
                w.ok(call);
            }
            w.pass(secs(1_800));
            hours += 1;
        }
        gaps.push(hours);
    }
    assert_eq!(gaps, [4, 8, 16, 16, 16], "in half hours");
}

pub fn a_question_opens_what_the_last_one_closed<S: Store>(make: Make<'_, S>) {
    let unknown = "kind = \"budget\"\namount = 100\nper = \"day\"\ntime_zone = \"unknown\"";
    for key in ["key = [\"site\"]\n", ""] {
        let ask = if key.is_empty() { ASKED.replace("?site={site}", "") } else { ASKED.to_owned() };
        let w = World::new(make, &format!("[[limit]]\nname = \"daily\"\n{unknown}\n{key}{ask}"));
        w.add(5, &[("site", "a")]);
        let first = question(&w, 64);
        answer(&w, &first, Some(0));
        let again = w.nothing().unwrap();
        assert!(again <= first.slot_at + secs(3_601), "asked again after an hour: {again}");
        w.pass_to(first.slot_at + secs(3_601));
        let second = question(&w, 64);
        answer(&w, &second, Some(4));
        assert_eq!(w.claim(64).len(), 4);
    }
}

pub fn questions_keep_to_the_other_limits<S: Store>(make: Make<'_, S>) {
    let pace = limit("pace", "rate", "rate = \"1/s\"");
    let w = World::new(make, &format!("{pace}{}", asked()));
    for site in ["a", "b", "c"] {
        w.add(1, &[("site", site)]);
    }
    let mut slots = Vec::new();
    for _ in 0..200 {
        let claimed = w.claimed(64);
        for question in &claimed.questions {
            slots.push(question.slot_at);
            w.pass_to(question.slot_at);
            answer(&w, question, Some(9));
        }
        for call in &claimed.calls {
            slots.push(call.slot_at);
            w.ok(call);
        }
        w.pass(millis(50));
    }
    assert_eq!((slots.len(), w.count(JobState::Done)), (6, 3));
    slots.sort_unstable();
    assert!(slots.windows(2).all(|pair| pair[1].since(pair[0]) >= secs(1)), "{slots:?}");
}

pub fn where_nothing_else_lets_it_go_the_question_waits<S: Store>(make: Make<'_, S>) {
    let calls = "[[limit]]\nname = \"calls\"\nkind = \"budget\"\namount = 1\nper = \"day\"\ntime_zone = \"UTC\"\n";
    let w = World::new(make, &format!("{calls}{}", asked()));
    w.add(3, &[("site", "a")]);
    let first = question(&w, 64);
    answer(&w, &first, Some(9));
    w.pass(secs(3_601));
    // The day's only call was the question: the next one goes tomorrow, and nobody asks until then.
    let reset = w.look().limits[0].resets_at.unwrap();
    assert!(w.nothing().is_some_and(|at| at >= reset));
}
