//! `quotas`: the declared upstreams.

use std::path::Path;
use std::sync::Arc;

use paceline::quota::declare::DeclareError;
use paceline::quota::library::{Entry, Library, LibraryError};
use paceline::quota::{Limit, Sureness, Upstream};
use paceline::reading::{Unreachable, unreachable};
use paceline::report::limits::{self, Described, describe};
use serde_json::{Value, json};

use super::lacks::unset;
use crate::args::tools::{QuotasArgs, QuotasCommand};
use crate::context::Context;
use crate::exit::{Exit, wrong};
use crate::render::table::{indented, table};
use crate::render::text::count;

/// Lists, shows or checks quota files.
pub fn run(args: QuotasArgs, context: &Context) -> anyhow::Result<Exit> {
    match args.command {
        QuotasCommand::List => list(context),
        QuotasCommand::Show { name, origin } => show(&name, origin, context),
        QuotasCommand::Check { what } => check(&what, context),
    }
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let library = context.library();
    let all: Vec<_> =
        library.list().into_iter().map(|entry| (library.get(&entry.name), entry)).collect();
    if context.global.json {
        let told = all.iter().map(|(upstream, entry)| listed(upstream.as_deref().ok(), entry));
        context.out.json(&Value::from(told.collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = all.iter().flat_map(|(upstream, entry)| rows(upstream, entry)).collect();
    context.out.text(&table(["NAME", "TITLE", "LIMIT", "SURE", "CHECKED", "FROM"], &rows))?;
    Ok(Exit::Done)
}

fn listed(upstream: Option<&Upstream>, entry: &Entry) -> Value {
    json!({
        "name": entry.name, "file": entry.file, "built_in": entry.built_in,
        "valid": upstream.is_some(),
        "title": upstream.map(|upstream| &upstream.title),
        "docs": upstream.and_then(|upstream| upstream.docs.as_ref()),
        "checked": upstream.and_then(|upstream| upstream.checked.as_ref()),
        "limits": upstream.map(|upstream| upstream.limits.iter().map(limits::limit).collect::<Vec<_>>()),
    })
}

/// A row for each limit of an upstream; the first tells of the upstream too.
fn rows(upstream: &Result<Arc<Upstream>, LibraryError>, entry: &Entry) -> Vec<[String; 6]> {
    let whole = |title: &str, limit: &str, sure: &str, checked: &str| {
        [&entry.name, title, limit, sure, checked, &entry.file].map(str::to_owned)
    };
    let Ok(upstream) = upstream else {
        let hint = format!("paceline quotas check {}", entry.name);
        return vec![whole("(invalid)", &hint, "", "")];
    };
    let checked = upstream.checked.as_deref().unwrap_or_default();
    let Some((first, others)) = upstream.limits.split_first() else {
        return vec![whole(&upstream.title, "none", "", checked)];
    };
    let first = whole(&upstream.title, &short(first), sure(first), checked);
    let empty = String::new;
    let other =
        |limit: &Limit| [empty(), empty(), short(limit), sure(limit).to_owned(), empty(), empty()];
    std::iter::once(first).chain(others.iter().map(other)).collect()
}

fn short(limit: &Limit) -> String {
    let others = if limit.exceptions.is_empty() { "" } else { "; other figures for some" };
    format!("{}: {}{}{others}", limit.name, describe(&limit.rule).declared, limits::counted(limit))
}

const fn sure(limit: &Limit) -> &'static str {
    match limit.sure {
        Sureness::Documented => "documented",
        Sureness::Observed => "observed",
        Sureness::Guess => "a guess",
    }
}

fn show(name: &str, origin: bool, context: &Context) -> anyhow::Result<Exit> {
    let lines = context.library().lines(name)?;
    if context.global.json {
        let all = lines
            .iter()
            .map(|line| json!({"text": line.text, "file": line.file, "line": line.line}));
        context.out.json(&Value::from(all.collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    let place = |line: &paceline::quota::declare::Line| format!("{}:{}", line.file, line.line);
    let width = lines.iter().map(|line| place(line).chars().count()).max().unwrap_or(0);
    for line in &lines {
        match origin {
            true => context.out.text(&format!("{:width$}  {}", place(line), line.text))?,
            false => context.out.text(&line.text)?,
        }
    }
    Ok(Exit::Done)
}

fn check(what: &[String], context: &Context) -> anyhow::Result<Exit> {
    let names: Vec<String> = match what {
        [] => context.library().names().into_iter().collect(),
        what => what.to_vec(),
    };
    let presets = context.library().list().into_iter().filter(|entry| entry.built_in);
    let built_in: Vec<String> = presets.map(|entry| entry.name).collect();
    let mut all = Vec::new();
    let mut exit = Exit::Done;
    let mut sound = 0_u64;
    for name in names {
        let checked = one(&name, context)?;
        if checked.is_err() {
            exit = Exit::Usage;
        }
        // Whoever checks all files asks for nothing of the presets.
        let asked = !what.is_empty() || !built_in.contains(&name);
        match context.global.json {
            true => all.push(as_json(&name, &checked)),
            false if !asked && checked.is_ok() => sound += 1,
            false => tell(&name, &checked, context)?,
        }
        if let (Ok(upstream), true, false) = (&checked, asked, context.global.json) {
            for unset in unset(upstream, std::iter::empty()) {
                context.note(&unset.note(&upstream.name));
            }
        }
    }
    if context.global.json {
        context.out.json(&Value::from(all))?;
    } else if sound > 0 {
        context.out.text(&format!(
            "{}: valid (`paceline quotas list` shows them, `paceline quotas check NAME` tells of one)",
            count(sound, "built-in preset")
        ))?;
    }
    Ok(exit)
}

/// A name, or a file with whatever it extends.
fn one(what: &str, context: &Context) -> anyhow::Result<Result<Arc<Upstream>, LibraryError>> {
    let path = Path::new(what);
    if !what.contains('/') && path.extension().is_none_or(|kind| kind != "toml") {
        return Ok(context.library().get(what));
    }
    let (Some(stem), true) = (path.file_stem().and_then(|stem| stem.to_str()), path.is_file())
    else {
        return wrong(format!("there is no file `{what}`"));
    };
    if path.extension().is_none_or(|kind| kind != "toml") {
        return wrong(format!("`{what}` is no quota file: its name must end in .toml"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let library = match &context.global.quotas {
        None => Library::usual(Some(folder)),
        Some(quotas) => Library::new(vec![folder.to_owned(), quotas.clone(), "quotas".into()]),
    };
    Ok(library.get(stem))
}

fn as_json(name: &str, checked: &Result<Arc<Upstream>, LibraryError>) -> Value {
    match checked {
        Ok(upstream) => json!({
            "name": upstream.name, "valid": true, "problems": [],
            "warning": unpaced(upstream), "unreachable": never_matching(upstream), "unset": unset(upstream, std::iter::empty()).into_iter().map(|unset| unset.name).collect::<Vec<_>>(),
            "limits": upstream.limits.iter().map(limits::limit).collect::<Vec<_>>(),
        }),
        Err(error) => json!({
            "name": name, "valid": false, "problems": problems(error), "limits": [],
        }),
    }
}

fn problems(error: &LibraryError) -> Vec<Value> {
    match error {
        LibraryError::Invalid(DeclareError { problems, .. }) => {
            let told = problems.iter().map(|problem| {
                json!({
                    "file": problem.file, "line": problem.line, "column": problem.column,
                    "message": problem.message, "fix": problem.fix,
                })
            });
            told.collect()
        }
        other => vec![json!({ "message": other.to_string() })],
    }
}

fn tell(
    name: &str,
    checked: &Result<Arc<Upstream>, LibraryError>,
    context: &Context,
) -> anyhow::Result<()> {
    let upstream = match checked {
        Ok(upstream) => upstream,
        Err(error) => {
            context.complain(&error.to_string());
            return Ok(context.out.text(&format!("{name}: invalid"))?);
        }
    };
    context.out.text(&format!("{}: valid", upstream.name))?;
    if let Some(warning) = unpaced(upstream) {
        context.complain(&format!("warning: {warning}"));
    }
    for rule in unreachable(&upstream.readings) {
        context.complain(&format!("warning: {}", never(&rule)));
    }
    for limit in &upstream.limits {
        let told = describe(&limit.rule);
        context.out.text(&indented(&in_words(&limit.name, "", &told)))?;
        warn(&upstream.name, &limit.name, &told, context);
        for exception in &limit.exceptions {
            let told = describe(&exception.rule);
            let when = format!(" where {}", paceline::report::why::key(&exception.when));
            context.out.text(&indented(&in_words(&limit.name, &when, &told)))?;
            warn(&upstream.name, &limit.name, &told, context);
        }
    }
    Ok(())
}

fn never(rule: &Unreachable) -> String {
    let place = rule.place.as_ref();
    let place = place.map(|at| format!("{}:{}:{}: ", at.file, at.line, at.column));
    let Unreachable { number, why, .. } = rule;
    format!("{}rule {number} can never match: {why}; {}", place.unwrap_or_default(), why.fix())
}

fn never_matching(upstream: &Upstream) -> Value {
    let rules = unreachable(&upstream.readings).into_iter();
    let told = rules.map(|Unreachable { number, place, why }| {
        json!({
            "rule": number, "message": why.to_string(), "fix": why.fix(),
            "file": place.as_ref().map(|at| &at.file), "line": place.as_ref().map(|at| at.line),
            "column": place.as_ref().map(|at| at.column),
        })
    });
    told.collect()
}

/// That nothing is held back, which is seldom meant.
fn unpaced(upstream: &Upstream) -> Option<String> {
    let none = || format!("{} has no [[limit]]: nothing of it is paced", upstream.name);
    upstream.limits.is_empty().then(none)
}

fn in_words(name: &str, when: &str, told: &Described) -> String {
    format!("{name}{when}: declared {}; planned {}", told.declared, told.planned)
}

fn warn(upstream: &str, limit: &str, told: &Described, context: &Context) {
    if let Some(warning) = &told.warning {
        context.complain(&format!("warning: {upstream} limit `{limit}`: {warning}"));
    }
}
