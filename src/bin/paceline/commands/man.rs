//! `man`: a manual page for each command, made of the same texts as `--help`.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::Cli;
use crate::args::tools::ManArgs;
use crate::context::Context;
use crate::exit::Exit;

/// Prints the page of the whole, or writes the pages of all commands.
pub fn run(args: &ManArgs, context: &Context) -> anyhow::Result<Exit> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    match &args.folder {
        None => page(&program, &mut context.out.writer())?,
        Some(folder) => {
            let told = || format!("the manual pages cannot be written into `{}`", folder.display());
            let pages = write_all(&program, folder).with_context(told)?;
            context.note(&format!("{pages} manual pages are in {}", folder.display()));
        }
    }
    Ok(Exit::Done)
}

/// Writes the page of a command and those of its own commands; how many they are.
fn write_all(command: &clap::Command, folder: &Path) -> io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut file = std::fs::File::create(folder.join(format!("{}.1", name(command))))?;
    page(command, &mut file)?;
    let own = command.get_subcommands().filter(|own| !own.is_hide_set());
    own.map(|own| write_all(own, folder)).try_fold(1, |sum, pages| Ok(sum + pages?))
}

fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn page(command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    let source = concat!("paceline ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).source(source).manual("Paceline");
    page.render_title(to)?;
    page.render_name_section(to)?;
    page.render_synopsis_section(to)?;
    page.render_description_section(to)?;
    page.render_options_section(to)?;
    let has_commands = command.get_subcommands().any(|own| !own.is_hide_set());
    if has_commands {
        page.render_subcommands_section(to)?;
    }
    rest(command).to_writer(to)
}

/// What follows the options in `--help`, its lines as they are.
fn rest(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    let text = command.get_after_long_help().or(command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let examples = text.strip_prefix("Examples:\n").or_else(|| text.strip_prefix("Example:\n"));
    if !text.is_empty() {
        roff.control("SH", [if examples.is_some() { "EXAMPLES" } else { "NOTES" }]);
        roff.control("nf", []);
        examples.unwrap_or(&text).lines().for_each(|line| {
            roff.text([roman(line)]);
        });
        roff.control("fi", []);
    }
    if name(command) != "paceline" {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman("paceline(1)")]);
    }
    roff
}
