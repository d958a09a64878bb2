//! When queues will be empty, against plain sums.

use super::*;
use crate::quota::declare;

const START: i64 = 1_780_317_000;

fn told(limits: &str, jobs: &[u64]) -> Forecast {
    told_of(limits, jobs, |_, _| {})
}

/// The same, where something is `changed` of the partitions and instances.
fn told_of(
    limits: &str,
    jobs: &[u64],
    changed: impl Fn(&mut [Group], &mut [Instance]),
) -> Forecast {
    let upstream = declare::parse("u", "u.toml", &format!("name = \"u\"\n{limits}")).unwrap();
    let now = Now::same(Timestamp::from_secs(START));
    let mut backlog = Backlog::default();
    for (n, jobs) in jobs.iter().enumerate() {
        let columns = Columns::from([("site".to_owned(), n.to_string())]);
        let mut instances = Vec::new();
        for limit in &upstream.limits {
            let shared = limit.key.is_empty().then(|| instances_of(&backlog, limit, &upstream));
            instances.push(shared.flatten().unwrap_or_else(|| {
                let usage = Usage::none(&limit.rule);
                backlog.instances.push(Instance {
                    usage,
                    gate: Gate::default(),
                    reported: Reported::default(),
                });
                backlog.instances.len() - 1
            }));
        }
        let (due, gate) = ((now.store, now.store), Gate::default());
        let costs = BTreeMap::new();
        let jobs = *jobs;
        backlog.groups.push(Group { columns, jobs, costs, due, gate, instances, asked: None });
    }
    changed(&mut backlog.groups, &mut backlog.instances);
    forecast(&upstream, backlog, now)
}

/// The instance that the first group has of a limit without a key.
fn instances_of(backlog: &Backlog, limit: &Limit, upstream: &Upstream) -> Option<usize> {
    let position = upstream.limits.iter().position(|one| one.name == limit.name)?;
    backlog.groups.first()?.instances.get(position).copied()
}

fn secs(forecast: &Forecast) -> f64 {
    let at = forecast.finish_at.unwrap();
    at.since(Timestamp::from_secs(START)).as_secs_f64()
}

const RATE: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"10/s\"\nburst = 10\n\
    counted = \"bucket\"\nslack = \"0s\"\npath_jitter = \"0s\"\n";
const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 200\nper = \"day\"\ntime_zone = \"UTC\"\n";

#[test]
fn a_rate_alone() {
    let told = told(RATE, &[100_001]);
    assert!((secs(&told) - 10_000.0).abs() < 2.0, "{told:?}");
    assert_eq!(told.limit.as_deref(), Some("plan"));
    assert_eq!((told.jobs, told.windows.len()), (100_001, 0));
}

#[test]
fn a_budget_window_by_window() {
    let told = told(DAILY, &[1_000]);
    // From 12:30 today to a little past midnight of the fourth day on.
    assert!((secs(&told) - (3.0 * 86_400.0 + 41_400.0)).abs() < 5.0, "{told:?}");
    assert_eq!(told.limit.as_deref(), Some("daily"));
    let jobs: Vec<u64> = told.windows.iter().map(|window| window.jobs).collect();
    assert_eq!(jobs, [200; 5]);
    assert!(told.windows.is_sorted_by_key(|window| window.start));
}

#[test]
fn two_partitions_share_a_rate_and_have_budgets_of_their_own() {
    let keyed = DAILY.replace("amount", "key = [\"site\"]\namount");
    let told = told(&format!("{RATE}{keyed}"), &[400, 200]);
    let jobs: Vec<u64> = told.windows.iter().map(|window| window.jobs).collect();
    assert_eq!(jobs.iter().sum::<u64>(), 600);
    assert!((secs(&told) - 41_400.0 - 20.0).abs() < 5.0, "{}", secs(&told));
}

#[test]
fn a_rolling_limit_comes_back_part_by_part() {
    let limits = "[[limit]]\nname = \"r\"\nkind = \"rolling\"\namount = 1000\nper = \"1h\"\n\
        slack = \"0s\"\npath_jitter = \"0s\"\n[[limit]]\nname = \"p\"\nkind = \"rate\"\nrate = \"1/s\"\n\
        slack = \"0s\"\npath_jitter = \"0s\"\n";
    // 1,000 an hour from the first on, each thousand taking 1,000 seconds.
    let told = told(limits, &[10_000]);
    let exact = 9.0 * 3_600.0 + 1_000.0;
    assert!((secs(&told) - exact).abs() / exact < 0.01, "{} {exact}", secs(&told));
}

#[test]
fn what_never_ends_has_no_instant() {
    assert_eq!(told(DAILY, &[200 * 366 * 201]).finish_at, None);
    assert_eq!(told("", &[]).finish_at, None);
    assert_eq!(secs(&told("", &[7])), 0.0, "nothing holds it back");
}

const HOURLY: &str = "[[limit]]\nname = \"hour\"\nkind = \"rolling\"\namount = 100\nper = \"1h\"\n\
    slack = \"0s\"\npath_jitter = \"0s\"\n";

#[test]
fn a_limit_that_nothing_waits_for_is_not_named() {
    let told = told(RATE, &[3]);
    assert_eq!((secs(&told), told.limit), (0.0, None));
}

#[test]
fn what_is_in_flight_is_answered_at_once() {
    let places = "[[limit]]\nname = \"c\"\nkind = \"concurrency\"\namount = 2\n";
    let told = told_of(places, &[5], |groups, instances| {
        let probing = Gate { probing: true, ..Gate::default() };
        groups[0].gate = probing;
        instances[0].gate = probing;
        instances[0].usage = Usage::Concurrency(2);
    });
    assert_eq!((secs(&told), told.limit), (0.0, None));
}

#[test]
fn what_is_due_later_goes_later() {
    let at = |secs| Timestamp::from_secs(START + secs);
    let told = told_of("", &[7], |groups, _| groups[0].due = (at(60), at(900)));
    assert_eq!(secs(&told), 900.0);
}

#[test]
fn a_block_is_waited_for() {
    let told = told_of(RATE, &[3], |groups, _| {
        groups[0].gate.blocked_until = Some(Timestamp::from_secs(START + 60));
    });
    assert_eq!(secs(&told), 60.0);
}

#[test]
fn only_what_is_asked_about_counts() {
    let told_first = |jobs: &[u64], asked: &[u64]| {
        let told = told_of(RATE, jobs, |groups, _| {
            for (group, asked) in groups.iter_mut().zip(asked) {
                group.asked = Some(*asked);
            }
        });
        (told.jobs, told.finish_at.map(|_| secs(&told)))
    };
    let (jobs, finish) = told_first(&[100_000], &[1_000]);
    assert_eq!(jobs, 1_000);
    assert!((finish.unwrap() - 100.0).abs() < 2.0, "{finish:?}");
    // Both partitions send by turns, and what the other sends after it does not matter.
    let (jobs, finish) = told_first(&[10_000, 2_000], &[0, 100]);
    assert_eq!(jobs, 100);
    assert!((40.0..120.0).contains(&finish.unwrap()), "{finish:?}");
    assert_eq!(told_first(&[50, 50], &[0, 0]), (0, None));
    // Nor are windows told in which only others go.
    let told = told_of(DAILY, &[1_000, 1_000], |groups, _| {
        groups[0].asked = Some(0);
        groups[1].asked = Some(60);
    });
    assert_eq!((told.jobs, told.windows.len()), (60, 1), "{told:?}");
}

#[test]
fn a_batch_is_one_call() {
    let batch = "[request]\nurl = \"https://api.example/\"\nmethod = \"POST\"\n[batch]\nmax_items = 10\n\
        body = '{items.site}'\n";
    let told = told(&format!("{RATE}{batch}"), &[10_000]);
    assert!((secs(&told) - 100.0).abs() < 2.0, "{told:?}");
}

#[test]
fn a_job_takes_its_share_of_the_costs() {
    let pages = DAILY.replace("amount", "cost = \"pages\"\namount");
    let costing = |each: u64| {
        told_of(&pages, &[100], |groups, _| {
            groups[0].costs = BTreeMap::from([("pages".to_owned(), each * 100)]);
        })
    };
    let told = costing(10);
    let jobs: Vec<u64> = told.windows.iter().map(|window| window.jobs).collect();
    assert_eq!(jobs, [20; 5]);
    let never = costing(201);
    assert_eq!((never.never, never.windows.len(), never.finish_at), (100, 0, None));
}

#[test]
fn windows_are_of_a_key() {
    let keyed = DAILY.replace("amount", "key = [\"site\"]\namount");
    let told = told(&keyed, &[1, 2]);
    let used = |window: &'_ WindowUse| (window.key["site"].clone(), window.jobs);
    let used: Vec<_> = told.windows.iter().map(used).collect();
    assert_eq!(used, [("0".to_owned(), 1), ("1".to_owned(), 2)]);
}

#[test]
fn no_run_goes_on_over_a_reset_or_more_than_a_span_grants() {
    let told_both = told(&format!("{RATE}{}", DAILY.replace("200", "1000000")), &[500_000]);
    // From 12:30 to two seconds before midnight, ten a second.
    assert!((413_900..413_990).contains(&told_both.windows[0].jobs), "{told_both:?}");
    let told = told(HOURLY, &[1_000]);
    assert!((secs(&told) - 9.0 * 3_600.0).abs() < 1.0, "{}", secs(&told));
}

#[test]
fn a_spread_budget_is_used_evenly() {
    let spread = DAILY.replace("amount", "spread = true\namount");
    let told = told(&spread, &[300]);
    // 200 until midnight, 100 until noon of the next day.
    let exact = 41_400.0 + 43_200.0;
    assert!((secs(&told) - exact).abs() / exact < 0.07, "{} {exact}", secs(&told));
}

#[test]
fn pieces_are_even_and_none_is_too_early() {
    let entered = |units, span| {
        let at = |secs| Timestamp::EPOCH.shifted(secs);
        let pieces = pieces(units, at(0), at(span));
        pieces.map(|(at, units)| (at.as_nanos(), units)).collect::<Vec<_>>()
    };
    assert_eq!(entered(2, 100), [(50, 1), (100, 1)]);
    assert_eq!(entered(3, 100), [(33, 1), (66, 1), (100, 1)], "the last at the very end");
    let even: Vec<(i64, u64)> = (1..=8).map(|n| (n * 10, if n % 2 == 0 { 3 } else { 2 })).collect();
    assert_eq!(entered(20, 80), even);
    assert_eq!(entered(0, 80), [(80, 0)]);
}
