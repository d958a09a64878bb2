//! A decision in memory, and its charge, over one, three and ten limits.
//!
//! `cargo bench --bench decide`

#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench may panic")]

#[path = "common/mod.rs"]
mod common;

use divan::{Bencher, black_box};
use paceline::clock::{Now, Timestamp};
use paceline::quota::decide::{Ask, Decision, Gate, HORIZON, Usage, charge, decide};
use paceline::quota::reported::Reported;

/// A rate, a budget, a place in flight: what an upstream usually declares.
const THREE: [&str; 3] = [
    "[[limit]]\nname = \"NAME\"\nkind = \"rate\"\nrate = \"1000/s\"\nburst = 1000\n",
    "[[limit]]\nname = \"NAME\"\nkind = \"budget\"\namount = 1000000000000\nper = \"day\"\n\
     time_zone = \"America/Los_Angeles\"\n",
    "[[limit]]\nname = \"NAME\"\nkind = \"concurrency\"\namount = 64\n",
];

fn main() {
    divan::main();
}

/// The three in turn, each under a name of its own.
#[divan::bench(args = [1, 3, 10])]
fn decision(bencher: Bencher<'_, '_>, limits: usize) {
    let declare = |(n, text): (usize, &&str)| text.replace("NAME", &format!("limit-{n}"));
    let text: String = THREE.iter().cycle().take(limits).enumerate().map(declare).collect();
    let upstream = common::upstream(&text);
    let rules: Vec<_> = upstream.limits.iter().map(|limit| (&limit.name, &limit.rule)).collect();
    let mut usages: Vec<Usage> = rules.iter().map(|(_, rule)| Usage::none(rule)).collect();
    let mut at = Timestamp::from_secs(1_780_317_000);
    bencher.bench_local(|| {
        at = at + std::time::Duration::from_millis(2);
        let now = Now::same(at);
        let asks: Vec<Ask<'_>> = rules
            .iter()
            .zip(&usages)
            .map(|((name, rule), usage)| Ask {
                limit: Some(name.as_str()),
                gate: Gate::default(),
                rule: Some((rule, usage)),
                reported: Reported::default(),
                cost: 1,
                lookahead: HORIZON,
            })
            .collect();
        let Decision::Admit { slot } = decide(black_box(&asks), now, at) else {
            panic!("it was to grant")
        };
        for ((_, rule), usage) in rules.iter().zip(&mut usages) {
            // Places come back with the answer.
            if !matches!(usage, Usage::Concurrency(_)) {
                charge(rule, usage, 1, slot, now);
            }
        }
    });
}
