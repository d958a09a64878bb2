//! What a person at a terminal is asked, where no flag says it. Each answer is looked at before the next
//! question, and asked for again where it cannot be.

use std::io::{BufRead as _, Write as _};

use super::draft;
use crate::args::init::InitArgs;
use crate::context::Context;
use crate::exit::wrong;

/// Asks for what was not said.
pub fn ask(mut args: InitArgs, context: &Context) -> anyhow::Result<InitArgs> {
    // What a flag says is not asked for; flags alone are no sign that the rest is wanted.
    let limits = args.rate.is_empty() && args.budget.is_empty() && args.concurrency.is_none();
    if args.name.is_none() {
        let check = |name: &str| super::check_name(name, context);
        args.name = Some(needed("A short name for the service", "shop", check)?);
    }
    if args.url.is_none() {
        args.url = Some(needed(
            "The address that is called; {column} stands for a column of your rows",
            "https://api.shop.example/v1/stock/{isbn}",
            draft::check_address,
        )?);
    }
    if limits {
        ask_limits(&mut args)?;
    }
    if args.secret_env.is_none() && args.header.is_empty() {
        args.secret_env = question(
            "The environment variable that holds your key",
            "SHOP_KEY; empty: none is needed",
            draft::check_variable,
        )?;
    }
    Ok(args)
}

fn ask_limits(args: &mut InitArgs) -> anyhow::Result<()> {
    args.rate.extend(question(
        "How many calls a second or minute it allows",
        "10/s, 60/min; empty: no such limit",
        draft::check_rate,
    )?);
    if let Some(rate) = args.rate.first() {
        let check = |burst: &str| draft::check_burst(rate, burst);
        let burst = question("How many of them may go back to back", "empty: 1", check)?;
        args.burst = burst.and_then(|burst| burst.parse().ok());
    }
    args.budget.extend(question(
        "How many a day, hour, week or month",
        "200/day; empty: no such limit",
        |text| draft::check_budget(text, "unknown"),
    )?);
    if let Some(budget) = args.budget.first() {
        args.time_zone = question(
            "The time zone in which that begins",
            "America/Los_Angeles; empty: unknown",
            |zone| draft::check_budget(budget, zone),
        )?;
    }
    Ok(())
}

fn needed(
    what: &str,
    example: &str,
    check: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    loop {
        match question(what, example, &check)? {
            Some(answer) => return Ok(answer),
            None => eprintln!("  that is needed; Ctrl-C leaves, and nothing is written"),
        }
    }
}

/// An answer that passes the check; `None` where it is empty.
fn question(
    what: &str,
    example: &str,
    check: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    let mut stderr = std::io::stderr();
    loop {
        write!(stderr, "{what} ({example}): ")?;
        stderr.flush()?;
        let mut answer = String::new();
        if std::io::stdin().lock().read_line(&mut answer)? == 0 {
            return wrong("nothing was written: the input ended");
        }
        let answer = answer.trim();
        if answer.is_empty() {
            return Ok(None);
        }
        match check(answer) {
            Ok(()) => return Ok(Some(answer.to_owned())),
            Err(problem) => writeln!(stderr, "  {problem}")?,
        }
    }
}
