//! What is too old goes by itself, and the disk gets its room back; what must be remembered is.

use paceline::practice::{Answer, Config, Script};

use crate::support::world::{STORE, World};

/// Bytes that no packing makes smaller.
fn noise(bytes: u32) -> Vec<u8> {
    let step = |n: &mut u32| {
        *n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(n.to_be_bytes()[0])
    };
    (0..bytes).scan(7, |n, _| step(n)).collect()
}

fn world() -> World {
    let answer = Answer::new(200).body(noise(60 * 1024));
    let world =
        World::with(Config::new().script(Script::new("/*", answer)), "[keep]\nbody = \"all\"\n");
    world.add_to("shop", 0, 100, &["--dedupe", "ever"]);
    let ran = world.run(&["run", "--quiet"]);
    assert_eq!((ran.code, world.count()), (0, 100), "{ran}");
    world
}

fn keep_for_no_time(world: &World) {
    world.quota("shop", "/{id}", "[keep]\nbody = \"all\"\ndone = \"1ms\"\n");
}

fn kib(world: &World) -> u64 {
    std::fs::metadata(world.home.path(STORE)).unwrap().len() / 1024
}

/// All is gone but what keeps the same rows from being sent again.
fn it_is_gone(world: &World) {
    assert_eq!(world.jobs().values().sum::<u64>(), 0);
    assert_eq!(world.number("SELECT count(*) FROM body"), 0);
    let told = world.json(&["add", "shop", "--csv", "rows.csv", "--dedupe", "ever"]);
    assert_eq!((&told["added"], &told["duplicates"]), (&0.into(), &100.into()));
    assert!(kib(world) < 400, "{} KiB", kib(world));
}

#[test]
fn a_run_removes_what_is_too_old() {
    let world = world();
    assert!(kib(&world) > 6000, "{} KiB", kib(&world));
    let ran = world.run(&["run"]);
    assert_eq!((ran.code, world.jobs()["done"]), (0, 100), "young enough: {ran}");
    keep_for_no_time(&world);
    let ran = world.run(&["run"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("100 jobs past their age removed"), "{ran}");
    it_is_gone(&world);
}

#[test]
fn prune_counts_first_where_it_is_asked_to() {
    let world = world();
    let would = |arguments: &[&str]| {
        world.json(&[&["prune", "--dry-run"], arguments].concat())["would_prune"].clone()
    };
    assert_eq!(would(&[]), 0);
    assert_eq!(would(&["--state", "done", "--older-than", "0s"]), 100);
    keep_for_no_time(&world);
    assert_eq!((would(&[]), world.jobs()["done"]), (100.into(), 100));
    let told = world.json(&["prune"]);
    assert_eq!(told["pruned"], 100);
    assert!(told["bytes"].as_u64().unwrap() > 5_000_000, "{told}");
    it_is_gone(&world);
}

#[test]
fn what_nobody_says_how_long_to_keep_is_kept() {
    let world = world();
    keep_for_no_time(&world);
    world.home.quota("shop", "typo = 1\n");
    let ran = world.run(&["prune"]);
    assert_eq!((ran.code, world.jobs()["done"]), (0, 100), "{ran}");
    assert!(ran.stderr.contains("shop keeps all") && ran.stderr.contains("--older-than"), "{ran}");
}
