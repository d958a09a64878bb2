//! A folder with a store and quota files, and the program in it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// An upstream whose jobs need a column `isbn`.
pub const SHOP: &str = r#"
name = "shop"
[columns.isbn]
help = "thirteen digits"
[request]
url = "http://127.0.0.1:9/v1/stock/{isbn}"
[[limit]]
name = "plan"
kind = "rate"
rate = "10/s"
[[limit]]
name = "daily"
kind = "budget"
amount = 11
per = "day"
time_zone = "America/Los_Angeles"
[results]
fields = { stock = "/stock" }
"#;

/// One upstream that takes URLs, each host for itself.
pub const ENGINE: &str = r#"
name = "engine"
[columns.site]
from = "url.origin"
[request]
method = "POST"
url = "http://127.0.0.1:9/submit"
headers = { X-Key = "${env:ENGINE_KEY}" }
body = '{"url": "{url}", "key": "${env:ENGINE_KEY}"}'
[[limit]]
name = "daily"
kind = "budget"
amount = 5
per = "day"
time_zone = "Asia/Kathmandu"
key = ["site"]
"#;

/// A place for one test.
pub struct Bench {
    folder: tempfile::TempDir,
}

/// What the program said.
pub struct Said {
    /// stdout.
    pub out: String,
    /// stderr.
    pub err: String,
    /// The exit code.
    pub code: i32,
}

impl Bench {
    /// A folder with the two quota files.
    pub fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        bench.write("quotas/shop.toml", SHOP);
        bench.write("quotas/engine.toml", ENGINE);
        bench
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs the program; arguments are split at blanks.
    pub fn run(&self, line: &str) -> Said {
        self.run_with(line, b"")
    }

    /// Runs the program with something on stdin.
    pub fn run_with(&self, line: &str, stdin: &[u8]) -> Said {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.exec(&words, stdin)
    }

    /// Runs the program with these arguments.
    pub fn exec(&self, words: &[&str], stdin: &[u8]) -> Said {
        let mut child = self.command().args(words).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        // Beside, so that neither side waits for the other with a full pipe.
        let feeding = std::thread::spawn(move || drop(to.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        Said {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    /// The program, set up for this folder.
    pub fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_paceline"))
    }

    /// Any program, set up for this folder.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("TZ", "UTC")
            .env("PACELINE_STORE", self.path("store.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs what must succeed, and gives its JSON.
    pub fn json(&self, line: &str) -> Value {
        let said = self.run(&format!("{line} --json"));
        assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
        serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{line}: {error}: {}", said.out))
    }

    /// How many jobs of a load are in a state.
    pub fn count(&self, load: &str, state: &str) -> u64 {
        let loads = self.json("loads");
        let found = loads.as_array().unwrap().iter().find(|one| one["name"] == load).cloned();
        found.map_or(0, |one| one["jobs"][state].as_u64().unwrap_or(0))
    }
}

impl Said {
    /// Checks the exit code; both outputs are shown where it is another.
    #[track_caller]
    pub fn ends(self, code: i32) -> Said {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Checks that stderr has all of these.
    #[track_caller]
    pub fn complains(self, of: &[&str]) -> Said {
        for text in of {
            assert!(self.err.contains(text), "no `{text}` in: {}", self.err);
        }
        self
    }

    /// Checks that stdout has all of these.
    #[track_caller]
    pub fn tells(self, of: &[&str]) -> Said {
        for text in of {
            assert!(self.out.contains(text), "no `{text}` in: {}", self.out);
        }
        self
    }
}

/// A CSV file of so many ISBNs from a number on.
pub fn catalogue(from: u64, rows: u64) -> String {
    let rows = (from..from + rows).map(|n| format!("978{n:010},Title {n}\n"));
    format!("isbn,title\n{}", rows.collect::<String>())
}

/// Checks that an object has all of these fields.
#[track_caller]
pub fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no `{field}` in {value}");
    }
}
