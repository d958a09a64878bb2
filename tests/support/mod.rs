//! A user's home for tests that run the program: a temporary folder, an environment of its own, quota
//! files that name a practice upstream. Include it with `mod support;`.
//!
//! ```ignore
//! let practice = Practice::start(Config::new()).await.unwrap();
//! let home = Home::new();
//! home.quota("shop", &format!("[request]\nurl = \"{}\"\n", practice.url("/v1/{isbn}")));
//! let ran = home.run(&["run", "shop", "--max-wait", "0"]);
//! assert_eq!(ran.code, 75, "{ran}");
//! ```
#![allow(dead_code, reason = "each test uses its part")]

pub mod batches;
pub mod gateway;
pub mod process;
#[cfg(target_os = "linux")]
pub mod shim;
pub mod terminal;
pub mod tls;
pub mod tokens;
pub mod trouble;
pub mod world;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary home.
pub struct Home {
    folder: tempfile::TempDir,
}

/// What a command came to.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// The most memory it took, in KiB, as far as it was watched.
    pub peak: u64,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ran { code, stdout, stderr, .. } = self;
        write!(f, "exit {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

impl Home {
    /// Empty, but for the project's examples.
    pub fn new() -> Home {
        let home = Home { folder: tempfile::tempdir().unwrap() };
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        for entry in std::fs::read_dir(examples).unwrap() {
            let from = entry.unwrap().path();
            let to =
                home.path(&format!("examples/{}", from.file_name().unwrap().to_str().unwrap()));
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(from, to).unwrap();
        }
        home
    }

    /// A path in it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file in it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a quota file; `schema` and `name` are put before `text`.
    pub fn quota(&self, name: &str, text: &str) {
        let text = format!("schema = 1\nname = \"{name}\"\n{text}");
        self.write(&format!("quotas/{name}.toml"), &text);
    }

    /// The program, with arguments, in this home.
    pub fn paceline(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_paceline"));
        command.args(arguments);
        command
    }

    /// Any program in this home; `paceline` is on its path.
    pub fn command(&self, program: &str) -> Command {
        let folder = Path::new(env!("CARGO_BIN_EXE_paceline")).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(folder).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.folder.path())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(&self.paceline(arguments).output().unwrap())
    }

    /// Runs a line of shell to its end.
    pub fn shell(&self, line: &str) -> Ran {
        ran(&self.command("bash").args(["-c", line]).output().unwrap())
    }
}

fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        peak: 0,
    }
}
