//! `backup`: a copy of the store, while others work on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline::clock::SystemClock;
use paceline::store::sqlite;
use serde_json::json;

use crate::args::care::BackupArgs;
use crate::context::Context;
use crate::exit::{Exit, wrong};

/// Copies it.
pub async fn run(args: BackupArgs, context: &Context) -> anyhow::Result<Exit> {
    let (store, file) = (context.store_path()?, args.file);
    if file.is_dir() {
        return wrong(format!(
            "`{}` is a folder: name a new file, such as {}",
            file.display(),
            file.join("paceline.db").display()
        ));
    }
    let bar = bar(context);
    let left = Arc::new(AtomicBool::new(false));
    let watch = {
        let (bar, left) = (bar.clone(), Arc::clone(&left));
        move |written, all: u64| {
            bar.set_length(all.max(written));
            bar.set_position(written);
            !left.load(Ordering::Relaxed)
        }
    };
    let (from, to) = (store.clone(), file.clone());
    let work =
        tokio::task::spawn_blocking(move || sqlite::backup(&from, &to, &SystemClock::new(), watch));
    tokio::pin!(work);
    let copied = tokio::select! {
        copied = &mut work => copied?,
        _ = tokio::signal::ctrl_c() => {
            left.store(true, Ordering::Relaxed);
            work.await?
        }
    };
    bar.finish_and_clear();
    let bytes = copied?;
    if context.global.json {
        context.out.json(&json!({ "store": store, "file": file, "bytes": bytes }))?;
    } else if !context.global.quiet {
        let size = indicatif::HumanBytes(bytes);
        context.out.text(&format!(
            "{} holds a copy of {} ({size})",
            file.display(),
            store.display()
        ))?;
    }
    Ok(Exit::Done)
}

fn bar(context: &Context) -> ProgressBar {
    let target = match context.global.quiet || context.global.json {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let style = ProgressStyle::with_template("{bar:24} {bytes}/{total_bytes} copied");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
