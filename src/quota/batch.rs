//! A batch: many jobs of one partition in one call.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::job::Columns;
use crate::template::{Place, Template};

/// What a secret in a body is taken to need: its value is not known where batches are put together.
const SECRET: &str = "................................................................";

/// How long before a job's deadline its batch waits no more.
const TO_LEAVE: Duration = Duration::from_secs(1);

/// `[batch]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Jobs in one call, at most; not zero.
    pub max_items: usize,
    /// Bytes of a body, at most.
    pub max_bytes: Option<usize>,
    /// How long a batch that is not full waits for more jobs.
    pub linger: Duration,
    /// The body, a template: `{items.NAME}` is a column of all the jobs.
    pub body: String,
    /// The columns that address, headers and body use outside `{items.…}`: jobs of one call share them.
    pub shared: BTreeSet<String>,
    /// How an answer that speaks of each item is taken apart.
    pub answer: Option<BatchAnswer>,
}

/// `[batch.answer]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchAnswer {
    /// JSON pointer to the list of items.
    pub items: String,
    /// Which job an item speaks of: JSON pointer within the item to column; all must agree.
    pub key: BTreeMap<String, String>,
    /// JSON pointer within the item to its own status. Without it the list is of items refused.
    pub status: Option<String>,
}

impl Batch {
    /// How many of these jobs, in their order, one body holds; none where the first alone is too large.
    pub fn fits(&self, body: &Template, place: Place, jobs: &[&Columns]) -> usize {
        let jobs = jobs.get(..self.max_items.max(1)).unwrap_or(jobs);
        let (Some(most), Some(first)) = (self.max_bytes, jobs.first()) else { return jobs.len() };
        let size = |items: &[&Columns]| {
            let secret = |_: &_| Some(SECRET.to_owned());
            body.render_batch(first, items, place, &secret).map(|body| body.len())
        };
        let sizes = (size(&[]), size(&[first]), size(&[first, first]));
        // What cannot be written goes alone: who sends it says what is wrong.
        let (Ok(empty), Ok(one), Ok(two)) = sizes else { return 1 };
        // What stands between two items.
        let between = (two + empty).saturating_sub(2 * one);
        let mut left = (most + between).saturating_sub(empty);
        let fitting = jobs.iter().take_while(|job| {
            let item = size(&[job]).map_or(usize::MAX, |size| size - empty + between);
            let fits = item <= left;
            left = left.saturating_sub(item);
            fits
        });
        fitting.count()
    }

    /// Until when `waiting` jobs, the first of them due since then, wait for more; `None`: not at all.
    /// None waits past the first `deadline` of theirs.
    pub(crate) fn lingers(
        &self,
        waiting: usize,
        most: usize,
        since: Timestamp,
        deadline: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let until = since + self.linger;
        let latest = deadline.map_or(until, |deadline| deadline - TO_LEAVE);
        (waiting < most && !self.linger.is_zero()).then(|| until.min(latest))
    }
}

/// How many jobs the next batches of a partition carry, after what came of the last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// At most this many.
    pub most: usize,
    /// So many were refused; `None`: nothing is known against any number.
    pub bad: Option<usize>,
}

impl Size {
    /// A batch of `jobs` was refused for what is in it: half of it may go. Where it was one job alone,
    /// that was at fault, not the number.
    pub fn refused(self, jobs: usize) -> Size {
        match jobs {
            0 | 1 => Size { most: 1, bad: None },
            _ => Size { most: self.most.min(jobs / 2), bad: Some(jobs) },
        }
    }

    /// A batch of `jobs` went through: if that was all that may go, more may, up to `max_items`; but no
    /// closer than an eighth to what was refused.
    pub fn passed(self, jobs: usize, max_items: usize) -> Size {
        if jobs < self.most {
            return self;
        }
        let most = match self.bad {
            None => self.most.saturating_mul(2),
            Some(bad) if bad.saturating_sub(self.most) <= (self.most / 8).max(1) => self.most,
            Some(bad) => self.most.midpoint(bad),
        };
        Size { most: most.min(max_items), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(max_items: usize, max_bytes: Option<usize>) -> Batch {
        let linger = Duration::from_secs(5);
        let (shared, answer) = (BTreeSet::new(), None);
        Batch { max_items, max_bytes, linger, body: String::new(), shared, answer }
    }

    fn rows(urls: &[&str]) -> Vec<Columns> {
        urls.iter().map(|url| Columns::from([("url".to_owned(), (*url).to_owned())])).collect()
    }

    #[test]
    fn a_body_holds_what_fits() {
        let body = Template::parse(r#"{"l": {items.url}}"#).unwrap();
        let rows = rows(&["aaaa", "bbbb", "cccc"]);
        let jobs: Vec<&Columns> = rows.iter().collect();
        let fits = |items, bytes| batch(items, bytes).fits(&body, Place::Json, &jobs);
        assert_eq!(fits(2, None), 2);
        assert_eq!(fits(9, None), 3);
        assert_eq!(fits(9, Some(1)), 0, "it can never go");
    }

    #[test]
    fn a_body_is_filled_to_the_last_byte() {
        let rows = rows(&["aaaa", "b\"b", "1", "dddddd"]);
        let jobs: Vec<&Columns> = rows.iter().collect();
        let bodies =
            [r#"{"l": {items.url}}"#, r#"["{items.url}"]"#, r#"[{items.url},{items.url}]"#];
        for text in bodies {
            let body = Template::parse(text).unwrap();
            let size = |count: usize| {
                let jobs = &jobs[..count];
                body.render_batch(&rows[0], jobs, Place::Json, &|_| None).unwrap().len()
            };
            for bytes in 1..90 {
                let most = (1..=4).take_while(|count| size(*count) <= bytes).count();
                let fits = batch(9, Some(bytes)).fits(&body, Place::Json, &jobs);
                assert_eq!(fits, most, "{text} in {bytes}");
            }
        }
        let unwritten = Template::parse("{items.nope}").unwrap();
        assert_eq!(batch(9, Some(50)).fits(&unwritten, Place::Json, &jobs), 1, "it is told so");
    }

    #[test]
    fn a_batch_that_is_not_full_waits_for_its_linger() {
        let since = Timestamp::from_secs(100);
        let lingers = |waiting, deadline: Option<i64>| {
            batch(9, None).lingers(waiting, 9, since, deadline.map(Timestamp::from_secs))
        };
        assert_eq!(lingers(3, None), Some(Timestamp::from_secs(105)));
        assert_eq!(lingers(3, Some(103)), Some(Timestamp::from_secs(102)));
        assert_eq!(lingers(3, Some(120)), Some(Timestamp::from_secs(105)));
        assert_eq!(lingers(9, None), None);
        let at_once = Batch { linger: Duration::ZERO, ..batch(9, None) };
        assert_eq!(at_once.lingers(1, 9, since, None), None);
    }

    #[test]
    fn a_size_grows_only_where_it_was_used_and_may_be_too_small() {
        let passed = |most, bad, jobs| Size { most, bad }.passed(jobs, 10_000).most;
        assert_eq!(passed(8, None, 7), 8, "there were no more jobs");
        assert_eq!(passed(8, None, 8), 16);
        assert_eq!(passed(6_000, None, 6_000), 10_000);
        assert_eq!(passed(400, Some(500), 400), 450);
        assert_eq!(passed(450, Some(500), 450), 450, "within an eighth of what was refused");
        assert_eq!((passed(4, Some(6), 4), passed(5, Some(6), 5)), (5, 5));
    }

    /// Sends `jobs` of which `refuse` tells what batch of them (from, count) is refused. Returns the
    /// calls made, and the jobs that failed alone.
    fn send(jobs: usize, max: usize, refuse: impl Fn(usize, usize) -> bool) -> (usize, Vec<usize>) {
        let (mut size, mut at, mut calls, mut failed) =
            (Size { most: max, bad: None }, 0, 0, Vec::new());
        while at < jobs {
            let count = size.most.min(jobs - at);
            calls += 1;
            if !refuse(at, count) {
                size = size.passed(count, max);
                at += count;
                continue;
            }
            size = size.refused(count);
            if count == 1 {
                failed.push(at);
                at += 1;
            }
        }
        (calls, failed)
    }

    #[test]
    fn one_bad_job_is_found_in_few_calls() {
        for bad in [0, 1, 4_999, 5_000, 9_998, 9_999] {
            let (calls, failed) = send(10_000, 10_000, |at, n| (at..at + n).contains(&bad));
            assert_eq!(failed, [bad]);
            assert!(calls < 100, "{bad}: {calls}");
        }
    }

    #[test]
    fn the_number_that_goes_through_is_found_and_kept() {
        let (calls, failed) = send(100_000, 10_000, |_, n| n > 500);
        assert!(failed.is_empty());
        assert!(calls < 240, "200 are needed: {calls}");
    }

    #[test]
    fn where_every_job_is_bad_each_is_tried_about_once() {
        let (calls, failed) = send(1_000, 1_000, |_, _| true);
        assert_eq!((failed.len(), calls), (1_000, 1_009));
    }
}
