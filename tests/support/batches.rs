//! An upstream that takes batches: it counts what each call carries, has a largest number, an allowance of
//! items, items it does not like, and answers each item by itself where it is asked to.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// What it is like.
#[derive(Clone, Default)]
pub struct Taking {
    /// More items than this are refused with 413.
    pub most: Option<usize>,
    /// Items that it takes; more than what is left of them are refused as Bing does.
    pub left: Option<usize>,
    /// A call with one of these is refused with 422.
    pub bad: BTreeSet<String>,
    /// So many calls at first are answered 403.
    pub closed: usize,
    /// Each item is answered by itself: 404 for those that end in `-gone`, 429 the first time for `-busy`.
    pub each: bool,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub status: u16,
    pub items: Vec<String>,
}

type Seen = Arc<Mutex<(Taking, Vec<Call>)>>;

/// A server that ends with this handle.
pub struct Batches {
    pub url: String,
    seen: Seen,
    _runtime: Runtime,
}

impl Batches {
    pub fn start(taking: Taking) -> Batches {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen = Arc::new(Mutex::new((taking, Vec::new())));
        let app = Router::new().route("/batch", post(answer)).with_state(Arc::clone(&seen));
        let app = app.layer(axum::extract::DefaultBodyLimit::disable());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/batch", listener.local_addr().unwrap());
        runtime.spawn(async { axum::serve(listener, app).await.unwrap() });
        Batches { url, seen, _runtime: runtime }
    }

    pub fn calls(&self) -> Vec<Call> {
        self.seen.lock().unwrap().1.clone()
    }

    /// How many items each call of that status carried, the largest first.
    pub fn sizes(&self, status: u16) -> Vec<usize> {
        let calls = self.calls().into_iter().filter(|call| call.status == status);
        let mut sizes: Vec<usize> = calls.map(|call| call.items.len()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }

    /// The items that were taken, in order.
    pub fn taken(&self) -> Vec<String> {
        let calls = self.calls().into_iter().filter(|call| call.status == 200);
        let mut taken: Vec<String> = calls.flat_map(|call| call.items).collect();
        taken.sort();
        taken
    }
}

async fn answer(State(seen): State<Seen>, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    let items: Vec<String> = body["urlList"]
        .as_array()
        .unwrap()
        .iter()
        .map(|url| url.as_str().unwrap().to_owned())
        .collect();
    let mut seen = seen.lock().unwrap();
    let (status, answer) = ruling(&mut seen, &items);
    seen.1.push(Call { status, items });
    (StatusCode::from_u16(status).unwrap(), answer.to_string()).into_response()
}

fn ruling(seen: &mut (Taking, Vec<Call>), items: &[String]) -> (u16, Value) {
    let before: Vec<String> = seen.1.iter().flat_map(|call| call.items.clone()).collect();
    let taking = &mut seen.0;
    if taking.closed > 0 {
        taking.closed -= 1;
        return (403, json!({"message": "Forbidden"}));
    }
    if taking.most.is_some_and(|most| items.len() > most) {
        return (413, json!({"message": "too many at a time"}));
    }
    if let Some(left) = &mut taking.left {
        if items.len() > *left {
            let (left, sent) = (*left, items.len());
            let message = format!("ERROR!!! Quota remaining for today: {left}, Submitted: {sent}");
            return (400, json!({"ErrorCode": 2, "Message": message}));
        }
        *left -= items.len();
    }
    if items.iter().any(|item| taking.bad.contains(item)) {
        return (422, json!({"message": "an address is not of the host"}));
    }
    let each = |url: &String| {
        let first = !before.contains(url);
        let status = match url {
            url if url.ends_with("-gone") => 404,
            url if url.ends_with("-busy") && first => 429,
            _ => 200,
        };
        json!({"url": url, "status": status, "n": url.len()})
    };
    let results: Vec<Value> =
        if taking.each { items.iter().map(each).collect() } else { Vec::new() };
    (200, json!({"d": null, "results": results}))
}
