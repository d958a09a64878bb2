//! Who may come in, and what is refused clearly.

use std::process::Command;

use paceline::practice::Config;

use crate::support::gateway::{Gateway, read_until};
use crate::support::world::World;

fn open() -> (World, Gateway) {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    (world, gateway)
}

#[test]
fn pages_and_foreign_names_stay_out() {
    let (world, gateway) = open();
    for (name, value, status, reason) in [
        ("Origin", "https://evil.example", 403, "origin"),
        ("Sec-Fetch-Site", "cross-site", 403, "origin"),
        ("Host", "evil.example", 421, "host"),
    ] {
        let answer = gateway.get_with("/shop/x", name, value);
        assert_eq!((answer.status, answer.reason()), (status, reason), "{name}");
        assert_eq!(answer.field("content-type"), "application/problem+json");
    }
    assert_eq!(world.count(), 0);
}

#[test]
fn what_no_gateway_can_pace_is_refused() {
    let (_world, gateway) = open();
    let tunnel = "CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n";
    let told = read_until(&mut gateway.dial(tunnel), "\"type\"");
    assert!(told.starts_with("HTTP/1.1 501 "), "{told}");
    assert!(told.contains("paceline-reason: tunnel") && told.contains("/UPSTREAM/path"), "{told}");
    let socket = gateway.request("GET", "/shop/x").header("Connection", "Upgrade");
    let answer = gateway.send(socket.header("Upgrade", "websocket"));
    assert_eq!((answer.status, answer.reason()), (501, "upgrade"));
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let world = World::with(
        Config::new(),
        "[columns.siteUrl]\nhelp = \"the verified property\"\n[[limit]]\nname = \"daily\"\n\
         kind = \"rolling\"\namount = 1000\nper = \"24h\"\nkey = [\"siteUrl\"]\n",
    );
    let gateway = Gateway::start(&world, &[]);
    let answer = gateway.get("/shp/x");
    assert_eq!((answer.status, answer.reason()), (404, "unknown_upstream"));
    assert_eq!(answer.json()["did_you_mean"], "shop");
    let answer = gateway.get("/");
    assert_eq!(answer.status, 404);
    assert!(answer.json()["upstreams"].as_array().unwrap().contains(&"shop".into()));
    let answer = gateway.get("/shop/x");
    assert_eq!((answer.status, answer.reason()), (400, "missing_column"));
    assert_eq!(answer.json()["missing"], serde_json::json!(["siteUrl"]));
    assert!(answer.text().contains("the verified property"), "{}", answer.text());
    let site = "siteUrl=https://www.example.com/";
    assert_eq!(gateway.get_with("/shop/x", "Paceline-Set", site).status, 200);
    let answer = gateway.get_with("/shop/x", "Paceline-Deadlin", "3s");
    assert_eq!((answer.status, answer.reason()), (400, "header"));
    assert_eq!(world.count(), 1);
}

#[test]
fn a_token_is_asked_for_and_never_passed_on() {
    let world = World::with(Config::new().keep_headers(), "");
    let gateway = Gateway::start_with(&world, &[], &[("PACELINE_GATEWAY_TOKEN", "s3cret")]);
    let answer = gateway.get("/shop/x");
    assert_eq!((answer.status, answer.reason()), (401, "token"));
    let answer = gateway.get_with("/shop/x", "Paceline-Token", "guess");
    assert_eq!((answer.status, answer.reason()), (403, "token"));
    let answer = gateway.get_with("/shop/x", "Paceline-Token", "s3cret");
    assert_eq!(answer.status, 200);
    let headers = world.arrivals().remove(0).headers.unwrap();
    assert!(!format!("{headers:?}").contains("s3cret"));
    let ran = gateway.leave();
    assert!(!ran.stderr.contains("s3cret") && !ran.stdout.contains("s3cret"), "{ran}");
}

#[test]
fn whoever_others_can_reach_needs_a_token() {
    let world = World::with(Config::new(), "");
    let ran = world.run(&["gateway", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("PACELINE_GATEWAY_TOKEN"), "{ran}");
}

#[test]
fn what_would_call_itself_does_not_start() {
    let world = World::with(Config::new(), "");
    let gateway = Gateway::start(&world, &[]);
    let port = gateway.host().rsplit(':').next().unwrap().to_owned();
    gateway.leave();
    let mut command: Command = world.command(&["gateway", "--listen", &port]);
    let output = command.env("http_proxy", format!("http://127.0.0.1:{port}")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("http_proxy leads to this gateway itself"), "{told}");
}
