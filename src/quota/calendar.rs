//! Calendar windows: which one an instant falls into, and when the next begins.
//!
//! A reset belongs to a local *label*: "Monday 09:00". It is the first instant at which the local
//! clock reads at or past that label; so it is the end of a gap where the label lies in one, and the
//! first of two where the clock is set back over it. Labels are numbered, and the window of an
//! instant is found by the highest reading that the local clock has shown until then, which no
//! setting back lowers: a label never resets twice.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Offset, TimeZone, Timelike, Weekday};
use chrono_tz::{TZ_VARIANTS, Tz};

use crate::clock::{NANOS_PER_SEC, Timestamp};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// 1970-01-05, the first Monday, in days.
const FIRST_MONDAY: i64 = 4;

/// A clock is known this far back from an instant: for a day's label, one more day where a date is
/// skipped, and a day for the largest change of an offset there ever was.
const LOOK_BACK: i64 = 3 * DAY + 2 * HOUR;
/// And this far ahead: a day's label, and one more. Both together are shorter than the time between
/// any two changes in one zone.
const LOOK_AHEAD: i64 = 2 * DAY + 2 * HOUR;
/// More labels than a local date that does not exist can hold.
const LABELS_SKIPPED: i64 = 64;

/// The windows of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The zone whose local labels mark the resets.
    pub zone: Tz,
    /// How often, and at which label.
    pub resets: Resets,
}

/// The unit of a calendar window, as quota files write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// `hour`
    Hour,
    /// `day`
    Day,
    /// `week`
    Week,
    /// `month`
    Month,
}

/// The local label at which a window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resets {
    /// Each local hour at this minute.
    Hourly {
        /// 0 to 59.
        minute: u32,
    },
    /// Each local day at this time.
    Daily {
        /// The label.
        time: chrono::NaiveTime,
    },
    /// Each week on this day at this time.
    Weekly {
        /// The day.
        weekday: chrono::Weekday,
        /// The label.
        time: chrono::NaiveTime,
    },
    /// Each month on this day (the last where the month is shorter) at this time.
    Monthly {
        /// 1 to 31.
        day: u32,
        /// The label.
        time: chrono::NaiveTime,
    },
}

/// A half-open span `[start, next_reset)` of wall time in which a budget counts its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The reset that began it.
    pub start: Timestamp,
    /// The reset that ends it; an instant equal to it belongs to the next window.
    pub next_reset: Timestamp,
}

impl Calendar {
    /// Reads the three fields of a quota file. `zone` is an IANA name. `resets_at` is `00:00` for a
    /// day, `mon 00:00` for a week, `1 00:00` for a month; of an hour only the minutes count, and
    /// may stand alone: `00:15`, `:15`, `15`.
    ///
    /// ```
    /// use paceline::quota::calendar::{Calendar, Per};
    ///
    /// let calendar = Calendar::parse("America/Santiago", Per::Day, "00:00").unwrap();
    /// let noon = paceline::clock::Timestamp::from_secs(1_788_696_000); // 2026-09-06T12:00:00Z
    /// let window = calendar.window(noon);
    /// assert_eq!(window.start.to_rfc3339(), "2026-09-06T04:00:00Z"); // 01:00: midnight was skipped
    /// assert_eq!(window.next_reset.to_rfc3339(), "2026-09-07T03:00:00Z");
    /// ```
    ///
    /// # Errors
    ///
    /// Where the zone is unknown, or `resets_at` is no label of such a window.
    pub fn parse(zone: &str, per: Per, resets_at: &str) -> Result<Calendar, CalendarError> {
        let zone = Tz::from_str(zone).map_err(|_| CalendarError::Zone {
            zone: zone.to_owned(),
            nearest: nearest_zone(zone),
        })?;
        Ok(Calendar { zone, resets: Resets::parse(per, resets_at)? })
    }

    /// The window that `at` (wall time) falls into.
    pub fn window(&self, at: Timestamp) -> Window {
        let secs = at.as_nanos().div_euclid(NANOS_PER_SEC);
        let clock = LocalClock::around(self.zone, secs);
        let current = self.resets.index_at(clock.highest_by(secs));
        let reset = |index| self.reset(index, clock);
        let start = (0..LABELS_SKIPPED).find_map(|back| reset(current - back));
        let next = (1..LABELS_SKIPPED).find_map(|ahead| reset(current + ahead));
        Window {
            start: start.map_or(at, Timestamp::from_secs),
            next_reset: next.map_or(Timestamp::MAX, Timestamp::from_secs),
        }
    }

    /// The reset of the label of that number, in seconds since the epoch; `None` where its local
    /// date has no instant. `near` is the clock of an instant beside the label.
    fn reset(&self, index: i64, near: LocalClock) -> Option<i64> {
        let label = self.resets.label(index);
        let clock = match self.resets.per() {
            Per::Hour | Per::Day => near,
            Per::Week | Per::Month => LocalClock::around(self.zone, label),
        };
        (!clock.skips_date_of(label)).then(|| clock.reaches(label))
    }
}

/// A zone's clock around an instant, with at most one change of its offset. Instants are seconds
/// since the epoch; readings are the same of the local clock's face.
#[derive(Clone, Copy)]
struct LocalClock {
    before: i64,
    /// The instant of the change, and the offset from it on.
    change: Option<(i64, i64)>,
}

impl LocalClock {
    fn around(zone: Tz, at: i64) -> LocalClock {
        let (from, to) = (at - LOOK_BACK, at + LOOK_AHEAD);
        let (before, after) = (offset(zone, from), offset(zone, to));
        if before == after {
            return LocalClock { before, change: None };
        }
        let (mut early, mut late) = (from, to);
        while early + 1 < late {
            let middle = early + (late - early) / 2;
            *(if offset(zone, middle) == before { &mut early } else { &mut late }) = middle;
        }
        LocalClock { before, change: Some((late, after)) }
    }

    /// The highest reading shown until `at`, to the second.
    fn highest_by(&self, at: i64) -> i64 {
        match self.change {
            Some((changed_at, after)) if changed_at <= at => {
                (at + after).max(changed_at + self.before - 1)
            }
            _ => at + self.before,
        }
    }

    /// The first instant at which the clock reads `label` or later.
    fn reaches(&self, label: i64) -> i64 {
        match self.change {
            Some((changed_at, after)) if label - self.before >= changed_at => {
                changed_at.max(label - after)
            }
            _ => label - self.before,
        }
    }

    /// Whether the change leaps over the whole local date that `label` stands on.
    fn skips_date_of(&self, label: i64) -> bool {
        let midnight = label - label.rem_euclid(DAY);
        self.change.is_some_and(|(changed_at, after)| {
            changed_at + self.before <= midnight && midnight + DAY <= changed_at + after
        })
    }
}

/// Local time less UTC at an instant, in seconds.
fn offset(zone: Tz, at: i64) -> i64 {
    DateTime::from_timestamp(at, 0).map_or(0, |utc| {
        zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc().into()
    })
}

impl Resets {
    /// Reads `resets_at` as [`Calendar::parse`] says.
    ///
    /// # Errors
    ///
    /// It is no label of such a window.
    pub fn parse(per: Per, resets_at: &str) -> Result<Resets, CalendarError> {
        let mut words = resets_at.split_whitespace().rev();
        let (time, day) = (words.next().unwrap_or_default(), words.next());
        let read = match (per, day) {
            _ if words.next().is_some() => None,
            (Per::Hour, None) => parse_minute(time).map(|minute| Resets::Hourly { minute }),
            (Per::Day, None) => parse_time(time).map(|time| Resets::Daily { time }),
            (Per::Week, day) => {
                (Weekday::from_str(day.unwrap_or("mon")).ok().zip(parse_time(time)))
                    .map(|(weekday, time)| Resets::Weekly { weekday, time })
            }
            (Per::Month, day) => (parse_digits(day.unwrap_or("1"), 1, 31).zip(parse_time(time)))
                .map(|(day, time)| Resets::Monthly { day, time }),
            _ => None,
        };
        read.ok_or_else(|| CalendarError::ResetsAt { resets_at: resets_at.to_owned(), per })
    }

    /// The unit of these windows.
    pub const fn per(&self) -> Per {
        match self {
            Resets::Hourly { .. } => Per::Hour,
            Resets::Daily { .. } => Per::Day,
            Resets::Weekly { .. } => Per::Week,
            Resets::Monthly { .. } => Per::Month,
        }
    }

    /// Labels that recur at a fixed distance on the local clock's face: the distance, and label 0.
    fn grid(&self) -> Option<(i64, i64)> {
        match *self {
            Resets::Hourly { minute } => Some((HOUR, i64::from(minute) * 60)),
            Resets::Daily { time } => Some((DAY, seconds(time))),
            Resets::Weekly { weekday, time } => {
                let days = FIRST_MONDAY + i64::from(weekday.num_days_from_monday());
                Some((7 * DAY, days * DAY + seconds(time)))
            }
            Resets::Monthly { .. } => None,
        }
    }

    /// The label of that number, as a reading. Months are numbered from the year 0.
    fn label(&self, index: i64) -> i64 {
        match (self.grid(), *self) {
            (Some((step, first)), _) => first + index * step,
            (None, Resets::Monthly { day, time }) => {
                let year = i32::try_from(index.div_euclid(12)).unwrap_or(i32::MAX);
                let month = u32::try_from(index.rem_euclid(12) + 1).unwrap_or(1);
                let first = NaiveDate::from_ymd_opt(year, month, 1).unwrap_or(NaiveDate::MAX);
                let day = day.clamp(1, first.num_days_in_month().into());
                (i64::from(first.to_epoch_days()) + i64::from(day) - 1) * DAY + seconds(time)
            }
            (None, _) => 0,
        }
    }

    /// The number of the last label at or before a reading.
    fn index_at(&self, reading: i64) -> i64 {
        if let Some((step, first)) = self.grid() {
            return (reading - first).div_euclid(step);
        }
        let days = i32::try_from(reading.div_euclid(DAY)).unwrap_or(i32::MAX);
        let date = NaiveDate::from_epoch_days(days).unwrap_or(NaiveDate::MAX);
        let index = i64::from(date.year()) * 12 + i64::from(date.month0());
        if self.label(index) > reading { index - 1 } else { index }
    }
}

fn seconds(time: NaiveTime) -> i64 {
    time.num_seconds_from_midnight().into()
}

/// One or two digits, from `low` to `high`.
fn parse_digits(text: &str, low: u32, high: u32) -> Option<u32> {
    let digits = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten()?;
    (low..=high).contains(&number).then_some(number)
}

fn parse_time(text: &str) -> Option<NaiveTime> {
    let (hour, minute) = text.split_once(':')?;
    let minute = parse_digits(minute, 0, 59).filter(|_| minute.len() == 2)?;
    NaiveTime::from_hms_opt(parse_digits(hour, 0, 23)?, minute, 0)
}

fn parse_minute(text: &str) -> Option<u32> {
    let alone = text.strip_prefix(':').unwrap_or(text);
    parse_time(text).map(|time| time.minute()).or_else(|| parse_digits(alone, 0, 59))
}

impl fmt::Display for Resets {
    /// As a quota file writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resets::Hourly { minute } => write!(f, "00:{minute:02}"),
            Resets::Daily { time } => write!(f, "{}", time.format("%H:%M")),
            Resets::Weekly { weekday, time } => {
                write!(f, "{} {}", weekday.to_string().to_lowercase(), time.format("%H:%M"))
            }
            Resets::Monthly { day, time } => write!(f, "{day} {}", time.format("%H:%M")),
        }
    }
}

impl Per {
    /// All units.
    pub const ALL: [Per; 4] = [Per::Hour, Per::Day, Per::Week, Per::Month];

    /// `hour`, `day`, `week` or `month`.
    pub const fn name(self) -> &'static str {
        match self {
            Per::Hour => "hour",
            Per::Day => "day",
            Per::Week => "week",
            Per::Month => "month",
        }
    }

    /// The unit of that name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn parse(name: &str) -> Result<Per, CalendarError> {
        let unknown = || CalendarError::Per { per: name.to_owned() };
        Per::ALL.into_iter().find(|per| per.name() == name).ok_or_else(unknown)
    }

    /// What `resets_at` is where a quota file leaves it out.
    pub const fn default_resets_at(self) -> &'static str {
        match self {
            Per::Hour | Per::Day => "00:00",
            Per::Week => "mon 00:00",
            Per::Month => "1 00:00",
        }
    }
}

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a quota file's fields name no calendar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalendarError {
    /// The zone is in no database.
    #[error("`{zone}` is no IANA time zone{}", nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    Zone {
        /// What was given.
        zone: String,
        /// The name that looks most like it, where one does.
        nearest: Option<&'static str>,
    },
    /// The unit is none of the four.
    #[error("`{per}` is no calendar window: use hour, day, week or month")]
    Per {
        /// What was given.
        per: String,
    },
    /// The label does not fit the unit.
    #[error("`{resets_at}` is no reset of a {per}: write it as in `{}`", per.default_resets_at())]
    ResetsAt {
        /// What was given.
        resets_at: String,
        /// The unit.
        per: Per,
    },
}

/// The zone whose name, or whose city, is the fewest edits away: at most a third of its letters.
fn nearest_zone(given: &str) -> Option<&'static str> {
    let given = given.trim().to_lowercase().replace(' ', "_");
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let city = name.rsplit('/').next().unwrap_or(&name);
        edits(&given, &name).min(edits(&given, city))
    };
    let zones = TZ_VARIANTS.iter().map(|zone| zone.name());
    let (apart, name) = zones.map(|name| (distance(name), name)).min()?;
    (apart * 3 <= given.chars().count()).then_some(name)
}

/// Letters to insert, remove or replace to make one text of the other.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, letter) in one.chars().enumerate() {
        let (mut diagonal, mut left) = (line, line + 1);
        for (cell, letter_there) in row.iter_mut().skip(1).zip(other.chars()) {
            left = (left + 1).min(*cell + 1).min(diagonal + usize::from(letter != letter_there));
            diagonal = std::mem::replace(cell, left);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_quota_files_write_them() {
        let read = |per, text| Resets::parse(per, text).map(|resets| resets.to_string());
        for text in ["00:15", ":15", "15", "7:15"] {
            assert_eq!(read(Per::Hour, text).unwrap(), "00:15", "{text}");
        }
        assert_eq!(read(Per::Day, "13:40").unwrap(), "13:40");
        assert_eq!(read(Per::Week, "Monday  09:00").unwrap(), "mon 09:00");
        assert_eq!(read(Per::Month, "31 00:00").unwrap(), "31 00:00");
        // A week begins on Monday, a month on its first, unless it is said.
        assert_eq!(read(Per::Week, "06:00").unwrap(), "mon 06:00");
        assert_eq!(read(Per::Month, "06:00").unwrap(), "1 06:00");
        for per in Per::ALL {
            assert_eq!(Per::parse(per.name()), Ok(per));
            assert_eq!(read(per, per.default_resets_at()).unwrap(), per.default_resets_at());
            assert_eq!(Resets::parse(per, per.default_resets_at()).unwrap().per(), per);
        }
    }

    #[test]
    fn other_labels_are_refused() {
        let refused = [
            (Per::Hour, &["60", "", "mon 00:00", "123", "-1"][..]),
            (Per::Day, &["24:00", "12:60", "12", "noon", "1 12:00", "12:5", "+1:00", "00:00:00"]),
            (Per::Week, &["moo 00:00", "mon", "mon 24:00"]),
            (Per::Month, &["0 00:00", "32 00:00", "x 00:00", "1 00:00 x", "the 1 00:00"]),
        ];
        for (per, texts) in refused {
            for text in texts {
                assert!(Resets::parse(per, text).is_err(), "{per}: {text}");
            }
        }
        let message = Resets::parse(Per::Week, "24:00").unwrap_err().to_string();
        assert_eq!(message, "`24:00` is no reset of a week: write it as in `mon 00:00`");
    }

    #[test]
    fn texts_are_as_far_apart_as_letters_were_changed() {
        let pairs = [("", ""), ("zone", "zone"), ("zone", "one"), ("one", "zone"), ("", "zone")];
        assert_eq!(pairs.map(|(one, other)| edits(one, other)), [0, 0, 1, 1, 4]);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn a_zone_that_is_unknown_suggests_one_that_looks_like_it() {
        let suggests = |zone| match Calendar::parse(zone, Per::Day, "00:00") {
            Err(CalendarError::Zone { nearest, .. }) => nearest,
            other => panic!("{zone}: {other:?}"),
        };
        assert_eq!(suggests("America/Los_Angelos"), Some("America/Los_Angeles"));
        assert_eq!(suggests("los angeles"), Some("America/Los_Angeles"));
        assert_eq!(suggests("europe/zurich"), Some("Europe/Zurich"));
        assert_eq!(suggests(""), None);
        assert_eq!(suggests("the moon's far side"), None);
        let message = Calendar::parse("Asia/Tokio", Per::Day, "00:00").unwrap_err().to_string();
        assert_eq!(message, "`Asia/Tokio` is no IANA time zone; did you mean `Asia/Tokyo`?");
    }
}
