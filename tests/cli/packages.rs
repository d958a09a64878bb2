//! What packages bring beside the program, as far as it can be looked at without building one.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::bench::Bench;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).collect()
}

#[test]
fn pages_and_completions_are_made_by_the_program() {
    let bench = Bench::new();
    let made = Command::new(root().join("scripts/package-files"))
        .arg(env!("CARGO_BIN_EXE_paceline"))
        .arg(bench.path("files"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for file in [
        "man/paceline.1",
        "man/paceline-run.1",
        "completions/_paceline",
        "completions/paceline.fish",
    ] {
        assert!(bench.path("files").join(file).exists(), "{file}");
    }
    let script = bench.path("files/completions/paceline.bash");
    assert!(Command::new("bash").arg("-n").arg(script).status().unwrap().success());
}

#[test]
fn what_the_debian_package_takes_is_there() {
    let cargo: toml::Table = read("Cargo.toml").parse().unwrap();
    let assets = cargo["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let sources = assets.iter().map(|asset| asset[0].as_str().unwrap());
    let own: Vec<_> = sources.filter(|source| !source.starts_with("target/")).collect();
    assert!(own.len() > 5, "{own:?}");
    for source in own {
        let there = match source.rsplit_once('/') {
            Some((folder, "*")) => !files(folder).is_empty(),
            Some((folder, "*.md")) => !files(folder).is_empty(),
            _ => root().join(source).exists(),
        };
        assert!(there, "{source}");
    }
}

#[test]
fn waiting_is_no_failure_of_a_service() {
    let units =
        files("packaging/systemd/user").into_iter().chain(files("packaging/systemd/system"));
    let mut services = 0;
    for unit in units.filter(|unit| unit.extension().is_some_and(|kind| kind == "service")) {
        let text = std::fs::read_to_string(&unit).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("SuccessExitStatus=")).unwrap();
        assert!(line.split(' ').any(|code| code == "75"), "{}: {line}", unit.display());
        // Each flag of the command is one that the program knows.
        let start = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/paceline "))
            .unwrap();
        let bench = Bench::new();
        bench.run(&start.replace("--follow", "")).ends(0);
        services += 1;
    }
    assert_eq!(services, 3);
}

#[test]
fn a_container_runs_as_nobody_in_particular() {
    let text = read("Dockerfile");
    let (_, last) = text.rsplit_once("\nFROM ").unwrap();
    let user = last.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert_ne!(user, "root");
    for line in ["VOLUME /data", "ENV PACELINE_STORE=/data/store.db", "STOPSIGNAL SIGTERM"] {
        assert!(last.contains(line), "{line}");
    }
}

#[test]
fn a_script_tells_the_exit_codes_apart() {
    let bench = Bench::new();
    let script = root().join("examples/run-once.sh");
    let folder = Path::new(env!("CARGO_BIN_EXE_paceline")).parent().unwrap();
    let run = || {
        let mut shell = bench.command_of("bash");
        let paths = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let output = shell.arg(&script).arg("shop").env("PATH", paths).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(), (0, "all done, or another runner is at work\n".to_owned()));
    bench.run("add shop --set isbn=1 --not-before 1d").ends(0);
    assert_eq!(run(), (0, "work remains, and waits for its quota\n".to_owned()));
    bench.run("hold shop").ends(0);
    assert_eq!(run().0, 4);
}
