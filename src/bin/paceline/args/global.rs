//! The flags that all commands share, and what stands in for those that were not given: first the
//! environment, then the file of defaults.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::exit::wrong;
use crate::settings::Settings;

/// The flags that all commands share.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The file that holds queue and history [default: the user's own; env: PACELINE_STORE]
    #[arg(long, global = true, value_name = "PATH", display_order = 900)]
    pub store: Option<OsString>,
    /// A folder of quota files, looked into first [env: PACELINE_QUOTAS]
    #[arg(long, global = true, value_name = "DIR", display_order = 901)]
    pub quotas: Option<PathBuf>,
    /// Answer in JSON; instants are RFC 3339 in UTC [env: PACELINE_JSON]
    #[arg(long, global = true, display_order = 902)]
    pub json: bool,
    /// Print what was asked for and what went wrong: nothing by the way [env: PACELINE_QUIET]
    #[arg(long, short, global = true, display_order = 903)]
    pub quiet: bool,
    /// Say more: one line an attempt [env: PACELINE_VERBOSE]
    #[arg(
        long,
        short,
        global = true,
        action = clap::ArgAction::Count,
        conflicts_with = "quiet",
        display_order = 904
    )]
    pub verbose: u8,
    /// Which commits wait for the disk, so that a power cut cannot undo them
    /// [default: normal; env: PACELINE_SYNC]
    #[arg(long, global = true, value_enum, value_name = "WHICH", display_order = 905)]
    pub sync: Option<SyncRule>,
    /// The file of defaults [default: paceline/config.toml in the user's config folder; env:
    /// PACELINE_CONFIG]
    #[arg(long, global = true, value_name = "FILE", display_order = 906)]
    pub config: Option<PathBuf>,
    /// Take secrets that the environment lacks from this file of NAME=VALUE lines [env:
    /// PACELINE_ENV_FILE]
    #[arg(long, global = true, value_name = "FILE", display_order = 907)]
    pub env_file: Option<PathBuf>,
}

/// What `--sync` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncRule {
    /// Units of budgets and rolling limits, marks of calls that must not be sent twice
    #[default]
    Normal,
    /// All: a power cut undoes nothing that was recorded
    Full,
}

impl Global {
    /// With what the environment says where no flag does. Clap would do so too, and then show these
    /// flags in each usage line.
    ///
    /// # Errors
    ///
    /// A variable that says nothing that can be meant.
    pub fn or_environment(mut self) -> anyhow::Result<Global> {
        let path = |name| variable(name).map(PathBuf::from);
        // An empty path of a store is told of where the store is opened.
        self.store = self.store.or_else(|| std::env::var_os("PACELINE_STORE"));
        self.quotas = self.quotas.or_else(|| path("PACELINE_QUOTAS"));
        self.config = self.config.or_else(|| path("PACELINE_CONFIG"));
        self.env_file = self.env_file.or_else(|| path("PACELINE_ENV_FILE"));
        self.json = self.json || switch("PACELINE_JSON")? > 0;
        self.talk(switch("PACELINE_QUIET")? > 0, switch("PACELINE_VERBOSE")?);
        self.sync = match (self.sync, variable("PACELINE_SYNC")) {
            (None, Some(rule)) => Some(sync(&rule)?),
            (given, _) => given,
        };
        Ok(self)
    }

    /// With what the file of defaults says where nothing else does.
    pub fn or_settings(mut self, settings: &Settings) -> Global {
        self.store = self.store.or_else(|| settings.store.clone().map(OsString::from));
        self.quotas = self.quotas.or_else(|| settings.quotas.clone());
        self.env_file = self.env_file.or_else(|| settings.env_file.clone());
        self.talk(settings.quiet, settings.verbose);
        self.sync = self.sync.or(settings.sync);
        self
    }

    /// How much is said, where that was not said before.
    fn talk(&mut self, quiet: bool, verbose: u8) {
        if !self.quiet && self.verbose == 0 {
            self.quiet = quiet && verbose == 0;
            self.verbose = verbose;
        }
    }
}

/// A variable that holds something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// How often a flag without a value was given.
fn switch(name: &str) -> anyhow::Result<u8> {
    let Some(value) = variable(name) else { return Ok(0) };
    let value = value.to_string_lossy().to_lowercase();
    match value.as_str() {
        "true" | "yes" | "on" => Ok(1),
        "false" | "no" | "off" => Ok(0),
        number => match number.parse() {
            Ok(number) => Ok(number),
            Err(_) => wrong(format!("{name} is `{value}`: write 1 or 0, or unset it")),
        },
    }
}

fn sync(rule: &std::ffi::OsStr) -> anyhow::Result<SyncRule> {
    match <SyncRule as clap::ValueEnum>::from_str(&rule.to_string_lossy(), false) {
        Ok(rule) => Ok(rule),
        Err(_) => wrong(format!(
            "PACELINE_SYNC is `{}`: write normal or full, or unset it",
            rule.to_string_lossy()
        )),
    }
}
