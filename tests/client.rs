//! The library's handle, over a store and practice upstreams of this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::future::IntoFuture as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use paceline::Paceline;
use paceline::client::{Error, Refusal};
use paceline::clock::{Clock, SystemClock, Timestamp};
use paceline::dispatch::Event;
use paceline::job::{JobId, JobState};
use paceline::practice::{Answer, Config, Practice, Script};
use paceline::reading::Reason;
use paceline::store::views::JobView;
use paceline::store::{Filter, Store as _};

const ADDRESS: &str = "http://127.0.0.1:9/v1/items";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder with the quota file `up`.
    fn new(quota: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        place.quota(quota);
        place
    }

    fn quota(&self, quota: &str) {
        let text = format!("schema = 1\nname = \"up\"\n{quota}");
        std::fs::write(self.folder.path().join("up.toml"), text).unwrap();
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn open(&self) -> Paceline {
        let builder = Paceline::builder().store(self.store()).quotas(self.folder.path());
        builder.open().unwrap()
    }
}

async fn jobs(paceline: &Paceline) -> Vec<JobView> {
    let known = BTreeMap::from([("up".to_owned(), paceline.library().get("up").unwrap())]);
    paceline.store().jobs(Filter::default(), known).await.unwrap()
}

async fn job(paceline: &Paceline, id: JobId) -> JobView {
    jobs(paceline).await.into_iter().find(|job| job.id == id).unwrap()
}

/// Waits until something holds that comes about by itself.
async fn when(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..2000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("in vain: {what}");
}

/// Waits until a job is as wished: what a dropped permit leads to happens by itself.
async fn until(paceline: &Paceline, id: JobId, state: JobState) -> JobView {
    let wished = async || job(paceline, id).await.state == state;
    when(&format!("job {} becomes {state}", id.0), wished).await;
    job(paceline, id).await
}

fn now() -> Timestamp {
    SystemClock::new().wall()
}

const FREE: &str = "[request]\nbase_url = \"http://127.0.0.1:9\"\n";

fn budget(amount: u64) -> String {
    format!(
        "{FREE}[[limit]]\nname = \"daily\"\nkind = \"budget\"\namount = {amount}\nper = \"day\"\n\
         time_zone = \"Asia/Tokyo\"\n"
    )
}

fn places(amount: u64) -> String {
    format!("{FREE}[[limit]]\nname = \"places\"\nkind = \"concurrency\"\namount = {amount}\n")
}

#[tokio::test]
async fn a_permit_is_a_job_that_ends_with_its_answer() {
    let place = Place::new(FREE);
    let paceline = place.open();
    let acquire = paceline.acquire("up").method("GET").url(ADDRESS).load("tests");
    let permit = acquire.await.unwrap();
    let id = permit.job();
    assert_eq!(job(&paceline, id).await.state, JobState::Running);
    let headers = [("x".to_owned(), "y".to_owned())];
    let verdict = permit.answered(404, &headers, b"no such item", false).await.unwrap();
    assert_eq!((verdict.reason, verdict.state), (Reason::NotFound, JobState::Failed));
    let view = job(&paceline, id).await;
    assert_eq!((view.status, view.load.as_str(), view.url.as_str()), (Some(404), "tests", ADDRESS));
    let permit = paceline.acquire("up").await.unwrap();
    assert_eq!(permit.done(200).await.unwrap().state, JobState::Done);
    paceline.close().await;
}

#[tokio::test]
async fn what_cannot_go_is_told_with_limit_instant_and_zone() {
    let place = Place::new(&budget(1));
    let paceline = place.open();
    paceline.acquire("up").await.unwrap().done(200).await.unwrap();
    let asked_at = now();
    let error = paceline.acquire("up").max_wait(Duration::from_secs(1)).await.unwrap_err();
    let Error::NotNow(not_now) = &error else { panic!("{error:?}") };
    assert_eq!(not_now.limit.as_deref(), Some("daily"));
    assert_eq!(not_now.zone, Some(chrono_tz::Asia::Tokyo));
    assert_eq!(not_now.reason, "budget");
    assert!(not_now.until.unwrap() > asked_at && error.until() == not_now.until);
    assert!(now().since(asked_at) < Duration::from_millis(900), "it does not wait for nothing");
    let deadline = now() + Duration::from_secs(30);
    let error = paceline.acquire("up").deadline(deadline).await.unwrap_err();
    let Error::Expired(expired) = &error else { panic!("{error:?}") };
    assert_eq!(expired.limit.as_deref(), Some("daily"));
    assert!(expired.until.unwrap() > deadline, "{error}");
    let error = paceline.acquire("up").units(2).await.unwrap_err();
    assert!(matches!(&error, Error::NeverFits { limit: Some(limit), .. } if limit == "daily"));
    let ended: Vec<JobState> = jobs(&paceline).await.iter().map(|job| job.state).collect();
    assert_eq!(ended, [JobState::Done, JobState::Cancelled, JobState::Expired]);
}

#[tokio::test]
async fn who_goes_away_gets_no_call_and_loses_no_place() {
    let place = Place::new(&places(1));
    let paceline = place.open();
    let held = paceline.acquire("up").await.unwrap();
    let waiting = tokio::spawn(paceline.acquire("up").into_future());
    when("the other waits too", async || jobs(&paceline).await.len() == 2).await;
    let id = jobs(&paceline).await[1].id;
    waiting.abort();
    let gone = until(&paceline, id, JobState::Cancelled).await;
    assert_eq!(gone.reason.as_deref(), Some("gave_up"));
    assert_eq!(gone.attempts, 0);
    held.cancel();
    let next = paceline.acquire("up").max_wait(Duration::from_secs(5)).await.unwrap();
    next.done(200).await.unwrap();
}

#[tokio::test]
async fn a_permit_that_is_dropped_counts_as_sent() {
    let place = Place::new(&budget(2));
    let paceline = place.open();
    let permit = paceline.acquire("up").method("POST").url(ADDRESS).await.unwrap();
    let id = permit.job();
    drop(permit);
    let view = until(&paceline, id, JobState::Unsure).await;
    assert!(view.detail.unwrap().contains("dropped"));
    let permit = paceline.acquire("up").method("GET").url(ADDRESS).await.unwrap();
    let id = permit.job();
    drop(permit);
    until(&paceline, id, JobState::Failed).await;
    let spent = paceline.acquire("up").max_wait(Duration::ZERO).await.unwrap_err();
    assert!(matches!(spent, Error::NotNow(_)), "{spent:?}");
}

/// Of whoever wants to go now or never it is the limits that decide, not how fast the disk is.
#[tokio::test]
async fn a_store_that_is_slow_is_no_limit() {
    let place = Place::new(FREE);
    let paceline = place.open();
    paceline.acquire("up").await.unwrap().done(200).await.unwrap();
    let other = rusqlite::Connection::open(place.store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let acquire = paceline.acquire("up").max_wait(Duration::ZERO);
    let mut acquire = std::pin::pin!(acquire.into_future());
    let early = tokio::time::timeout(Duration::from_millis(600), &mut acquire).await;
    assert!(early.is_err(), "it gave up before the store had said a word");
    other.execute_batch("COMMIT").unwrap();
    acquire.await.unwrap().done(200).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_permit_gives_its_units_back() {
    let place = Place::new(&budget(1));
    let paceline = place.open();
    let permit = paceline.acquire("up").await.unwrap();
    let id = permit.job();
    permit.cancel();
    let view = until(&paceline, id, JobState::Cancelled).await;
    assert_eq!(view.attempts, 0);
    paceline.acquire("up").max_wait(Duration::from_secs(5)).await.unwrap().done(200).await.unwrap();
}

#[tokio::test]
async fn a_refusal_closes_for_all_who_share_it() {
    let place = Place::new(FREE);
    let (a, b) = (place.open(), place.open());
    let permit = a.acquire("up").await.unwrap();
    let retry_at = now() + Duration::from_secs(600);
    let refusal =
        Refusal { retry_at: Some(retry_at), detail: "not now".into(), ..Refusal::default() };
    let verdict = permit.refused(refusal).await.unwrap();
    assert_eq!((verdict.reason, verdict.state), (Reason::RateLimited, JobState::Failed));
    assert!(verdict.retry_at.unwrap() >= retry_at, "jitter only adds");
    let error = b.acquire("up").max_wait(Duration::from_secs(2)).await.unwrap_err();
    let Error::NotNow(not_now) = error else { panic!("{error:?}") };
    assert!(not_now.until.unwrap() >= retry_at);
    assert_eq!(not_now.reason, "rate_limited");
}

#[tokio::test]
async fn what_is_held_needs_a_person() {
    let place = Place::new(FREE);
    let paceline = place.open();
    for _ in 0..2 {
        let permit = paceline.acquire("up").await.unwrap();
        let verdict = permit.answered(403, &[], b"forbidden", false).await.unwrap();
        if verdict.held.is_some() {
            break;
        }
    }
    let error = paceline.acquire("up").await.unwrap_err();
    assert!(matches!(&error, Error::Held { reason, .. } if reason == "forbidden"), "{error:?}");
}

#[tokio::test]
async fn two_processes_share_places() {
    let place = Place::new(&places(1));
    let (a, b) = (place.open(), place.open());
    for _ in 0..4 {
        let first = a.acquire("up").await.unwrap();
        let second = tokio::spawn(b.acquire("up").into_future());
        first.done(200).await.unwrap();
        let second = tokio::time::timeout(Duration::from_secs(10), second).await;
        second.unwrap().unwrap().unwrap().done(200).await.unwrap();
    }
}

#[tokio::test]
async fn its_headers_hold_the_secrets_of_the_file() {
    let place = Place::new("");
    std::fs::write(place.folder.path().join("key"), "s3cr3t-value\n").unwrap();
    let path = place.folder.path().join("key");
    place.quota(&format!(
        "{FREE}headers = {{ Authorization = \"Bearer ${{file:{}}}\" }}\n",
        path.display()
    ));
    let paceline = place.open();
    let permit = paceline.acquire("up").url(ADDRESS).with_headers().await.unwrap();
    let headers = permit.headers();
    assert_eq!(headers["authorization"], "Bearer s3cr3t-value");
    assert!(headers["authorization"].is_sensitive());
    assert!(!format!("{permit:?}").contains("s3cr3t"));
    permit.done(200).await.unwrap();
    std::fs::remove_file(path).unwrap();
    let paceline = place.open();
    let error = paceline.acquire("up").url(ADDRESS).with_headers().await.unwrap_err();
    assert!(matches!(error, Error::Secret(_)), "{error:?}");
    let without = paceline.acquire("up").url(ADDRESS).await.unwrap();
    assert!(without.headers().is_empty());
    without.cancel();
}

#[tokio::test]
async fn a_handle_that_is_closed_has_left_the_store() {
    let place = Place::new(&places(1));
    let paceline = place.open();
    let held = paceline.acquire("up").await.unwrap();
    let waiting = tokio::spawn(paceline.acquire("up").into_future());
    when("the other waits too", async || jobs(&paceline).await.len() == 2).await;
    drop(held);
    paceline.close().await;
    let ended = waiting.await.unwrap();
    assert!(matches!(&ended, Err(Error::Closed) | Ok(_)), "{ended:?}");
    drop(ended);
    for entry in std::fs::read_dir(place.folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("-runner-"), "{name} is left");
    }
    let again = paceline.acquire("up").max_wait(Duration::from_secs(5)).await.unwrap();
    again.done(200).await.unwrap();
}

#[tokio::test]
async fn no_such_upstream_is_an_error() {
    let place = Place::new(FREE);
    let error = place.open().acquire("upp").await.unwrap_err();
    assert!(error.to_string().contains("did you mean `up`"), "{error}");
    let place = Place::new("[match]\nhosts = [\"api.example\"]\n");
    let error = place.open().acquire("up").url("https://elsewhere.example/").await;
    let error = error.map(|permit| permit.job()).unwrap_err();
    assert!(matches!(error, Error::Plan(_)), "{error:?}");
}

#[test]
fn what_a_program_holds_can_go_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Paceline>();
    check::<paceline::Permit>();
    check::<Error>();
    fn sends<T: Send>(_: T) {}
    let place = Place::new(FREE);
    sends(place.open().acquire("up").into_future());
}

// ---- calls, the queue, events

async fn practice(config: Config) -> Practice {
    Practice::start(config).await.unwrap()
}

fn at(practice: &Practice, limits: &str) -> Place {
    Place::new(&format!("[request]\nurl = \"{}\"\n{limits}", practice.url("/items/{id}")))
}

#[tokio::test]
async fn a_call_waits_out_a_refusal_and_hands_over_the_last_answer() {
    let refusal = Answer::refusal(Duration::from_secs(1)).body("slow down");
    let config = Config::new()
        .script(Script::new("/x", refusal).times(1).closing("*"))
        .script(Script::new("/x", Answer::new(200).header("X-Kind", "book").body("here")));
    let practice = practice(config).await;
    let place = at(&practice, "");
    let paceline = place.open();
    let answer = paceline.call("up").url(practice.url("/x")).await.unwrap();
    assert!(answer.is_success());
    assert_eq!((answer.status, answer.attempts, answer.cut), (Some(200), 2, false));
    assert_eq!(answer.body, b"here");
    assert!(answer.headers.iter().any(|(name, value)| name == "x-kind" && value == "book"));
    assert_eq!(practice.stats().early, 0);
    let answer = paceline.call("up").url(practice.url("/x")).max_body(2).await.unwrap();
    assert_eq!((answer.body.as_slice(), answer.cut), (b"he".as_slice(), true));
}

#[tokio::test]
async fn a_header_given_word_for_word_is_sent_and_not_stored() {
    let answer = Answer::new(404).body("no stock for sk-live-7421, ask for it");
    let config = Config::new().keep_headers().script(Script::new("/x", answer));
    let practice = practice(config).await;
    let place = at(&practice, "");
    let paceline = place.open();
    let call = paceline.call("up").url(practice.url("/x")).header("Accept", "text/plain");
    let call =
        call.header("Authorization", "Bearer sk-live-7421").header("X-Shop", "seven-sisters");
    let answer = call.await.unwrap();
    assert_eq!(answer.status, Some(404));
    let arrived = practice.arrivals();
    let headers = arrived[0].headers.as_ref().unwrap();
    assert_eq!(headers["authorization"], "Bearer sk-live-7421");
    assert_eq!(headers["x-shop"], "seven-sisters");
    paceline.close().await;
    for entry in std::fs::read_dir(place.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!holds("sk-live-7421") && !holds("seven-sisters"));
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_on_its_way_sends_nothing_more() {
    let slow = Answer::new(200).delay(Duration::from_secs(30));
    let practice = practice(Config::new().script(Script::new("/slow", slow))).await;
    let place = at(&practice, "");
    let paceline = place.open();
    let call = paceline.call("up").method("POST").url(practice.url("/slow")).into_future();
    let call = tokio::spawn(call);
    when("it arrived", async || !practice.arrivals().is_empty()).await;
    let id = jobs(&paceline).await[0].id;
    call.abort();
    until(&paceline, id, JobState::Unsure).await;
    let call = tokio::spawn(paceline.call("up").url(practice.url("/slow")).into_future());
    when("the second arrived", async || practice.arrivals().len() == 2).await;
    let id = jobs(&paceline).await[1].id;
    call.abort();
    // By GET it could go again: but nobody waits for that.
    let view = until(&paceline, id, JobState::Cancelled).await;
    assert_eq!((view.attempts, view.reason.as_deref()), (1, Some("gave_up")));
    assert_eq!(practice.arrivals().len(), 2);
}

#[tokio::test]
async fn jobs_are_added_and_run_and_what_happens_is_told() {
    let practice = practice(Config::new()).await;
    let place = at(&practice, "");
    let paceline = place.open();
    let mut events = paceline.events();
    let add = paceline.add("up").row([("id".to_owned(), "1".to_owned())]);
    let added = add.row([("id".to_owned(), "2".to_owned())]).load("mine").await.unwrap();
    assert_eq!((added.ids.len(), added.duplicates), (2, 0));
    let report = paceline.run().upstream("up").await.unwrap();
    assert_eq!((report.sent, report.done, report.waiting), (2, 2, 0));
    let mut answered = 0;
    while answered < 2 {
        if let Event::Answered { state, .. } = events.next().await.unwrap() {
            assert_eq!(state, JobState::Done);
            answered += 1;
        }
    }
    let error = paceline.add("up").row([]).await.unwrap_err();
    assert!(matches!(error, Error::Plan(_)), "{error:?}");
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_in_good_order() {
    let practice = practice(Config::new()).await;
    let place = at(&practice, "");
    let paceline = place.open();
    let follow = tokio::spawn(paceline.run().follow().into_future());
    let serves = async || !paceline.store().runners().await.unwrap().is_empty();
    when("it serves", serves).await;
    follow.abort();
    when("it serves no more", async || !serves().await).await;
    paceline.add("up").row([("id".to_owned(), "1".to_owned())]).await.unwrap();
    assert_eq!(practice.stats().count, 0);
}
