//! `restore`: a copy becomes the store.

use std::path::Path;

use paceline::clock::SystemClock;
use paceline::store::sqlite::{self, CopyError, Origin};
use serde_json::json;

use super::run::lines::restored;
use crate::args::care::RestoreArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};

/// Puts a copy in the store's place, or takes back what that did to its counts.
pub async fn run(args: RestoreArgs, context: &Context) -> anyhow::Result<Exit> {
    match &args.file {
        Some(file) => put_back(file, &args, context).await,
        None => trust(context).await,
    }
}

async fn put_back(file: &Path, args: &RestoreArgs, context: &Context) -> anyhow::Result<Exit> {
    let path = context.store_path()?;
    let same = std::fs::canonicalize(file).ok();
    if same.is_some() && same == std::fs::canonicalize(&path).ok() {
        return wrong(format!("{} is the store itself; name a copy of it", file.display()));
    }
    let done = sqlite::restore(file, &path, &SystemClock::new(), (args.replace, args.trust));
    let aside = match done {
        Err(CopyError::Exists(there)) => {
            return wrong(format!(
                "there is a store at {}; --replace keeps it under another name and puts the copy in its place",
                there.display()
            ));
        }
        done => done?,
    };
    let adopted = context.store()?.adopt().await?;
    if context.global.json {
        context.out.json(&json!({
            "store": path, "kept": aside,
            "copied_at": adopted.map(|adopted| adopted.copied_at.to_rfc3339()),
            "unsure": adopted.map_or(0, |adopted| adopted.unsure),
        }))?;
    } else if !context.global.quiet {
        context.out.text(&format!("{} is now what {} holds", path.display(), file.display()))?;
        if let Some(aside) = aside {
            context.out.text(&format!("what was there before is in {}", aside.display()))?;
        }
        if let Some(adopted) = adopted {
            context.out.text(&restored(adopted, &context.times()))?;
        }
    }
    Ok(Exit::Done)
}

async fn trust(context: &Context) -> anyhow::Result<Exit> {
    let path = context.store_path()?;
    if !path.exists() {
        return Err(CopyError::Missing(path).into());
    }
    let store = context.store()?;
    let was = store.origin()?;
    store.trust_counts().await?;
    let said = match was {
        Origin::Own => "this store was not restored lately: nothing changed",
        _ => "the counts of the copy hold: nothing counts as spent for the restore any more",
    };
    if context.global.json {
        context.out.json(&json!({ "store": path, "changed": was != Origin::Own }))?;
    } else if !context.global.quiet {
        context.out.text(said)?;
    }
    Ok(Exit::Done)
}
