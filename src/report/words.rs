//! Spans of time in words.

use std::time::Duration;

const UNITS: [(u64, &str); 5] =
    [(31_536_000, "years"), (86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];

/// A span by its two largest units, rounded up to the second, under ten seconds to a tenth of one: so that
/// nobody comes too early, or waits much longer.
///
/// ```
/// use paceline::report::words::span;
/// use std::time::Duration;
///
/// assert_eq!(span(Duration::from_secs(11_520)), "3 h 12 min");
/// assert_eq!(span(Duration::from_millis(59_001)), "1 min");
/// assert_eq!(span(Duration::from_millis(2_140)), "2.2 s");
/// assert_eq!(span(Duration::from_millis(250)), "250 ms");
/// ```
pub fn span(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return small(span);
    }
    let tenths = span.as_nanos().div_ceil(100_000_000);
    if tenths < 100 {
        return match (tenths / 10, tenths % 10) {
            (seconds, 0) => format!("{seconds} s"),
            (seconds, tenths) => format!("{seconds}.{tenths} s"),
        };
    }
    let mut left = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        let count = left / unit;
        left %= unit;
        if count > 0 {
            let name = if count == 1 && name == "years" { "year" } else { name };
            parts.push(format!("{count} {name}"));
        } else if !parts.is_empty() {
            break;
        }
        if parts.len() == 2 || (unit == 31_536_000 && count >= 10) {
            break;
        }
    }
    parts.join(" ")
}

fn small(span: Duration) -> String {
    match (span.as_millis(), span.as_micros()) {
        (0, 0) => "0 s".to_owned(),
        (0, micros) => format!("{micros} us"),
        (millis, _) => format!("{millis} ms"),
    }
}

/// A declared period: `s` of "10/s", `5 s` of "1/5s".
pub fn period(span_of: Duration) -> String {
    match span_of.as_secs() {
        1 if span_of.subsec_nanos() == 0 => "second".to_owned(),
        60 if span_of.subsec_nanos() == 0 => "minute".to_owned(),
        3_600 if span_of.subsec_nanos() == 0 => "hour".to_owned(),
        86_400 if span_of.subsec_nanos() == 0 => "day".to_owned(),
        _ => span(span_of),
    }
}

/// A figure with at most three decimals, and no more than it needs.
pub fn figure(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_at_most() {
        let told = |secs| span(Duration::from_secs(secs));
        assert_eq!(told(5), "5 s");
        assert_eq!(span(Duration::from_millis(9_899)), "9.9 s");
        assert_eq!(span(Duration::from_millis(9_901)), "10 s");
        assert_eq!(told(125), "2 min 5 s");
        assert_eq!(told(3_600), "1 h");
        assert_eq!(told(86_400 + 59), "1 d");
        assert_eq!(told(86_400 * 2 + 3_600 * 5), "2 d 5 h");
        assert_eq!(told(31_536_000 * 16 + 86_400 * 40), "16 years");
        assert_eq!(span(Duration::from_micros(20)), "20 us");
        assert_eq!(span(Duration::ZERO), "0 s");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(figure(10.0), "10");
        assert_eq!(figure(9.901), "9.901");
        assert_eq!(figure(0.000_04), "0");
    }
}
