//! No connection: nobody listens, no such name, a certificate for another name. Nothing left, so nothing
//! is spent; the job backs off and fails once its attempts are used up.

use std::time::{Duration, Instant};

use paceline::practice::Config;
use serde_json::Value;

use crate::support::tls::TlsServer;
use crate::support::trouble::{Trouble, is_small};
use crate::support::world::World;

const TWICE: &str = "[retry]\nmax_attempts = 2\ninitial = \"20ms\"\n";

const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 50\nper = \"day\"\ntime_zone = \"UTC\"\n";

/// Three jobs that cannot reach `address`, beside healthy ones. What their attempts say.
fn endure(address: &str, environment: &[(&str, &str)]) -> String {
    let trouble = Trouble::new(Config::new(), "", 0);
    let world = &trouble.world;
    world.home.quota("gone", &format!("[request]\nurl = \"{address}\"\n{TWICE}{DAILY}"));
    world.add_to("gone", 0, 3, &[]);
    let begun = Instant::now();
    let ran = world.start_with(&["run"], environment).finish();
    is_small(ran.peak);
    assert_eq!(ran.code, 3, "{ran}");
    println!("took {:?}", begun.elapsed());
    trouble.nobody_noticed(Duration::from_secs(4));
    assert_eq!(world.jobs(), [("done".to_owned(), 40), ("failed".to_owned(), 3)].into());
    let spent = "SELECT coalesce(sum(spent), 0) FROM budget_window
        JOIN limit_instance ON limit_instance.id = instance_id WHERE limit_name = 'daily'";
    assert_eq!(world.number(spent), 0, "nothing left");
    let job = world.json(&["jobs", "--upstream", "gone"])[0]["id"].to_string();
    let attempts = world.json(&["show", &job])["attempts"].clone();
    let attempts = attempts.as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    for attempt in attempts {
        assert_eq!((&attempt["reason"], &attempt["status"]), (&"transient".into(), &Value::Null));
    }
    let detail = attempts[0]["detail"].as_str().unwrap();
    println!("{detail}");
    detail.to_owned()
}

#[test]
fn a_refused_connection_says_so() {
    let says = endure("http://127.0.0.1:1/{id}", &[]);
    assert!(says.contains("refused"), "{says}");
}

#[test]
fn a_name_that_nobody_has_says_so() {
    let says = endure("http://nosuch.invalid/{id}", &[]);
    assert!(says.contains("nosuch.invalid"), "{says}");
}

#[test]
fn a_certificate_for_another_name_says_so() {
    let server = TlsServer::start("wrong.example");
    let home = tempfile::tempdir().unwrap();
    let trusted = home.path().join("trusted.pem");
    std::fs::write(&trusted, server.issuer()).unwrap();
    let environment = [("SSL_CERT_FILE", trusted.to_str().unwrap())];
    let says = endure(&server.url("localhost", "/{id}"), &environment);
    assert!(says.contains("localhost") && says.contains("wrong.example"), "{says}");
    assert_eq!((server.connections(), server.calls()), (6, 0));
}

#[test]
fn a_certificate_that_nobody_vouches_for_says_so() {
    let server = TlsServer::start("localhost");
    let says = endure(&server.url("localhost", "/{id}"), &[]);
    assert!(says.contains("certificate"), "{says}");
    assert_eq!((server.connections(), server.calls()), (6, 0));
}

#[test]
fn a_certificate_for_the_right_name_is_accepted() {
    let server = TlsServer::start("localhost");
    let world = World::new(Config::new());
    let url = server.url("localhost", "/{id}");
    world.home.quota("shop", &format!("[request]\nurl = \"{url}\"\n"));
    world.home.write("trusted.pem", &server.issuer());
    world.add(0, 3);
    let trusted = world.home.path("trusted.pem");
    let ran = world.start_with(&["run"], &[("SSL_CERT_FILE", trusted.to_str().unwrap())]).finish();
    assert_eq!((ran.code, server.calls()), (0, 3), "{ran}");
}
