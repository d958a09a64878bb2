//! Copies of a store at which others work.

use std::time::Duration;

use paceline::practice::Config;

use crate::support::process::until;
use crate::support::world::World;

#[test]
fn a_copy_is_made_while_a_run_goes_on() {
    let limits = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 60\nper = \"day\"\n\
        time_zone = \"UTC\"\n";
    let world = World::with(Config::new().latency(Duration::from_millis(20)), limits);
    world.add(0, 200);
    let run = world.start(&["run", "--max-wait", "0", "--concurrency", "4"]);
    until("10 arrivals", || world.count() >= 10);
    let before = world.count();
    let ran = world.run(&["backup", "copy.db", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    let ran = run.finish();
    assert_eq!((ran.code, world.count()), (75, 60), "{ran}");
    assert!(before < 60, "the copy was made before the end");
    // All that left before the copy was begun is in it, as sent or as spent.
    let looked = world.run(&["status", "shop", "--json", "--store", "copy.db"]);
    let status: serde_json::Value = serde_json::from_str(&looked.stdout).unwrap();
    let spent = status["upstreams"][0]["limits"][0]["spent"].as_u64().unwrap();
    assert!(spent >= before as u64, "{spent} of {before}: {status}");
    assert_eq!(world.run(&["backup", "copy.db"]).code, 2, "no file is replaced");
    // The copy in the store's place grants none of the day's units again.
    let ran = world.run(&["restore", "copy.db"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("--replace"), "{ran}");
    let ran = world.run(&["restore", "copy.db", "--replace"]);
    assert_eq!(ran.code, 0, "{ran}");
    let ran = world.run(&["run", "--max-wait", "0"]);
    assert_eq!((ran.code, world.count()), (75, 60), "{ran}");
    let why = world.run(&["why", "shop"]);
    assert!(why.stdout.contains("because the store was restored"), "{why}");
    let ran = world.run(&["restore", "--trust"]);
    assert_eq!(ran.code, 0, "{ran}");
    let ran = world.run(&["run", "--max-wait", "0"]);
    assert_eq!(ran.code, 75, "{ran}");
    assert_eq!(world.count() as u64, 60 + (60 - spent), "told otherwise, the copy's counts hold");
}

#[test]
fn a_copy_put_in_place_by_hand_knows_what_it_is() {
    let world = World::with(
        Config::new(),
        "[[limit]]\nname = \"daily\"\nkind = \"budget\"\n\
        amount = 5\nper = \"day\"\ntime_zone = \"UTC\"\n",
    );
    world.add(0, 9);
    assert_eq!(world.run(&["backup", "copy.db"]).code, 0);
    assert_eq!(world.run(&["run", "--max-wait", "0"]).code, 75);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.home.path(&format!("store.db{end}")));
    }
    std::fs::rename(world.home.path("copy.db"), world.home.path("store.db")).unwrap();
    let ran = world.run(&["run", "--max-wait", "0"]);
    assert_eq!((ran.code, world.count()), (75, 5), "{ran}");
    assert!(ran.stderr.contains("this store was a copy of "), "{ran}");
}
