//! A pace that is cut and comes back: examples and properties.

use proptest::prelude::*;

use super::*;
use crate::quota::budget::Counts;
use crate::quota::rate::{Counted, Rate};
use crate::quota::rolling::Rolling;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn rate(amount: u64, period: Duration) -> LimitRule {
    let (burst, counted) = (1, Counted::Bucket);
    let (slack, path_jitter) = (Duration::ZERO, Duration::ZERO);
    LimitRule::Rate(Rate { amount, period, burst, counted, slack, path_jitter, evenly: false })
}

fn rolling(stands_for: Option<crate::quota::calendar::Per>) -> LimitRule {
    let (slack, path_jitter) = (Duration::ZERO, Duration::ZERO);
    let (counts, reserve) = (Counts::Sent, 0);
    let (amount, span) = (64, secs(100));
    LimitRule::Rolling(Rolling { amount, span, stands_for, slack, path_jitter, counts, reserve })
}

#[test]
fn each_refusal_halves_and_each_calm_gives_a_step_back() {
    let calm = secs(5);
    let mut slowed = Slowed::after(None, calm, at(0), at(1)).unwrap();
    assert_eq!(slowed, Slowed { share: 8, at: at(1) });
    for (sent, share) in [(2, 4), (3, 2), (4, 1), (5, 1)] {
        slowed = Slowed::after(Some(slowed), calm, at(sent), at(sent)).unwrap();
        assert_eq!(slowed.share, share);
    }
    let share = |now| slowed.share_at(calm, at(now));
    assert_eq!((share(9), share(10), share(15)), (Some(1), Some(2), Some(3)));
    assert_eq!((share(5 + 14 * 5), share(5 + 15 * 5), share(1_000_000)), (Some(15), None, None));
    // What has come back since is what is halved.
    assert_eq!(Slowed::after(Some(slowed), calm, at(50), at(50)).unwrap().share, 5);
    assert_eq!(Slowed::after(Some(slowed), calm, at(500), at(500)).unwrap().share, 8);
}

#[test]
fn what_was_out_when_the_pace_was_cut_counts_once() {
    let slowed = Slowed { share: 8, at: at(10) };
    assert_eq!(Slowed::after(Some(slowed), secs(5), at(9), at(11)), None);
    assert_eq!(Slowed::after(Some(slowed), secs(5), at(10), at(11)), None);
    assert!(Slowed::after(Some(slowed), secs(5), at(11), at(11)).is_some());
}

#[test]
fn a_calm_is_as_long_as_the_limit_is_slow() {
    assert_eq!(calm(&rate(100, secs(1))), Some(SHORTEST_CALM));
    assert_eq!(calm(&rate(1, secs(1))), Some(secs(64)));
    assert_eq!(calm(&rate(1, secs(60))), Some(LONGEST_CALM));
    assert_eq!(calm(&rolling(None)), Some(secs(100)));
    assert_eq!(calm(&rolling(Some(crate::quota::calendar::Per::Day))), None, "a budget");
}

#[test]
fn the_same_units_take_longer() {
    let LimitRule::Rate(slow) = slowed(&rate(20, secs(1)), 8) else { panic!("a rate") };
    assert_eq!((slow.amount, slow.period), (20, secs(2)));
    let LimitRule::Rolling(slow) = slowed(&rolling(None), 4) else { panic!("a span") };
    assert_eq!((slow.amount, slow.span), (64, secs(400)));
}

proptest! {
    /// Whatever is refused when: between a sixteenth and all of the pace, never less than it was a moment
    /// ago but by a refusal, and all of it after fifteen calms.
    #[test]
    fn the_pace_stays_within_its_bounds(
        waits in prop::collection::vec(0_i64..200, 0..40),
        calm in 1_u64..30,
    ) {
        let (calm, mut now, mut slowed) = (secs(calm), at(0), None);
        for wait in waits {
            let before = slowed.and_then(|one: Slowed| one.share_at(calm, now)).unwrap_or(WHOLE);
            now = now + secs(wait.unsigned_abs());
            let share = slowed.and_then(|one: Slowed| one.share_at(calm, now)).unwrap_or(WHOLE);
            prop_assert!(share >= before && share <= WHOLE);
            if let Some(after) = Slowed::after(slowed, calm, now, now) {
                prop_assert_eq!(after.share, (share / 2).max(1));
                slowed = Some(after);
            }
        }
        let end = now + calm * 15;
        prop_assert_eq!(slowed.and_then(|one| one.share_at(calm, end)), None);
    }

    /// A slower rule plans just that share of the declared one, and grants whatever that grants.
    #[test]
    fn a_slower_rule_fits_what_the_declared_one_fits(
        amount in 1_u64..500,
        burst in 1_u64..50,
        share in 1_u32..16,
        bucket: bool,
    ) {
        let counted = if bucket { Counted::Bucket } else { Counted::Rolling };
        let burst = if bucket { burst } else { burst.min(amount) };
        let (slack, path_jitter) = (Duration::from_millis(5), Duration::from_millis(5));
        let period = secs(1);
        let declared = LimitRule::Rate(Rate { amount, period, burst, counted, slack, path_jitter, evenly: false });
        let (LimitRule::Rate(declared), LimitRule::Rate(slow)) = (&declared, slowed(&declared, share))
        else { panic!("rates") };
        let exact = declared.plan().interval * 16 / i64::from(share);
        // Both plans round their interval up by a few nanoseconds, the declared one before the sixteenfold.
        prop_assert!((slow.plan().interval - exact).abs() <= 100, "{} {exact}", slow.plan().interval);
        prop_assert_eq!(slow.plan().burst, declared.plan().burst);
    }
}
