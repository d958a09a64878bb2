//! When something was last changed, as sitemaps write it: the W3C's profile of ISO 8601
//! (<https://www.w3.org/TR/NOTE-datetime>), from a year alone to fractions of a second.

use chrono::{DateTime, Duration, FixedOffset, Months, NaiveDate, NaiveDateTime, TimeDelta};

use crate::clock::Timestamp;

/// A moment of a change: as long as its text leaves open.
///
/// ```
/// use paceline::plan::Lastmod;
///
/// let day = Lastmod::parse("2026-11-30").unwrap();
/// let second = Lastmod::parse("2026-11-30T01:00:00+01:00").unwrap();
/// assert_eq!(day.begins_at(), second.begins_at());
/// assert_eq!(second.same(), Lastmod::parse("2026-11-30T00:00:00Z").unwrap().same());
/// assert!(Lastmod::parse("yesterday").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lastmod {
    begins: NaiveDateTime,
    /// The first instant that is not part of it.
    ends: NaiveDateTime,
    /// `None`: the text names no zone.
    zone: Option<FixedOffset>,
}

impl Lastmod {
    /// Reads one; a blank may stand for the `T`.
    pub fn parse(text: &str) -> Option<Lastmod> {
        let text = text.trim();
        date(text).or_else(|| instant(text)).filter(|lastmod| lastmod.utc(lastmod.ends).is_some())
    }

    /// Its beginning, in UTC where it names no zone.
    pub fn begins_at(&self) -> Timestamp {
        self.utc(self.begins).unwrap_or(Timestamp::MAX)
    }

    /// Its end: the first instant after it. `local` tells where the user's clock shows a time, for one
    /// that names no zone.
    pub fn ends_at(&self, local: impl Fn(NaiveDateTime) -> Option<Timestamp>) -> Timestamp {
        let end = match self.zone {
            Some(_) => self.utc(self.ends),
            None => local(self.ends),
        };
        end.unwrap_or(Timestamp::MAX)
    }

    /// A text that is the same for the same moment, however that is written.
    pub fn same(&self) -> String {
        match self.zone {
            Some(_) => self.begins_at().to_rfc3339(),
            None => format!("{}/{}", self.begins, self.ends - self.begins),
        }
    }

    fn utc(&self, at: NaiveDateTime) -> Option<Timestamp> {
        let offset = self.zone.map_or(0, |zone| zone.local_minus_utc());
        let at = at.checked_sub_signed(Duration::seconds(offset.into()))?;
        at.and_utc().timestamp_nanos_opt().map(Timestamp::from_nanos)
    }
}

/// A day, a month, a year.
fn date(text: &str) -> Option<Lastmod> {
    let is_date = |c: char| c.is_ascii_digit() || c == '-';
    if !text.chars().all(is_date) {
        return None;
    }
    let day = |text: &str| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let (first, next) = match text.len() {
        4 => (day(&format!("{text}-01-01"))?, Months::new(12)),
        7 => (day(&format!("{text}-01"))?, Months::new(1)),
        10 => {
            let first = day(text)?;
            return Some(span(first, first.succ_opt()?));
        }
        _ => return None,
    };
    Some(span(first, first.checked_add_months(next)?))
}

fn span(first: NaiveDate, next: NaiveDate) -> Lastmod {
    let midnight = chrono::NaiveTime::MIN;
    Lastmod { begins: first.and_time(midnight), ends: next.and_time(midnight), zone: None }
}

/// A minute, a second or a fraction of one.
fn instant(text: &str) -> Option<Lastmod> {
    let text = text.replacen(' ', "T", 1);
    let (time, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(time) => (time, FixedOffset::east_opt(0)),
        None => match DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%:z")
            .or_else(|_| DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M%:z"))
        {
            Ok(at) => (text.rsplit_once(['+', '-'])?.0, Some(*at.offset())),
            Err(_) => (text.as_str(), None),
        },
    };
    let read = |format| NaiveDateTime::parse_from_str(time, format).ok();
    let (begins, length) = match read("%Y-%m-%dT%H:%M") {
        Some(begins) => (begins, TimeDelta::minutes(1)),
        None => (read("%Y-%m-%dT%H:%M:%S%.f")?, TimeDelta::seconds(1)),
    };
    Some(Lastmod { begins, ends: begins.checked_add_signed(length)?, zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Option<(String, String)> {
        let lastmod = Lastmod::parse(text)?;
        let in_utc =
            |at: NaiveDateTime| at.and_utc().timestamp_nanos_opt().map(Timestamp::from_nanos);
        let told = |at: Timestamp| at.to_rfc3339_seconds();
        Some((told(lastmod.begins_at()), told(lastmod.ends_at(in_utc))))
    }

    #[test]
    fn each_form_is_as_long_as_it_leaves_open() {
        let cases = [
            ("2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            (" 2026-11-30\n", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"),
            ("2026-11-30T10:05Z", "2026-11-30T10:05:00Z", "2026-11-30T10:06:00Z"),
            ("2026-11-30T10:05+02:00", "2026-11-30T08:05:00Z", "2026-11-30T08:06:00Z"),
            ("2026-11-30T10:05:07-05:30", "2026-11-30T15:35:07Z", "2026-11-30T15:35:08Z"),
            ("2026-11-30 10:05:07.25Z", "2026-11-30T10:05:07Z", "2026-11-30T10:05:08Z"),
            ("2026-11-30T10:05:07", "2026-11-30T10:05:07Z", "2026-11-30T10:05:08Z"),
        ];
        for (text, begins, ends) in cases {
            assert_eq!(span(text), Some((begins.to_owned(), ends.to_owned())), "{text}");
        }
        for text in ["", "26", "2026-13", "2026-02-30", "2026-11-30T25:00Z", "30.11.2026", "9999"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn the_same_moment_is_the_same() {
        let same = |text| Lastmod::parse(text).unwrap().same();
        assert_eq!(same("2026-07-01T02:00:00+02:00"), same("2026-07-01T00:00Z"));
        assert_ne!(same("2026-07-01"), same("2026-07-01T00:00Z"));
        assert_ne!(same("2026-07-01"), same("2026-07"));
        assert_eq!(same("2026-07-01"), same(" 2026-07-01 "));
    }
}
