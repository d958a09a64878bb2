//! How fast calls leave, lately.

use std::collections::VecDeque;
use std::time::Duration;

use paceline::clock::Timestamp;
use paceline::report::words::figure;

/// What left longer ago than this says nothing about the pace now.
const LATELY: Duration = Duration::from_secs(5);

/// The instants at which calls left.
#[derive(Debug, Default)]
pub struct Pace {
    sent: VecDeque<Timestamp>,
}

impl Pace {
    /// A call left.
    pub fn note(&mut self, at: Timestamp) {
        self.sent.push_back(at);
    }

    /// Calls a second; `None` where none leave now, or too few did to tell.
    pub fn rate(&mut self, now: Timestamp) -> Option<f64> {
        while self.sent.front().is_some_and(|at| now.since(*at) > LATELY) {
            self.sent.pop_front();
        }
        let (first, last) = (self.sent.front()?, self.sent.back()?);
        let steps = u32::try_from(self.sent.len() - 1).ok().filter(|steps| *steps > 0)?;
        let over = last.since(*first);
        // Twice as long as usual, and a second: it has stopped.
        let silence = over / steps * 2 + Duration::from_secs(1);
        (!over.is_zero() && now.since(*last) <= silence)
            .then(|| f64::from(steps) / over.as_secs_f64())
    }
}

/// `20/s`, `4.5/s`.
pub fn words(rate: f64) -> String {
    let tenths = (rate * 10.0).round() / 10.0;
    match tenths {
        _ if rate >= 9.95 => format!("{rate:.0}/s"),
        _ if tenths > 0.0 => format!("{}/s", figure(tenths)),
        _ => format!("{}/min", figure((rate * 600.0).round() / 10.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000_000 + millis * 1_000_000)
    }

    fn every(millis: i64, calls: i64) -> Pace {
        let mut pace = Pace::default();
        (0..calls).for_each(|n| pace.note(at(n * millis)));
        pace
    }

    #[test]
    fn the_pace_is_that_of_the_last_seconds() {
        let mut pace = every(50, 400);
        assert_eq!(pace.rate(at(20_000)).map(words).as_deref(), Some("20/s"));
        pace.note(at(20_000));
        assert!(pace.sent.len() <= 101, "{}", pace.sent.len());
        assert_eq!(every(400, 9).rate(at(3_300)).map(words).as_deref(), Some("2.5/s"));
    }

    #[test]
    fn what_has_stopped_has_no_pace() {
        let mut pace = every(50, 100);
        assert!(pace.rate(at(5_900)).is_some());
        assert_eq!(pace.rate(at(6_100)), None);
        assert_eq!(every(50, 1).rate(at(0)), None);
        assert_eq!(Pace::default().rate(at(0)), None);
    }

    #[test]
    fn rates_read_well() {
        assert_eq!(words(20.083), "20/s");
        assert_eq!(words(9.97), "10/s");
        assert_eq!(words(9.93), "9.9/s");
        assert_eq!(words(2.0), "2/s");
        assert_eq!(words(0.02), "1.2/min");
    }
}
