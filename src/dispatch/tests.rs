//! What is sent, and entered, while the store fails.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::call::{Unready, Way};
use super::desk::{Desk, Enrolled, Errand, House};
use super::guard::Guard;
use super::prepare::Prepared;
use super::transport::{NoAnswer, Received, Transport};
use super::{Event, Tell};
use crate::clock::{ManualClock, Timeline};
use crate::job::{Columns, Dedupe, NewJob};
use crate::plan::{AddOptions, Planner};
use crate::quota::library::Library;
use crate::quota::{Upstream, declare};
use crate::secrets::Secrets;
use crate::store::faulty::Faulty;
use crate::store::sqlite::{Options, SqliteStore};
use crate::store::{Call, Claim, Filter, OwnedJob, ReleaseWhy, Serves, Store};

/// Nothing ever comes back.
struct Silence;

impl Transport for Silence {
    async fn send(&self, _: Prepared, _: Duration, _: &Timeline) -> Result<Received, NoAnswer> {
        std::future::pending().await
    }
}

struct World {
    clock: ManualClock,
    store: SqliteStore,
    upstream: Arc<Upstream>,
    told: Arc<Mutex<Vec<Event>>>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(quota: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(
            "2026-06-01T12:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap().into(),
        );
        let options = Options {
            threaded: false,
            ..Options::new(folder.path().join("store.db"), Arc::new(clock.clone()))
        };
        let text = format!("schema = 1\nname = \"up\"\n{quota}");
        let upstream = Arc::new(declare::parse("up", "up.toml", &text).unwrap());
        let store = SqliteStore::open(options).unwrap();
        World { clock, store, upstream, told: Arc::default(), _folder: folder }
    }

    fn tell(&self) -> Tell {
        let told = Arc::clone(&self.told);
        Arc::new(move |event| told.lock().unwrap().push(event.clone()))
    }

    fn job(&self) -> NewJob {
        let options = AddOptions { dedupe: Dedupe::None, ..AddOptions::default() };
        let row = Columns::from([("url".to_owned(), "http://up.example/".to_owned())]);
        Planner::new(&self.upstream, options).unwrap().plan(row).unwrap()
    }

    fn owned(&self) -> OwnedJob {
        OwnedJob { job: self.job(), once: false, units: 1, use_reserve: false }
    }

    async fn house<S: Store>(&self, store: S) -> House<S> {
        House {
            enrolled: Arc::new(Enrolled::new(store).await.unwrap()),
            library: Arc::new(Library::new(Vec::new())),
            secrets: Arc::new(Secrets::new()),
            tokens: Arc::default(),
            tell: self.tell(),
        }
    }

    /// A call that was claimed.
    async fn claimed(&self) -> Call {
        let (runner, _) = self.store.register(Serves::Queue(Vec::new())).await.unwrap();
        let (upstream, jobs) = (Arc::clone(&self.upstream), vec![self.job()]);
        self.store.add(Arc::clone(&upstream), "load".to_owned(), jobs).await.unwrap();
        let claimed = self.store.claim(Claim::new(upstream, runner, 1)).await.unwrap();
        claimed.calls.into_iter().next().unwrap()
    }

    /// The way of a call whose store does not say whether anything is blocked.
    fn way(&self) -> Way<Faulty<SqliteStore>, Silence> {
        Way {
            store: Faulty::new(self.store.clone(), |what| what == "block_seq"),
            transport: Arc::new(Silence),
            upstream: Arc::clone(&self.upstream),
            secrets: Arc::new(Secrets::new()),
            tokens: Arc::default(),
            guard: Arc::new(Mutex::new(Guard::new(self.store.timeline()))),
            leave: watch::channel(false).1,
            tell: self.tell(),
        }
    }
}

#[tokio::test]
async fn a_job_is_entered_once_though_another_load_could_not_be() {
    let world = World::new("");
    let failed = AtomicBool::new(false);
    let store = Faulty::new(world.store.clone(), move |what| {
        what == "enter b" && !failed.swap(true, Ordering::Relaxed)
    });
    let (_stay, leave) = watch::channel(false);
    let house = world.house(store).await;
    let desk = Desk::open(house, Arc::clone(&world.upstream), Arc::new(Silence), leave);
    // Both are there before the desk first looks.
    let mut a = Errand::begin(&desk, world.owned(), "a".to_owned(), None, true);
    let mut b = Errand::begin(&desk, world.owned(), "b".to_owned(), None, true);
    let time_passes = async {
        for _ in 0..40 {
            world.clock.advance(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        (a, b) = async { tokio::join!(a.turn(), b.turn()) } => assert!(a.is_ok() && b.is_ok()),
        () = time_passes => {}
    }
    let jobs = world.store.jobs(Filter::default(), BTreeMap::new()).await.unwrap();
    let loads: Vec<_> = jobs.iter().map(|job| job.load.as_str()).collect();
    assert_eq!(loads, ["a", "b"]);
    let told = world.told.lock().unwrap();
    let is_trouble = |event: &&Event| matches!(event, Event::StoreTrouble { .. });
    assert_eq!(told.iter().filter(is_trouble).count(), 1);
}

#[tokio::test]
async fn what_was_claimed_stays_where_the_store_cannot_say_whether_it_may_leave() {
    let world = World::new("");
    let call = world.claimed().await;
    let Err(Unready::Unsent { why, .. }) = world.way().ready(&call).await else {
        panic!("it leaves")
    };
    assert_eq!(why, ReleaseWhy::Blocked);
}

#[tokio::test]
async fn what_was_claimed_leaves_all_the_same_where_the_quota_file_has_it_so() {
    let world = World::new("[when_store_fails]\npolicy = \"static\"\n");
    let call = world.claimed().await;
    assert!(world.way().ready(&call).await.is_ok());
    let told = world.told.lock().unwrap();
    assert!(matches!(told.as_slice(), [Event::StoreFallback { .. }]), "{told:?}");
}
