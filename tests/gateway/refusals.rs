//! A refusal of the upstream's own: waited for where that helps, else passed on; obeyed in any case.

use std::time::Duration;

use paceline::practice::{Answer, Config, Script};

use crate::support::gateway::Gateway;
use crate::support::process::until;
use crate::support::tokens::{Manner, TokenServer};
use crate::support::world::World;

fn refusing_once(seconds: u64) -> World {
    let refusal = Answer::refusal(Duration::from_secs(seconds));
    World::with(
        Config::new().script(Script::new("/x", refusal).times(1).closing("/*")),
        "repeatable = true\n",
    )
}

#[test]
fn a_caller_that_waits_never_sees_it() {
    let world = refusing_once(1);
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.send(gateway.request("POST", "/shop/x").body("again"));
    assert_eq!((answer.status, answer.reason()), (200, ""), "{answer:?}");
    let arrivals = world.arrivals();
    assert_eq!(arrivals.len(), 2);
    assert!(arrivals.iter().all(|arrival| &arrival.body[..] == b"again"));
    assert_eq!(world.stats().early, 0, "the hint was kept");
}

#[test]
fn one_that_does_not_gets_it_as_it_is() {
    let world = refusing_once(100);
    let gateway = Gateway::start(&world, &["--max-wait", "5s"]);
    let answer = gateway.get("/shop/x");
    assert_eq!((answer.status, answer.reason()), (429, ""));
    assert_eq!((answer.field("retry-after"), answer.text().as_str()), ("100", "slow down, please"));
    // The others hear of it before they are sent.
    let answer = gateway.get("/shop/y");
    assert_eq!((answer.status, answer.reason()), (429, "rate_limited"), "{answer:?}");
    assert_eq!(world.count(), 1);
    let log = world.json(&["log", "shop"]);
    assert_eq!((&log[0]["status"], &log[0]["reason"]), (&429.into(), &"rate_limited".into()));
}

#[test]
fn what_cannot_be_sent_again_is_passed_on() {
    let world = refusing_once(1);
    let gateway = Gateway::start(&world, &[]);
    let large = vec![b'x'; 200_000];
    let answer = gateway.send(gateway.request("POST", "/shop/x").body(large));
    assert_eq!((answer.status, answer.reason()), (429, ""));
}

#[test]
fn a_refusal_within_a_success_is_seen_in_time() {
    let refusal = "{\"ErrorCode\": 4, \"Message\": \"too many requests\"}";
    let answer = Answer::new(200).header("content-type", "application/json").body(refusal);
    let world = World::with(
        Config::new().script(Script::new("/x", answer).times(1)),
        "[[reading]]\nwhen = { json = { \"/ErrorCode\" = \"4\" } }\nreason = \"rate_limited\"\nwait = \"1s\"\n",
    );
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get("/shop/x");
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains("ErrorCode"), "{}", answer.text());
    assert_eq!(world.count(), 2);
}

#[test]
fn a_packed_refusal_is_read_and_passed_on_packed() {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"{\"code\": \"SlowDown\"}").unwrap();
    let packed = packed.finish().unwrap();
    let answer = Answer::new(400).header("content-encoding", "gzip").body(packed.clone());
    let world = World::with(
        Config::new().script(Script::new("/x", answer)),
        "[[reading]]\nwhen = { json = { \"/code\" = \"SlowDown\" } }\nreason = \"rate_limited\"\nwait = \"1h\"\n",
    );
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get_with("/shop/x", "Accept-Encoding", "gzip, br");
    assert_eq!((answer.status, answer.field("content-encoding")), (400, "gzip"));
    assert_eq!(answer.body, packed);
    let answer = gateway.get("/shop/y");
    assert_eq!((answer.status, answer.reason()), (429, "rate_limited"), "it was understood");
}

#[test]
fn a_token_that_has_expired_is_replaced_unseen() {
    let life = Duration::from_secs(2);
    let server = TokenServer::start(Manner { life, tells: false, ..Manner::default() });
    let world = World::new(Config::new());
    let auth = format!(
        "[request]\nbase_url = \"{}\"\nheaders = {{ Authorization = \"Bearer ${{token}}\" }}\n[auth]\n\
         kind = \"client-credentials\"\ntoken_url = \"{}\"\nclient_id = \"shop\"\n\
         client_secret = \"${{env:SHOP_SECRET}}\"\n",
        server.url("/api"),
        server.url("/token")
    );
    world.home.quota("shop", &auth);
    let gateway = Gateway::start_with(&world, &[], &[("SHOP_SECRET", "client-secret")]);
    until("a token is refused", || {
        let answer = gateway.get("/shop/x");
        assert_eq!((answer.status, answer.reason()), (200, ""), "{answer:?}");
        server.answered(401) > 0
    });
    assert!(server.issued() > 1);
}
