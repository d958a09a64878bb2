//! Dates in header fields: the three HTTP forms (RFC 9110 section 5.6.7), their common variants
//! with an offset, and RFC 3339.
//!
//! Zone names other than `GMT` and `UTC`, dates without a zone (asctime excepted, which is always
//! in UTC), and dates that no calendar has are refused. `httpdate` is stricter than servers are
//! (second 60, offsets) and has another rule for two-digit years, so it serves as the tests' oracle.

use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};

use crate::clock::Timestamp;

/// Reads a whole text as a date. `now` decides the century of a two-digit year.
pub(crate) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    rfc3339(text).or_else(|| http_date(text, now))
}

/// RFC 3339, also without seconds: Jira sends `2026-03-26T16:00Z`.
pub(crate) fn rfc3339(text: &str) -> Option<Timestamp> {
    let read = |text: &str| DateTime::parse_from_rfc3339(text).ok();
    let at = read(text).or_else(|| {
        let (minutes, zone) = text.split_at_checked("2026-03-26T16:00".len())?;
        read(&format!("{minutes}:00{zone}"))
    })?;
    Some(at.with_timezone(&Utc).into())
}

fn http_date(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (weekday, rest) = match text.split_once(',') {
        Some((name, rest)) => (Some(name), rest),
        None => (None, text),
    };
    if weekday.is_some_and(|name| !is_weekday(name)) {
        return None;
    }
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    match *words.as_slice() {
        [day, month, year, time, zone] if weekday.is_some() || !is_weekday(day) => {
            instant(date(day, month, four_digits(year)?)?, time, offset(zone)?)
        }
        [_, month, day, time, year] => instant(date(day, month, four_digits(year)?)?, time, 0),
        [date, time, zone] => rfc850(date, time, offset(zone)?, now),
        _ => None,
    }
}

/// `06-Nov-94`, a date with a two-digit year: one that would lie more than 50 years ahead is the
/// most recent past year with these digits. Four digits make it a cookie's date, which is no HTTP form.
fn rfc850(text: &str, time: &str, offset: i64, now: Timestamp) -> Option<Timestamp> {
    let mut parts = text.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let short = i32::try_from(digits(year, 2..=2)?).ok()?;
    let limit = now.to_utc().checked_add_months(Months::new(50 * 12))?;
    let latest = limit.year() - (limit.year() - short).rem_euclid(100);
    let read = |year| instant(date(day, month, year)?, time, offset);
    match read(latest) {
        Some(at) if at > Timestamp::from(limit) => read(latest - 100),
        other => other,
    }
}

fn instant(date: NaiveDate, time: &str, offset: i64) -> Option<Timestamp> {
    let midnight = date.and_hms_opt(0, 0, 0)?.and_utc().timestamp();
    Some(Timestamp::from_secs(midnight + seconds(time)? - offset))
}

fn date(day: &str, month: &str, year: i32) -> Option<NaiveDate> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = (1..).zip(MONTHS).find(|(_, name)| month.eq_ignore_ascii_case(name))?.0;
    NaiveDate::from_ymd_opt(year, month, digits(day, 1..=2)?)
}

fn four_digits(year: &str) -> Option<i32> {
    i32::try_from(digits(year, 4..=4)?).ok()
}

/// Seconds since midnight. Second 60 is legal (a leap second) and is the next instant.
fn seconds(time: &str) -> Option<i64> {
    let mut parts = time.split(':').map(|part| digits(part, 2..=2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let legal = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    legal.then(|| i64::from(hour * 3_600 + minute * 60 + second))
}

/// `GMT`, `UTC`, `+0200`, `-0000`, in seconds ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("GMT") || zone.eq_ignore_ascii_case("UTC") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let value = i64::from(digits(rest, 4..=4)?);
    let (hours, minutes) = (value / 100, value % 100);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn is_weekday(name: &str) -> bool {
    const WEEKDAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    WEEKDAYS.iter().any(|day| {
        name.eq_ignore_ascii_case(day)
            || day.get(..3).is_some_and(|short| name.eq_ignore_ascii_case(short))
    })
}

fn digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit());
    (numeric && lengths.contains(&text.len())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        rfc3339("2026-03-01T12:00:00Z").unwrap()
    }

    fn read(text: &str) -> Option<String> {
        parse(text, now()).map(Timestamp::to_rfc3339)
    }

    #[test]
    fn readable_forms() {
        let expected = Some("2026-03-01T12:10:00Z".to_owned());
        for text in [
            "Sun, 01 Mar 2026 12:10:00 GMT",
            "Sunday, 01-Mar-26 12:10:00 GMT",
            "Sun Mar  1 12:10:00 2026",
            "Sun, 01 Mar 2026 12:10:00 UTC",
            "Sun, 01 Mar 2026 12:10:00 -0000",
            "Sun, 01 Mar 2026 14:10:00 +0200",
            "Sun, 01 Mar 2026 04:10:00 -0800",
            "Sun, 01 Mar 2026 17:40:00 +0530",
            "Sun, 01 Mar 2026 12:09:60 GMT",
            "01 Mar 2026 12:10:00 GMT",
            "2026-03-01T12:10:00Z",
            "2026-03-01T12:10Z",
            "2026-03-01T13:10:00+01:00",
            "2026-03-01T12:09:60Z",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn unreadable_forms() {
        for text in [
            "",
            "soon",
            "1 Jan 2099 00:00:00",
            "Sun, 01 Mar 2026 12:10:00",
            "2026-03-01T12:10:00",
            "2026-03-01",
            "Sun, 01-Mar-2026 12:10:00 GMT",
            "Sunday, 01-Mar-2026 12:10:00 GMT",
            "Sun, 01 Mar 2026 12:10:00 EST",
            "Sun, 01 Mar 2026 12:10:00 Z",
            "Mon, 30 Feb 2026 12:00:00 GMT",
            "2026-02-30T12:00:00Z",
            "Sun, 01 Mar 2026 24:00:00 GMT",
            "Sun, 01 Mar 2026 12:60:00 GMT",
            "Sun, 01 Mar 2026 12:10:61 GMT",
            "Fri, 31 Dec 99999 23:59:59 GMT",
            "Sun, 01 Mar 2026 12:10:00 GMT junk",
            "Sun, 01 Mar 2026 12:10:00 +2500",
            "Sun, 01 Mar 2026 12:10:00 +2400",
            "Sun, 01 Mar 2026 12:10:00 +0160",
            "Noday Mar  1 12:10:00 2026",
            "Caturday, 01 Mar 2026 12:10:00 GMT",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn two_digit_years() {
        let year = |text: &str| read(text).map(|at| at.get(..4).unwrap_or("").to_owned());
        assert_eq!(year("Sunday, 06-Nov-94 08:49:37 GMT").as_deref(), Some("1994"));
        assert_eq!(year("Sunday, 28-Feb-76 12:00:00 GMT").as_deref(), Some("2076"));
        let exactly = "Sunday, 01-Mar-76 12:00:00 GMT";
        assert_eq!(year(exactly).as_deref(), Some("2076"), "not more than 50 years");
        assert_eq!(year("Sunday, 02-Mar-76 12:00:00 GMT").as_deref(), Some("1976"));
        assert_eq!(year("Sunday, 01-Mar-77 12:00:00 GMT").as_deref(), Some("1977"));
    }

    proptest! {
        #[test]
        fn agrees_with_httpdate(secs in 0_u64..9_000_000_000) {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs);
            let expected = Timestamp::from_secs(i64::try_from(secs).unwrap());
            prop_assert_eq!(parse(&httpdate::fmt_http_date(at), now()), Some(expected));
        }

        #[test]
        fn never_panics(text in "\\PC*", now in any::<i64>()) {
            let _ = parse(&text, Timestamp::from_nanos(now));
            let _ = parse(&format!("Sunday, 01-Mar-{text} 12:00:00 GMT"), Timestamp::from_nanos(now));
        }
    }
}
