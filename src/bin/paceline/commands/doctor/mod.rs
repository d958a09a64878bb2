//! `doctor`: what is wrong here. Looks at the store, the quota files, the clocks, and whether secrets are
//! there; never at an upstream.
//!
//! | file | noun |
//! | --- | --- |
//! | `place` | the store's file, its disk, the clocks |
//! | `work` | quota files, secrets, what is held or unsure |

mod place;
mod work;

use std::os::unix::fs::MetadataExt as _;

use paceline::store::sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::args::care::DoctorArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::text::visible_lines;

/// Looks, and tells.
pub async fn run(_: DoctorArgs, context: &Context) -> anyhow::Result<Exit> {
    let mut found = Findings::default();
    config(&mut found, context);
    let store = place::look(&mut found, context).await?;
    work::quotas(&mut found, store.as_ref(), context).await?;
    work::secrets(&mut found, store.as_ref(), context).await?;
    if let Some(store) = &store {
        work::holds(&mut found, store, context).await?;
    }
    let exit = found.exit();
    match context.global.json {
        true => context.out.json(&json!({ "checks": found.0, "exit": exit.code() }))?,
        false => found.tell(context)?,
    }
    Ok(exit)
}

fn config(found: &mut Findings, context: &Context) {
    match &context.settings.file {
        Some(file) => found.ok("config", format!("{} is valid", file.display())),
        None => found.ok("config", "there is none: all is as built".to_owned()),
    }
    if let Some(file) = &context.global.env_file {
        private(found, "env file", file);
    }
}

/// That others on this machine cannot read a file.
fn private(found: &mut Findings, name: &'static str, file: &std::path::Path) {
    let mode = std::fs::metadata(file).map_or(0, |file| file.mode());
    if mode & 0o077 != 0 {
        let fix = format!("chmod 600 {}", file.display());
        return found.warn(name, format!("{} can be read by others", file.display()), fix);
    }
    found.ok(name, format!("{} is readable by you alone", file.display()));
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Ok,
    Warning,
    /// With the exit code that says so.
    Wrong(Exit),
}

impl Grade {
    const fn name(self) -> &'static str {
        match self {
            Grade::Ok => "ok",
            Grade::Warning => "warning",
            Grade::Wrong(_) => "wrong",
        }
    }
}

/// What one look came to.
#[derive(Clone, Debug)]
struct Finding {
    name: &'static str,
    grade: Grade,
    detail: String,
    /// What to do about it; empty where nothing is to be done.
    fix: String,
}

impl From<&Finding> for Value {
    fn from(one: &Finding) -> Value {
        let fix = Some(&one.fix).filter(|fix| !fix.is_empty());
        json!({ "name": one.name, "status": one.grade.name(), "detail": one.detail, "fix": fix })
    }
}

impl serde::Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Value::from(self).serialize(to)
    }
}

/// What all looks came to.
#[derive(Debug, Default, serde::Serialize)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, name: &'static str, detail: String) {
        self.0.push(Finding { name, grade: Grade::Ok, detail, fix: String::new() });
    }

    fn warn(&mut self, name: &'static str, detail: String, fix: impl Into<String>) {
        self.0.push(Finding { name, grade: Grade::Warning, detail, fix: fix.into() });
    }

    fn wrong(&mut self, name: &'static str, exit: Exit, detail: String, fix: impl Into<String>) {
        self.0.push(Finding { name, grade: Grade::Wrong(exit), detail, fix: fix.into() });
    }

    /// The first that applies: a fault of the machine, a quota file, a person.
    fn exit(&self) -> Exit {
        let any = |exit| self.0.iter().any(|one| one.grade == Grade::Wrong(exit));
        let order = [Exit::Fault, Exit::Usage, Exit::Held];
        order.into_iter().find(|exit| any(*exit)).unwrap_or(Exit::Done)
    }

    /// With `--quiet` only what is not well.
    fn tell(&self, context: &Context) -> anyhow::Result<()> {
        let quiet = context.global.quiet;
        for one in self.0.iter().filter(|one| !quiet || one.grade != Grade::Ok) {
            let detail = one.detail.replace('\n', "\n                    ");
            context.out.text(&format!(
                "{:<8} {:<10} {}",
                one.grade.name(),
                one.name,
                visible_lines(&detail)
            ))?;
            if !one.fix.is_empty() {
                context.out.text(&format!("{:20}{}", "", one.fix))?;
            }
        }
        let wrong = self.0.iter().filter(|one| matches!(one.grade, Grade::Wrong(_))).count();
        let text = match wrong {
            0 => "nothing is wrong".to_owned(),
            1 => "1 thing is wrong".to_owned(),
            many => format!("{many} things are wrong"),
        };
        context.note(&text);
        Ok(())
    }
}
