//! The demo's parts fit each other, and the whole keeps its word.

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
