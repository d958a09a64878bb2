//! The file of defaults: what flags and environment do not say.
//!
//! `docs/configuration.md` tells it to people.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy as _;
use paceline::quota::declare::nearest;
use serde::{Deserialize, Deserializer};

use crate::args::SyncRule;
use crate::exit::{Usage, wrong};

/// What the file says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The file that was read; none where none is there.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// As `--store`.
    pub store: Option<PathBuf>,
    /// As `--quotas`.
    pub quotas: Option<PathBuf>,
    /// As `--env-file`.
    pub env_file: Option<PathBuf>,
    /// As `--sync`.
    pub sync: Option<SyncRule>,
    /// As `--quiet`.
    pub quiet: bool,
    /// As `--verbose`, given so often.
    pub verbose: u8,
    /// Of `run`.
    pub run: RunSettings,
    /// Who is told of holds.
    pub notify: Option<NotifySettings>,
}

/// A program that is told of each new hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifySettings {
    /// The program and its arguments; no shell stands between.
    #[serde(deserialize_with = "words")]
    pub command: Vec<String>,
}

/// Defaults of `run`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunSettings {
    /// As `--max-wait`.
    #[serde(deserialize_with = "span")]
    pub max_wait: Option<Duration>,
    /// As `--concurrency`.
    #[serde(deserialize_with = "calls")]
    pub concurrency: Option<u16>,
}

impl Settings {
    /// Reads the file that was named, or the user's own, which may be absent.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or says what cannot be meant: with its line and the fix.
    pub fn load(named: Option<&Path>) -> anyhow::Result<Settings> {
        let Some(path) = named.map(Path::to_owned).or_else(usual) else {
            return Ok(Settings::default());
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if named.is_none() && is_absent(&error) => return Ok(Settings::default()),
            Err(error) => {
                return wrong(format!(
                    "the config file `{}` cannot be read: {error}",
                    path.display()
                ));
            }
        };
        let settings = parse(&text).map_err(|told| Usage(format!("{}:{told}", path.display())))?;
        Ok(settings.placed(path))
    }

    /// Its paths begin at its own folder.
    fn placed(mut self, file: PathBuf) -> Settings {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        for path in [&mut self.store, &mut self.quotas, &mut self.env_file] {
            *path = path.take().map(|path| place(&folder, path));
        }
        if let Some(program) = self.notify.as_mut().and_then(|notify| notify.command.first_mut())
            && program.contains('/')
        {
            *program = place(&folder, PathBuf::from(&*program)).to_string_lossy().into_owned();
        }
        self.file = Some(file);
        self
    }
}

/// Where the user's own file lies, or would.
pub fn usual() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("paceline").join("config.toml"))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// From the folder of the file; `~/` is the home folder.
fn place(folder: &Path, path: PathBuf) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(rest) => etcetera::home_dir().map_or(path.clone(), |home| home.join(rest)),
        // The address of a database is no path; the store says what it thinks of it.
        Err(_) if path.to_string_lossy().contains("://") => path,
        Err(_) => folder.join(path),
    }
}

/// `Err`: `line:column: what is wrong; what to write`.
fn parse(text: &str) -> Result<Settings, String> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{line}:{column}: {}", told(error.message()))
    })
}

/// What serde says of an unknown field, with the name that was meant.
fn told(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    let mut names = rest.split('`').step_by(2);
    let typed = names.next().unwrap_or_default();
    let known: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let meant = nearest(typed, known.iter().copied());
    let meant = meant.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("unknown field `{typed}`; {meant}there are {}", known.join(", "))
}

fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    crate::render::time::duration(&text).map(Some).map_err(serde::de::Error::custom)
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let fix = "write the program and its arguments as an array, such as [\"./tell.sh\"] or [\"sh\", \"-c\", \"...\"]";
    let words = Vec::<String>::deserialize(from).map_err(|_| serde::de::Error::custom(fix))?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(serde::de::Error::custom(fix)),
    }
}

fn calls<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
    match u16::deserialize(from)? {
        0 => Err(serde::de::Error::custom("`concurrency` is zero: write a whole number from 1")),
        calls => Ok(Some(calls)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_the_name_that_was_meant() {
        for (text, told) in [
            (
                "\nstroe = 1\n",
                "2:1: unknown field `stroe`; did you mean `store`? there are store, ",
            ),
            (
                "[run]\nmax_wate = \"1m\"\n",
                "2:1: unknown field `max_wate`; did you mean `max_wait`?",
            ),
            ("[run]\nmax_wait = \"1 fortnight\"\n", "2:12: "),
            ("[run]\nconcurrency = 0\n", "2:15: `concurrency` is zero"),
            (
                "[notify]\ncommand = \"mail me\"\n",
                "2:11: write the program and its arguments as an array",
            ),
            ("[notify]\n", "1:1: missing field `command`"),
            ("quiet = \"yes\"\n", "1:9: invalid type"),
            ("colour = true\n", "1:1: unknown field `colour`; there are store, quotas"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn paths_begin_at_the_files_own_folder() {
        let settings = parse("store = \"s.db\"\nquotas = \"/q\"\nenv_file = \"~/e\"").unwrap();
        let settings = settings.placed(PathBuf::from("/etc/paceline/config.toml"));
        assert_eq!(settings.store, Some(PathBuf::from("/etc/paceline/s.db")));
        assert_eq!(settings.quotas, Some(PathBuf::from("/q")));
        assert_eq!(settings.env_file, etcetera::home_dir().ok().map(|home| home.join("e")));
        let remote = place(Path::new("/etc"), PathBuf::from("postgres://h/d"));
        assert_eq!(remote, PathBuf::from("postgres://h/d"));
    }
}
