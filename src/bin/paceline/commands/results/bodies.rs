//! What of the kept answers is wanted, and whether they were kept at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::quota::{KeepBody, Upstream};
use paceline::reading::items::part_of;
use paceline::report::jobs::{RESULT_FIELDS, RESULT_RESERVED};
use paceline::store::sqlite::SqliteStore;
use paceline::store::views::JobView;
use paceline::store::{Filter, KeptBody, Store as _};
use serde_json::{Map, Value};

use crate::args::look::{Format, ResultsArgs};
use crate::context::Context;
use crate::exit::wrong;
use crate::render::text::count;

/// The names of a body in a result.
const BODY: [&str; 3] = ["body", "body_base64", "body_cut"];

/// What of the kept answers is wanted.
#[derive(Debug)]
pub struct Bodies {
    /// Fields by name, and where in the answer they stand.
    pub fields: Vec<(String, String)>,
    /// Whether the whole answers are wanted.
    pub whole: bool,
    declared: BTreeMap<String, Arc<Upstream>>,
    /// The last answer that fields were taken from: all jobs of a batch have the same one.
    last: Option<(Vec<u8>, Value)>,
}

impl Bodies {
    /// Refuses what was not kept: an empty column would say that the answers had no such field.
    pub async fn new(
        args: &ResultsArgs,
        format: Format,
        filter: &Filter,
        store: &SqliteStore,
        context: &Context,
    ) -> anyhow::Result<Bodies> {
        let mut fields = Vec::new();
        for field in &args.field {
            check(&field.name, &field.value)?;
            fields.push((field.name.clone(), field.value.clone()));
        }
        let declared = context.declared(store).await?;
        let named = args.fields.iter().flatten().find(|name| BODY.contains(&name.as_str()));
        let wanted = named.or_else(|| args.field.first().map(|field| &field.name));
        if let Some(wanted) = wanted {
            let missing = store.bodiless(filter.clone(), args.after(), false).await?;
            if missing > 0 {
                return refuse(wanted, missing, filter, &declared);
            }
        }
        if let Some(field) = args.field.first() {
            let cut = store.bodiless(filter.clone(), args.after(), true).await?;
            if cut > 0 {
                return refuse_cut(&field.name, cut);
            }
        }
        let lines = args.sqlite.is_none() && args.fields.is_none() && format == Format::Jsonl;
        let concerned = |upstream: &&Arc<Upstream>| {
            filter.upstreams.is_empty() || filter.upstreams.contains(&upstream.name)
        };
        let mut concerned = declared.values().filter(concerned);
        let all_kept = concerned.any(|upstream| upstream.keep.body == KeepBody::All);
        let whole = named.is_some() || lines || args.fields.is_none() && all_kept;
        Ok(Bodies { fields, whole, declared, last: None })
    }

    /// Whether any are to be read.
    pub fn are_wanted(&self) -> bool {
        self.whole || !self.fields.is_empty()
    }

    /// Adds the fields that an answer has to a job's row.
    pub fn fill(&mut self, row: &mut Map<String, Value>, job: &JobView, body: Option<&KeptBody>) {
        if self.fields.is_empty() {
            return;
        }
        let upstream = self.declared.get(&job.upstream);
        let answer = body.map(|body| parsed(&mut self.last, &body.bytes));
        let part = answer.and_then(|answer| match upstream {
            Some(upstream) => part_of(upstream, answer, &job.columns),
            None => Some(answer),
        });
        for (name, pointer) in &self.fields {
            let value = part.and_then(|part| part.pointer(pointer)).cloned();
            row.insert(name.clone(), value.unwrap_or_default());
        }
    }
}

fn parsed<'l>(last: &'l mut Option<(Vec<u8>, Value)>, bytes: &[u8]) -> &'l Value {
    let known = last.take().filter(|(known, _)| known == bytes);
    let fresh = || (bytes.to_vec(), serde_json::from_slice(bytes).unwrap_or_default());
    &last.insert(known.unwrap_or_else(fresh)).1
}

fn check(name: &str, pointer: &str) -> anyhow::Result<()> {
    if RESULT_FIELDS.contains(&name) || RESULT_RESERVED.contains(&name) {
        return wrong(format!(
            "--field {name}=: every result has a `{name}` of its own; choose another name"
        ));
    }
    if !pointer.starts_with('/') {
        return wrong(format!(
            "--field {name}={pointer}: that is no JSON pointer; one begins with `/`, as in {name}=/stock"
        ));
    }
    Ok(())
}

/// Nothing can be taken from a part of an answer.
fn refuse_cut<T>(wanted: &str, cut: u64) -> anyhow::Result<T> {
    let are = if cut == 1 { "is" } else { "are" };
    wrong(format!(
        "the field `{wanted}` is not kept: there {are} {} whose answer was cut; with a higher [keep] max_bytes \
         the answers to come are kept whole, and --since or --after leaves out those from before",
        count(cut, "answered job")
    ))
}

/// Says whose answers are missing, and what would have kept them.
fn refuse<T>(
    wanted: &str,
    missing: u64,
    filter: &Filter,
    declared: &BTreeMap<String, Arc<Upstream>>,
) -> anyhow::Result<T> {
    let kept = |upstream: &Upstream| match upstream.keep.body {
        KeepBody::All => None,
        KeepBody::Refusals => Some("refusals"),
        KeepBody::None => Some("none"),
    };
    let concerned = |name: &String| filter.upstreams.is_empty() || filter.upstreams.contains(name);
    let files: Vec<String> = declared
        .values()
        .filter(|upstream| concerned(&upstream.name))
        .filter_map(|upstream| Some((&upstream.name, kept(upstream)?)))
        .map(|(name, kept)| {
            format!("the quota file of {name} says [keep] body = \"{kept}\"; with \"all\" the answers to come are kept")
        })
        .collect();
    let way = match files.is_empty() {
        true => {
            "leave out those from before it said [keep] body = \"all\", with --since or --after"
                .to_owned()
        }
        false => files.join("; "),
    };
    let are = if missing == 1 { "is" } else { "are" };
    let jobs = count(missing, "answered job");
    wrong(format!(
        "the field `{wanted}` is not kept: there {are} {jobs} without the answer's body; {way}"
    ))
}
