//! Promises 1, 2 and 5 over a season, in seconds: 33 hours of a catalogue of 1.2 million rows at ten a
//! second, and a year of 200 calls a day in Los Angeles. The upstreams count strictly, and each in its
//! own way; they know nothing of how it was decided.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_wrap)]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use paceline::clock::{NANOS_PER_SEC, Now, Timestamp, nanos};
use paceline::quota::decide::{Ask, Decision, Gate, HORIZON, Usage, charge, decide};
use paceline::quota::reported::Reported;
use paceline::quota::{LimitRule, Upstream, declare};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

const ROWS: usize = 1_200_000;
const SECOND: Duration = Duration::from_secs(1);
const PER_SECOND: usize = 10;

fn quota(limits: &str) -> Upstream {
    let text = format!("schema = 1\nname = \"season\"\n{limits}");
    declare::parse("season", "season.toml", &text).unwrap()
}

/// A process that claims slots ahead of time, half a horizon before it needs them, and sends each up to
/// `margin` late. Once an hour it is killed with all that it has in hand, and is back a second later.
struct Process<'u> {
    upstream: &'u Upstream,
    usages: Vec<Usage>,
    now: Timestamp,
    margin: Duration,
    dies_at: Timestamp,
    random: StdRng,
}

impl<'u> Process<'u> {
    fn new(upstream: &'u Upstream, start: Timestamp) -> Self {
        let usages = upstream.limits.iter().map(|limit| Usage::none(&limit.rule)).collect();
        let margin = upstream.limits.iter().filter_map(|limit| match &limit.rule {
            LimitRule::Rate(rate) => Some(rate.margin()),
            _ => None,
        });
        let margin = margin.min().unwrap_or(Duration::ZERO);
        let (now, dies_at, random) = (start, start + SECOND * 3600, StdRng::seed_from_u64(7));
        Process { upstream, usages, now, margin, dies_at, random }
    }

    fn decide(&self) -> Decision {
        let limits = self.upstream.limits.iter().zip(&self.usages);
        let asks: Vec<_> = limits
            .map(|(limit, usage)| Ask {
                limit: Some(&limit.name),
                gate: Gate::default(),
                rule: Some((&limit.rule, usage)),
                reported: Reported::default(),
                cost: 1,
                lookahead: HORIZON,
            })
            .collect();
        decide(&asks, Now::same(self.now), self.now)
    }

    /// Claims all that may be claimed now, and sends it: the arrivals, in order.
    fn claim(&mut self, most: usize) -> Vec<Timestamp> {
        let mut arrivals = Vec::new();
        let mut slots = 0;
        while slots < most {
            match self.decide() {
                Decision::Admit { slot } => {
                    let now = Now::same(self.now);
                    for (limit, usage) in self.upstream.limits.iter().zip(&mut self.usages) {
                        charge(&limit.rule, usage, 1, slot, now);
                    }
                    slots += 1;
                    if slot < self.dies_at {
                        let late = self.random.random_range(0..=nanos(self.margin));
                        arrivals.push(slot.shifted(late));
                    }
                }
                Decision::Wait { until, .. } => {
                    self.now = (until - HORIZON / 2).max(self.now.shifted(1));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        if self.now >= self.dies_at {
            self.now = self.dies_at + SECOND;
            self.dies_at = self.now + SECOND * 3600;
        }
        arrivals.sort_unstable();
        arrivals
    }
}

/// An upstream that declared ten a second and counts so strictly.
enum Counts {
    /// A bucket of `burst`, in billionths of a unit.
    Bucket {
        burst: i64,
        level: i64,
    },
    Rolling(VecDeque<Timestamp>),
    Fixed {
        window: i64,
        count: usize,
    },
}

struct Strict {
    counts: Counts,
    seen: usize,
    refused: usize,
    first: Timestamp,
    last: Timestamp,
    /// The least `arrivals before - rate * time` so far, in billionths: what spans are measured from.
    floor: i64,
    /// The most by which any span exceeded `rate * time`, in units.
    excess: f64,
}

impl Strict {
    fn new(counts: Counts, start: Timestamp) -> Strict {
        let (seen, refused, floor, excess) = (0, 0, i64::MAX, 0.0);
        Strict { counts, seen, refused, first: start, last: start, floor, excess }
    }

    fn arrives(&mut self, at: Timestamp) {
        assert!(at >= self.last, "arrivals come in order");
        let (rate, unit) = (PER_SECOND as i64, NANOS_PER_SEC);
        let admits = match &mut self.counts {
            Counts::Bucket { burst, level } => {
                let refill = nanos(at.since(self.last)).saturating_mul(rate);
                *level = (*burst * unit).min(level.saturating_add(refill));
                let admits = *level >= unit;
                *level -= if admits { unit } else { 0 };
                admits
            }
            Counts::Rolling(recent) => {
                while recent.front().is_some_and(|first| *first + SECOND <= at) {
                    recent.pop_front();
                }
                recent.push_back(at);
                recent.len() <= PER_SECOND
            }
            Counts::Fixed { window, count } => {
                let now = at.as_nanos().div_euclid(unit);
                *count = if now == *window { *count + 1 } else { 1 };
                *window = now;
                *count <= PER_SECOND
            }
        };
        self.refused += usize::from(!admits);
        let owed = nanos(at.since(self.first)) * rate;
        let before = self.seen as i64 * unit;
        self.floor = self.floor.min(before - owed);
        self.seen += 1;
        let excess = (before + unit - owed - self.floor) as f64 / unit as f64;
        self.excess = self.excess.max(excess);
        self.last = at;
    }
}

/// Sends the catalogue; tells refusals, the used part of the plan, and the worst span.
fn catalogue(limit: &str, counts: impl Fn() -> Counts, burst: f64) {
    let text = format!("[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\n{limit}");
    let upstream = quota(&text);
    let LimitRule::Rate(rate) = &upstream.limits[0].rule else { unreachable!() };
    let plan = rate.plan();
    let start: Timestamp = "2026-11-30T18:00:00Z".parse::<DateTime<Utc>>().unwrap().into();
    let mut process = Process::new(&upstream, start);
    let mut strict = Strict::new(counts(), start);
    // Late ones of a claim may be overtaken by the next claim's.
    let mut under_way: Vec<Timestamp> = Vec::new();
    while strict.seen + under_way.len() < ROWS {
        let most = ROWS - strict.seen - under_way.len();
        under_way.extend(process.claim(most));
        under_way.sort_unstable();
        let safe = under_way.partition_point(|at| *at < process.now);
        under_way.drain(..safe).for_each(|at| strict.arrives(at));
    }
    under_way.into_iter().for_each(|at| strict.arrives(at));
    let took = strict.last.since(start).as_secs_f64();
    let used = (ROWS as f64 - plan.burst as f64) / plan.per_second() / took;
    println!(
        "{:.2} h, {} refused, {:.2} % of the plan used, worst span {:.2} over rate * time (B = {burst})",
        took / 3600.0,
        strict.refused,
        used * 100.0,
        strict.excess
    );
    assert_eq!((strict.seen, strict.refused), (ROWS, 0));
    assert!(used > 0.985, "{:.2} % of the plan used", used * 100.0);
    assert!(strict.excess <= burst + 1e-6, "a span held {} more than rate * time", strict.excess);
}

#[test]
fn promises_1_and_5_a_catalogue_before_a_bucket() {
    let counts = || Counts::Bucket { burst: 10, level: 10 * NANOS_PER_SEC };
    catalogue("burst = 10\ncounted = \"bucket\"\n", counts, 10.0);
}

#[test]
fn promises_1_and_5_a_catalogue_before_a_rolling_window() {
    catalogue("", || Counts::Rolling(VecDeque::new()), PER_SECOND as f64);
}

#[test]
fn promises_1_and_5_a_catalogue_before_fixed_windows() {
    catalogue("", || Counts::Fixed { window: 0, count: 0 }, PER_SECOND as f64);
}

#[test]
fn promises_2_and_5_a_year_of_200_a_day_in_los_angeles() {
    const DAILY: u64 = 200;
    let upstream = quota(
        "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 200\nper = \"day\"\n\
         time_zone = \"America/Los_Angeles\"\n\
         [[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"1/s\"\n",
    );
    let zone = chrono_tz::America::Los_Angeles;
    let start: Timestamp = "2026-01-01T08:00:00Z".parse::<DateTime<Utc>>().unwrap().into();
    let end: Timestamp = "2027-01-01T08:00:00Z".parse::<DateTime<Utc>>().unwrap().into();
    let mut process = Process::new(&upstream, start);
    // It sleeps for most of each day: nothing is in its hands when it would be killed.
    process.dies_at = Timestamp::MAX;
    let mut days = BTreeMap::<NaiveDate, u64>::new();
    while process.now < end {
        for at in process.claim(64) {
            let day = at.to_utc().with_timezone(&zone).date_naive();
            *days.entry(day).or_default() += u64::from(at < end);
        }
    }
    days.retain(|day, _| day.year() == 2026);
    let unused = days.values().map(|sent| DAILY.abs_diff(*sent)).sum::<u64>();
    println!("{} days, {unused} units unused", days.len());
    assert_eq!(days.len(), 365);
    assert!(days.values().all(|sent| *sent == DAILY), "{days:?}");
}
