//! The command line.

mod args;
mod child;
mod commands;
mod context;
mod demo;
mod exit;
mod notify;
mod render;
mod settings;

use std::process::ExitCode;

/// musl's own gives memory back to the system at each turn: many times the work of all the rest.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::Parser as _;

use args::Cli;
use context::Context;
use exit::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return exit::usage(&told),
    };
    let context = match Context::new(cli.global) {
        Ok(context) => context,
        Err(error) => return exit::fail(&error),
    };
    match work(cli.command, &context) {
        Ok(exit) => exit.into(),
        Err(error) => exit::fail(&error),
    }
}

fn work(command: args::Command, context: &Context) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(commands::run(command, context))?;
    context.out.flush()?;
    Ok(exit)
}
