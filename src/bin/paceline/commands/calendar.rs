//! `calendar`: the window that an instant falls into, and its reset.

use paceline::quota::calendar::Calendar;
use serde_json::json;

use crate::args::tools::CalendarArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};

/// Tells a window.
pub fn run(args: &CalendarArgs, context: &Context) -> anyhow::Result<Exit> {
    let resets_at = args.resets_at.as_deref().unwrap_or(args.per.default_resets_at());
    let calendar = Calendar::parse(&args.time_zone, args.per, resets_at)?;
    let times = context.times();
    let at = match args.at.map(|moment| moment.to_come(&times)) {
        Some(Some(at)) => at,
        Some(None) => return wrong("--at is at no instant of this zone"),
        None => times.now(),
    };
    let window = calendar.window(at);
    if context.global.json {
        context.out.json(&json!({
            "window_start": window.start.to_rfc3339(),
            "next_reset": window.next_reset.to_rfc3339(),
        }))?;
    } else {
        let zone = Some(calendar.zone);
        context.out.text(&format!("began  {}", times.both(window.start, zone)))?;
        context.out.text(&format!("resets {}", times.both(window.next_reset, zone)))?;
    }
    Ok(Exit::Done)
}
