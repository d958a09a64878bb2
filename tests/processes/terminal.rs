//! What a person at a terminal sees and answers.

use std::time::Duration;

use paceline::practice::{Answer, Config, Manner, Script};

use crate::support::process::until;
use crate::support::world::World;

const PACE: &str = "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"20/s\"\nslack = \"50ms\"\n\
    [[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 500\nper = \"day\"\ntime_zone = \"UTC\"\n";

#[test]
fn a_bar_tells_pace_and_budget_as_they_are() {
    let world = World::with(Config::new().latency(Duration::from_millis(1500)), PACE);
    world.add(0, 200);
    let run = world.watch(&["run"]);
    run.shows("left of daily");
    run.shows("/s");
    let told = || {
        let screen = run.screen();
        let (before, _) = screen.rsplit_once(" left of daily").unwrap();
        let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
        digits.parse::<usize>().unwrap()
    };
    // A figure that is seconds old would be some hundred calls behind.
    until("40 arrivals", || world.count() >= 40);
    until("a figure of now", || told() + world.count() <= 530);
    assert!(told() + world.count() >= 500 - 100, "{}", run.screen());
    run.signal("INT");
    run.shows("calls in flight");
    run.shows("leaving ");
    let before = run.screen().len();
    let (code, screen) = run.finish();
    assert_eq!(code, 130, "{screen}");
    let last = &screen[before..];
    assert!(!last.contains("about"), "a run that leaves has no time left: {last}");
    let rates: Vec<&str> =
        screen.split("/s").filter_map(|before| before.rsplit([' ', '/']).next()).collect();
    let (_, rates) = rates.split_last().unwrap();
    assert!(!rates.is_empty(), "{screen}");
    for rate in rates {
        let decimals = rate.split_once('.').map_or("", |(_, decimals)| decimals);
        assert!(
            rate.parse::<f64>().is_ok_and(|rate| rate < 22.0) && decimals.len() < 2,
            "{rates:?}"
        );
    }
}

#[test]
fn a_second_ctrl_c_leaves_a_clean_line() {
    let silent = Script::new("*", Answer::new(200).manner(Manner::Hang)).times(3);
    let world = World::with(Config::new().script(silent), PACE);
    world.add(0, 3);
    let run = world.watch(&["run"]);
    until("3 arrivals", || world.count() >= 3);
    run.signal("INT");
    run.shows("leaving: 3 calls in flight");
    run.signal("INT");
    let (code, screen) = run.finish();
    assert_eq!(code, 130, "{screen}");
    assert!(
        screen.ends_with("left at once; the next run finds what was in flight\r\n"),
        "{screen:?}"
    );
}

#[test]
fn results_on_a_terminal_do_nothing_to_it() {
    let world = World::with(Config::new(), PACE);
    world.home.write("rows.csv", "id,title\n1,\u{1b}[2Jboo\n");
    assert_eq!(world.run(&["add", "shop", "--csv", "rows.csv"]).code, 0);
    assert_eq!(world.run(&["cancel", "1"]).code, 0);
    let (code, screen) = world.watch(&["results", "--state", "cancelled"]).finish();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("\\u{1b}[2Jboo") && !screen.contains('\u{1b}'), "{screen:?}");
}

#[test]
fn who_acts_on_many_is_asked() {
    let world = World::with(Config::new(), PACE);
    world.add(0, 3);
    let cancel = ["cancel", "--upstream", "shop"];
    for (answer, code, said, left) in [
        ("n\n", 0, "nothing was changed", 3),
        ("\n", 0, "nothing was changed", 3),
        ("yes\n", 0, "3 jobs cancelled", 0),
    ] {
        let mut asked = world.watch(&cancel);
        asked.shows("cancel 3 jobs? [y/N] ");
        asked.types(answer);
        let (ended, screen) = asked.finish();
        assert_eq!(ended, code, "{screen}");
        assert!(screen.contains(said), "{screen}");
        assert_eq!(world.jobs().get("queued").copied().unwrap_or(0), left);
    }
}

#[test]
fn a_long_addition_draws_a_bar_and_says_what_is_wrong_beside_it() {
    let world = World::with(Config::new(), PACE);
    let rows: String = (0..60_000).map(|id| format!("{id}\n")).collect();
    world.home.write("rows.csv", &format!("id\n{rows}\nbad,row\n"));
    let (code, screen) = world.watch(&["add", "shop", "--csv", "rows.csv", "--load", "l"]).finish();
    assert_eq!(code, 3, "{screen}");
    assert!(screen.contains("% 40,000 rows, 20,000 added, "), "{screen:?}");
    assert!(screen.contains(" left"), "{screen:?}");
    assert!(screen.contains("line 60003 of rows.csv: it has 2 values"), "{screen:?}");
    assert!(screen.ends_with("load l: 60,000 added, 1 rejected\r\n"), "{screen:?}");
}

#[test]
fn a_first_quota_file_is_asked_for() {
    let world = World::new(Config::new());
    let mut run = world.watch(&["init"]);
    for (question, answer) in [
        ("A short name", "two words"),
        ("cannot be a name", "books"),
        ("The address that is called", "api.books.example"),
        ("is no address", "https://api.books.example/{isbn}"),
        ("How many calls a second", "ten"),
        ("bad rate `ten`", "10/s"),
        ("go back to back", "0"),
        ("is no whole number from 1", "3"),
        ("How many a day", "200"),
        ("is no budget", "0/day"),
        ("nothing could ever go", "200/day"),
        ("The time zone", "America/Los_Angelos"),
        ("did you mean \"America/Los_Angeles\"?", "America/Los_Angeles"),
        ("The environment variable", "sk-12/ab"),
        ("is no variable's name", ""),
    ] {
        // An answer that cannot be is asked for again, and none before it is lost.
        run.shows(question);
        run.types(&format!("{answer}\n"));
    }
    run.shows("next:");
    let (code, screen) = run.finish();
    assert_eq!(code, 0, "{screen}");
    let ran = world.run(&["quotas", "check", "books"]);
    assert_eq!(ran.code, 0, "{ran}");
    for told in ["10 a second, burst 3", "200 a day", "America/Los_Angeles"] {
        assert!(ran.stdout.contains(told), "{told}: {ran}");
    }
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let mut world = World::new(Config::new());
    let coloured = |world: &World| world.watch(&["--help"]).finish().1.contains("\u{1b}[");
    assert!(coloured(&world), "a terminal gets colours");
    world.environment.push(("NO_COLOR".to_owned(), "1".to_owned()));
    assert!(!coloured(&world));
}
