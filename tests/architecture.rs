//! The import table of `ARCHITECTURE.md`, held by reading the sources as text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

/// Who may name what: a crate or path of the standard library, and the files (by how their path begins)
/// in which it may stand. Tests are free.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("governor", &["src/dispatch/guard.rs"]),
    ("reqwest_middleware", &["src/client/middleware.rs"]),
    ("tower_service", &["src/client/tower.rs"]),
    ("tower_layer", &["src/client/tower.rs"]),
    ("rusqlite", &["src/store/sqlite/", "src/output/table"]),
    (
        "reqwest",
        &[
            "src/dispatch/transport.rs",
            "src/dispatch/prepare.rs",
            "src/dispatch/mod.rs",
            "src/dispatch/stream.rs",
            "src/dispatch/auth/server.rs",
            "src/client/middleware.rs",
        ],
    ),
    ("jsonwebtoken", &["src/dispatch/auth/sign.rs"]),
    ("ring", &["src/dispatch/auth/sign.rs"]),
    ("rustls", &["src/dispatch/transport.rs"]),
    ("axum", &["src/practice/"]),
    ("hyper", &["src/gateway/", "src/dispatch/stream.rs"]),
    ("hyper_util", &["src/gateway/serve.rs"]),
    ("http_body_util", &["src/gateway/body.rs"]),
    ("clap", &["src/bin/"]),
    ("clap_complete", &["src/bin/"]),
    ("clap_mangen", &["src/bin/"]),
    ("anyhow", &["src/bin/"]),
    ("indicatif", &["src/bin/"]),
    ("mimalloc", &["src/bin/"]),
    ("tempfile", &["src/bin/"]),
    ("backoff", &["src/retry.rs"]),
    ("csv", &["src/input/", "src/output/", "src/bin/"]),
    ("quick_xml", &["src/input/"]),
    ("encoding_rs", &["src/input/encoding.rs"]),
    ("flate2", &["src/input/", "src/store/sqlite/body.rs", "src/gateway/unpack.rs"]),
    (
        "tokio",
        &[
            "src/clock.rs",
            "src/store/",
            "src/dispatch/",
            "src/client/",
            "src/gateway/",
            "src/practice/",
            "src/bin/",
        ],
    ),
    (
        "std::fs",
        &["src/clock.rs", "src/secrets.rs", "src/quota/library/", "src/store/sqlite/", "src/bin/"],
    ),
    ("std::env", &["src/secrets/environment.rs", "src/crash.rs", "src/bin/"]),
    ("std::net", &["src/gateway/", "src/practice/", "src/bin/"]),
    ("std::thread", &["src/store/sqlite/", "src/bin/"]),
    (
        "std::process",
        &[
            "src/store/sqlite/copies.rs",
            "src/store/sqlite/runners.rs",
            "src/crash.rs",
            "src/dispatch/auth/command.rs",
            "src/bin/",
        ],
    ),
];

/// Modules that decide and do nothing else.
const PURE: &[&str] = &[
    "src/address.rs",
    "src/job.rs",
    "src/next.rs",
    "src/plan.rs",
    "src/plan/",
    "src/quota/",
    "src/reading/",
    "src/redirect.rs",
    "src/redirect/",
    "src/retry.rs",
    "src/template.rs",
    "src/template/",
];

/// What finds quota files is in `quota`, and not pure.
const NOT_PURE: &[&str] = &["src/quota/library.rs", "src/quota/library/"];

/// Modules of ours, and those that may not name them.
const NEVER: &[(&str, &[&str])] = &[
    ("crate::store", PURE),
    ("crate::dispatch", PURE),
    ("crate::secrets", PURE),
    ("crate::practice", &["src/"]),
    ("crate::gateway", &["src/"]),
    ("crate::dispatch", &["src/input/", "src/output/", "src/report/"]),
    ("crate::store", &["src/input/", "src/output/"]),
    ("crate::dispatch", &["src/store/", "src/clock.rs", "src/secrets.rs"]),
];

/// No file is longer.
const LONGEST: usize = 600;

/// Whether a line is of an item that is for tests alone. `cargo fmt` has each begin and end as deep as its
/// `#[cfg(test)]` stands.
#[derive(Clone, Copy, PartialEq)]
enum Item {
    Other,
    ForTests { depth: usize },
    LastOfIt,
}

impl Item {
    fn then(self, line: &str) -> Item {
        let depth = line.len() - line.trim_start().len();
        match self {
            Item::ForTests { depth: own } => {
                let is_last = depth == own && line.ends_with([';', '}']);
                if is_last { Item::LastOfIt } else { self }
            }
            _ if line.trim() == "#[cfg(test)]" => Item::ForTests { depth },
            _ => Item::Other,
        }
    }
}

struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.ends_with("/tests.rs")
    }

    /// The lines of the program itself: no comments, and no item that is for tests alone.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut for_tests = Item::Other;
        let lines = self.text.lines().enumerate().map(|(number, line)| (number + 1, line));
        lines
            .filter(move |(_, line)| {
                for_tests = for_tests.then(line);
                for_tests == Item::Other
            })
            .map(|(number, line)| (number, line.trim()))
            .filter(|(_, line)| !line.starts_with("//"))
    }

    /// The first line that names it.
    fn names(&self, what: &str) -> Option<usize> {
        self.code().find(|(_, line)| is_named(line, what)).map(|(number, _)| number)
    }
}

/// Whether a line of code has `what` as a path, or as the beginning of one.
fn is_named(line: &str, what: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(what).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + what.len()..];
        let begins = !before.is_some_and(|c| word(c) || c == ':' || c == '.' || c == '"');
        let imported =
            line.starts_with("use ") && (after.starts_with(';') || after.starts_with(" as"));
        let whole = what.contains("::") && !after.starts_with(word);
        begins && (after.starts_with("::") || imported || whole)
    })
}

fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.collect::<Vec<PathBuf>>() {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root).unwrap();
                found.push(Source { path: path.to_str().unwrap().replace('\\', "/"), text });
            }
        }
    }
    assert!(!found.is_empty());
    found
}

fn program() -> Vec<Source> {
    sources("src").into_iter().filter(|source| !source.is_test()).collect()
}

#[track_caller]
fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn crates_stay_behind_their_doors() {
    let mut found = Vec::new();
    for source in program() {
        for (what, places) in ONLY_IN {
            if let Some(line) = source.names(what).filter(|_| !source.is_in(places)) {
                found.push(format!("{}:{line} names {what}: only {places:?} may", source.path));
            }
        }
    }
    none(found);
}

#[test]
fn modules_know_only_what_lies_below_them() {
    let mut found = Vec::new();
    for source in program().iter().filter(|source| !source.is_in(NOT_PURE)) {
        for (what, places) in NEVER {
            if let Some(line) = source.names(what).filter(|_| source.is_in(places)) {
                let own = source.path.starts_with(&what.replace("crate::", "src/"));
                if !own {
                    found.push(format!("{}:{line} names {what}", source.path));
                }
            }
        }
        // One module a line, so that this test can read it.
        if let Some((line, _)) = source.code().find(|(_, line)| line.starts_with("use crate::{")) {
            found.push(format!("{}:{line} imports several modules at once", source.path));
        }
    }
    none(found);
}

#[test]
fn pure_modules_touch_nothing() {
    let touching =
        ["tokio", "std::fs", "std::net", "std::thread", "std::env", "std::time::Instant"];
    let mut found = Vec::new();
    for source in program() {
        if !source.is_in(PURE) || source.is_in(NOT_PURE) {
            continue;
        }
        for what in touching {
            if let Some(line) = source.names(what) {
                found.push(format!("{}:{line} names {what}, and is to be pure", source.path));
            }
        }
    }
    none(found);
}

#[test]
fn each_file_says_what_it_is_and_stays_short() {
    let mut found = Vec::new();
    for source in sources("src").into_iter().chain(sources("tests")) {
        // A file of tests beside its module needs no page of its own.
        let is_told = source.text.starts_with("//!") || source.text.starts_with("#![doc = ");
        if !source.path.ends_with("/tests.rs") && !is_told {
            found.push(format!("{}:1 is no `//!` line that says what the file is", source.path));
        }
        let lines = source.text.lines().count();
        if lines > LONGEST {
            found.push(format!("{} has {lines} lines, and may have {LONGEST}", source.path));
        }
    }
    none(found);
}

#[test]
fn a_path_is_told_from_a_word() {
    assert!(is_named("use governor::Quota;", "governor"));
    assert!(is_named("use rusqlite;", "rusqlite"));
    assert!(is_named("let x = std::fs::read(y);", "std::fs"));
    assert!(is_named("use std::fs;", "std::fs"));
    assert!(is_named("fn f(store: &crate::store::Store)", "crate::store"));
    assert!(!is_named("use crate::retry::backoff::step;", "backoff"));
    assert!(!is_named("let governor = 1;", "governor"));
    assert!(!is_named("use crate::store_of::x;", "crate::store"));
}

#[test]
fn what_is_for_tests_is_left_out_and_nothing_after_it() {
    let text = "use a::b;\n#[cfg(test)]\nmod tests;\nuse c::d;\n#[cfg(test)]\nmod more {\n    use e::f;\n}\n\
        impl X {\n    #[cfg(test)]\n    fn y(&self) {\n        g::h();\n    }\n    fn z() {}\n}\n";
    let source = Source { path: String::new(), text: text.to_owned() };
    let lines: Vec<_> = source.code().map(|(_, line)| line).collect();
    assert_eq!(lines, ["use a::b;", "use c::d;", "impl X {", "fn z() {}", "}"]);
}
