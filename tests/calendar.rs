//! Calendars: the shared cases, and the rules against an oracle that watches a local clock tick.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::HashSet;

use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use paceline::clock::Timestamp;
use paceline::quota::calendar::{Calendar, Per, Resets, Window};
use proptest::prelude::*;

fn instant(text: &str) -> Timestamp {
    text.parse::<DateTime<Utc>>().expect(text).into()
}

#[derive(serde::Deserialize)]
struct Case {
    id: String,
    time_zone: String,
    per: String,
    resets_at: String,
    at: String,
    expect: Expected,
    why: String,
}

#[derive(serde::Deserialize)]
struct Expected {
    window_start: String,
    next_reset: String,
}

#[test]
fn every_case_has_its_window() {
    for line in include_str!("data/calendar.jsonl").lines() {
        let case: Case = serde_json::from_str(line).expect(line);
        let per = Per::parse(&case.per).unwrap();
        let calendar = Calendar::parse(&case.time_zone, per, &case.resets_at).unwrap();
        let expected = Window {
            start: instant(&case.expect.window_start),
            next_reset: instant(&case.expect.next_reset),
        };
        assert_eq!(calendar.window(instant(&case.at)), expected, "{}: {}", case.id, case.why);
    }
}

/// The windows of a stretch of time, found by reading the local clock once a minute: a reset is
/// the minute at which the clock first reads at or past a label whose date exists. Nothing here
/// computes with offsets. Right where offsets and their changes are whole minutes.
fn watched_resets(calendar: &Calendar, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Timestamp> {
    let ticks = || (0..).map(|n| from + Duration::minutes(n)).take_while(|at| *at <= to);
    let readings: Vec<NaiveDateTime> =
        ticks().map(|at| at.with_timezone(&calendar.zone).naive_local()).collect();
    let dates: HashSet<NaiveDate> = readings.iter().map(|reading| reading.date()).collect();
    let is_label = |minute: NaiveDateTime| {
        let at_time = |time: NaiveTime| minute.time() == time;
        dates.contains(&minute.date())
            && match calendar.resets {
                Resets::Hourly { minute: of_hour } => minute.minute() == of_hour,
                Resets::Daily { time } => at_time(time),
                Resets::Weekly { weekday, time } => minute.weekday() == weekday && at_time(time),
                Resets::Monthly { day, time } => {
                    let last = u32::from(minute.num_days_in_month());
                    minute.day() == day.min(last) && at_time(time)
                }
            }
    };
    let mut highest = readings[0];
    let mut resets = Vec::new();
    for (at, reading) in ticks().zip(readings) {
        let mut passed = false;
        while highest < reading {
            highest += Duration::minutes(1);
            passed |= is_label(highest);
        }
        if passed {
            resets.push(at.into());
        }
    }
    resets
}

fn check(calendar: &Calendar, at: DateTime<Utc>, days: i64) {
    let resets = watched_resets(calendar, at - Duration::days(days), at + Duration::days(days));
    let position = resets.partition_point(|reset| *reset <= at.into());
    let window = calendar.window(at.into());
    assert_eq!(resets.get(position), Some(&window.next_reset), "{calendar:?} at {at}: reset");
    let start = position.checked_sub(1).and_then(|before| resets.get(before));
    assert_eq!(start, Some(&window.start), "{calendar:?} at {at}: start");
}

fn resets() -> impl Strategy<Value = Resets> {
    let time = (0..24_u32, prop_oneof![Just(0_u32), Just(30), 0..60_u32])
        .prop_map(|(hour, minute)| NaiveTime::from_hms_opt(hour, minute, 0).unwrap());
    let early = (0..4_u32, prop_oneof![Just(0_u32), Just(30), 0..60_u32])
        .prop_map(|(hour, minute)| NaiveTime::from_hms_opt(hour, minute, 0).unwrap());
    let time = prop_oneof![time, early];
    prop_oneof![
        (0..60_u32).prop_map(|minute| Resets::Hourly { minute }),
        time.clone().prop_map(|time| Resets::Daily { time }),
        (0..7_u8, time.clone()).prop_map(|(day, time)| Resets::Weekly {
            weekday: chrono::Weekday::try_from(day).unwrap(),
            time
        }),
        (1..32_u32, time).prop_map(|(day, time)| Resets::Monthly { day, time }),
    ]
}

const CHANGING: [&str; 24] = [
    "America/Los_Angeles",
    "America/Santiago",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Asuncion",
    "America/Godthab",
    "America/Scoresbysund",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/London",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kwajalein",
    "Pacific/Fakaofo",
];

/// A minute near the first or second change of the zone's offset after that year began, where it
/// has one soon.
fn near_change(zone: Tz, year: i32, second: bool, off_by: i64) -> DateTime<Utc> {
    let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap().and_time(NaiveTime::MIN).and_utc();
    let reading = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local() - at.naive_utc();
    let hours = (0..24 * 400).map(|hour| first + Duration::hours(hour));
    let changes = |at: &DateTime<Utc>| reading(*at) != reading(*at + Duration::hours(1));
    let changed = hours.filter(changes).nth(second.into());
    changed.unwrap_or(first) + Duration::minutes(off_by)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn windows_are_what_a_watcher_of_the_clock_sees(
        zone in prop::sample::select(CHANGING.as_slice()),
        year in 1975..2035_i32,
        second in any::<bool>(),
        off_by in prop_oneof![5 => -60..180_i64, 1 => -1500..1500_i64],
        resets in resets(),
    ) {
        let zone: Tz = zone.parse().unwrap();
        let days = match resets.per() {
            Per::Hour | Per::Day => 3,
            Per::Week => 16,
            Per::Month => 40,
        };
        check(&Calendar { zone, resets }, near_change(zone, year, second, off_by), days);
    }

    #[test]
    fn windows_meet_without_gap_or_overlap(
        zone in prop::sample::select(TZ_VARIANTS.as_slice()),
        secs in -9_214_560_000_i64..9_214_646_400,
        resets in resets(),
    ) {
        let calendar = Calendar { zone, resets };
        let at = Timestamp::from_secs(secs);
        let window = calendar.window(at);
        prop_assert!(window.start <= at && at < window.next_reset, "{at} in {window:?}");
        prop_assert_eq!(calendar.window(window.start), window);
        prop_assert_eq!(calendar.window(window.next_reset.shifted(-1)), window);
        let next = calendar.window(window.next_reset);
        prop_assert_eq!(next.start, window.next_reset);
    }
}

#[test]
fn a_label_that_comes_twice_resets_once() {
    let set_back = [
        ("America/Los_Angeles", "2026-11-01T09:00:00Z", "01:30"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z", "01:45"),
        ("America/St_Johns", "2010-11-07T02:31:00Z", "00:00"),
        ("America/Sao_Paulo", "2018-02-18T02:00:00Z", "23:30"),
    ];
    for (zone, changed_at, label) in set_back {
        for (per, resets_at) in [(Per::Hour, "50"), (Per::Day, label)] {
            let calendar = Calendar::parse(zone, per, resets_at).unwrap();
            for minutes in [-31, -1, 0, 10, 29, 30, 45, 61] {
                let at = changed_at.parse::<DateTime<Utc>>().unwrap() + Duration::minutes(minutes);
                check(&calendar, at, 2);
            }
        }
    }
}

#[test]
fn a_date_without_instants_gives_no_reset() {
    let skipped = [
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "fri 09:00", "30 09:00"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00Z", "sat 09:00", "21 09:00"),
    ];
    for (zone, changed_at, week, month) in skipped {
        let labels = [
            (Per::Hour, "30", 3),
            (Per::Day, "09:00", 3),
            (Per::Week, week, 20),
            (Per::Month, month, 70),
        ];
        for (per, resets_at, days) in labels {
            let calendar = Calendar::parse(zone, per, resets_at).unwrap();
            for hours in [-1, 0, 20] {
                let at = changed_at.parse::<DateTime<Utc>>().unwrap() + Duration::hours(hours);
                check(&calendar, at, days);
            }
        }
    }
}

/// The search for a change of offset assumes that a zone never has two within 124 hours.
#[test]
fn no_zone_changes_its_offset_twice_in_a_few_days() {
    use chrono::{Offset, TimeZone};
    let step = Duration::hours(12);
    let first = NaiveDate::from_ymd_opt(1990, 1, 1).unwrap().and_time(NaiveTime::MIN);
    for zone in TZ_VARIANTS {
        let mut at = first;
        let mut last = zone.offset_from_utc_datetime(&at).fix();
        let mut changed_at = None;
        while at.year() < 2040 {
            let offset = zone.offset_from_utc_datetime(&at).fix();
            if offset != last {
                let long_ago = changed_at.is_none_or(|before| at - before >= Duration::days(6));
                assert!(long_ago, "{zone} changes twice around {at}");
                (changed_at, last) = (Some(at), offset);
            }
            at += step;
        }
    }
}

#[test]
fn no_instant_of_the_range_makes_it_panic() {
    for zone in TZ_VARIANTS {
        for resets_at in [(Per::Hour, "15"), (Per::Day, "00:00"), (Per::Month, "31 23:59")] {
            let calendar = Calendar::parse(zone.name(), resets_at.0, resets_at.1).unwrap();
            for at in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX] {
                let _ = calendar.window(Timestamp::from_nanos(at));
            }
        }
    }
}
