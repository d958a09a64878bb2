//! Existing clients, paced by one line: a tower service, a reqwest client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::BodyExt as _;
use paceline::Paceline;
use paceline::client::{Error, LayerError, PacedLayer, PacedMiddleware};
use paceline::job::JobState;
use paceline::practice::{Answer, Config, Limit, Practice, Rule, Script};
use paceline::store::views::JobView;
use paceline::store::{Filter, Store as _};
use tower::{Service as _, ServiceBuilder, ServiceExt as _};

struct World {
    folder: tempfile::TempDir,
    practice: Practice,
    paceline: Paceline,
}

impl World {
    async fn new(config: Config, limits: &str) -> World {
        let practice = Practice::start(config).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let base = practice.url("");
        let text = format!("name = \"up\"\n[request]\nbase_url = \"{base}\"\n{limits}");
        std::fs::write(folder.path().join("up.toml"), text).unwrap();
        let builder = Paceline::builder().store(folder.path().join("store.db"));
        let paceline = builder.quotas(folder.path()).open().unwrap();
        World { folder, practice, paceline }
    }

    async fn jobs(&self) -> Vec<JobView> {
        self.paceline.store().jobs(Filter::default(), BTreeMap::new()).await.unwrap()
    }

    /// Waits until all jobs have ended: a body that was read completes its permit by itself.
    async fn ended(&self) -> Vec<JobView> {
        for _ in 0..1000 {
            let jobs = self.jobs().await;
            if jobs.iter().all(|job| job.state.is_final()) {
                return jobs;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{:?}", self.jobs().await);
    }

    fn client(&self) -> reqwest_middleware::ClientWithMiddleware {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pace = PacedMiddleware::new(&self.paceline, "up").max_wait(Duration::from_secs(20));
        reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(pace).build()
    }
}

const RATE: &str = "[[limit]]\nname = \"plan\"\nkind = \"rate\"\nrate = \"20/s\"\n";

#[tokio::test]
async fn a_reqwest_client_keeps_the_limits_of_a_strict_upstream() {
    let rule = Limit::Rolling { amount: 20, per: Duration::from_secs(1) };
    let world = World::new(Config::new().rule(Rule::new("plan", rule)), RATE).await;
    let client = world.client();
    let url = world.practice.url("/items");
    let calls = (0..30).map(|_| client.get(&url).send());
    for response in futures_util::future::join_all(calls).await {
        let response = response.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.url().as_str().ends_with("/items"));
        response.bytes().await.unwrap();
    }
    let stats = world.practice.stats();
    assert_eq!((stats.count, stats.refused), (30, 0));
    assert!(world.ended().await.iter().all(|job| job.state == JobState::Done));
}

#[tokio::test]
async fn a_refusal_is_handed_on_and_closes_for_the_next() {
    let refusal = Answer::refusal(Duration::from_secs(600)).body("slow down");
    let config = Config::new().script(Script::new("*", refusal));
    let world = World::new(config, "").await;
    let client = world.client();
    let response = client.get(world.practice.url("/x")).send().await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.text().await.unwrap(), "slow down");
    world.ended().await;
    let error = client.get(world.practice.url("/x")).send().await.unwrap_err();
    let reqwest_middleware::Error::Middleware(error) = error else { panic!("{error:?}") };
    let error: &Error = error.downcast_ref().unwrap();
    let Error::NotNow(not_now) = error else { panic!("{error:?}") };
    assert_eq!(not_now.reason, "rate_limited");
    assert_eq!(world.practice.stats().count, 1);
    drop(world.folder);
}

#[tokio::test]
async fn a_tower_service_is_paced_and_its_body_completes_the_permit() {
    let places = "[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = 1\n";
    let world = World::new(Config::new(), places).await;
    let layer = PacedLayer::new(&world.paceline, "up").max_wait(Duration::from_millis(300));
    let mut service = ServiceBuilder::new().layer(layer).service_fn(|_: http::Request<()>| async {
        Ok::<_, std::io::Error>(http::Response::new("a body".to_owned()))
    });
    let url = world.practice.url("/x");
    let request = || http::Request::get(url.as_str()).body(()).unwrap();
    let held = service.ready().await.unwrap().call(request()).await.unwrap();
    let refused = service.ready().await.unwrap().call(request()).await;
    let Err(LayerError::NoPermit(Error::NotNow(not_now))) = refused else { panic!() };
    assert_eq!(not_now.limit.as_deref(), Some("places"), "its body is not read yet");
    let body = held.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "a body");
    world.ended().await;
    let next = service.ready().await.unwrap().call(request()).await.unwrap();
    drop(next);
    let states: Vec<JobState> = world.ended().await.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Done, JobState::Cancelled, JobState::Done]);
}

#[tokio::test]
async fn a_service_that_fails_leaves_no_place_taken() {
    let places = "[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = 1\n";
    let world = World::new(Config::new(), places).await;
    let mut service = ServiceBuilder::new()
        .layer(PacedLayer::new(&world.paceline, "up"))
        .service_fn(|_: http::Request<()>| async {
            Err::<http::Response<String>, _>(std::io::Error::other("it broke"))
        });
    for _ in 0..2 {
        let request = http::Request::get(world.practice.url("/x")).body(()).unwrap();
        let failed = service.ready().await.unwrap().call(request).await;
        assert!(matches!(failed, Err(LayerError::Service(_))));
    }
    assert!(world.ended().await.iter().all(|job| job.state == JobState::Failed));
}
