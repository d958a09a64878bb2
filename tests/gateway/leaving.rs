//! Told to leave, a gateway finishes what is out, tells those that wait, and sends nothing new.

use std::time::Duration;

use paceline::practice::{Answer, Config, Script};

use crate::support::gateway::{Gateway, read_all};
use crate::support::process::until;
use crate::support::world::World;

#[test]
fn what_is_out_is_finished_and_who_waits_is_told() {
    let slow = Answer::new(200).delay(Duration::from_secs(1)).body("done");
    let world = World::with(
        Config::new().script(Script::new("/first", slow)),
        "[[limit]]\nname = \"in-flight\"\nkind = \"concurrency\"\namount = 1\n",
    );
    let gateway = Gateway::start(&world, &[]);
    let get =
        |path: &str| gateway.dial(&format!("GET /shop/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let mut first = get("first");
    until("the first is out", || world.count() == 1);
    let mut second = get("second");
    until("the second waits", || world.jobs().values().sum::<u64>() == 2);
    let mut idle = gateway.dial("");
    let ran = gateway.leave();
    assert_eq!(ran.code, 0, "{ran}");
    let told = read_all(&mut second);
    assert!(
        told.starts_with("HTTP/1.1 503") && told.contains("paceline-reason: leaving"),
        "{told}"
    );
    let told = read_all(&mut first);
    assert!(told.starts_with("HTTP/1.1 200") && told.ends_with("done"), "{told}");
    assert_eq!(read_all(&mut idle), "");
    assert_eq!(world.count(), 1);
    assert_eq!(world.jobs().get("done"), Some(&1));
    world.nothing_is_left_over();
}
