//! The promises that the pure core makes, on virtual time. Each is named by its number.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "common/quota_sim.rs"]
mod quota_sim;

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use paceline::clock::Timestamp;
use paceline::quota::LimitRule;
use paceline::quota::budget::{Budget, Counts};
use paceline::quota::calendar::{Calendar, Per};
use paceline::quota::decide::{Decision, HORIZON, NEAR, Usage};
use paceline::quota::rate::{Counted, Rate};
use paceline::quota::rolling::{MAX_ENTRIES, Rolling};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use quota_sim::{Claim, Event, Fate, World};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// A zone, and the eve of a change of its clock.
const EVES: [(&str, &str); 8] = [
    ("America/Los_Angeles", "2026-03-07T20:00:00Z"),
    ("America/Los_Angeles", "2026-10-31T20:00:00Z"),
    ("America/Santiago", "2026-09-05T16:00:00Z"),
    ("America/Santiago", "2026-04-04T16:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T02:00:00Z"),
    ("Africa/Cairo", "2025-10-30T02:00:00Z"),
    ("America/Sao_Paulo", "2018-02-16T20:00:00Z"),
    ("Pacific/Apia", "2011-12-29T01:00:00Z"),
];

fn instant(text: &str) -> Timestamp {
    text.parse::<DateTime<Utc>>().unwrap().into()
}

fn rate() -> impl Strategy<Value = Rate> {
    let counted = select(vec![Counted::Rolling, Counted::Bucket]);
    let period = select(vec![100 * MS, SECOND, 7 * SECOND, 60 * SECOND, HOUR]);
    let margins = (0..60_u32, 0..60_u32, prop_oneof![Just(1_u32), Just(20)]);
    (1..40_u64, period, 1..40_u64, counted, margins).prop_map(
        |(amount, period, burst, counted, (slack, path_jitter, times))| Rate {
            amount,
            period,
            burst: if counted == Counted::Rolling { burst.min(amount) } else { burst },
            counted,
            slack: MS * slack * times,
            path_jitter: MS * path_jitter * times,
            evenly: false,
        },
    )
}

fn rolling() -> impl Strategy<Value = Rolling> {
    let span = select(vec![SECOND, 30 * SECOND, 25 * HOUR]);
    (4..40_u64, span, 0..3_u64, 0..60_u32, 0..60_u32).prop_map(
        |(amount, span, reserve, slack, path_jitter)| Rolling {
            amount,
            span,
            stands_for: None,
            slack: MS * slack,
            path_jitter: MS * path_jitter,
            counts: Counts::Sent,
            reserve,
        },
    )
}

fn budget(zone: Tz) -> impl Strategy<Value = Budget> {
    (4..30_u64, 0..3_u64, any::<bool>(), select(vec![Duration::ZERO, 120 * SECOND])).prop_map(
        move |(amount, reserve, spread, settle_after_reset)| Budget {
            amount,
            calendar: Calendar::parse(zone.name(), Per::Day, "00:00").unwrap(),
            counts: Counts::Sent,
            reserve,
            spread,
            settle_after_reset,
        },
    )
}

fn span() -> impl Strategy<Value = Duration> {
    (select(vec![MS, 10 * MS, 100 * MS, SECOND, 60 * SECOND, HOUR]), 0..20_u32)
        .prop_map(|(unit, times)| unit * times)
}

fn claim() -> impl Strategy<Value = Event> {
    let cost = prop_oneof![6 => Just(1_u64), 1 => 2..4_u64];
    let lead = prop_oneof![4 => Just(Duration::ZERO), 1 => (0..250_u32).prop_map(|n| MS * n)];
    let lateness = prop_oneof![Just(0_u32), Just(1_000), 0..1_000_u32];
    let fate = prop_oneof![8 => Just(Fate::Sent), 1 => Just(Fate::Released), 1 => Just(Fate::Kept)];
    let patience =
        prop_oneof![1 => Just(Duration::ZERO), 6 => Just(10 * SECOND), 3 => Just(2 * DAY)];
    (cost, lead, patience, lateness, fate).prop_map(|(cost, lead, patience, lateness, fate)| {
        Event::Claim(Claim { cost, lead, patience, lateness, fate })
    })
}

/// How far ahead of store time somebody sets the wall clock: unnoticed, a little, hours, days.
fn skew() -> impl Strategy<Value = i64> {
    let secs = |secs: i64| secs * 1_000_000_000;
    let amounts = [0, secs(1), secs(3), secs(1_800), secs(3_600), secs(86_400), secs(40 * 86_400)];
    (select(amounts.as_slice().to_vec()), any::<bool>())
        .prop_map(|(n, back)| if back { -n } else { n })
}

fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        20 => claim(),
        3 => span().prop_map(Event::Pass),
        1 => skew().prop_map(Event::SetWall),
        1 => (0..4_usize, span()).prop_map(|(limit, span)| Event::Block(limit, span)),
        1 => (0..4_usize).prop_map(Event::Release),
    ];
    vec(event, 1..most)
}

fn lookahead() -> impl Strategy<Value = Duration> {
    select(vec![HORIZON, NEAR, Duration::ZERO])
}

/// Limits of several kinds together, with a day on which the clock of their zone changes.
fn limits() -> impl Strategy<Value = (Vec<LimitRule>, Timestamp)> {
    select(EVES.as_slice()).prop_flat_map(|(zone, eve)| {
        let rates = vec(rate().prop_map(LimitRule::Rate), 0..3);
        let budgets = vec(budget(zone.parse().unwrap()).prop_map(LimitRule::Budget), 0..2);
        let rollings = vec(rolling().prop_map(LimitRule::Rolling), 0..2);
        (rates, budgets, rollings, 0..2 * 86_400_i64).prop_map(
            move |(rates, budgets, rollings, secs)| {
                let start = instant(eve) + Duration::from_secs(secs.unsigned_abs());
                ([rates, budgets, rollings].concat(), start)
            },
        )
    })
}

fn check_all(rules: &[LimitRule], world: &World) -> Result<(), TestCaseError> {
    for rule in rules {
        match rule {
            LimitRule::Rate(rate) => prop_assert_eq!(world.refused(rate), 0, "{:?}", rate),
            LimitRule::Rolling(rolling) => {
                let most = world.most_in_span(rolling.span);
                prop_assert!(most <= rolling.amount - rolling.reserve, "{} of {:?}", most, rolling);
            }
            LimitRule::Budget(budget) => {
                let (zone, grants) = (budget.calendar.zone, budget.amount - budget.reserve);
                let by_store = world.most_in_day(zone, |arrival| arrival.at);
                let by_wall = world.most_in_day(zone, |arrival| arrival.wall);
                prop_assert!(by_store <= grants, "{} by store time of {:?}", by_store, budget);
                prop_assert!(by_wall <= grants, "{} by the wall clock of {:?}", by_wall, budget);
            }
            LimitRule::Concurrency(_) => {}
        }
    }
    prop_assert_eq!(&world.sent_while_blocked, &[]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn promise_1_a_strict_upstream_refuses_nothing(
        rate in rate(),
        lookahead in lookahead(),
        events in events(200),
    ) {
        let rules = vec![LimitRule::Rate(rate)];
        let mut world = World::new(rules.clone(), instant("2026-06-01T12:00:00Z"), lookahead);
        world.play(&events);
        check_all(&rules, &world)?;
    }

    #[test]
    fn promise_1_no_rolling_span_holds_more_than_its_amount(
        rolling in rolling(),
        lookahead in lookahead(),
        events in events(200),
    ) {
        let rules = vec![LimitRule::Rolling(rolling)];
        let mut world = World::new(rules.clone(), instant("2026-06-01T12:00:00Z"), lookahead);
        world.play(&events);
        check_all(&rules, &world)?;
    }

    #[test]
    fn promise_2_no_day_holds_more_than_its_amount(
        (budget, start) in select(EVES.as_slice()).prop_flat_map(|(zone, eve)| {
            let secs = (0..2 * 86_400_u64).prop_map(Duration::from_secs);
            (budget(zone.parse().unwrap()), secs.prop_map(move |span| instant(eve) + span))
        }),
        events in events(200),
    ) {
        let rules = vec![LimitRule::Budget(budget)];
        let mut world = World::new(rules.clone(), start, HORIZON);
        world.play(&events);
        check_all(&rules, &world)?;
    }

    #[test]
    fn promises_1_to_3_hold_for_several_limits_at_once(
        (rules, start) in limits(),
        lookahead in lookahead(),
        events in events(150),
    ) {
        let mut world = World::new(rules.clone(), start, lookahead);
        world.play(&events);
        check_all(&rules, &world)?;
    }

    #[test]
    fn promise_3_nothing_goes_before_a_hint(
        (rules, start) in limits(),
        hint in (1..10_000_u32).prop_map(|n| MS * n),
        limit in 0..4_usize,
        claims in vec(claim(), 1..30),
    ) {
        let mut world = World::new(rules.clone(), start, HORIZON);
        world.play(&[Event::Block(limit, hint)]);
        world.play(&claims);
        let blocked = limit < rules.len();
        prop_assert!(world.sent.iter().all(|sent| !blocked || sent.slot >= start + hint));
    }

    #[test]
    fn promise_5_a_deep_queue_uses_the_planned_rate(
        rate in rate(),
        naps in vec(0..1_000_u32, 20),
    ) {
        let plan = rate.plan();
        let (interval, span) = (Duration::from_nanos(plan.interval.unsigned_abs()), rate.period * 20);
        let start = instant("2026-06-01T12:00:00Z");
        let mut world = World::new(vec![LimitRule::Rate(rate)], start, HORIZON);
        let send = Claim { cost: 1, lead: Duration::ZERO, patience: Duration::ZERO, lateness: 0, fate: Fate::Sent };
        let mut naps = naps.iter().cycle();
        while world.now() < start + span {
            match world.decide(1, world.now()) {
                Decision::Wait { until, .. } => {
                    // It wakes as soon as the slot can be had, or at any time before the slot.
                    let wake_at = (until - HORIZON * *naps.next().unwrap() / 1_000).max(world.now());
                    world.pass(wake_at.since(world.now()).max(MS));
                }
                Decision::Admit { .. } => world.play(&[Event::Claim(send.clone())]),
                other => panic!("{other:?}"),
            }
            prop_assert!(world.sent.len() < 2_000, "no pace at all");
        }
        let within = world.sent.iter().filter(|sent| sent.slot < start + span).count();
        let planned = span.as_nanos() / interval.as_nanos();
        prop_assert!(within as f64 >= 0.985 * planned as f64, "{within} of {planned}");
    }

    #[test]
    fn promise_5_a_deep_queue_uses_the_whole_day(
        (budget, start) in select(EVES.as_slice()).prop_flat_map(|(zone, eve)| {
            (budget(zone.parse().unwrap()), Just(instant(eve)))
        }),
    ) {
        let (zone, grants) = (budget.calendar.zone, budget.amount - budget.reserve);
        let mut world = World::new(vec![LimitRule::Budget(budget)], start, HORIZON);
        let claim = Claim { cost: 1, lead: Duration::ZERO, patience: 9 * DAY, lateness: 0, fate: Fate::Sent };
        for _ in 0..grants * 4 {
            world.play(&[Event::Claim(claim.clone())]);
        }
        // The first day had begun, so with `spread` it is as full as the days after it.
        prop_assert_eq!(world.sent.len() as u64, grants * 4);
        prop_assert_eq!(world.most_in_day(zone, |arrival| arrival.at), grants);
        let last = world.sent.iter().map(|arrival| arrival.at).max().unwrap();
        prop_assert!(last < start + 5 * DAY, "four days of units were sent by {}", last);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn promise_8_many_entries_are_merged_and_never_grant_more(
        pauses in vec((0..40_u32).prop_map(|n| MS * n), 50),
        amount in 300..900_u64,
    ) {
        let rolling = Rolling {
            amount,
            span: 10 * SECOND,
            stands_for: None,
            slack: 5 * MS,
            path_jitter: 5 * MS,
            counts: Counts::Sent,
            reserve: 0,
        };
        let start = instant("2026-06-01T12:00:00Z");
        let mut world = World::new(vec![LimitRule::Rolling(rolling)], start, HORIZON);
        let claim = Claim { cost: 1, lead: Duration::ZERO, patience: DAY, lateness: 0, fate: Fate::Sent };
        for pause in pauses.iter().cycle().take(2_000) {
            world.play(&[Event::Claim(claim.clone()), Event::Pass(*pause)]);
        }
        prop_assert!(world.most_in_span(10 * SECOND) <= amount);
        prop_assert!(matches!(&world.usages()[0], Usage::Rolling(kept) if kept.0.len() <= MAX_ENTRIES));
        // Merging delays the expiry of units, but by little: the span is nearly full all the time.
        let spans = world.sent.last().unwrap().slot.since(start).as_secs_f64() / 10.0;
        let wanted = pauses.iter().sum::<Duration>().as_secs_f64() * 40.0 / 10.0;
        let at_most = (2_000.0 / amount as f64).max(wanted);
        prop_assert!(spans <= at_most * 1.03 + 0.1, "{spans} spans where {at_most} would do");
    }
}
