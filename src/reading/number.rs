//! Numbers that stand for a time, and duration text.

use std::time::Duration;

use serde_json::Value;

use super::moment::Moment;
use crate::clock::{NANOS_PER_SEC, Timestamp};

/// Nanoseconds in one of whatever unit a number is in.
const ONE: u128 = 1_000_000_000;
/// What a number of more digits than this stands for no longer matters: it saturates.
const MOST_DIGITS: usize = 19;

/// A decimal number, exact to nine decimals; the rest is rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// The number times 10^9; a negative one is zero, for both are unusable.
    billionths: u128,
}

impl Number {
    /// Reads the whole text or nothing: `120`, `0.503`, `-5`. No exponent, no plus sign, no unit.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = match digits.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (digits, ""),
        };
        let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !numeric(whole) || !numeric(decimals) {
            return None;
        }
        let billionths = if negative { 0 } else { whole_part(whole) + decimal_part(decimals) };
        Some(Number { billionths })
    }

    /// A JSON number, or a text that is one.
    pub(crate) fn from_json(value: &Value) -> Option<Number> {
        match value {
            Value::String(text) => Number::parse(text.trim()),
            Value::Number(number) => {
                Number::parse(&number.to_string()).or_else(|| from_float(number.as_f64()?))
            }
            _ => None,
        }
    }

    /// Whether it is zero (or negative).
    pub(crate) const fn is_zero(self) -> bool {
        self.billionths == 0
    }

    /// Whole units.
    pub(crate) fn floor(self) -> u64 {
        u64::try_from(self.billionths / ONE).unwrap_or(u64::MAX)
    }

    /// A delay in seconds.
    pub(crate) fn seconds(self) -> Moment {
        Moment::After(duration(self.billionths))
    }

    /// A delay in milliseconds.
    pub(crate) fn millis(self) -> Moment {
        Moment::After(duration(self.billionths.div_ceil(1_000)))
    }

    /// Seconds since 1970.
    pub(crate) fn epoch_seconds(self) -> Moment {
        Moment::At(instant(self.billionths))
    }

    /// Milliseconds since 1970.
    pub(crate) fn epoch_millis(self) -> Moment {
        Moment::At(instant(self.billionths.div_ceil(1_000)))
    }

    /// Judged by its size: small numbers are seconds from receipt, large ones instants in seconds,
    /// milliseconds, microseconds or nanoseconds since 1970. The bounds lie decades from any real
    /// use of the neighbouring unit.
    pub(crate) fn judged(self) -> Moment {
        let whole = self.billionths / ONE;
        match whole {
            0..1_000_000_000 => self.seconds(),
            1_000_000_000..100_000_000_000 => self.epoch_seconds(),
            100_000_000_000..100_000_000_000_000 => self.epoch_millis(),
            100_000_000_000_000..100_000_000_000_000_000 => {
                Moment::At(instant(self.billionths.div_ceil(1_000_000)))
            }
            _ => Moment::At(instant(self.billionths.div_ceil(ONE))),
        }
    }
}

/// The digits before the point, in billionths.
fn whole_part(digits: &str) -> u128 {
    let digits = digits.trim_start_matches('0');
    let saturated = 10_u128.pow(19);
    let value = match digits.len() {
        0 => 0,
        1..=MOST_DIGITS => digits.parse().unwrap_or(saturated),
        _ => saturated,
    };
    value * ONE
}

/// The digits after the point, in billionths, rounded up.
fn decimal_part(digits: &str) -> u128 {
    let (kept, rest) = digits.split_at(digits.len().min(9));
    let value: u128 = format!("{kept:0<9}").parse().unwrap_or(0);
    value + u128::from(rest.bytes().any(|digit| digit != b'0'))
}

/// JSON numbers that print with an exponent: the very large and the very small.
fn from_float(value: f64) -> Option<Number> {
    if value >= 1e19 {
        return Some(Number { billionths: 10_u128.pow(19) * ONE });
    }
    let span = Duration::try_from_secs_f64(value.max(0.0)).ok()?;
    Some(Number { billionths: span.as_nanos() })
}

fn duration(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn instant(nanos: u128) -> Timestamp {
    Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// Units of duration text, from the largest to the smallest, in nanoseconds.
const UNITS: [(&str, i64); 4] = [
    ("h", 3_600 * NANOS_PER_SEC),
    ("m", 60 * NANOS_PER_SEC),
    ("s", NANOS_PER_SEC),
    ("ms", NANOS_PER_SEC / 1_000),
];

/// Duration text of `h`, `m`, `s`, `ms` parts, each at most once, the larger first: `1m0s`,
/// `23h47m36.648s`, `500ms`. Every part may have decimals.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut next) = (text, 0_u128, 0_usize);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let (unit, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let place = UNITS.iter().position(|(name, _)| *name == unit)?;
        if place < next || number.starts_with('-') {
            return None;
        }
        let nanos = UNITS.get(place).map(|(_, nanos)| nanos.unsigned_abs())?;
        let part = Number::parse(number)?.billionths.saturating_mul(u128::from(nanos));
        total = total.saturating_add(part.div_ceil(ONE));
        (rest, next) = (after, place + 1);
    }
    Some(duration(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Option<Moment> {
        Number::parse(text).map(Number::judged)
    }

    fn after(nanos: u64) -> Option<Moment> {
        Some(Moment::After(Duration::from_nanos(nanos)))
    }

    #[test]
    fn no_prefix_is_read() {
        for text in ["", "soon", "120junk", "+5", "1e3", "5.", ".5", "1 2", "0x10", "١٢", "--1"] {
            assert_eq!(Number::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_exact_and_rounded_up_past_nine() {
        assert_eq!(judged("0.503"), after(503_000_000));
        assert_eq!(judged("1.0000000001"), after(1_000_000_001));
        assert_eq!(judged("007"), after(7_000_000_000));
        assert_eq!(judged("-5"), after(0));
    }

    #[test]
    fn size_tells_the_unit() {
        let at = |secs: i64| Some(Moment::At(Timestamp::from_secs(secs)));
        assert_eq!(judged("999999999"), after(999_999_999_000_000_000));
        assert_eq!(judged("1000000000"), at(1_000_000_000));
        assert_eq!(judged("1772366412000"), at(1_772_366_412));
        assert_eq!(judged("1772366412000000"), at(1_772_366_412));
        assert_eq!(judged("1772366412000000000"), at(1_772_366_412));
        assert_eq!(judged("99999999999999999999999"), Some(Moment::At(Timestamp::MAX)));
    }

    #[test]
    fn durations_are_read_whole_and_in_order() {
        let is =
            |text, millis| assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)));
        is("1m0s", 60_000);
        is("500ms", 500);
        is("23h47m36.648s", 85_656_648);
        is("1.5h", 5_400_000);
        for text in ["", "1", "s", "1s2", "1s1m", "1s1s", "-1s", "1S", "5 s", "PT5S", "1d"] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn json_numbers_with_exponents_saturate() {
        let number = serde_json::from_str::<Value>("1e40").unwrap();
        assert_eq!(
            Number::from_json(&number).map(Number::judged),
            Some(Moment::At(Timestamp::MAX))
        );
        let most = Number::from_json(&number).map(Number::floor);
        assert_eq!(most, Some(10_000_000_000_000_000_000));
    }
}
