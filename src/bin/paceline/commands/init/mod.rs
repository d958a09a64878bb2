//! `init`: a first quota file, from a few questions or flags.

mod draft;
mod questions;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use paceline::quota::Upstream;
use paceline::quota::declare;
use serde_json::json;

use crate::args::init::InitArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};
use draft::Draft;

/// Writes it.
pub fn run(args: InitArgs, context: &Context) -> anyhow::Result<Exit> {
    let folder = context.global.quotas.clone().unwrap_or_else(|| PathBuf::from("quotas"));
    let complete = args.name.is_some() && args.url.is_some();
    let args = match complete {
        true => args,
        false if context.can_ask() => questions::ask(args, context)?,
        false => {
            return wrong(
                "say at least NAME and --url, as in: paceline init shop --url 'https://api.shop.example/v1/{id}' --rate 10/s",
            );
        }
    };
    let name = args.name.clone().unwrap_or_default();
    check_name(&name, context)?;
    draft::check_url(args.url.as_deref().unwrap_or_default())?;
    let file = folder.join(format!("{name}.toml"));
    let text = Draft::of(&args)?.text(&name);
    let upstream = match declare::parse(&name, &file.display().to_string(), &text) {
        Ok(upstream) => upstream,
        Err(error) => return wrong(problems(&error)),
    };
    if args.print {
        context.out.text(text.trim_end())?;
        return Ok(Exit::Done);
    }
    write(&file, &text)?;
    tell(&file, &upstream, context)?;
    Ok(Exit::Done)
}

/// What is wrong, without places: nobody sees the file.
fn problems(error: &declare::DeclareError) -> String {
    let lines = error.problems.iter().map(|problem| match problem.fix.as_str() {
        "" => problem.message.clone(),
        fix => format!("{}; {fix}", problem.message),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn check_name(name: &str, context: &Context) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) || name.starts_with('-') {
        return wrong(format!("`{name}` cannot be a name: write letters, digits, `-` and `_`"));
    }
    match context.library().list().into_iter().find(|entry| entry.name == name) {
        Some(entry) if entry.built_in => wrong(format!(
            "`{name}` is a preset, which a file of that name would hide: look at it with \
             `paceline quotas show {name}`, use it as it is, or choose another name"
        )),
        Some(entry) => wrong(format!("`{name}` is declared already, in {}", entry.file)),
        None => Ok(()),
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let unwritten = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            crate::exit::Usage(format!("{} is there already, and is left as it is", file.display()))
        }
        _ => crate::exit::Usage(format!("{} cannot be written: {error}", file.display())),
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(unwritten)?;
    }
    let mut new =
        std::fs::File::options().write(true).create_new(true).open(file).map_err(unwritten)?;
    Ok(new.write_all(text.as_bytes()).map_err(unwritten)?)
}

fn tell(file: &Path, upstream: &Upstream, context: &Context) -> anyhow::Result<()> {
    let next = next(upstream);
    if context.global.json {
        return context.out.json(&json!({ "name": upstream.name, "file": file, "next": next }));
    }
    let name = &upstream.name;
    if context.global.quiet {
        return Ok(());
    }
    context.out.text(&format!("{} is written", file.display()))?;
    context.note(&format!("check it: paceline quotas check {name}\nnext:     {next}"));
    Ok(())
}

/// The command that comes next.
fn next(upstream: &Upstream) -> String {
    let columns = draft::columns(upstream);
    let name = &upstream.name;
    match columns.as_slice() {
        [] => format!("paceline add {name} --dry-run"),
        [one] if one == "url" => format!("paceline add {name} https://... --dry-run"),
        [one] => format!(
            "paceline add {name} --set {one}=... --dry-run    # or --csv FILE with a column {one}"
        ),
        many => format!(
            "paceline add {name} --csv FILE --dry-run    # with the columns {}",
            many.join(", ")
        ),
    }
}
