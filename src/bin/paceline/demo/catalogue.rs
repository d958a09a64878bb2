//! The catalogue: rows in, jobs queued, wrong rows named by their line.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use paceline::job::{Columns, NewJob};
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
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(CATALOGUE.as_bytes());
    let header = reader.headers().context("the catalogue has no header")?.clone();
    let columns: BTreeSet<String> = header.iter().map(str::to_owned).collect();
    let options = AddOptions { columns: Some(columns), ..AddOptions::default() };
    let planner = Planner::new(upstream, options)?;
    let (mut jobs, mut rejected) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.context("the catalogue cannot be read")?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != header.len() {
            let (found, expected) = (record.len(), header.len());
            let problem = format!("it has {found} values, and there are {expected} columns");
            rejected.push((line, problem));
            continue;
        }
        let row: Columns =
            header.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect();
        match planner.plan(row) {
            Ok(job) => jobs.push(job),
            Err(problem) => rejected.push((line, problem.to_string())),
        }
    }
    Ok((jobs, rejected))
}
