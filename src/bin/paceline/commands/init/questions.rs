//! What a person at a terminal is asked, where no flag says it.

use std::io::{BufRead as _, Write as _};

use crate::args::init::InitArgs;
use crate::exit::wrong;

/// Asks for what was not said.
pub fn ask(mut args: InitArgs) -> anyhow::Result<InitArgs> {
    // What a flag says is not asked for; flags alone are no sign that the rest is wanted.
    let limits = args.rate.is_empty() && args.budget.is_empty() && args.concurrency.is_none();
    if args.name.is_none() {
        args.name = Some(needed("A short name for the service", "shop")?);
    }
    if args.url.is_none() {
        args.url = Some(needed(
            "The address that is called; {column} stands for a column of your rows",
            "https://api.shop.example/v1/stock/{isbn}",
        )?);
    }
    if limits {
        args.rate.extend(question(
            "How many calls a second or minute it allows",
            "10/s, 60/min; empty: no such limit",
        )?);
        if !args.rate.is_empty() {
            let burst = question("How many of them may go back to back", "empty: 1")?;
            args.burst = burst.map(|burst| number(&burst)).transpose()?;
        }
        args.budget.extend(question(
            "How many a day, hour, week or month",
            "200/day; empty: no such limit",
        )?);
        if !args.budget.is_empty() {
            args.time_zone = question(
                "The time zone in which that begins",
                "America/Los_Angeles; empty: unknown",
            )?;
        }
    }
    if args.secret_env.is_none() && args.header.is_empty() {
        args.secret_env = question(
            "The environment variable that holds your key",
            "SHOP_KEY; empty: none is needed",
        )?;
    }
    Ok(args)
}

fn number(text: &str) -> anyhow::Result<u64> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => wrong(format!("`{text}` is no whole number from 1")),
    }
}

fn needed(what: &str, example: &str) -> anyhow::Result<String> {
    match question(what, example)? {
        Some(answer) => Ok(answer),
        None => wrong("nothing was written: that was needed"),
    }
}

/// An answer; `None` where it is empty.
fn question(what: &str, example: &str) -> anyhow::Result<Option<String>> {
    let mut stderr = std::io::stderr();
    write!(stderr, "{what} ({example}): ")?;
    stderr.flush()?;
    let mut answer = String::new();
    if std::io::stdin().lock().read_line(&mut answer)? == 0 {
        return wrong("nothing was written: the input ended");
    }
    Ok(Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty()))
}
