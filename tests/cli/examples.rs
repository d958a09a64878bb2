//! The first example of each help page works when it is pasted.

use std::collections::BTreeMap;
use std::process::Stdio;

use super::bench::Bench;

/// What ends otherwise than with 0, and why; `None`: it is not tried here.
const OTHERWISE: &[(&str, Option<i32>)] = &[
    // The key of the preset is not set: nothing is sent, and a person is needed.
    ("run", Some(4)),
    ("call", Some(4)),
    // It asks, and nobody is there.
    ("init", Some(2)),
    // It takes its ten seconds; tests/demo.rs plays it.
    ("demo", None),
    // It stays until it is told to leave; tests/gateway.rs plays it.
    ("gateway", None),
    // It needs a viewer.
    ("man", None),
];

fn commands(bench: &Bench, of: &str) -> Vec<String> {
    let help = bench.run(&format!("{of} --help")).ends(0).out;
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help");
    names.map(|name| format!("{of} {name}").trim().to_owned()).collect()
}

#[test]
fn the_first_example_of_each_command_works() {
    let bench = Bench::new();
    // A user's own folder, without quota files but the presets.
    std::fs::remove_dir_all(bench.path("quotas")).unwrap();
    let mut all = commands(&bench, "");
    all.extend(["budget", "quotas"].iter().flat_map(|of| commands(&bench, of)));
    let otherwise: BTreeMap<_, _> = OTHERWISE.iter().copied().collect();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_paceline")).parent().unwrap().to_owned();
    for command in all {
        let help = bench.run(&format!("{command} --help")).ends(0).out;
        let (_, examples) = help.split_once("\nExample").unwrap();
        let line = examples.lines().nth(1).unwrap().trim();
        assert!(line.contains(&format!("paceline {command}")), "{command}: {line}");
        let Some(code) = otherwise.get(command.as_str()).copied().unwrap_or(Some(0)) else {
            continue;
        };
        let mut shell = std::process::Command::new("bash");
        let paths = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        shell.args(["-c", line]).current_dir(bench.path("")).env_clear().env("PATH", paths);
        shell.env("HOME", bench.path("")).env("TZ", "UTC").stdin(Stdio::null());
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
    }
}
