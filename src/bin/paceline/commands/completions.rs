//! `completions`: what has a shell complete commands and flags.

use clap::CommandFactory as _;

use crate::args::Cli;
use crate::args::tools::CompletionsArgs;
use crate::context::Context;
use crate::exit::Exit;

/// Prints the script of one shell.
pub fn run(args: &CompletionsArgs, context: &Context) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "paceline", &mut script);
    std::io::Write::write_all(&mut context.out.writer(), &script)?;
    Ok(Exit::Done)
}
