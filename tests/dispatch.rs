//! The dispatcher on virtual time: the real loop over the real store, an upstream that is a model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// The paused clock of the runtime is what stands in for the machine's.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline::clock::{Boot, Clock, Sleep, Timeline, Timestamp};
use paceline::dispatch::prepare::Prepared;
use paceline::dispatch::transport::{NoAnswer, Received, Transport};
use paceline::dispatch::{Event, Report, RunOptions, run_over};
use paceline::job::Columns;
use paceline::plan::{AddOptions, Planner};
use paceline::quota::Upstream;
use paceline::quota::library::Library;
use paceline::store::Store;
use paceline::store::sqlite::{Options, SqliteStore};

/// tokio's paused clock, from a wall-clock start: it leaps to the next timer whenever all tasks wait.
#[derive(Debug)]
struct PausedClock {
    wall: Timestamp,
    start: tokio::time::Instant,
}

impl Clock for PausedClock {
    fn wall(&self) -> Timestamp {
        self.wall + self.start.elapsed()
    }

    fn boot(&self) -> Option<Boot> {
        Some(Boot { id: "paused".to_owned(), elapsed: self.start.elapsed() })
    }

    fn sleep(&self, span: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(span))
    }
}

type Answers = Arc<dyn Fn(usize, &Prepared) -> Result<Received, NoAnswer> + Send + Sync>;

#[derive(Clone)]
struct Model {
    arrivals: Arc<Mutex<Vec<(Timestamp, String)>>>,
    answers: Answers,
}

impl Transport for Model {
    async fn send(
        &self,
        call: Prepared,
        _: Duration,
        timeline: &Timeline,
    ) -> Result<Received, NoAnswer> {
        let n = {
            let mut arrivals = self.arrivals.lock().unwrap();
            arrivals.push((timeline.now().wall, call.url.to_string()));
            arrivals.len()
        };
        timeline.sleep(Duration::from_millis(3)).await;
        let mut answer = (self.answers)(n, &call)?;
        answer.received_at = timeline.now().wall;
        Ok(answer)
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Received {
    Received {
        connection: None,
        status,
        headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        body: body.as_bytes().to_vec(),
        cut: false,
        received_at: Timestamp::EPOCH,
    }
}

struct World {
    store: SqliteStore,
    library: Arc<Library>,
    model: Model,
    _dir: tempfile::TempDir,
}

impl World {
    fn new(quota: &str, wall: &str, answers: Answers) -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("shop.toml"), quota).unwrap();
        let wall: chrono::DateTime<chrono::Utc> = wall.parse().unwrap();
        let clock = PausedClock { wall: wall.into(), start: tokio::time::Instant::now() };
        let options = Options {
            threaded: false,
            ..Options::new(dir.path().join("store.db"), Arc::new(clock))
        };
        World {
            store: SqliteStore::open(options).unwrap(),
            library: Arc::new(Library::new(vec![dir.path().to_owned()])),
            model: Model { arrivals: Arc::default(), answers },
            _dir: dir,
        }
    }

    async fn add(&self, rows: impl Iterator<Item = Columns>, options: AddOptions) {
        let upstream = self.library.get("shop").unwrap();
        let planner = Planner::new(&upstream, options).unwrap();
        let jobs = rows.map(|row| planner.plan(row).unwrap()).collect();
        self.store.add(Arc::clone(&upstream), "load".to_owned(), jobs).await.unwrap();
    }

    async fn run(&self, options: RunOptions) -> Report {
        let (_leave, left) = tokio::sync::watch::channel(false);
        let model = self.model.clone();
        let options = RunOptions { seed: Some(7), ..options };
        let tell = |event: &Event| eprintln!("{event:?}");
        run_over(
            self.store.clone(),
            Arc::clone(&self.library),
            options,
            left,
            Arc::new(tell),
            move |_: &Upstream| Ok(model.clone()),
        )
        .await
        .unwrap()
    }

    fn arrivals(&self) -> Vec<(Timestamp, String)> {
        self.model.arrivals.lock().unwrap().clone()
    }
}

fn rows(n: usize) -> impl Iterator<Item = Columns> {
    (0..n).map(|i| Columns::from([("id".to_owned(), i.to_string())]))
}

const ELEVEN: &str = r#"
name = "shop"
[request]
url = "http://shop.example/{id}"
[[limit]]
name = "daily"
kind = "budget"
amount = 11
per = "day"
time_zone = "America/Los_Angeles"
"#;

#[tokio::test(start_paused = true)]
async fn eleven_a_day_and_eleven_more_after_midnight_there() {
    let world =
        World::new(ELEVEN, "2026-12-01T07:50:00Z", Arc::new(|_, _| Ok(answer(200, &[], "ok"))));
    world.add(rows(22), AddOptions::default()).await;
    let now = RunOptions { max_wait: Some(Duration::ZERO), ..RunOptions::default() };
    let report = world.run(now.clone()).await;
    assert_eq!((report.sent, report.done, report.waiting), (11, 11, 11));
    assert_eq!(report.limit.as_deref(), Some("daily"));
    assert_eq!(report.next_at.unwrap().to_rfc3339(), "2026-12-01T08:00:02Z");
    let report = world.run(now).await;
    assert_eq!(report.sent, 0);
    let report = world.run(RunOptions::default()).await;
    assert_eq!((report.sent, report.waiting), (11, 0));
    let midnight: Timestamp =
        "2026-12-01T08:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap().into();
    let next = midnight + Duration::from_secs(86_400);
    let in_window = world.arrivals().iter().filter(|(at, _)| *at >= midnight && *at < next).count();
    assert_eq!(in_window, 11);
}

const RATE: &str = r#"
name = "shop"
[request]
url = "http://shop.example/{id}"
[[limit]]
name = "plan"
kind = "rate"
rate = "200/s"
burst = 20
counted = "bucket"
"#;

#[tokio::test(start_paused = true)]
async fn two_thousand_calls_use_the_planned_rate() {
    let world =
        World::new(RATE, "2026-11-30T20:00:00Z", Arc::new(|_, _| Ok(answer(200, &[], "ok"))));
    world.add(rows(2000), AddOptions::default()).await;
    let report = world.run(RunOptions::default()).await;
    assert_eq!((report.sent, report.done), (2000, 2000));
    let arrivals = world.arrivals();
    let took = arrivals.last().unwrap().0.since(arrivals[0].0).as_secs_f64();
    assert!(took < 1.015 * (2000.0 - 20.0) / 200.0, "took {took}");
}

/// Of 200 calls: how many instants of a commit ended them, and how long at most after they were sent.
async fn recorded(quota: &str, headers: &'static [(&str, &str)]) -> (i64, Duration) {
    let answers = Arc::new(move |_: usize, _: &Prepared| Ok(answer(200, headers, "ok")));
    let world = World::new(quota, "2026-11-30T20:00:00Z", answers);
    world.add(rows(200), AddOptions::default()).await;
    world.run(RunOptions::default()).await;
    let conn = rusqlite::Connection::open(world.store.path()).unwrap();
    let query = "SELECT count(DISTINCT ended_at), max(ended_at - sent_at) FROM attempt";
    let (commits, latest): (i64, i64) =
        conn.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    (commits, Duration::from_nanos(latest.unsigned_abs()))
}

#[tokio::test(start_paused = true)]
async fn successes_at_a_pace_share_commits_and_are_recorded_soon() {
    let (commits, latest) = recorded(RATE, &[]).await;
    assert!(commits <= 120, "{commits} commits for 200 calls, one in 5 ms");
    assert!(latest <= Duration::from_millis(15), "answered after 3 ms, recorded after {latest:?}");
}

/// What must not go twice, what says how much is left, and what gives a place free.
#[tokio::test(start_paused = true)]
async fn what_is_more_than_a_success_is_recorded_at_once() {
    let once = RATE.replace("[[limit]]", "method = \"POST\"\n[[limit]]");
    let told = format!("{RATE}reported = {{ header = \"left\" }}\n");
    let places =
        format!("{RATE}[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = 50\n");
    for (quota, headers) in [(once, &[][..]), (told, &[("left", "150")]), (places, &[])] {
        let (_, latest) = recorded(&quota, headers).await;
        assert!(latest <= Duration::from_millis(4), "{quota}: recorded after {latest:?}");
    }
}

const PLAIN: &str = r#"
name = "shop"
[request]
url = "http://shop.example/{site}/{id}"
[[limit]]
name = "site"
kind = "concurrency"
amount = 2
key = ["site"]
"#;

#[tokio::test(start_paused = true)]
async fn a_refusal_closes_its_partition_and_no_other() {
    let refused = |n: usize, call: &Prepared| {
        let first = n == 1;
        assert!(!first || call.url.path().starts_with("/a/"));
        match first {
            true => Ok(answer(429, &[("Retry-After", "3")], "slow down")),
            false => Ok(answer(200, &[], "ok")),
        }
    };
    let world = World::new(PLAIN, "2026-11-30T20:00:00Z", Arc::new(refused));
    let row = |site: &str, i: usize| {
        Columns::from([("site".to_owned(), site.to_owned()), ("id".to_owned(), i.to_string())])
    };
    world.add((0..5).map(|i| row("a", i)), AddOptions::default()).await;
    world.add((0..20).map(|i| row("b", i)), AddOptions::default()).await;
    let report = world.run(RunOptions::default()).await;
    assert_eq!((report.done, report.failed, report.waiting), (25, 0, 0));
    let arrivals = world.arrivals();
    let start = arrivals[0].0;
    let late_a = arrivals
        .iter()
        .filter(|(at, url)| url.contains("/a/") && at.since(start) > Duration::from_millis(100));
    assert!(late_a.clone().all(|(at, _)| at.since(start) >= Duration::from_secs(3)));
    let last_b = arrivals.iter().filter(|(_, url)| url.contains("/b/")).map(|(at, _)| *at).max();
    assert!(last_b.unwrap().since(start) < Duration::from_secs(1));
}
