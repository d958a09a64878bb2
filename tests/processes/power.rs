//! Promises 2 and 4 over a power cut: what it must not undo is on the disk before the call leaves, and
//! nothing else is waited for. Shown by what the program asks of the system, in order.

use paceline::practice::Config;

use crate::support::shim::Shim;
use crate::support::world::World;

const PACE: &str =
    "[[limit]]\nname = \"pace\"\nkind = \"rate\"\nrate = \"50/s\"\nslack = \"150ms\"\n";
const DAILY: &str = "[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = 1000\nper = \"day\"\n\
                     time_zone = \"UTC\"\n";
const ROLLING: &str =
    "[[limit]]\nname = \"span\"\nkind = \"rolling\"\namount = 1000\nper = \"1h\"\n";
const JOBS: usize = 12;

/// What happened to the log, and which calls left.
#[derive(Debug, Default)]
struct Record {
    calls: usize,
    /// Calls that left while something in the log was not synced.
    unsynced: usize,
    /// Commits, and syncs of the log, from the first call to the last.
    commits: usize,
    syncs: usize,
}

impl Record {
    fn of(lines: &[String]) -> Record {
        let mut record = Record::default();
        // What happened since the last call counts only once there is another.
        let (mut commits, mut syncs) = (0, 0);
        let (mut written, mut dirty) = (false, false);
        for line in lines {
            match line.as_str() {
                "write -wal" => (written, dirty) = (true, true),
                "sync -wal" => (syncs, dirty) = (syncs + 1, false),
                line if line.starts_with("call ") => {
                    record.calls += 1;
                    record.unsynced += usize::from(dirty);
                    commits += usize::from(written);
                    if record.calls > 1 {
                        record.commits += commits;
                        record.syncs += syncs;
                    }
                    (commits, syncs, written) = (0, 0, false);
                }
                _ => {}
            }
        }
        record
    }
}

/// Runs twelve jobs one after the other, so that nothing is written between a call's own commits and
/// the call.
fn record(text: &str, arguments: &[&str]) -> Record {
    let shim = Shim::new();
    let world = World::on(&shim, Config::new(), text);
    world.add(0, JOBS);
    shim.trace();
    let ran = world.run(&[&["run", "--concurrency", "1"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran}");
    let record = Record::of(&shim.traced());
    println!("{record:?}");
    assert_eq!((record.calls, world.count()), (JOBS, JOBS));
    assert!(record.commits >= JOBS - 1, "a call without a commit before it: {record:?}");
    record
}

fn is_synced(record: &Record) {
    assert_eq!(record.unsynced, 0, "left before its commit was on the disk: {record:?}");
    assert!(record.syncs >= JOBS - 1, "{record:?}");
}

#[test]
fn a_unit_of_a_budget_is_on_the_disk_before_its_call_leaves() {
    is_synced(&record(&format!("{PACE}{DAILY}"), &[]));
}

#[test]
fn an_entry_of_a_rolling_limit_is_on_the_disk_before_its_call_leaves() {
    is_synced(&record(&format!("{PACE}{ROLLING}"), &[]));
}

#[test]
fn the_mark_of_an_unrepeatable_call_is_on_the_disk_before_it_leaves() {
    is_synced(&record(&format!("method = \"POST\"\nbody = 'x'\n{PACE}"), &[]));
}

#[test]
fn a_mere_rate_waits_for_no_disk() {
    let record = record(PACE, &[]);
    assert_eq!(record.syncs, 0, "{record:?}");
    assert_eq!(record.unsynced, JOBS, "{record:?}");
}

#[test]
fn with_sync_full_every_commit_is_on_the_disk_before_its_call_leaves() {
    is_synced(&record(PACE, &["--sync", "full"]));
}

#[test]
fn units_spent_elsewhere_are_on_the_disk_before_the_program_says_so() {
    let shim = Shim::new();
    let world = World::on(&shim, Config::new(), &format!("{PACE}{DAILY}"));
    world.add(0, 1);
    // Whoever closes a store last syncs all of it: let that be somebody else.
    let other = world.sql();
    other.query_row("SELECT 1 FROM store", [], |_| Ok(())).unwrap();
    shim.trace();
    assert_eq!(world.run(&["budget", "spend", "shop", "7"]).code, 0);
    let lines = shim.traced();
    let last_write = lines.iter().rposition(|line| line == "write -wal").unwrap();
    assert!(lines[last_write..].contains(&"sync -wal".to_owned()), "{lines:?}");
}
