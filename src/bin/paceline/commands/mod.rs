//! The commands, one a file.

mod act;
mod add;
mod answers;
mod backup;
mod budget;
mod calendar;
mod call;
mod cancel;
mod completions;
mod doctor;
mod exec;
mod forecast;
mod gateway;
mod hold;
mod init;
mod jobs;
mod lacks;
mod loads;
mod log;
mod man;
mod prune;
mod quotas;
mod read;
mod refused;
mod report;
mod resets;
mod resolve;
mod restore;
mod results;
mod resume;
mod retry;
pub mod run;
mod set;
mod show;
mod status;
mod why;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;

/// Does what was asked for.
pub async fn run(command: Command, context: &Context) -> anyhow::Result<Exit> {
    if !matches!(
        command,
        Command::Demo(_) | Command::Completions(_) | Command::Man(_) | Command::Init(_)
    ) {
        context.check_quotas()?;
    }
    match command {
        Command::Add(args) => add::run(*args, context).await,
        Command::Run(args) => run::run(args, context).await,
        Command::Call(args) => call::run(*args, context).await,
        Command::Exec(args) => exec::run(*args, context).await,
        Command::Gateway(args) => gateway::run(args, context).await,
        Command::Status(args) => status::run(args, context).await,
        Command::Why(args) => why::run(args, context).await,
        Command::Jobs(args) => jobs::run(args, context).await,
        Command::Show(args) => show::run(args, context).await,
        Command::Loads(_) => loads::run(context).await,
        Command::Log(args) => log::run(args, context).await,
        Command::Forecast(args) => forecast::run(args, context).await,
        Command::Report(args) => report::run(args, context).await,
        Command::Results(args) => results::run(args, context).await,
        Command::Budget(args) => budget::run(args, context).await,
        Command::Retry(args) => retry::run(args, context).await,
        Command::Cancel(args) => cancel::run(args, context).await,
        Command::Resolve(args) => resolve::run(args, context).await,
        Command::Set(args) => set::run(args, context).await,
        Command::Prune(args) => prune::run(args, context).await,
        Command::Hold(args) => hold::run(args, context).await,
        Command::Resume(args) => resume::run(args, context).await,
        Command::Quotas(args) => quotas::run(args, context),
        Command::Read(args) => read::run(&args, context),
        Command::Calendar(args) => calendar::run(&args, context),
        Command::Backup(args) => backup::run(args, context).await,
        Command::Restore(args) => restore::run(args, context).await,
        Command::Doctor(args) => doctor::run(args, context).await,
        Command::Init(args) => init::run(*args, context),
        Command::Demo(args) => crate::demo::run(&args, context).await,
        Command::Completions(args) => completions::run(&args, context),
        Command::Man(args) => man::run(&args, context),
    }
}
