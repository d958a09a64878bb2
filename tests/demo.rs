//! `paceline demo` keeps its word, and leaves what it was asked to leave.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Real processes are waited for by the machine's own clock.
#![allow(clippy::disallowed_methods)]

mod support;

use support::Home;

#[test]
fn the_demo_ends_well_and_explains_what_waits() {
    let home = Home::new();
    let ran = home.run(&["demo", "--keep", "kept"]);
    assert_eq!(ran.code, 0, "{ran}");
    let says = |text: &str| assert!(ran.stdout.contains(text), "no {text:?} in\n{ran}");
    says("line 118 is not added: it has 4 values, and there are 3 columns");
    says("the same file again: 0 added, 319 are there already");
    says("ISBN 9780000015433 failed: 404");
    says("refusals of Paceline's making: 0\n");
    says("refusals of its own whim: 1; calls before its Retry-After was over: 0");
    says("70 jobs wait for `daily`");
    says("All was as promised.");
    let kept = ["kept/paceline.db", "kept/quotas/practice.toml", "kept/catalogue.csv"];
    assert!(kept.iter().all(|file| home.path(file).exists()));

    let told = home.run(&["demo", "--json", "--quiet"]);
    assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&told["upstream"]["calls"], &told["run"]["sent"]), (&250.into(), &250.into()));
    assert_eq!(
        (&told["waits"][0]["limit"], &told["waits"][0]["jobs"]),
        (&"daily".into(), &70.into())
    );
    assert_eq!((&told["run"]["exit"], &told["broken"]), (&75.into(), &serde_json::json!([])));

    let again = home.run(&["demo", "--keep", "kept"]);
    assert_ne!(again.code, 0, "{again}");
    assert!(again.stderr.contains("holds a store already"), "{again}");
}
