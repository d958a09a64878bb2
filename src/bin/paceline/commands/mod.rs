//! The commands, one a file.

mod add;
mod run;
mod status;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;

/// Does what was asked for.
pub async fn run(command: Command, context: &Context) -> anyhow::Result<Exit> {
    match command {
        Command::Add(args) => add::run(*args, context).await,
        Command::Run(args) => run::run(args, context).await,
        Command::Status(args) => status::run(args, context).await,
        Command::Demo(args) => Ok(match crate::demo::run(&args).await? {
            true => Exit::Done,
            false => Exit::Fault,
        }),
        _ => anyhow::bail!("later"),
    }
}
