//! `add --dry-run`: what would be sent, under which limits, and about when all would be done.

use std::collections::{BTreeSet, HashMap};

use paceline::job::{Columns, NewJob};
use paceline::quota::{Cost, Upstream};
use paceline::report::finish::{Demand, Finish, finish};
use paceline::report::instant;
use paceline::report::limits::{self, counted, describe};
use paceline::template::{Place, Secret, Template};
use serde_json::{Value, json};

use super::intake::Intake;
use super::source::Rows;
use crate::commands::lacks::Unset;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::table::indented;
use crate::render::text::count;

/// Jobs that are shown.
const SHOWN: usize = 3;

/// Shows, and adds nothing. The store is not even opened.
pub fn run(
    upstream: &Upstream,
    mut intake: Intake<'_>,
    mut rows: Rows,
    unset: &[Unset],
    context: &Context,
) -> anyhow::Result<Exit> {
    let mut plan = Plan::default();
    while let Some(job) = intake.next(&mut rows)? {
        plan.take(upstream, job);
    }
    let rejected = intake.finish()?;
    let unset: Vec<_> = unset.iter().filter(|unset| unset.concerns(&plan.credentials)).collect();
    let now = context.wall();
    let done = plan.finish(upstream, now);
    let requests = plan.requests(upstream);
    if context.global.json {
        context.out.json(&json!({
            "upstream": upstream.name, "jobs": plan.jobs, "rejected": rejected,
            "requests": requests,
            "limits": upstream.limits.iter().map(limits::limit).collect::<Vec<_>>(),
            "finish_at": instant((!done.is_beyond()).then_some(done.at)), "limit": done.limit, "unset": unset.iter().map(|unset| &unset.name).collect::<Vec<_>>(),
        }))?;
    } else {
        tell(upstream, &plan, &requests, context)?;
        let about = done.span(now);
        let by = done.limit.map(|limit| format!(", held back by the limit `{limit}`"));
        context.out.text(&format!(
            "\n{} would be done in {about}{}, were nothing else queued.\nNothing was added.",
            count(plan.jobs, "job"),
            by.unwrap_or_default()
        ))?;
        unset.iter().for_each(|unset| context.note(&unset.note(&upstream.name)));
    }
    Ok(if rejected > 0 { Exit::Failed } else { Exit::Done })
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
    let mut headers = job.request.headers.clone();
    for (name, text) in &upstream.request.headers {
        let own = headers.keys().any(|own| own.eq_ignore_ascii_case(name));
        let filled =
            Template::parse(text).and_then(|text| text.freeze(&job.columns, Place::Header));
        if let Ok(value) = filled
            && !own
        {
            headers.insert(name.clone(), value);
        }
    }
    let body = job.request.body.as_deref().and_then(|body| {
        let is_type = |(name, _): &(&String, &String)| name.eq_ignore_ascii_case("content-type");
        let declared = headers.iter().find(is_type).map(|(_, value)| value.as_str());
        let place = Place::of_body(declared, body);
        let secret = |secret: &Secret| Some(secret.to_string());
        let body = Template::parse(body).ok()?;
        body.render_batch(&job.columns, jobs, place, &secret).ok()
    });
    json!({
        "method": job.request.method, "url": job.request.url, "headers": headers, "body": body,
    })
}

fn tell(
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
