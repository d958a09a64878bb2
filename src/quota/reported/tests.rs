//! What is known of reported units, step by step.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::quota::rate::{Counted, Rate};
use crate::quota::rolling::Rolling;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn rule(reserve: u64) -> LimitRule {
    LimitRule::Rolling(Rolling {
        amount: 1_000,
        span: Duration::from_secs(100),
        stands_for: None,
        slack: Duration::ZERO,
        path_jitter: Duration::ZERO,
        counts: crate::quota::budget::Counts::Sent,
        reserve,
    })
}

fn window(until: i64) -> Span {
    Span { until: at(until), is_window: true }
}

/// A report to a question, while nothing was out.
fn said(remaining: u64, span: Span) -> Report {
    Report { remaining, unseen: 0, call: None, last_call: 0, span }
}

fn left(reported: &Reported, now: i64) -> Option<u64> {
    reported.at(at(now)).map(|told| told.free())
}

#[test]
fn the_lowest_figure_of_a_window_counts() {
    let mut reported = Reported::default();
    for (remaining, known) in [(9, 9), (3, 3), (7, 3), (2, 2)] {
        reported = reported.hear(&said(remaining, window(60)), at(0));
        assert_eq!(left(&reported, 0), Some(known));
    }
    assert_eq!(left(&reported, 60), None, "the window is over");
    let next = reported.hear(&said(500, window(120)), at(60));
    assert_eq!(left(&next, 60), Some(500), "a new window starts afresh");
}

#[test]
fn the_same_figure_again_is_news_of_what_was_sent_since() {
    let mut reported = Reported::default().hear(&said(9, window(60)), at(0));
    reported.charge(at(1), 4);
    assert_eq!(left(&reported, 1), Some(5));
    let again = Report { unseen: 1, ..said(9, window(60)) };
    assert_eq!(left(&reported.hear(&again, at(1)), 1), Some(8), "three of the four did not count");
}

#[test]
fn a_report_of_a_window_that_is_over_says_nothing() {
    let reported = Reported::default().hear(&said(500, window(120)), at(60));
    assert_eq!(reported.hear(&said(0, window(60)), at(60)), reported);
}

#[test]
fn where_units_grow_old_the_latest_report_counts() {
    let growing = Span { until: at(60), is_window: false };
    let reported = Reported::default().hear(&said(0, growing), at(0));
    assert_eq!(left(&reported.hear(&said(4, growing), at(1)), 1), Some(4));
}

#[test]
fn what_was_out_is_taken_off_until_it_is_known_to_be_counted() {
    let mut reported = Reported::default();
    // Three calls are out; the last one is answered first, and says that seven are left.
    let report =
        Report { remaining: 7, unseen: 2, call: Some((3, 1)), last_call: 3, span: window(60) };
    reported = reported.hear(&report, at(0));
    assert_eq!(left(&reported, 0), Some(5));
    // The other two say that eight and nine were left: they had come before it.
    for (call, remaining) in [(2, 8), (1, 9)] {
        let report = Report { remaining, unseen: 0, call: Some((call, 1)), ..report };
        reported = reported.hear(&report, at(0));
    }
    assert_eq!(left(&reported, 0), Some(7));
    // One that was claimed since says more than that: whatever it means, it is no news.
    reported.charge(at(1), 1);
    let report = Report { remaining: 20, unseen: 0, call: Some((4, 1)), last_call: 4, ..report };
    assert_eq!(left(&reported.hear(&report, at(1)), 1), Some(6));
}

#[test]
fn what_was_told_holds_back_and_keeps_the_reserve() {
    let reported = Reported::default().hear(&said(5, window(60)), at(0));
    assert_eq!(reported.earliest(&rule(0), at(1), 5), at(1));
    assert_eq!(reported.earliest(&rule(0), at(1), 6), at(60));
    assert_eq!(reported.earliest(&rule(2), at(1), 4), at(60));
    assert_eq!(reported.earliest(&rule(0), at(61), 6), at(61));
    assert_eq!(reported.earliest(&rule(0), at(1), 0), at(1), "what costs nothing may go");
    assert_eq!(reported.earliest(&rule(9), at(1), 0), at(1), "and takes nothing of the reserve");
    assert_eq!(
        (reported.grantable(&rule(2), at(1)), reported.grantable(&rule(2), at(60))),
        (3, u64::MAX)
    );
}

#[test]
fn what_never_left_comes_back_and_no_more() {
    let mut reported = Reported::default().hear(&said(2, window(60)), at(0));
    reported.charge(at(1), 2);
    assert_eq!(left(&reported, 1), Some(0));
    reported.give_back(1);
    assert_eq!(left(&reported, 1), Some(1));
    reported.give_back(9);
    assert_eq!(left(&reported, 1), Some(2), "never more than was told");
    reported.charge(at(60), 1);
    assert_eq!(left(&reported, 1), Some(2), "a call of the next window");
}

#[test]
fn a_report_stands_to_the_reset_or_for_the_limits_own_time() {
    let LimitRule::Rolling(known) = rule(0) else { panic!("a span") };
    let stands_for = Some(crate::quota::calendar::Per::Day);
    let day = Duration::from_secs(90_000);
    let unknown = LimitRule::Rolling(Rolling { span: day, stands_for, ..known });
    let pace = LimitRule::Rate(Rate {
        amount: 9,
        period: Duration::from_secs(7),
        burst: 1,
        counted: Counted::Rolling,
        slack: Duration::ZERO,
        path_jitter: Duration::ZERO,
        evenly: false,
    });
    let now = Now::same(at(5));
    let ends = |rule: &LimitRule, reset: Option<i64>| {
        let span = Span::of(rule, reset.map(at), at(0), now).unwrap();
        (span.until, span.is_window)
    };
    assert_eq!(ends(&rule(0), Some(40)), (at(40), true));
    assert_eq!(ends(&rule(0), None), (at(100), false));
    assert_eq!(ends(&pace, None), (at(7), false), "a rate's figure stands for its period");
    assert_eq!(ends(&unknown, None), (at(3_600), false), "it may end at any time");
    assert_eq!(Span::asked(&unknown, at(0), now).unwrap().until, at(90_000), "it is asked again");
}

/// What happens to a client and its upstream.
#[derive(Clone, Debug)]
enum Step {
    /// So many calls are claimed, if what is known lets them go.
    Claim(usize),
    /// One that is out gets there; whether its answer tells what is left.
    Arrive(usize, bool),
    /// One that got there is settled.
    Settle(usize),
    /// One that did not get there is given back.
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_usize..9).prop_map(Step::Claim),
        (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(n, tells)| Step::Arrive(n, tells)),
        any::<usize>().prop_map(Step::Settle),
        any::<usize>().prop_map(Step::Release),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Out {
    id: i64,
    silent: u64,
    /// What the answer told, once it got there.
    answer: Option<Option<u64>>,
}

/// An upstream that counts down, whatever the declared amount, and the client that listens to it.
struct Model {
    remaining: i64,
    ids: i64,
    out: Vec<Out>,
    reported: Reported,
}

impl Model {
    fn pick(&self, number: usize, arrived: bool) -> Option<usize> {
        let all = self.out.iter().enumerate().filter(|(_, out)| out.answer.is_some() == arrived);
        let fitting: Vec<usize> = all.map(|(place, _)| place).collect();
        fitting.get(number.checked_rem(fitting.len())?).copied()
    }

    /// Until the upstream has told anything, the client goes by its own count, which is not at issue here.
    fn step(&mut self, step: Step) {
        match step {
            Step::Claim(most) => {
                for _ in 0..most {
                    if self.reported.earliest(&rule(0), at(0), 1) > at(0) {
                        return;
                    }
                    self.ids += 1;
                    self.reported.charge(at(0), 1);
                    let silent = self.reported.silent;
                    self.out.push(Out { id: self.ids, silent, answer: None });
                }
            }
            Step::Arrive(number, tells) => {
                let Some(place) = self.pick(number, false) else { return };
                self.remaining -= 1;
                let told = u64::try_from(self.remaining).unwrap_or(0);
                self.out[place].answer = Some(tells.then_some(told));
            }
            Step::Settle(number) => {
                let Some(place) = self.pick(number, true) else { return };
                let out = self.out.swap_remove(place);
                self.reported = match out.answer.flatten() {
                    None => self.reported.silence(1),
                    Some(remaining) => {
                        let silent = self.reported.silent - out.silent;
                        let report = Report {
                            remaining,
                            unseen: self.out.len() as u64 + silent,
                            call: Some((out.id, 1)),
                            last_call: self.ids,
                            span: window(60),
                        };
                        self.reported.hear(&report, at(0))
                    }
                };
            }
            Step::Release(number) => {
                let Some(place) = self.pick(number, false) else { return };
                self.out.swap_remove(place);
                self.reported.give_back(1);
            }
        }
    }
}

proptest! {
    /// However answers cross each other, are lost or tell nothing: what is known to be left is never more
    /// than what is left, once that was told and no more was under way.
    #[test]
    fn never_more_is_known_to_be_left_than_is(
        remaining in 0_i64..60,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let out = Vec::new();
        let mut model = Model { remaining, ids: 0, out, reported: Reported::default() };
        for step in steps {
            model.step(step);
            let under_way = model.out.iter().filter(|out| out.answer.is_none()).count();
            let under_way = i64::try_from(under_way).unwrap();
            if let Some(told) = model.reported.at(at(0)) {
                prop_assert!(
                    told.left.max(0) <= (model.remaining - under_way).max(0),
                    "{told:?} of {}, {under_way} under way", model.remaining
                );
            }
        }
    }

    /// With nothing lost on the way, all that is left is found again.
    #[test]
    fn what_is_left_is_found_again(
        remaining in 20_i64..90,
        batches in prop::collection::vec((1_usize..9, any::<usize>()), 1..6),
    ) {
        let out = Vec::new();
        let mut model = Model { remaining, ids: 0, out, reported: Reported::default() };
        for (most, order) in batches {
            model.step(Step::Claim(most));
            for turn in 0..most {
                model.step(Step::Arrive(order.wrapping_mul(turn + 1), true));
            }
            for turn in 0..most {
                model.step(Step::Settle(order.wrapping_mul(turn + 7)));
            }
            let told = model.reported.at(at(0)).map(|told| told.left);
            prop_assert_eq!(told, Some(model.remaining.max(0)));
        }
    }
}
