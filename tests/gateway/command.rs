//! Beside a command: it is told where the gateway is, and its end is the end.

use paceline::practice::Config;

use crate::support::process::until;
use crate::support::world::World;

#[test]
fn a_command_finds_the_gateway_and_its_status_is_ours() {
    let world = World::with(Config::new(), "");
    let script = "host=${PACELINE_GATEWAY#http://}; exec 3<>/dev/tcp/${host%:*}/${host#*:}; \
        printf 'GET /shop/x HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3; cat <&3; exit 7";
    let ran = world.run(&["gateway", "shop", "--", "bash", "-c", script]);
    assert_eq!(ran.code, 7, "{ran}");
    assert!(ran.stdout.starts_with("HTTP/1.0 200"), "its output alone: {ran}");
    assert_eq!(world.count(), 1);
    world.nothing_is_left_over();
}

#[test]
fn signals_go_on_to_the_command() {
    let world = World::with(Config::new(), "");
    let script = "trap 'echo told; exit 9' TERM; echo ready; while :; do read -t 0.1 <> <(:); done";
    let process = world.start(&["gateway", "--", "bash", "-c", script]);
    until("it is ready", || process.stdout().contains("ready"));
    process.signal("TERM");
    let ran = process.finish();
    assert_eq!((ran.code, ran.stdout.contains("told")), (9, true), "{ran}");
}

#[test]
fn a_command_that_is_not_there_is_told() {
    let world = World::with(Config::new(), "");
    let ran = world.run(&["gateway", "--", "no-such-command"]);
    assert_eq!(ran.code, 127, "{ran}");
    assert!(ran.stderr.contains("no-such-command"), "{ran}");
}
