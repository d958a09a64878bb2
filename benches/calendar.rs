//! A calendar look-up: the window that an instant falls into, with its reset, over a year of instants.
//!
//! `cargo bench --bench calendar`

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

use divan::{Bencher, black_box};
use paceline::clock::Timestamp;
use paceline::quota::calendar::{Calendar, Per};

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600;

/// A prime number of seconds, so that instants fall all over the clock.
const STEP: i64 = 100_003;

const STEPS: i64 = 31_536_000 / STEP;

fn main() {
    divan::main();
}

#[divan::bench(args = ["hour", "day", "week", "month"])]
fn window(bencher: Bencher<'_, '_>, per: &str) {
    let (per, resets_at) = match per {
        "hour" => (Per::Hour, "00"),
        "week" => (Per::Week, "mon 00:00"),
        "month" => (Per::Month, "1 00:00"),
        _ => (Per::Day, "00:00"),
    };
    let calendar = Calendar::parse("America/Los_Angeles", per, resets_at).unwrap();
    let mut step = 0;
    bencher.bench_local(|| {
        step = (step + 1) % STEPS;
        let at = Timestamp::from_secs(NEW_YEAR + step * STEP);
        black_box(calendar.window(black_box(at)))
    });
}
