//! What a run leaves held, and the way out of it.

use paceline::report::why::{held, key};
use paceline::store::Store as _;
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::UpstreamView;

use crate::context::Context;
use crate::render::text::{count, visible};
use crate::render::time::Times;

/// Holds that are told one by one.
const TOLD: usize = 5;

/// Lines that say what of these upstreams is held; none named are all.
pub async fn lines(
    store: &SqliteStore,
    named: &[String],
    context: &Context,
) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for (name, upstream) in context.declared(store).await? {
        if named.is_empty() || named.contains(&name) {
            lines.extend(of(&store.upstream(upstream).await?, &context.times()));
        }
    }
    if lines.len() > TOLD {
        let more = lines.split_off(TOLD).len() as u64;
        lines.push(format!("and {}: `paceline status` says more", count(more, "more hold")));
    }
    Ok(lines)
}

fn of(view: &UpstreamView, times: &Times) -> Vec<String> {
    let line = |hold: &paceline::report::why::Held<'_>| {
        let of = match key(&hold.key).as_str() {
            "" => view.name.clone(),
            key => format!("{} [{key}]", view.name),
        };
        let until = hold.until.map(|until| format!("; {}", times.left_alone(until)));
        let why = format!("{of} ({}): {}{}", hold.reason, hold.detail, until.unwrap_or_default());
        let why = visible(&why);
        format!("{why}\n    {}", hold.way_out)
    };
    held(view).iter().map(line).collect()
}
