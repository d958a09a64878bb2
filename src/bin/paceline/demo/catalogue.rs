//! The catalogue: rows in, jobs queued, wrong rows named by their line.

use std::sync::Arc;

use anyhow::Context as _;
use paceline::input::Input;
use paceline::input::csv::{CsvRows, Format};
use paceline::job::NewJob;
use paceline::plan::{AddOptions, Planner};
use paceline::quota::Upstream;
use paceline::store::Store as _;

use super::DemoStore;

/// The file, as it is in the repository.
pub const CATALOGUE: &str = include_str!("../../../../examples/catalogue.csv");

/// The load's name.
const LOAD: &str = "catalogue";

/// What an addition came to.
#[derive(Debug)]
pub struct Addition {
    /// Jobs that were added.
    pub jobs: u64,
    /// Jobs that were there already.
    pub duplicates: u64,
    /// Rows that were not, by line, with what is wrong.
    pub rejected: Vec<Rejected>,
}

/// A row's line, and what is wrong with it.
pub type Rejected = (u64, String);

/// What a user's `paceline add practice --csv catalogue.csv --load catalogue` does.
pub async fn add(store: &DemoStore, upstream: &Arc<Upstream>) -> anyhow::Result<Addition> {
    let (jobs, rejected) = plan(upstream)?;
    let added = store.add(Arc::clone(upstream), LOAD.to_owned(), jobs).await?;
    let jobs = u64::try_from(added.ids.len()).unwrap_or(u64::MAX);
    Ok(Addition { jobs, duplicates: added.duplicates, rejected })
}

/// The jobs of the rows, and the lines that give none.
pub fn plan(upstream: &Upstream) -> anyhow::Result<(Vec<NewJob>, Vec<Rejected>)> {
    let rows = CsvRows::new(CATALOGUE.as_bytes(), &Format::default())?;
    let columns = rows.columns().iter().cloned().collect();
    let planner =
        Planner::new(upstream, AddOptions { columns: Some(columns), ..AddOptions::default() })?;
    let (mut jobs, mut rejected) = (Vec::new(), Vec::new());
    for input in rows {
        match input.context("the catalogue cannot be read")? {
            Input::Row(row) => match planner.plan(row.columns) {
                Ok(job) => jobs.push(job),
                Err(problem) => rejected.push((row.line, problem.to_string())),
            },
            Input::Bad(bad) => rejected.push((bad.line, bad.problem.to_string())),
        }
    }
    Ok((jobs, rejected))
}
