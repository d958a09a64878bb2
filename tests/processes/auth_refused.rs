//! `[auth]` where tokens, or those who ask for them, are refused.

use std::time::Duration;

use paceline::practice::Config;

use super::auth::{nothing_is_kept, refreshing};
use crate::support::process::until;
use crate::support::tokens::{Manner, TOKEN, TokenServer};
use crate::support::world::World;

const SET: [(&str, &str); 2] = [("SHOP_SECRET", "s-hunter2"), ("SHOP_REFRESH", "r-hunter2")];

const REVOKED: &str = r#"{"error": "invalid_grant", "error_description": "r-hunter2 was revoked"}"#;

#[test]
fn a_refused_refresh_token_holds_until_there_is_another() {
    let server =
        TokenServer::start(Manner { refusals: vec![(400, None, REVOKED); 9], ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, "");
    world.add(0, 20);
    let ran = world.start_with(&["run"], &SET).finish();
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!((server.asked().len(), server.calls().len(), world.spent()), (1, 0, 0), "{ran}");
    let told = "the refresh token was refused (invalid_grant: ${env:SHOP_REFRESH} was revoked): \
        get a new one and put it into `${env:SHOP_REFRESH}`";
    assert!(ran.stderr.contains(told), "{ran}");
    assert!(ran.stderr.contains("it goes on by itself"), "{ran}");
    let status = world.json(&["status"]);
    assert_eq!(status["upstreams"][0]["held"], true, "{status}");
    assert_eq!(status["upstreams"][0]["held_detail"], told, "{status}");
    nothing_is_kept(&world, &["hunter2"]);
    server.change(|manner| manner.refusals.clear());
    let ran = world.start_with(&["run"], &SET).finish();
    assert_eq!((ran.code, server.answered(200), world.spent()), (0, 20, 20), "{ran}");
}

#[test]
fn a_run_that_stays_does_not_hammer_and_goes_on_by_itself() {
    let server =
        TokenServer::start(Manner { refusals: vec![(503, None, ""); 3], ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, "");
    world.add(0, 5);
    let run = world.start_with(&["run", "--follow", "-v"], &SET);
    until("all are answered", || server.answered(200) == 5);
    run.signal("TERM");
    run.finish();
    let asked = server.asked();
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert_eq!(pauses.len(), 3);
    for (n, pause) in pauses.iter().enumerate() {
        let least = Duration::from_secs(1 << n);
        assert!(*pause >= least && *pause < 3 * least, "{pauses:?}");
    }
}

#[test]
fn a_run_that_stays_takes_up_a_mended_quota_file() {
    let refusals = vec![(401, None, "{\"error\": \"invalid_client\"}")];
    let server = TokenServer::start(Manner { refusals, ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, "");
    world.add(0, 5);
    let run = world.start_with(&["run", "--follow", "-v"], &SET);
    run.hears("refuses the client");
    assert!(server.calls().is_empty());
    let file = world.home.path("quotas/shop.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("shop-client", "the-right-client")).unwrap();
    until("all are answered", || server.answered(200) == 5);
    run.signal("TERM");
    run.finish();
    let clients: Vec<_> =
        server.asked().into_iter().map(|asked| asked.form["client_id"].clone()).collect();
    assert_eq!(clients, ["shop-client", "the-right-client"]);
}

#[test]
fn a_token_that_expired_unsaid_is_replaced_once_and_no_job_fails() {
    let life = Duration::from_millis(1500);
    let server = TokenServer::start(Manner { life, tells: false, ..Manner::default() });
    let world = World::new(Config::new());
    let rate = "[retry]\nmax_attempts = 1\n[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\n\
        counted = \"bucket\"\n";
    refreshing(&world, &server, rate);
    world.add(0, 80);
    let ran = world.start_with(&["run"], &SET).finish();
    assert_eq!((ran.code, server.answered(200)), (0, 80), "{ran}");
    // Each refusal is an attempt with units of its own; a failure it is not.
    let (refused, issued) = (server.answered(401), server.issued());
    // However slow the machine is: none is fetched unless the one before was refused, by a few calls.
    assert!(issued >= 3 && issued <= 1 + refused, "{issued} tokens, {refused} refusals");
    assert!(refused <= 4 * issued, "{issued} tokens, {refused} refusals");
    assert_eq!(server.most_at_once(), 1);
    assert_eq!(world.spent(), 80 + i64::try_from(refused).unwrap());
    nothing_is_kept(&world, &[TOKEN, "hunter2"]);
}

#[test]
fn who_is_refused_with_a_new_token_too_is_held() {
    let server = TokenServer::start(Manner { shuts: true, ..Manner::default() });
    let world = World::new(Config::new());
    refreshing(&world, &server, "");
    world.add(0, 50);
    let ran = world.start_with(&["run"], &SET).finish();
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(server.issued(), 2, "{ran}");
    assert!((2..=8).contains(&server.answered(401)), "{}", server.answered(401));
    assert!(
        ran.stderr.contains("auth_expired") && ran.stderr.contains("a new token was refused too"),
        "{ran}"
    );
    assert_eq!(world.jobs(), [("queued".to_owned(), 50)].into());
    // A person mends it and lets go.
    server.change(|manner| manner.shuts = false);
    let resumed = world.run(&["resume", "shop"]);
    assert_eq!(resumed.code, 0, "{resumed}");
    let ran = world.start_with(&["run"], &SET).finish();
    assert_eq!((ran.code, server.answered(200)), (0, 50), "{ran}");
}

#[test]
fn one_credential_without_a_token_delays_no_other() {
    let server = TokenServer::start(Manner::default());
    let world = World::new(Config::new());
    let (api, token) = (server.url("/api/{credential}/{id}"), server.url("/token"));
    let text = format!(
        r#"
[request]
url = "{api}"
headers = {{ Authorization = "Bearer ${{token}}" }}
[auth]
kind = "client-credentials"
token_url = "{token}"
client_id = "x"
client_secret = "${{secret:key}}"
[credential.good]
secret = {{ key = "${{env:GOOD}}" }}
[credential.bad]
secret = {{ key = "${{env:BAD}}" }}
"#
    );
    world.home.quota("shop", &text);
    world.add_to("shop", 0, 10, &["--credential", "bad"]);
    world.add_to("shop", 0, 10, &["--credential", "good"]);
    let set = [("GOOD", "g-hunter2")];
    let ran = world.start_with(&["run"], &set).finish();
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("set BAD"), "{ran}");
    let calls = server.calls();
    assert_eq!(calls.len(), 10);
    assert!(calls.iter().all(|(_, path, status)| path.starts_with("/api/good/") && *status == 200));
    let secrets: Vec<_> =
        server.asked().into_iter().map(|asked| asked.form["client_secret"].clone()).collect();
    assert_eq!(secrets, ["g-hunter2"], "each has its own");
    let set = [("GOOD", "g-hunter2"), ("BAD", "b-hunter2")];
    let ran = world.start_with(&["run"], &set).finish();
    assert_eq!((ran.code, server.answered(200)), (0, 20), "{ran}");
}
