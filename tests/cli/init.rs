//! A first quota file, by flags; `tests/processes/terminal.rs` answers the questions.

use super::bench::{Bench, Said};

fn init(bench: &Bench, words: &[&str]) -> Said {
    bench.exec(&[&["init"], words].concat(), b"")
}

#[test]
fn a_file_is_written_that_is_valid_and_ends_with_the_next_command() {
    let bench = Bench::new();
    let url = "https://api.books.example/v1/stock/{isbn}";
    let said =
        init(&bench, &["books", "--url", url, "--rate", "10/s", "--budget", "200/day"]).ends(0);
    assert_eq!(said.out, "quotas/books.toml is written\n");
    assert!(
        said.err.contains("next:     paceline add books --set isbn=... --dry-run"),
        "{}",
        said.err
    );
    bench
        .run("quotas check books")
        .ends(0)
        .tells(&["10 a second, burst 1", "200 a day in an unknown zone"]);
    bench
        .run("add books --set isbn=9 --dry-run")
        .ends(0)
        .tells(&["https://api.books.example/v1/stock/9"]);
    let again = init(&bench, &["books", "--url", "https://other.example/"]).ends(2);
    assert!(
        again.err.contains("`books` is declared already, in quotas/books.toml"),
        "{}",
        again.err
    );
    let text = std::fs::read_to_string(bench.path("quotas/books.toml")).unwrap();
    assert!(text.contains(url), "it is left as it is");
}

#[test]
fn all_that_can_be_said_is_in_the_file() {
    let bench = Bench::new();
    let said = init(
        &bench,
        &[
            "crm",
            "--print",
            "--url",
            "https://crm.example/v2/'contacts'",
            "--method",
            "post",
            "--rate",
            "60/min",
            "--rate",
            "1000/h",
            "--burst",
            "5",
            "--budget",
            "10000/day",
            "--budget",
            "50/hour",
            "--time-zone",
            "America/New_York",
            "--concurrency",
            "4",
            "--secret-env",
            "CRM_KEY",
            "--header",
            "X-Note: it's \"so\"",
        ],
    );
    let said = said.ends(0).tells(&[
        "method = \"POST\"",
        "burst = 5",
        "name = \"rate-2\"",
        "amount = 10000",
        "name = \"hour-2\"",
        "time_zone = \"America/New_York\"",
        "kind = \"concurrency\"",
        "\"Authorization\" = \"Bearer ${env:CRM_KEY}\"",
    ]);
    assert!(!bench.path("quotas/crm.toml").exists(), "it is printed only");
    bench.write("new/crm.toml", &said.out);
    bench.run("quotas check new/crm.toml").ends(0).tells(&["crm: valid", "60 a minute, burst 5"]);
    let own = ["key", "--print", "--url", "https://a.example/?key=${env:K}", "--secret-env", "K"];
    assert!(!init(&bench, &own).ends(0).out.contains("Authorization"), "the key has its place");
}

#[test]
fn what_cannot_be_meant_writes_nothing() {
    let bench = Bench::new();
    let url = "https://a.example/";
    for (words, told) in [
        (vec!["new"], "say at least NAME and --url"),
        (vec!["new", "--url", "a.example/x"], "`a.example/x` is no address"),
        (vec!["new", "--url", url, "--rate", "10/fortnight"], "10/fortnight"),
        (
            vec!["new", "--url", url, "--budget", "200"],
            "`200` is no budget: write one such as 200/day",
        ),
        (vec!["new", "--url", url, "--budget", "9/min"], "a shorter span is a --rate"),
        (
            vec!["new", "--url", url, "--budget", "9/day", "--time-zone", "Europe/Berln"],
            "did you mean \"Europe/Berlin\"?",
        ),
        (vec!["../new", "--url", url], "`../new` cannot be a name"),
        (vec!["github", "--url", url], "`github` is a preset"),
    ] {
        let said = init(&bench, &words).ends(2);
        assert!(said.err.contains(told), "{told}: {}", said.err);
        assert!(!bench.path("quotas/new.toml").exists());
    }
    bench
        .run("init new --url https://a.example/ --quotas there")
        .ends(0)
        .tells(&["there/new.toml is written"]);
}
