//! Instants in the zone they are about and in the user's, with how far off they are.

use chrono::{DateTime, Local, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use paceline::clock::Timestamp;
use paceline::report::words::span;

/// The user's zone.
#[derive(Clone, Copy, Debug)]
pub enum Here {
    /// By its IANA name.
    Zone(Tz),
    /// What the system's clock shows, where the zone's name cannot be told.
    Offset,
}

impl Here {
    /// `TZ` where it is the name of a zone, else the machine's zone.
    pub fn find() -> Here {
        let named = |name: String| name.trim_start_matches(':').parse::<Tz>().ok();
        match std::env::var("TZ") {
            Ok(name) if !name.is_empty() => named(name).map_or(Here::Offset, Here::Zone),
            _ => {
                iana_time_zone::get_timezone().ok().and_then(named).map_or(Here::Offset, Here::Zone)
            }
        }
    }

    fn show(self, at: Timestamp) -> String {
        match self {
            Here::Zone(zone) => face(at, zone),
            Here::Offset => {
                let local = at.to_utc().with_timezone(&Local);
                let text = local.format("%Y-%m-%d %H:%M:%S").to_string();
                match local.offset().local_minus_utc() {
                    0 => format!("{text} UTC"),
                    _ => format!("{text} {}", local.offset()),
                }
            }
        }
    }

    /// The instant of a local reading; of two the first, of none the first after the gap.
    pub fn instant(self, local: NaiveDateTime) -> Option<Timestamp> {
        match self {
            Here::Zone(zone) => first(&zone, local),
            Here::Offset => first(&Local, local),
        }
    }

    /// The local date.
    pub fn date(self, at: Timestamp) -> NaiveDate {
        match self {
            Here::Zone(zone) => at.to_utc().with_timezone(&zone).date_naive(),
            Here::Offset => at.to_utc().with_timezone(&Local).date_naive(),
        }
    }
}

fn first<Z: TimeZone>(zone: &Z, local: NaiveDateTime) -> Option<Timestamp> {
    let found = |at: DateTime<Z>| Timestamp::from(at.with_timezone(&Utc));
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(found(at)),
        LocalResult::None => {
            // Gaps are whole minutes long, and at most a day.
            let minutes = (1..=1440).map(|n| local + chrono::Duration::minutes(n));
            minutes
                .filter_map(|later| zone.from_local_datetime(&later).earliest())
                .map(found)
                .next()
        }
    }
}

/// `2026-12-01 00:00:02 PST`.
fn face(at: Timestamp, zone: Tz) -> String {
    at.to_utc().with_timezone(&zone).format("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// What is over for no longer than this is told without a figure.
const JUST_NOW: std::time::Duration = std::time::Duration::from_secs(1);

/// Shows instants as seen from now.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    now: Timestamp,
    /// The user's zone.
    pub here: Here,
}

impl Times {
    /// As seen from `now` (wall time).
    pub fn new(now: Timestamp) -> Times {
        Times { now, here: Here::find() }
    }

    /// Now, as it was when this was made.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// In the user's zone: `2026-12-01 08:00:02 UTC`.
    pub fn here(&self, at: Timestamp) -> String {
        self.here.show(at)
    }

    /// What the user's clock shows today when it is this time in UTC: `08:00`.
    pub fn clock(&self, utc: NaiveTime) -> String {
        let at = self.now.to_utc().date_naive().and_time(utc).and_utc();
        match self.here {
            Here::Zone(zone) => at.with_timezone(&zone).format("%H:%M").to_string(),
            Here::Offset => at.with_timezone(&Local).format("%H:%M").to_string(),
        }
    }

    /// `in 3 h 12 min`, `5 s ago`, `just now`, `now`.
    pub fn distance(&self, at: Timestamp) -> String {
        match at.cmp(&self.now) {
            std::cmp::Ordering::Greater => format!("in {}", span(at.since(self.now))),
            std::cmp::Ordering::Less if self.now.since(at) < JUST_NOW => "just now".to_owned(),
            std::cmp::Ordering::Less => format!("{} ago", span(self.now.since(at))),
            std::cmp::Ordering::Equal => "now".to_owned(),
        }
    }

    /// When something may go: as [`Times::both`], or `now` where that has come.
    pub fn due(&self, at: Timestamp, zone: Option<Tz>) -> String {
        if at <= self.now { "now".to_owned() } else { self.both(at, zone) }
    }

    /// Until when an upstream wants to be left alone, as it says itself.
    pub fn left_alone(&self, until: Timestamp) -> String {
        format!("it wants to be left alone until {}", self.both(until, Some(Tz::UTC)))
    }

    /// In the user's zone, with how far off it is.
    pub fn near_and_far(&self, at: Timestamp) -> String {
        format!("{}, {}", self.here(at), self.distance(at))
    }

    /// In the zone it is about and in the user's:
    /// `2026-12-01 00:00:02 PST (America/Los_Angeles) = 2026-12-01 08:00:02 UTC here, in 3 h 12 min`.
    /// Once, where the two agree.
    pub fn both(&self, at: Timestamp, zone: Option<Tz>) -> String {
        match zone.filter(|zone| face(at, *zone) != self.here(at)) {
            Some(zone) => {
                format!(
                    "{} ({zone}) = {} here, {}",
                    face(at, zone),
                    self.here(at),
                    self.distance(at)
                )
            }
            None => format!("{} here, {}", self.here(at), self.distance(at)),
        }
    }
}

/// An instant as typed: a span from now, RFC 3339, or a local date with or without a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// That far from now.
    Span(std::time::Duration),
    /// That instant.
    At(Timestamp),
    /// When the user's clock shows this.
    Local(NaiveDateTime),
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let text = text.trim();
        if let Ok(at) = DateTime::parse_from_rfc3339(text) {
            return match at.timestamp_nanos_opt() {
                Some(_) => Ok(Moment::At(at.to_utc().into())),
                None => Err("lies before the year 1678 or after 2261".to_owned()),
            };
        }
        for format in ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"]
        {
            if let Ok(local) = NaiveDateTime::parse_from_str(text, format) {
                return Ok(Moment::Local(local));
            }
        }
        if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return Ok(Moment::Local(date.and_time(NaiveTime::MIN)));
        }
        duration(text).map(Moment::Span).map_err(|_| {
            "write a span from now such as 2h30m, an instant such as 2026-12-01T08:00:00Z, or a local \
             date and time such as \"2026-12-01 08:00\""
                .to_owned()
        })
    }
}

impl Moment {
    /// The instant (wall time), a span being one to come.
    pub fn to_come(self, times: &Times) -> Option<Timestamp> {
        self.resolve(times, |span| times.now + span)
    }

    /// The instant (wall time), a span being one that is over.
    pub fn gone(self, times: &Times) -> Option<Timestamp> {
        self.resolve(times, |span| times.now - span)
    }

    fn resolve(
        self,
        times: &Times,
        span_from_now: impl Fn(std::time::Duration) -> Timestamp,
    ) -> Option<Timestamp> {
        match self {
            Moment::Span(span) => Some(span_from_now(span)),
            Moment::At(at) => Some(at),
            Moment::Local(local) => times.here.instant(local),
        }
    }
}

/// A span as typed; `0` needs no unit.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    if text.trim() == "0" {
        return Ok(std::time::Duration::ZERO);
    }
    paceline::quota::declare::duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_796_100_482); // 2026-12-01T04:48:02Z

    fn times(zone: Tz) -> Times {
        Times { now: NOW, here: Here::Zone(zone) }
    }

    #[test]
    fn an_instant_is_told_in_both_zones() {
        let at = NOW + std::time::Duration::from_secs(11_520);
        assert_eq!(
            times(Tz::UTC).both(at, Some(Tz::America__Los_Angeles)),
            "2026-12-01 00:00:02 PST (America/Los_Angeles) = 2026-12-01 08:00:02 UTC here, in 3 h 12 min"
        );
        assert_eq!(times(Tz::UTC).both(NOW, None), "2026-12-01 04:48:02 UTC here, now");
        assert_eq!(times(Tz::UTC).both(NOW, Some(Tz::UTC)), "2026-12-01 04:48:02 UTC here, now");
        assert_eq!(times(Tz::UTC).due(NOW - std::time::Duration::from_micros(271), None), "now");
    }

    #[test]
    fn a_distance_is_no_finer_than_it_is_of_use() {
        let off = |millis| std::time::Duration::from_millis(millis);
        let told = |at| times(Tz::UTC).distance(at);
        assert_eq!(told(NOW - std::time::Duration::from_micros(247)), "just now");
        assert_eq!(told(NOW - off(999)), "just now");
        assert_eq!(told(NOW - off(1_000)), "1 s ago");
        assert_eq!(told(NOW + off(2_140)), "in 2.2 s");
        assert_eq!(told(NOW + off(250)), "in 250 ms");
        assert_eq!(told(NOW), "now");
    }

    #[test]
    fn moments_are_read_in_four_forms() {
        let berlin = times(Tz::Europe__Berlin);
        let read =
            |text: &str| text.parse::<Moment>().unwrap().to_come(&berlin).unwrap().to_rfc3339();
        assert_eq!(read("1h"), "2026-12-01T05:48:02Z");
        assert_eq!(read("2026-12-01T08:00:00+01:00"), "2026-12-01T07:00:00Z");
        assert_eq!(read("2026-12-24"), "2026-12-23T23:00:00Z");
        assert_eq!(read("2026-12-24 18:00"), "2026-12-24T17:00:00Z");
        assert_eq!(read("2027-03-28 02:30"), "2027-03-28T01:00:00Z"); // in the gap
        assert!("tomorrow".parse::<Moment>().is_err());
    }
}
