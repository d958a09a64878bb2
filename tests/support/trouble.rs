//! An upstream of which one partition is in trouble, beside it one that is not, and another upstream.
#![allow(dead_code, reason = "each test uses its part")]

use std::sync::OnceLock;
use std::time::Duration;

use paceline::clock::{Clock as _, SystemClock, Timestamp};
use paceline::practice::{Arrival, Config};

use super::Ran;
use super::world::World;

/// Calls that find all partitions of one process fresh, and so may be in flight before any is answered.
pub const IN_FLIGHT: usize = 64;

/// Jobs of each healthy one.
const HEALTHY: usize = 20;

/// Memory that trouble may cost, in KiB.
const GROWTH: u64 = 50 * 1024;

/// `shop` has the partitions `sick` and `well`; `other` is another upstream.
pub struct Trouble {
    pub world: World,
    begun: Timestamp,
}

impl Trouble {
    /// `config` says what happens at `/sick/*`; `text` begins within `[request]` of `shop`.
    pub fn new(config: Config, text: &str, sick: usize) -> Trouble {
        let world = World::new(config);
        let apart = "[[limit]]\nname = \"sites\"\nkind = \"budget\"\namount = 100000\nper = \"day\"\n\
                     time_zone = \"UTC\"\nkey = [\"site\"]\n";
        world.quota("shop", "/{site}/{id}", &format!("{text}\n{apart}"));
        world.quota("other", "/other/{id}", "");
        world.add_to("shop", 0, sick, &["--set", "site=sick"]);
        world.add_to("shop", 0, HEALTHY, &["--set", "site=well"]);
        world.add_to("other", 0, HEALTHY, &[]);
        Trouble { world, begun: SystemClock::new().wall() }
    }

    /// Runs a command to its end; the memory that it takes is bounded.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let ran = self.world.run(arguments);
        is_small(ran.peak);
        println!("{} calls in trouble", self.calls());
        ran
    }

    fn came(&self, to: &str) -> Vec<Arrival> {
        self.world.arrivals().into_iter().filter(|arrival| arrival.path.starts_with(to)).collect()
    }

    /// Calls of the partition in trouble, in order.
    pub fn sick(&self) -> Vec<Arrival> {
        self.came("/sick/")
    }

    pub fn calls(&self) -> usize {
        self.sick().len()
    }

    /// All healthy jobs were done, each by one call, before trouble could have held them up: `within`
    /// this of the begin.
    pub fn nobody_noticed(&self, within: Duration) {
        for healthy in [self.came("/well/"), self.came("/other/")] {
            assert_eq!(healthy.len(), HEALTHY);
            let last = healthy.iter().map(|arrival| arrival.wall).max().unwrap();
            let took = last.since(self.begun);
            assert!(took < within, "{:?} took {took:?}", healthy[0].path);
        }
        let unwell = "SELECT count(*) FROM job JOIN partition ON partition.id = partition_id
            JOIN upstream ON upstream.id = job.upstream_id
            WHERE (upstream.name = 'other' OR key LIKE '%well%') AND (state <> 'done' OR attempts > 1)";
        assert_eq!(self.world.number(unwell), 0);
    }
}

/// A run took no more memory than one without trouble, but for what it may.
pub fn is_small(peak: u64) {
    let floor = floor();
    println!("peak memory: {peak} KiB, {floor} KiB without trouble");
    assert!(peak > 0 && peak < floor + GROWTH, "{floor} KiB grew to {peak} KiB");
}

/// What a run takes in which nothing happens, in KiB.
fn floor() -> u64 {
    static FLOOR: OnceLock<u64> = OnceLock::new();
    *FLOOR.get_or_init(|| {
        let world = World::with(Config::new(), "");
        world.add(0, HEALTHY);
        let ran = world.run(&["run"]);
        assert!(ran.code == 0 && ran.peak > 0, "{ran}");
        ran.peak
    })
}
