//! Commands that look after the store.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Copies the store.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline backup queue-copy.db
  paceline backup \"backups/$(date +%F).db\" --quiet    # for cron

The copy is one moment of the store, whatever is written meanwhile, readable by you alone and on
disk when the command ends. A file that is there already is left as it is. The copy is a store
itself: look into it with --store. `paceline help restore` says what happens when one is put back.

--json: {\"store\", \"file\", \"bytes\"}.")]
pub struct BackupArgs {
    /// The new file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// Makes a copy the store.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline restore queue-copy.db --replace
  paceline restore --trust          # after one: nothing had been sent since the copy was made

What was sent after the copy was made is not in it. So that nothing goes twice and no quota is
broken, each window that is open when the copy becomes the store counts as spent until its reset, of
budgets, rolling limits and bursts alike, and queued jobs that must not be sent twice are `unsure`
(`paceline resolve` ends them). Other jobs may be sent again. Blocks and holds are those of the
copy. Say --trust where nothing was sent since the copy was made: then its counts hold.

A copy of `paceline backup` that is put in place by other means, with cp or mv, does the same when
the first run begins on it. Only copies made by other means do not know that they are copies:
restore those with this command.

--json: {\"store\", \"kept\": where the store went that was there, \"copied_at\", \"unsure\": jobs}.")]
pub struct RestoreArgs {
    /// The copy; it stays as it is
    #[arg(required_unless_present = "trust", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Replace the store that is there; it is kept beside the new one, under another name
    #[arg(long, requires = "file")]
    pub replace: bool,
    /// Nothing was sent since the copy was made: its counts hold
    #[arg(long)]
    pub trust: bool,
}

/// Looks for what is wrong.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline doctor
  paceline doctor --quiet || echo 'look at paceline'    # for cron
  paceline doctor --json

Looks at the store (is it whole, can it be written, has its disk room), at runners, clocks and time
zone, at each quota file, at whether secrets are there (their names: no value is shown), and at what
is held or unsure. No upstream is asked anything. A large store takes a while: all of it is read.

--json: {\"checks\": [{\"name\", \"status\": \"ok\"|\"warning\"|\"wrong\", \"detail\", \"fix\"}], \"exit\"}.

Exit codes, the first that applies: 1 a fault of the store or the machine; 2 a config or quota file
is wrong; 4 a secret is missing that jobs need, or something is held; 0 nothing is wrong. Warnings
change no exit code.")]
pub struct DoctorArgs {}
