//! `add --dry-run`: what would be sent, under which limits, and about when all would be done.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use paceline::job::{Columns, NewJob};
use paceline::quota::{Cost, Upstream};
use paceline::report::finish::{Demand, Finish, finish};
use paceline::report::instant;
use paceline::report::limits::{self, counted, describe};
use paceline::template::{Place, Secret, Template};
use serde_json::{Value, json};

use super::intake::Intake;
use super::source::Rows;
use crate::args::add::{AddArgs, DedupeRule};
use crate::commands::lacks::{Unset, lacks};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::table::indented;
use crate::render::text::count;

/// Jobs that are shown.
const SHOWN: usize = 3;

/// Shows, and adds nothing. The store is not even opened.
pub fn run(
    upstreams: &[Arc<Upstream>],
    mut intake: Intake<'_>,
    mut rows: Rows,
    args: &AddArgs,
    context: &Context,
) -> anyhow::Result<Exit> {
    let mut plans: Vec<Plan> = upstreams.iter().map(|_| Plan::default()).collect();
    while let Some((jobs, _)) = intake.next(&mut rows)? {
        for ((plan, upstream), job) in plans.iter_mut().zip(upstreams).zip(jobs) {
            job.into_iter().for_each(|job| plan.take(upstream, job));
        }
    }
    let left = intake.finish()?;
    let all = plans.iter().zip(upstreams);
    if context.global.json {
        let told = all.zip(&left.by_upstream);
        let mut told: Vec<Value> = told
            .map(|((plan, upstream), rejected)| plan.json(upstream, *rejected, args, context))
            .collect();
        let told = match (told.pop(), told.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                told.extend(last);
                json!({"rejected": left.rejected, "upstreams": told})
            }
        };
        context.out.json(&told)?;
    } else {
        for (plan, upstream) in all {
            plan.tell(upstream, args, context)?;
        }
        let not_looked_for = match args.dedupe {
            DedupeRule::None => "",
            _ => {
                " Nor was looked which rows are there already, or come twice: `add` passes over those."
            }
        };
        context.out.text(&format!("Nothing was added.{not_looked_for}"))?;
    }
    Ok(if left.rejected > 0 { Exit::Failed } else { Exit::Done })
}

/// What the rows come to.
#[derive(Debug, Default)]
struct Plan {
    jobs: u64,
    first: Vec<NewJob>,
    credentials: BTreeSet<String>,
    /// Units by limit and key.
    units: HashMap<(usize, Vec<String>), (u64, Columns)>,
}

impl Plan {
    fn take(&mut self, upstream: &Upstream, job: NewJob) {
        self.jobs += 1;
        self.credentials.extend(job.columns.get("credential").cloned());
        for (position, limit) in upstream.limits.iter().enumerate() {
            let value = |name: &String| job.columns.get(name).cloned().unwrap_or_default();
            let key: Vec<String> = limit.key.iter().map(value).collect();
            let columns = || limit.key.iter().map(|name| (name.clone(), value(name))).collect();
            let entry = self.units.entry((position, key)).or_insert_with(|| (0, columns()));
            entry.0 = entry.0.saturating_add(limit.cost.of(&[&job.columns]));
        }
        if self.first.len() < SHOWN {
            self.first.push(job);
        }
    }

    /// The first requests: one a job, or one batch.
    fn requests(&self, upstream: &Upstream) -> Vec<Value> {
        let columns: Vec<&Columns> = self.first.iter().map(|job| &job.columns).collect();
        let with_first = |job: &&NewJob| {
            Some(&job.request) == self.first.first().map(|first| &first.request)
                && Some(&job.partition) == self.first.first().map(|first| &first.partition)
        };
        match (&upstream.batch, self.first.first()) {
            (Some(batch), Some(first)) => {
                let together = self.first.iter().take_while(with_first).count();
                let jobs = columns.get(..together.min(batch.max_items)).unwrap_or_default();
                vec![request(upstream, first, jobs)]
            }
            _ => self.first.iter().map(|job| request(upstream, job, &[&job.columns])).collect(),
        }
    }

    /// Variables that its calls would lack.
    fn lacks(&self, upstream: &Upstream, args: &AddArgs) -> Vec<Unset> {
        lacks(upstream, args).into_iter().filter(|one| one.concerns(&self.credentials)).collect()
    }

    fn json(&self, upstream: &Upstream, rejected: u64, args: &AddArgs, context: &Context) -> Value {
        let done = self.finish(upstream, context.wall());
        json!({
            "upstream": upstream.name, "jobs": self.jobs, "rejected": rejected,
            "requests": self.requests(upstream),
            "limits": upstream.limits.iter().map(limits::limit).collect::<Vec<_>>(),
            "finish_at": instant((!done.is_beyond()).then_some(done.at)), "limit": done.limit,
            "unset": self.lacks(upstream, args).iter().map(|one| &one.name).collect::<Vec<_>>(),
        })
    }

    fn tell(&self, upstream: &Upstream, args: &AddArgs, context: &Context) -> anyhow::Result<()> {
        let now = context.wall();
        let done = self.finish(upstream, now);
        show(upstream, self, &self.requests(upstream), context)?;
        let about = done.span(now);
        let by = done.limit.map(|limit| format!(", held back by the limit `{limit}`"));
        context.out.text(&format!(
            "\n{} would be done in {about}{}, were nothing else queued.",
            count(self.jobs, "job"),
            by.unwrap_or_default()
        ))?;
        self.lacks(upstream, args).iter().for_each(|one| context.note(&one.note(&upstream.name)));
        Ok(())
    }

    fn finish<'u>(&self, upstream: &'u Upstream, now: paceline::clock::Timestamp) -> Finish<'u> {
        let demands: Vec<Demand<'u>> = self
            .units
            .iter()
            .filter_map(|((position, _), (units, columns))| {
                let limit = upstream.limits.get(*position)?;
                let rule = limit.rule_for(columns);
                let units = match (&upstream.batch, &limit.cost) {
                    (Some(batch), Cost::Calls) => units.div_ceil(batch.max_items as u64),
                    _ => *units,
                };
                Some(Demand { limit: &limit.name, rule, units, left: None, next_at: None })
            })
            .collect();
        finish(&demands, now)
    }
}

/// A request as it would be sent, the first job with these others; secrets are placeholders.
fn request(upstream: &Upstream, job: &NewJob, jobs: &[&Columns]) -> Value {
    let secret = |secret: &Secret| Some(secret.to_string());
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, text) in job.request.headers.iter().chain(&upstream.request.headers) {
        let known = headers.keys().any(|known| known.eq_ignore_ascii_case(name));
        let filled = Template::parse(text)
            .and_then(|text| text.render(&job.columns, Place::Header, &secret));
        if let Ok(value) = filled
            && !known
        {
            headers.insert(name.clone(), value);
        }
    }
    let body = job.request.body.as_deref().and_then(|body| {
        let is_type = |(name, _): &(&String, &String)| name.eq_ignore_ascii_case("content-type");
        let declared = headers.iter().find(is_type).map(|(_, value)| value.as_str());
        let place = Place::of_body(declared, body);
        let body = Template::parse(body).ok()?;
        body.render_batch(&job.columns, jobs, place, &secret).ok()
    });
    json!({
        "method": job.request.method, "url": job.request.url, "headers": headers, "body": body,
    })
}

fn show(
    upstream: &Upstream,
    plan: &Plan,
    requests: &[Value],
    context: &Context,
) -> anyhow::Result<()> {
    for request in requests {
        let text = |field: &str| request.get(field).and_then(Value::as_str).unwrap_or_default();
        context.out.text(&format!("{} {}", text("method"), text("url")))?;
        for (name, value) in request.get("headers").and_then(Value::as_object).into_iter().flatten()
        {
            context.out.text(&format!("  {name}: {}", value.as_str().unwrap_or_default()))?;
        }
        if !text("body").is_empty() {
            context.out.text(&indented(text("body")))?;
        }
    }
    if let Some(batch) = &upstream.batch {
        let most = count(batch.max_items as u64, "job");
        context.out.text(&format!("a batch: at most {most} in one call"))?;
    } else if plan.jobs > requests.len() as u64 {
        let more = plan.jobs - requests.len() as u64;
        context.out.text(&format!("and {}", count(more, "more job")))?;
    }
    context.out.text(&format!("\nLimits of {}:", upstream.name))?;
    if upstream.limits.is_empty() {
        context.out.text("  none")?;
    }
    for limit in &upstream.limits {
        let told = describe(&limit.rule);
        context.out.text(&format!(
            "  {}: {}{}; planned: {}",
            limit.name,
            told.declared,
            counted(limit),
            told.planned
        ))?;
    }
    Ok(())
}
