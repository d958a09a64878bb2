//! What stands in for flags, completions and manual pages.

use super::bench::{Bench, Said};

/// Runs with these variables beside the usual ones.
fn with(bench: &Bench, variables: &[(&str, &str)], line: &str) -> Said {
    let mut command = bench.command();
    command.args(line.split_whitespace());
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    Said {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

#[test]
fn each_global_flag_has_a_variable() {
    let bench = Bench::new();
    let help = bench.run("--help").ends(0).out;
    let flat: Vec<&str> = help.split_whitespace().collect();
    let flat = flat.join(" ");
    let (_, global) = help.split_once("\nGlobal options:\n").unwrap();
    let flags = global.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    let flags: Vec<_> = flags.map(|flag| flag.trim_end_matches(['.', ','])).collect();
    for flag in ["store", "quotas", "json", "quiet", "verbose", "sync", "config", "env-file"] {
        assert!(flags.contains(&flag), "{flags:?}");
        let variable = format!("env: PACELINE_{}]", flag.replace('-', "_").to_uppercase());
        assert!(flat.contains(&variable), "{variable}");
    }
    let json = with(&bench, &[("PACELINE_JSON", "1")], "loads").ends(0);
    assert_eq!(json.out, "[]\n");
    with(&bench, &[("PACELINE_JSON", "0")], "status").ends(0).tells(&["no jobs"]);
    let note = "no store at";
    assert!(!with(&bench, &[("PACELINE_QUIET", "true")], "status").ends(0).err.contains(note));
    let both = [("PACELINE_QUIET", "yes")];
    assert!(
        with(&bench, &both, "status --verbose").ends(0).err.contains(note),
        "a flag goes first"
    );
    for (name, value) in [("PACELINE_QUIET", "maybe"), ("PACELINE_SYNC", "often")] {
        with(&bench, &[(name, value)], "status").ends(2).complains(&[name, value, "write "]);
    }
}

#[test]
fn defaults_stand_in_a_file() {
    let bench = Bench::new();
    let file = ".config/paceline/config.toml";
    bench.write(file, "store = \"mine.db\"\nquiet = true\n[run]\nmax_wait = \"0\"\n");
    bench.write("other.toml", "store = \"other.db\"\n");
    let store = |variables: &[(&str, &str)], line: &str| {
        let mut command = bench.command();
        command.env_remove("PACELINE_STORE").args(line.split_whitespace());
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (told["store"].as_str().unwrap().to_owned(), output.stderr)
    };
    let (mine, said) = store(&[], "status --json");
    assert_eq!(mine, bench.path(".config/paceline/mine.db").to_str().unwrap());
    assert!(said.is_empty(), "quiet is taken from the file");
    let (other, _) = store(&[], "status --json --config other.toml");
    assert_eq!(other, "other.db");
    let (other, _) = store(&[("PACELINE_CONFIG", "other.toml")], "status --json");
    assert_eq!(other, "other.db");
    let (by_variable, _) = store(&[("PACELINE_STORE", "b.db")], "status --json");
    assert_eq!(by_variable, "b.db", "the environment goes before the file");
    let (by_flag, _) = store(&[("PACELINE_STORE", "b.db")], "status --json --store f.db");
    assert_eq!(by_flag, "f.db", "and a flag before both");
    bench.write(file, "quiet = true\n[run]\nmax_wiat = \"1m\"\n");
    bench
        .run("status")
        .ends(2)
        .complains(&["config.toml:3:1: unknown field `max_wiat`; did you mean `max_wait`?"]);
    bench.run("status --config nowhere.toml").ends(2).complains(&["`nowhere.toml` cannot be read"]);
}

#[test]
fn a_run_leaves_when_the_file_says_so() {
    let bench = Bench::new();
    bench.write(".config/paceline/config.toml", "[run]\nmax_wait = \"0\"\n");
    bench.run("budget spend shop 11").ends(0);
    bench.run("add shop --set isbn=9780000000001").ends(0);
    // Without the file it would wait for tomorrow.
    bench.run("run shop").ends(75);
}

#[test]
fn secrets_come_from_a_file() {
    let bench = Bench::new();
    bench.write("my.env", "# keys\nexport ENGINE_KEY='hunter2'\n");
    let line = "add engine https://a.example/1 --dry-run";
    bench.run(line).ends(0).complains(&["`${env:ENGINE_KEY}` is not set here"]);
    for said in [
        bench.run(&format!("{line} --env-file my.env")),
        with(&bench, &[("PACELINE_ENV_FILE", "my.env")], line),
    ] {
        let said = said.ends(0);
        assert!(!said.err.contains("is not set"), "{}", said.err);
        assert!(!said.out.contains("hunter2") && said.out.contains("${env:ENGINE_KEY}"));
    }
    bench.write("my.env", "ENGINE_KEY=hunter1\nhunter2\n");
    let said = bench.run(&format!("{line} --env-file my.env")).ends(2);
    assert_eq!(said.err, "error: my.env:2: no NAME=VALUE line\n");
    bench.run(&format!("{line} --env-file none.env")).ends(2).complains(&["`none.env`"]);
}

#[test]
fn shells_and_manuals_know_each_command() {
    let bench = Bench::new();
    // Neither needs what else is wrong here to be right.
    bench.run("man pages --quotas nowhere").ends(0).complains(&["manual pages are in pages"]);
    let help = bench.run("--help").ends(0).out;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in &names {
        let page =
            std::fs::read_to_string(bench.path(&format!("pages/paceline-{name}.1"))).unwrap();
        let has = |what: &str| assert!(page.contains(what), "{name}: {what}\n{page}");
        for what in [".TH paceline", ".SH SYNOPSIS", ".SH \"GLOBAL OPTIONS\"", "PACELINE_STORE"] {
            has(what);
        }
    }
    assert!(bench.path("pages/paceline-quotas-check.1").exists());
    bench.run("man").ends(0).tells(&[".TH paceline 1", ".SH EXAMPLES"]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.run(&format!("completions {shell}")).ends(0).out;
        names.iter().for_each(|name| assert!(script.contains(name), "{shell}: {name}"));
    }
}
