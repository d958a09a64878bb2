//! The demo's parts fit each other, and the whole keeps its word.

use std::time::Duration;

use paceline::quota::declare;

use super::stage::{BURST, CALLS_PER_DAY, CALLS_PER_SECOND};
use super::*;

#[test]
fn the_quota_file_declares_what_the_upstream_enforces() {
    let text = include_str!("../../../../examples/practice.toml");
    let upstream = declare::parse(UPSTREAM, "practice.toml", text).unwrap();
    assert!(text.contains(&format!("rate = \"{CALLS_PER_SECOND}/s\"\nburst = {BURST}\n")));
    assert!(text.contains(&format!("amount = {CALLS_PER_DAY}\nper = \"day\"")));
    let (jobs, rejected) = catalogue::plan(&upstream).unwrap();
    assert_eq!(jobs.len(), 319);
    assert_eq!(rejected, [(118, "it has 4 values, and there are 3 columns".to_owned())]);
}

#[test]
fn distances_are_told_by_their_two_largest_units() {
    let told = |seconds| story::distance(Duration::from_secs(seconds));
    assert_eq!(told(0), "0 s");
    assert_eq!(told(61), "1 min 1 s");
    assert_eq!(told(3 * 3_600 + 12 * 60 + 9), "3 h 12 min");
    assert_eq!(told(86_400 + 59), "1 d");
}
