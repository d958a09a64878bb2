//! Which jobs a command is about.

use clap::Args;
use paceline::clock::{Now, Timestamp};
use paceline::job::{Columns, JobId, JobState};
use paceline::quota::declare::meant;
use paceline::reading::Reason;
use paceline::store::Filter;

use crate::exit::wrong;
use crate::render::time::{Moment, Times};

/// `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Before the first `=`.
    pub name: String,
    /// After it.
    pub value: String,
}

impl std::str::FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Pair, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Pair { name: name.trim().to_owned(), value: value.to_owned() })
            }
            _ => Err("write NAME=VALUE".to_owned()),
        }
    }
}

/// Pairs as columns; the last of one name counts.
pub fn columns(pairs: &[Pair]) -> Columns {
    pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect()
}

/// The instant (wall time) that `--since` means.
///
/// # Errors
///
/// A local time that clocks leap over there.
pub fn since(since: Option<Moment>, times: &Times) -> anyhow::Result<Option<Timestamp>> {
    match since.map(|moment| moment.gone(times)) {
        Some(None) => wrong("--since is at no instant of this zone"),
        since => Ok(since.flatten()),
    }
}

/// Reasons that are no reading of an answer.
const OWN_REASONS: [&str; 6] =
    ["cancelled", "deadline", "lost", "never_fits", "replaced", "resolved"];

/// A reason's name.
pub fn reason(text: &str) -> Result<String, String> {
    let known = || Reason::ALL.into_iter().map(Reason::name).chain(OWN_REASONS);
    match known().any(|name| name == text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{text}` is no reason{}; `paceline help read` lists those of answers, and there are {}",
            meant(text, known()),
            OWN_REASONS.join(", ")
        )),
    }
}

/// Jobs picked by what they have in common: all that is given must fit.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which jobs")]
pub struct Select {
    /// Of this load
    #[arg(long, value_name = "NAME")]
    pub load: Option<String>,
    /// Of this upstream; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub upstream: Vec<String>,
    /// In these states: queued,running,done,failed,expired,cancelled,unsure
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub state: Vec<JobState>,
    /// Whose last answer had this reason, such as not_found
    #[arg(long, value_name = "REASON", value_parser = reason)]
    pub reason: Option<String>,
    /// Whose column has this value; may be given more than once
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub columns: Vec<Pair>,
    /// Added or ended since then: a span such as 2h, an instant, or a local date and time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Moment>,
}

impl Select {
    /// Whether anything was said.
    pub fn is_given(&self) -> bool {
        self.load.is_some()
            || self.reason.is_some()
            || self.since.is_some()
            || !self.upstream.is_empty()
            || !self.state.is_empty()
            || !self.columns.is_empty()
    }

    /// The filter; `since` becomes store time by `to_store`.
    pub fn filter(&self, ids: &[i64], times: &Times, now: Now) -> anyhow::Result<Filter> {
        let since = since(self.since, times)?.map(|at| now.to_store(at));
        Ok(Filter {
            ids: ids.iter().copied().map(JobId).collect(),
            load: self.load.clone(),
            upstreams: self.upstream.clone(),
            states: self.state.clone(),
            reason: self.reason.clone(),
            columns: columns(&self.columns),
            since,
            ..Filter::default()
        })
    }
}
