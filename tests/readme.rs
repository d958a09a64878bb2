//! What README.md shows is run, in a home of its own and in the order of the page.
//!
//! - A `toml` block that begins with `# PATH` is written there.
//! - In a `console` block a line `$ COMMAND` is run; `? N` after it is the code that it ends with
//!   (else 0); further lines are what it prints.
//!
//! A practice upstream stands in for the one that the page names, at a pace that a test can wait for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Real processes are waited for by the machine's own clock.
#![allow(clippy::disallowed_methods)]

mod support;

use std::time::Duration;

use paceline::practice::{Config, Limit, Practice, Rule};
use support::Home;
use support::world::{STORE, World};

/// A fenced block of the page.
struct Block {
    language: String,
    lines: Vec<String>,
}

/// A command of a `console` block.
struct Shown {
    command: String,
    code: i32,
    prints: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), open.as_mut()) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                open = Some(Block { language: language.to_owned(), lines: Vec::new() });
            }
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of the page is never closed");
    blocks
}

fn shown(block: &Block) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in &block.lines {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown { command: command.to_owned(), code: 0, prints: Vec::new() });
        } else {
            let last = all.last_mut().expect("a console block begins with a command");
            match line.strip_prefix("? ") {
                Some(code) => last.code = code.parse().unwrap(),
                None => last.prints.push(line.clone()),
            }
        }
    }
    all
}

/// A zone whose day does not end while the page runs.
fn calm_zone() -> &'static str {
    use chrono::Timelike as _;
    use paceline::clock::{Clock as _, SystemClock};
    let now = SystemClock::new().wall().to_utc();
    let there = now.with_timezone(&chrono_tz::America::Los_Angeles);
    if there.hour() == 23 { "Asia/Tokyo" } else { "America/Los_Angeles" }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_does_what_it_says() {
    let second = Duration::from_secs(1);
    let zone = calm_zone();
    let config = Config::new()
        .body(r#"{"isbn": "{last}", "stock": 7}"#)
        .rule(Rule::new("plan", Limit::Bucket { units: 200, per: second, burst: 10 }))
        .rule(Rule::new("daily", Limit::day(200, zone.parse().unwrap())));
    let practice = Practice::start(config).await.unwrap();
    let home = Home::new();
    let page = include_str!("../README.md");
    let mut commands = 0;
    for block in blocks(page) {
        match (block.language.as_str(), block.lines.first()) {
            ("toml", Some(path)) => {
                let path =
                    path.strip_prefix("# ").expect("a quota file of the page says where it lies");
                let text = block.lines.join("\n");
                let text = text.replace("https://api.distributor.example", &practice.url(""));
                let text =
                    text.replace("\"10/s\"", "\"200/s\"").replace("America/Los_Angeles", zone);
                home.write(path, &text);
            }
            ("console", _) => {
                for Shown { command, code, prints } in shown(&block) {
                    let ran = home.shell(&command);
                    assert_eq!(ran.code, code, "`{command}`: {ran}");
                    if !prints.is_empty() {
                        assert_eq!(ran.stdout.trim_end(), prints.join("\n"), "`{command}`");
                    }
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert!(commands > 5, "the page shows {commands} commands");
    let stats = practice.stop().await;
    assert_eq!((stats.ok, stats.refused), (200, 0), "{stats:?}");
}

/// Starts the script on a day of that name.
fn night(world: &World, day: &str) -> i32 {
    world.home.write("bin/date", &format!("#!/bin/sh\necho {day}\n"));
    let store = world.home.path(STORE);
    let ran = world.home.shell(&format!(
        "chmod +x bin/date && PACELINE_STORE={} PATH=$PWD/bin:$PATH \
         bash examples/nightly.sh shop id rows.csv report.csv",
        store.display()
    ));
    assert_eq!(ran.stderr, "", "{ran}");
    ran.code
}

#[test]
fn the_nightly_script_goes_through_a_catalogue_pass_by_pass() {
    let daily = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 5\nper = \"day\"\n";
    let results = "[results]\nfields = { stock = \"/stock\" }\n";
    let text = format!("{results}{daily}time_zone = \"{}\"\n", calm_zone());
    let world = World::with(Config::new(), &text);
    let rows: Vec<String> = (0..8).map(|id| id.to_string()).collect();
    world.home.write("rows.csv", &format!("id\n{}\n", rows.join("\n")));
    let report = || std::fs::read_to_string(world.home.path("report.csv")).ok();
    let next_day = || {
        let spent = world.spent();
        let less = format!("-{spent}");
        assert_eq!(world.run(&["budget", "spend", "shop", &less]).code, 0);
    };
    assert_eq!((night(&world, "first"), night(&world, "first")), (75, 75));
    assert_eq!((world.count(), report()), (5, None));
    next_day();
    assert_eq!((night(&world, "second"), night(&world, "second")), (0, 0));
    assert_eq!(world.count(), 8, "each row was asked about once");
    let first = report().unwrap();
    assert_eq!(first.lines().count(), 9, "{first}");
    next_day();
    assert_eq!((night(&world, "third"), night(&world, "third")), (75, 75));
    assert_eq!((world.count(), report()), (13, Some(first)));
    next_day();
    assert_eq!(night(&world, "fourth"), 0);
    assert_eq!((world.count(), report().unwrap().lines().count()), (16, 9));
}
