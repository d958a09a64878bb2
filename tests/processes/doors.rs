//! `call` and `exec`: other doors to the same limits. What dies, stops or gives up loses nothing and
//! exceeds nothing.

use std::time::Duration;

use paceline::practice::{Answer, Config, Limit, Rule, Script};

use crate::support::process::{Process, signal, until};
use crate::support::world::World;

const RATE: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\nburst = 2\n";

const MINUTE: &str =
    "[[limit]]\nname = \"minute\"\nkind = \"rolling\"\namount = 60\nper = \"1m\"\n";

fn places(amount: u64) -> String {
    format!("[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = {amount}\n")
}

fn second(units: u64) -> Limit {
    Limit::Rolling { amount: units, per: Duration::from_secs(1) }
}

/// Calls the practice upstream `times` times, one after another, through `call`.
fn looping(world: &World, name: &str, times: u32) -> Process {
    let url = world.url(&format!("/{name}/"));
    let line = format!(
        "for i in $(seq {times}); do paceline call shop {url}$i --quiet -o /dev/null || exit; done"
    );
    let mut command = world.home.command("bash");
    command.args(["-c", &line]).env("PACELINE_STORE", world.home.path("store.db"));
    Process::start(command)
}

#[test]
fn all_doors_together_keep_every_limit() {
    let config = Config::new()
        .rule(Rule::new("second", second(20)))
        .rule(Rule::new("minute", Limit::Rolling { amount: 60, per: Duration::from_secs(60) }))
        .rule(Rule::new("places", Limit::InFlight { amount: 3 }))
        .latency(Duration::from_millis(40));
    let text = format!(
        "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\n{MINUTE}{}",
        places(3)
    );
    let world = World::with(config, &text);
    world.add(0, 25);
    let run = world.start(&["run"]);
    let loops = [looping(&world, "a", 8), looping(&world, "b", 8)];
    let url = world.url("/exec");
    let line = format!(
        "exec 3<>/dev/tcp/{}; printf 'GET /exec HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3 >/dev/null",
        url.trim_start_matches("http://").trim_end_matches("/exec").replace(':', "/")
    );
    let execs: Vec<_> =
        (0..3).map(|_| world.start(&["exec", "shop", "--", "bash", "-c", &line])).collect();
    for door in execs.into_iter().chain(loops).chain([run]) {
        let ran = door.finish();
        assert_eq!(ran.code, 0, "{ran}");
    }
    let stats = world.stats();
    assert_eq!((stats.count, stats.refused), (25 + 16 + 3, 0), "{stats:?}");
    assert!(stats.max_in_flight <= 3);
    assert_eq!(world.jobs(), [("done".to_owned(), 44)].into());
    world.nothing_is_left_over();
}

#[test]
fn an_exec_that_is_killed_keeps_its_place_while_its_command_lives() {
    let world = World::with(Config::new(), &places(1));
    let line = "echo $$ > pid; exec sleep 600";
    let mut exec = world.start(&["exec", "shop", "--", "bash", "-c", line]);
    until("its command is there", || world.home.path("pid").exists());
    let read = || std::fs::read_to_string(world.home.path("pid")).unwrap();
    until("its number", || !read().trim().is_empty());
    let command: u32 = read().trim().parse().unwrap();
    exec.kill();
    // Others look for the dead each second.
    let url = world.url("/next");
    let waits = world.run(&["call", "shop", &url, "--max-wait", "2500ms"]);
    assert_eq!(waits.code, 75, "{waits}");
    assert!(waits.stderr.contains("`places` binds until something in flight ends"), "{waits}");
    assert_eq!(world.count(), 0, "nothing is sent in the name of who gave up");
    signal(command, "KILL");
    let next = world.run(&["call", "shop", &url, "--max-wait", "20s"]);
    assert_eq!(next.code, 0, "{next}");
    assert_eq!(world.number("SELECT count(*) FROM job WHERE state = 'unsure'"), 1);
}

#[test]
fn an_exec_that_is_stopped_keeps_its_place_and_ends_as_it_should() {
    let world = World::with(Config::new(), &format!("timeout = \"1s\"\n{}", places(1)));
    let line = "touch begun; until [ -e go ]; do sleep 0.02; done; exit 9";
    let exec = world.start(&["exec", "shop", "--", "bash", "-c", line]);
    until("its command is there", || world.home.path("begun").exists());
    world.stop(&exec);
    let waits = world.run(&["call", "shop", &world.url("/x"), "--max-wait", "1500ms"]);
    assert_eq!(waits.code, 75, "{waits}");
    world.home.write("go", "");
    exec.signal("CONT");
    assert_eq!(exec.finish().code, 9, "the command's own status");
    let failed = world.json(&["jobs", "--load", "exec"]);
    assert_eq!(failed[0]["state"], "failed");
    world.nothing_is_left_over();
}

#[test]
fn signals_and_statuses_go_through() {
    let world = World::with(Config::new(), "");
    let line = "trap 'exit 41' TERM; trap 'exit 42' HUP; touch begun; while :; do sleep 0.02; done";
    for (name, code) in [("TERM", 41), ("HUP", 42)] {
        let _ = std::fs::remove_file(world.home.path("begun"));
        let exec = world.start(&["exec", "shop", "--", "bash", "-c", line]);
        until("its command is there", || world.home.path("begun").exists());
        exec.signal(name);
        assert_eq!(exec.finish().code, code);
    }
    let ended = world.run(&["exec", "shop", "--", "bash", "-c", "kill -KILL $$"]);
    assert_eq!(ended.code, 128 + 9);
    let detail = "SELECT count(*) FROM job WHERE detail LIKE '%SIGKILL%'";
    assert_eq!(world.number(detail), 1);
    world.nothing_is_left_over();
}

#[test]
fn a_stopped_caller_holds_nobody_up() {
    let world = World::with(Config::new(), &format!("{RATE}{}", places(1)));
    let holder = world.start(&[
        "exec",
        "shop",
        "--",
        "bash",
        "-c",
        "touch begun; until [ -e go ]; do sleep 0.02; done",
    ]);
    until("the place is taken", || world.home.path("begun").exists());
    let url = world.url("/stopped");
    let stopped = world.start(&["call", "shop", &url]);
    until("it waits", || world.number("SELECT count(*) FROM job WHERE url LIKE '%stopped'") == 1);
    world.stop(&stopped);
    world.add(0, 10);
    world.home.write("go", "");
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.count(), 10, "the queue went on without it");
    assert_eq!(holder.finish().code, 0);
    stopped.signal("CONT");
    assert_eq!(stopped.finish().code, 0, "and it has its turn once it goes on");
    assert_eq!(world.count(), 11);
}

#[test]
fn a_caller_that_dies_is_found_and_sends_nothing() {
    let world = World::with(Config::new(), &places(1));
    let line = "touch begun; until [ -e go ]; do sleep 0.02; done";
    let holder = world.start(&["exec", "shop", "--", "bash", "-c", line]);
    until("the place is taken", || world.home.path("begun").exists());
    let mut dying = world.start(&["call", "shop", &world.url("/dying")]);
    until("it waits", || world.number("SELECT count(*) FROM job WHERE url LIKE '%dying'") == 1);
    dying.kill();
    world.home.write("go", "");
    assert_eq!(holder.finish().code, 0);
    let next = world.run(&["call", "shop", &world.url("/next"), "--max-wait", "20s"]);
    assert_eq!(next.code, 0, "{next}");
    assert_eq!(world.by_path().keys().collect::<Vec<_>>(), ["/next"]);
    let gone = "SELECT count(*) FROM job WHERE state = 'cancelled' AND reason = 'owner_gone'";
    assert_eq!(world.number(gone), 1);
}

#[test]
fn an_interrupted_call_is_withdrawn() {
    let world = World::new(Config::new());
    let budget = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 1\nper = \"day\"\ntime_zone = \"UTC\"\n";
    world.quota("shop", "/{id}", budget);
    assert_eq!(world.run(&["call", "shop", &world.url("/one")]).code, 0);
    let waits = world.start(&["call", "shop", &world.url("/two")]);
    waits.hears("waits for the limit `daily`");
    waits.signal("INT");
    assert_eq!(waits.finish().code, 130);
    assert_eq!(world.count(), 1);
    let gave_up = "SELECT count(*) FROM job WHERE state = 'cancelled' AND reason = 'gave_up'";
    assert_eq!(world.number(gave_up), 1);
    world.nothing_is_left_over();
}

#[test]
fn a_refusal_is_waited_out_and_its_answer_printed_once() {
    let refusal = Answer::refusal(Duration::from_secs(1)).body("slow down\n");
    let config = Config::new()
        .script(Script::new("/x", refusal).times(2).closing("*"))
        .script(Script::new("/x", Answer::new(200).body("at last\n")));
    let world = World::with(config, "");
    let ran = world.run(&["call", "shop", &world.url("/x")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "at last\n"), "{ran}");
    assert_eq!(world.stats().early, 0);
    let shown = world.json(&["show", "1"]);
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 3);
    let parts = ["-d", "a=1", "-d", "b=2", "-o", "-", "--max-wait", "5s"];
    let ran = world.run(&[&["call", "shop", &world.url("/y")][..], &parts].concat());
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.is_empty(), "`-o -` is stdout");
    let arrivals = world.arrivals();
    assert_eq!(arrivals.last().map(|call| &call.body[..]), Some(&b"a=1&b=2"[..]));
}

#[test]
fn a_refusal_that_is_too_long_is_one_line() {
    let refusal = Answer::refusal(Duration::from_secs(60)).body("slow down\n");
    let config = Config::new().script(Script::new("/x", refusal));
    let world = World::with(config, "");
    let ran = world.run(&["call", "shop", &world.url("/x"), "--max-wait", "1s"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (75, 1), "{ran}");
}

#[test]
fn a_command_says_when_to_come_back() {
    let world = World::with(Config::new(), "");
    let refused = world.run(&[
        "exec",
        "shop",
        "--refused-status",
        "75",
        "--retry-after-from",
        "wait.txt",
        "--",
        "bash",
        "-c",
        "echo 1800 > wait.txt; exit 75",
    ]);
    assert_eq!(refused.code, 75, "{refused}");
    let told = world.json(&["call", "shop", &world.url("/x"), "--max-wait", "1s"]);
    assert_eq!((&told["exit"], &told["reason"]), (&75.into(), &"rate_limited".into()));
    assert!(told["until"].is_string(), "{told}");
    assert_eq!(world.count(), 0);
}

#[test]
fn who_waits_takes_up_a_wider_limit() {
    let narrow = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"1/1h\"\nburst = 1\n";
    let world = World::with(Config::new(), narrow);
    assert_eq!(world.run(&["call", "shop", &world.url("/first")]).code, 0);
    let waiting = world.start(&["call", "shop", &world.url("/second")]);
    until("it waits", || world.number("SELECT count(*) FROM job WHERE url LIKE '%second'") == 1);
    world.quota("shop", "/{id}", RATE);
    let ran = waiting.finish();
    assert_eq!((ran.code, world.count()), (0, 2), "{ran}");
}
