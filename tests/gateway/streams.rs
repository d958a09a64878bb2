//! Bodies pass through while they come, both ways, however large.

use std::io::Write as _;
use std::time::Duration;

use paceline::practice::{Answer, Config, Manner, Script};

use crate::support::gateway::{Gateway, read_all, read_until};
use crate::support::process::until;
use crate::support::world::World;

/// MiB that a gateway may take, whatever passes through it.
const MOST: u64 = 100;

#[test]
fn an_answer_goes_on_before_its_end() {
    let dripped = Answer::new(200).body("abc").manner(Manner::Drip(Duration::from_millis(200)));
    let world = World::with(Config::new().script(Script::new("/x", dripped)), "");
    let gateway = Gateway::start(&world, &[]);
    let mut stream =
        gateway.dial("GET /shop/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    // A piece alone: chunk by chunk as it came.
    let begun = read_until(&mut stream, "a");
    assert!(!begun.ends_with("c\r\n0\r\n\r\n"), "{begun}");
    let rest = read_all(&mut stream);
    assert!(rest.contains('c'), "{rest}");
    until("the call is settled", || world.jobs().get("done") == Some(&1));
}

#[test]
fn a_huge_answer_takes_little_memory() {
    let huge = 300 * 1024 * 1024;
    let answer = Answer::new(200).manner(Manner::Huge(huge));
    let world = World::with(Config::new().script(Script::new("/x", answer)), "");
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.runtime.block_on(async {
        let mut answer = gateway.request("GET", "/shop/x").send().await.unwrap();
        let mut read = 0;
        while let Some(piece) = answer.chunk().await.unwrap() {
            read += piece.len() as u64;
        }
        read
    });
    assert_eq!(answer, huge);
    let peak = gateway.process.peak().unwrap() / 1024;
    assert!(peak < MOST, "{peak} MiB");
}

#[test]
fn a_huge_request_goes_on_while_it_comes() {
    let world = World::with(Config::new(), "repeatable = true\n");
    let gateway = Gateway::start(&world, &[]);
    let size = 200 * 1024 * 1024_usize;
    let head = format!(
        "POST /shop/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
    );
    let mut stream = gateway.dial(&head);
    // The practice upstream stops reading at a MiB, and answers: so may the gateway.
    let piece = vec![b'x'; 64 * 1024];
    let _ = (0..size / piece.len()).try_for_each(|_| stream.write_all(&piece));
    until("the call has arrived", || world.count() == 1);
    let peak = gateway.process.peak().unwrap() / 1024;
    assert!(peak < MOST, "{peak} MiB");
}

#[test]
fn a_large_body_is_asked_for_only_when_it_may_go() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    let size = 200_000;
    let head = format!(
        "POST /shop/x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\n\
         Content-Length: {size}\r\n\r\n"
    );
    let mut stream = gateway.dial(&head);
    let told = read_until(&mut stream, "\r\n\r\n");
    assert!(told.starts_with("HTTP/1.1 100 Continue"), "{told}");
    stream.write_all(&vec![b'x'; size]).unwrap();
    let told = read_all(&mut stream);
    assert!(told.starts_with("HTTP/1.1 200 OK"), "{told}");
    assert_eq!(world.arrivals()[0].body.len(), size);
    // What may not go is not asked for.
    let held = world.run(&["hold", "shop"]);
    assert_eq!(held.code, 0, "{held}");
    let told = read_all(&mut gateway.dial(&head));
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
}

#[test]
fn an_answer_that_breaks_off_breaks_off_here_too() {
    let cut = Answer::new(200).body(vec![b'x'; 300_000]).manner(Manner::Cut);
    let world = World::with(Config::new().script(Script::new("/x", cut)), "");
    let gateway = Gateway::start(&world, &[]);
    let broken = gateway.runtime.block_on(async {
        let answer = gateway.request("GET", "/shop/x").send().await.unwrap();
        (answer.status().as_u16(), answer.bytes().await)
    });
    assert_eq!(broken.0, 200);
    assert!(broken.1.is_err());
    let small = gateway.request("GET", "/shop/y");
    assert_eq!(gateway.send(small).status, 200);
}

#[test]
fn no_answer_is_told_as_what_it_was() {
    let silent = Answer::new(200).manner(Manner::Hang);
    let config = Config::new().script(Script::new("/x", silent));
    let world = World::with(config, "timeout = \"300ms\"\n");
    world.home.quota("closed", "[request]\nbase_url = \"http://127.0.0.1:1/\"\n");
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get("/shop/x");
    assert_eq!((answer.status, answer.reason()), (504, "no_answer"), "{}", answer.text());
    let answer = gateway.get("/closed/x");
    assert_eq!((answer.status, answer.reason()), (502, "no_answer"), "{}", answer.text());
}
