//! `loads`: the jobs of each `add`, counted.

use paceline::report::{instant, tally};
use paceline::store::Store as _;
use serde_json::{Value, json};

use super::status::jobs_line;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::table::table;

/// Lists loads.
pub async fn run(context: &Context) -> anyhow::Result<Exit> {
    let loads = context.look()?.loads().await?;
    if context.global.json {
        let all = loads.iter().map(|load| {
            json!({
                "name": load.name, "added_at": instant(Some(load.added_at)),
                "jobs": tally(&load.jobs),
            })
        });
        context.out.json(&Value::from(all.collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    let times = context.times();
    let rows: Vec<_> = loads
        .iter()
        .map(|load| [load.name.clone(), times.here(load.added_at), jobs_line(&load.jobs)])
        .collect();
    match rows.as_slice() {
        [] => context.note("no loads"),
        rows => context.out.text(&table(["LOAD", "ADDED", "JOBS"], rows))?,
    }
    Ok(Exit::Done)
}
