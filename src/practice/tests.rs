//! The practice upstream is as strict as it says.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::{ManualClock, Timestamp};

const SECOND: Duration = Duration::from_secs(1);

/// 2026-11-30 23:59:50 in Los Angeles.
const BEFORE_MIDNIGHT: i64 = 1_796_111_990;

struct Bench {
    clock: ManualClock,
    practice: Practice,
    client: reqwest::Client,
}

async fn bench(config: Config) -> Bench {
    let clock = ManualClock::new(Timestamp::from_secs(BEFORE_MIDNIGHT));
    let practice = Practice::start(config.clock(Arc::new(clock.clone()))).await.unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(5 * SECOND).build().unwrap();
    Bench { clock, practice, client }
}

impl Bench {
    async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.practice.url(path)).send().await.unwrap()
    }

    async fn statuses(&self, path: &str, calls: usize) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..calls {
            statuses.push(self.get(path).await.status().as_u16());
        }
        statuses
    }
}

#[tokio::test]
async fn a_bucket_grants_its_burst_and_then_its_flow_to_the_nanosecond() {
    let limit = Limit::Bucket { units: 3, per: SECOND, burst: 2 };
    let bench = bench(Config::new().rule(Rule::new("plan", limit))).await;
    assert_eq!(bench.statuses("/a", 3).await, [200, 200, 429]);
    bench.clock.advance(Duration::from_nanos(333_333_333));
    assert_eq!(bench.statuses("/a", 1).await, [429]);
    bench.clock.advance(Duration::from_nanos(1));
    assert_eq!(bench.statuses("/a", 2).await, [200, 429]);
    let stats = bench.practice.stop().await;
    assert_eq!((stats.count, stats.ok, stats.refused), (6, 3, 3));
    let plan = stats.rule("plan").unwrap();
    assert!(plan.excess_offered > 0.9 && plan.excess_granted <= 0.0, "{plan:?}");
}

#[tokio::test]
async fn a_rolling_window_opens_when_its_first_call_leaves_it() {
    let bench =
        bench(Config::new().rule(Rule::new("r", Limit::Rolling { amount: 2, per: SECOND }))).await;
    assert_eq!(bench.statuses("/a", 2).await, [200, 200]);
    bench.clock.advance(SECOND - Duration::from_nanos(1));
    let refused = bench.get("/a").await;
    assert_eq!(refused.headers()["retry-after"], "1");
    bench.clock.advance(Duration::from_nanos(1));
    assert_eq!(bench.statuses("/a", 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_day_ends_at_local_midnight_and_a_date_says_so() {
    let limit = Limit::Day { amount: 3, zone: chrono_tz::America::Los_Angeles, used: 1 };
    let config = Config::new().rule(Rule::new("daily", limit)).retry_after(RetryAfter::Date);
    let bench = bench(config).await;
    assert_eq!(bench.statuses("/a", 2).await, [200, 200]);
    let refused = bench.get("/a").await;
    assert_eq!(refused.headers()["retry-after"], "Tue, 01 Dec 2026 08:00:01 GMT");
    bench.clock.advance(10 * SECOND);
    assert_eq!(bench.statuses("/a", 4).await, [200, 200, 200, 429]);
}

#[tokio::test]
async fn rules_count_apart_what_they_are_told_to_and_all_must_grant() {
    let amount = |amount| Limit::Fixed { amount, per: SECOND };
    let config = Config::new()
        .rule(Rule::new("site", amount(1)).by_query("site"))
        .rule(Rule::new("all", amount(2)).on("/v1/*"));
    let bench = bench(config).await;
    assert_eq!(bench.statuses("/v1/x?site=a", 2).await, [200, 429]);
    assert_eq!(bench.statuses("/v1/x?site=b", 1).await, [200]);
    // Refused by `all`, so `site` is not charged, and the other path is free.
    assert_eq!(bench.statuses("/v1/x?site=c", 1).await, [429]);
    assert_eq!(bench.statuses("/v2/x?site=c", 1).await, [200]);
    let stats = bench.practice.stats();
    assert_eq!(stats.rule("site").unwrap().instances, 3);
    assert_eq!(stats.by_path["/v1/x"], 4);
}

#[tokio::test]
async fn calls_in_flight_are_counted_until_they_are_answered() {
    let config = Config::new()
        .rule(Rule::new("in-flight", Limit::InFlight { amount: 1 }))
        .script(Script::new("/slow", Answer::new(200).delay(SECOND)));
    let bench = bench(config).await;
    let slow = bench.client.get(bench.practice.url("/slow")).send();
    let slow = tokio::spawn(slow);
    while bench.practice.stats().count == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.statuses("/a", 1).await, [429]);
    while !slow.is_finished() {
        bench.clock.advance(SECOND);
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.statuses("/a", 1).await, [200]);
    assert_eq!(bench.practice.stats().max_in_flight, 2);
}

#[tokio::test]
async fn a_whim_is_not_the_callers_fault_but_coming_early_is() {
    let config = Config::new()
        .rule(Rule::new("all", Limit::Rolling { amount: 3, per: 60 * SECOND }))
        .script(Script::new("*", Answer::refusal(3 * SECOND)).from(2).times(1).closing("*"));
    let bench = bench(config).await;
    assert_eq!(bench.statuses("/a", 2).await, [200, 429]);
    bench.clock.advance(SECOND);
    assert_eq!(bench.statuses("/a", 1).await, [200]);
    bench.clock.advance(2 * SECOND);
    assert_eq!(bench.statuses("/a", 1).await, [200]);
    let stats = bench.practice.stats();
    assert_eq!((stats.refused, stats.whims, stats.early), (0, 1, 1));
}

#[tokio::test]
async fn bodies_can_be_cut_dripped_and_huge() {
    let config = Config::new()
        .script(Script::new("/cut", Answer::new(200).body("twelve bytes").manner(Manner::Cut)))
        .script(Script::new("/huge", Answer::new(200).manner(Manner::Huge(100_000))))
        .script(Script::new("/gone", Answer::new(404).header("x-why", "pulped").body("gone")));
    let bench = bench(config).await;
    assert!(bench.get("/cut").await.bytes().await.is_err());
    assert_eq!(bench.get("/huge").await.bytes().await.unwrap().len(), 100_000);
    let gone = bench.get("/gone").await;
    assert_eq!(
        (gone.status().as_u16(), gone.headers()["x-why"].to_str().unwrap()),
        (404, "pulped")
    );
}

#[tokio::test]
async fn a_bomb_unpacks_to_what_it_says() {
    let bytes = 7 << 20;
    let bomb = Answer::new(200).manner(Manner::Bomb(bytes));
    let bench = bench(Config::new().script(Script::new("*", bomb))).await;
    let mut response = bench.get("/bomb").await;
    let mut unpacked = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        assert!(chunk.iter().all(|byte| *byte == b'x'));
        unpacked += chunk.len() as u64;
    }
    assert!(bytes.abs_diff(unpacked) < 10_000, "{unpacked}");
    let packed: usize = bomb::pieces(1 << 30).map(|piece| piece.len()).sum();
    assert!(packed < 7 << 20, "{packed}");
}

#[tokio::test]
async fn arrivals_tell_what_was_sent() {
    let bench = bench(Config::new().keep_headers()).await;
    let call = bench.client.post(bench.practice.url("/a/b?c=d")).header("x-key", "k").body("hello");
    assert_eq!(call.send().await.unwrap().text().await.unwrap(), r#"{"id": "b", "n": 1}"#);
    let arrivals = bench.practice.arrivals();
    let arrival = &arrivals[0];
    assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("POST", "/a/b"));
    assert_eq!((arrival.query.as_deref(), &arrival.body[..]), (Some("c=d"), &b"hello"[..]));
    assert_eq!(arrival.headers.as_ref().unwrap()["x-key"], "k");
    assert_eq!(bench.get("/_count").await.text().await.unwrap(), "1 0\n");
    let json = bench.get("/_stats").await.text().await.unwrap();
    assert!(json.contains("\"by_path\""), "{json}");
}
