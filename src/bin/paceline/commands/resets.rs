//! When a day begins of which nobody states it, as far as answers show.

use paceline::quota::rolling::Rolling;
use paceline::quota::{LimitRule, Upstream};
use paceline::store::views::{LimitView, ResetsView};

use crate::render::time::Times;

/// A line for a limit whose zone is unknown.
pub fn line(
    declared: &Upstream,
    limit: &LimitView,
    seen: &[ResetsView],
    times: &Times,
) -> Option<String> {
    let LimitRule::Rolling(Rolling { stands_for: Some(per), .. }) =
        declared.limit(&limit.name)?.rule_for(&limit.key)
    else {
        return None;
    };
    let own = |one: &&ResetsView| one.limit == limit.name && one.key == limit.key;
    let unstated = format!("nobody states when its {per} begins");
    Some(match seen.iter().find(own) {
        Some(seen) => format!("{unstated}; its answers leave {}", left(seen, times)),
        None => format!("{unstated}, and no answer has shown it yet"),
    })
}

/// `07:30 to 08:30 UTC (08:30 to 09:30 here), as midnight in America/Los_Angeles would be`.
fn left(seen: &ResetsView, times: &Times) -> String {
    let spans = seen.allowed.spans();
    let all = |one: &dyn Fn(chrono::NaiveTime) -> String| {
        let told: Vec<_> =
            spans.iter().map(|(from, to)| format!("{} to {}", one(*from), one(*to))).collect();
        told.join(" and ")
    };
    let there = all(&|time| time.format("%H:%M").to_string());
    let here = all(&|time| times.clock(time));
    let mut text = format!("{there} UTC");
    if here != there {
        text.push_str(&format!(" ({here} here)"));
    }
    let midnights: Vec<_> =
        seen.allowed.midnights(times.now()).iter().map(|zone| zone.name()).collect();
    if !midnights.is_empty() {
        text.push_str(&format!(", as midnight would be in {}", midnights.join(" and ")));
    }
    text
}
