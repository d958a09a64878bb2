//! Callers that give up, and many that wait.

use std::time::Duration;

use paceline::practice::{Answer, Config, Script};

use crate::support::gateway::{Gateway, read_all, read_until};
use crate::support::process::until;
use crate::support::world::World;

/// MiB that a gateway may take while a thousand callers wait.
const MOST: u64 = 100;
const WAITING: usize = 1_000;

const ONE_AT_ONCE: &str = "[[limit]]\nname = \"in-flight\"\nkind = \"concurrency\"\namount = 1\n";

/// Open jobs: those that wait or run.
fn open(world: &World) -> u64 {
    let jobs = world.jobs();
    ["queued", "running"].iter().filter_map(|state| jobs.get(*state)).sum()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_caller_that_gives_up_is_not_sent_for() {
    let slow = Answer::new(200).delay(Duration::from_secs(2));
    let config = Config::new().script(Script::new("/first", slow));
    let world = World::with(config, &format!("repeatable = true\n{ONE_AT_ONCE}"));
    let gateway = Gateway::start(&world, &[]);
    let mut first = gateway.dial(&get("/shop/first"));
    until("the first is out", || world.count() == 1);
    let given_up = gateway.dial(&get("/shop/given-up"));
    // One whose body is not read yet, so that the server does not look at its connection.
    let unread = gateway.dial(
        "POST /shop/unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\nbegun",
    );
    until("both wait", || open(&world) == 3);
    drop((given_up, unread));
    until("both are withdrawn", || open(&world) == 1);
    let mut last = gateway.dial(&get("/shop/last"));
    assert!(read_all(&mut first).starts_with("HTTP/1.1 200"));
    assert!(read_all(&mut last).starts_with("HTTP/1.1 200"));
    let paths = world.by_path();
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["/first", "/last"]);
}

#[test]
fn a_caller_that_leaves_a_call_that_is_out_loses_nothing() {
    let slow = Answer::new(200).delay(Duration::from_millis(500)).body("done");
    let world = World::with(Config::new().script(Script::new("/x", slow)), ONE_AT_ONCE);
    let gateway = Gateway::start(&world, &[]);
    let caller = gateway.dial(&get("/shop/x"));
    until("it is out", || world.count() == 1);
    drop(caller);
    // It is settled as what it was, and its place comes free.
    until("it is settled", || world.jobs().get("done") == Some(&1));
    assert_eq!(gateway.get("/shop/y").status, 200);
}

#[test]
fn a_thousand_wait_in_little_memory() {
    let slow = Answer::new(200).delay(Duration::from_secs(600));
    let config = Config::new().script(Script::new("/first", slow));
    let world = World::with(config, ONE_AT_ONCE);
    let gateway = Gateway::start(&world, &["--max-wait", "10m"]);
    let _first = gateway.dial(&get("/shop/first"));
    until("the first is out", || world.count() == 1);
    let waiting: Vec<_> = (0..WAITING).map(|n| gateway.dial(&get(&format!("/shop/{n}")))).collect();
    until("all wait", || open(&world) == WAITING as u64 + 1);
    let peak = gateway.process.peak().unwrap() / 1024;
    assert!(peak < MOST, "{peak} MiB");
    drop(waiting);
    until("all are withdrawn", || open(&world) == 1);
    assert_eq!(world.count(), 1);
}

#[test]
fn connections_are_used_again() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    let again = "GET /shop/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = gateway.dial(again);
    read_until(&mut stream, "}");
    std::io::Write::write_all(&mut stream, again.as_bytes()).unwrap();
    read_until(&mut stream, "}");
    assert_eq!((world.count(), world.stats().connections), (2, 1));
}
