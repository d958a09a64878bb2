//! Numbers with units, as quota files write them.
//!
//! `"10/s"`, `"1/5s"`; `"30s"`, `"1h30m"`; `"64KiB"`; `"mon 06:00"`. Each reader answers with the
//! value, or with what is wrong and what to write instead.

use std::time::Duration;

use super::super::calendar::{Per, Resets};

/// What is wrong with a value, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) message: String,
    pub(super) fix: String,
}

fn wrong<T>(message: String, fix: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { message, fix: fix.into() })
}

const DURATION_FIX: &str = "write a whole number with us, ms, s, m, h, d or w, such as \"30s\"";
const RATE_FIX: &str = "write units/time, such as \"10/s\", \"380/min\", \"1/5s\" or \"10000/day\"";

/// Nanoseconds of a unit of time, by any of its names.
fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        "w" | "week" | "weeks" => 604_800_000_000_000,
        _ => return None,
    })
}

/// A duration: one or more whole numbers, each with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, Wrong> {
    let mut rest = text.trim();
    let mut nanos = 0_u64;
    if rest.is_empty() {
        return wrong("empty duration".to_owned(), DURATION_FIX);
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| !c.is_ascii_digit());
        let (unit, after) =
            split(after.trim_start(), |c| c.is_ascii_digit() || c == '.' || c == ' ');
        let Ok(number) = number.parse::<u64>() else {
            return wrong(format!("bad duration `{text}`"), DURATION_FIX);
        };
        let Some(unit_nanos) = unit_nanos(unit) else {
            let what = if unit.is_empty() { "no unit" } else { "unknown unit" };
            let unit = if unit.is_empty() { String::new() } else { format!(" `{unit}`") };
            return wrong(format!("{what}{unit} in duration `{text}`"), DURATION_FIX);
        };
        let sum = number.checked_mul(unit_nanos).and_then(|part| nanos.checked_add(part));
        let Some(sum) = sum.filter(|sum| i64::try_from(*sum).is_ok()) else {
            return wrong(format!("duration `{text}` is longer than 292 years"), DURATION_FIX);
        };
        nanos = sum;
        rest = after.trim_start();
    }
    Ok(Duration::from_nanos(nanos))
}

fn split(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at_checked(text.find(end).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// A rate: units, and the time in which they may go. Neither is zero.
pub(super) fn rate(text: &str) -> Result<(u64, Duration), Wrong> {
    let Some((amount, period)) = text.split_once('/') else {
        return wrong(format!("bad rate `{text}`"), RATE_FIX);
    };
    let Ok(amount) = amount.trim().parse::<u64>() else {
        return wrong(
            format!("bad rate `{text}`: `{}` is no whole number", amount.trim()),
            RATE_FIX,
        );
    };
    let period = period.trim();
    let counted = period.starts_with(|c: char| c.is_ascii_digit());
    let spelled = if counted { period.to_owned() } else { format!("1{period}") };
    let Ok(span) = duration(&spelled) else {
        let fix = match period {
            "month" | "months" | "mo" => {
                "a month has no fixed length: write a budget with \
                per = \"month\", or a span such as \"1000/30d\""
            }
            _ => RATE_FIX,
        };
        return wrong(format!("unknown unit `{period}` in rate `{text}`"), fix);
    };
    if amount == 0 {
        let fix = "write at least 1, or remove the limit";
        return wrong(format!("zero rate: `{text}` never lets anything go"), fix);
    }
    if span.is_zero() {
        return wrong(format!("zero period in rate `{text}`"), RATE_FIX);
    }
    Ok((amount, span))
}

/// Bytes: `"64KiB"`, `"1MB"`, `"512B"`.
pub(super) fn bytes(text: &str) -> Result<usize, Wrong> {
    const FIX: &str = "write a whole number with B, KB, KiB, MB, MiB, GB or GiB, such as \"64KiB\"";
    let (number, unit) = split(text.trim(), |c| !c.is_ascii_digit());
    let unit = unit.trim();
    let factor = match unit.to_ascii_lowercase().as_str() {
        "b" => 1_usize,
        "kb" => 1_000,
        "kib" => 1 << 10,
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        "" => return wrong(format!("no unit in size `{text}`"), FIX),
        _ => return wrong(format!("unknown unit `{unit}` in size `{text}`"), FIX),
    };
    let size = number.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    size.map_or_else(|| wrong(format!("bad size `{text}`"), FIX), Ok)
}

/// `hour`, `day`, `week` or `month`.
pub(super) fn per(text: &str) -> Result<Per, Wrong> {
    Ok(match text {
        "hour" => Per::Hour,
        "day" => Per::Day,
        "week" => Per::Week,
        "month" => Per::Month,
        _ => {
            let fix = "write \"hour\", \"day\", \"week\" or \"month\"; for a span that no calendar \
                has, kind = \"rolling\"";
            return wrong(format!("`{text}` is no calendar window"), fix);
        }
    })
}

/// The label at which windows begin; `None` is `00:00` of every hour, day, Monday or first.
pub(super) fn resets(per: Per, text: Option<&str>) -> Result<Resets, Wrong> {
    let text = text.unwrap_or(per.default_resets_at());
    let fix = match per {
        Per::Hour => "write \"00:15\" for a quarter past",
        Per::Day => "write \"00:00\"",
        Per::Week => "write \"mon 00:00\"",
        Per::Month => "write \"1 00:00\"",
    };
    Resets::parse(per, text).or_else(|_| wrong(format!("bad `resets_at` `{text}`"), fix))
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveTime, Weekday};

    use super::*;

    #[test]
    fn durations_have_units() {
        let read = |text| duration(text).unwrap();
        assert_eq!(read("250us"), Duration::from_micros(250));
        assert_eq!(read("5ms"), Duration::from_millis(5));
        assert_eq!(read("31d"), Duration::from_secs(31 * 86_400));
        assert_eq!(read("2w"), Duration::from_secs(14 * 86_400));
        assert_eq!(read("7ns"), Duration::from_nanos(7));
        assert_eq!(read("1h30m"), Duration::from_secs(5_400));
        assert_eq!(read("1 h 30 min"), Duration::from_secs(5_400));
        for text in ["", "30", "s", "1.5s", "-1s", "30 parsecs", "30 30s", "300y", "99999999w"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_units_per_time() {
        assert_eq!(rate("10/s").unwrap(), (10, Duration::from_secs(1)));
        assert_eq!(rate("380/min").unwrap(), (380, Duration::from_secs(60)));
        assert_eq!(rate("1/5s").unwrap(), (1, Duration::from_secs(5)));
        assert_eq!(rate("10000/day").unwrap(), (10_000, Duration::from_secs(86_400)));
        for text in [
            "10",
            "/s",
            "0/s",
            "1/0s",
            "1.5/s",
            "10/fortnight",
            "10/month",
            "-1/s",
            "10/",
            "10/5",
            "1/s/s",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("64KiB").unwrap(), 65_536);
        assert_eq!(bytes("1 MB").unwrap(), 1_000_000);
        assert_eq!((bytes("512B").unwrap(), bytes("3kb").unwrap()), (512, 3_000));
        assert_eq!((bytes("1MiB").unwrap(), bytes("2GB").unwrap()), (1_048_576, 2_000_000_000));
        assert_eq!(bytes("1GiB").unwrap(), 1_073_741_824);
        for text in ["64", "KiB", "1.5MB", "64 stone"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn resets_fit_their_window() {
        let midnight = NaiveTime::MIN;
        let monday = Resets::Weekly { weekday: Weekday::Mon, time: midnight };
        assert_eq!(resets(Per::Hour, Some("00:15")).unwrap(), Resets::Hourly { minute: 15 });
        assert_eq!(resets(Per::Day, None).unwrap(), Resets::Daily { time: midnight });
        assert_eq!(resets(Per::Week, Some("mon 00:00")).unwrap(), monday);
        assert_eq!(resets(Per::Week, None).unwrap(), monday);
        let last = Resets::Monthly { day: 31, time: midnight };
        assert_eq!(resets(Per::Month, Some("31 00:00")).unwrap(), last);
        let bad = [(Per::Hour, "01:75"), (Per::Day, "24:00"), (Per::Day, "mon 00:00")];
        for (per, text) in bad.into_iter().chain([(Per::Week, "8 00:00"), (Per::Month, "0 00:00")])
        {
            assert!(resets(per, Some(text)).is_err(), "{text}");
        }
    }
}
