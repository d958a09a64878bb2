//! A token server that counts, expires, fails and is slow; and an API beside it that takes its tokens.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{any, post};
use tokio::sync::oneshot;

/// What every token begins with.
pub const TOKEN: &str = "tok-hunter2-";

/// How it behaves; changed at any time.
#[derive(Clone, Debug)]
pub struct Manner {
    /// The API takes a token for so long.
    pub life: Duration,
    /// Whether its life is told.
    pub tells: bool,
    /// How long it thinks.
    pub delay: Duration,
    /// Answers instead of tokens, the next first: status, `Retry-After`, body.
    pub refusals: Vec<(u16, Option<&'static str>, &'static str)>,
    /// The API takes no token at all.
    pub shuts: bool,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            life: Duration::from_secs(3600),
            tells: true,
            delay: Duration::ZERO,
            refusals: Vec::new(),
            shuts: false,
        }
    }
}

/// One token request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at: Instant,
    pub headers: HeaderMap,
    pub form: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Book {
    manner: Manner,
    asked: Vec<Asked>,
    now_asking: usize,
    most_at_once: usize,
    issued: Vec<Instant>,
    /// Of the API: when, path, status.
    calls: Vec<(Instant, String, u16)>,
}

/// The server, for as long as it is not dropped.
pub struct TokenServer {
    book: Arc<Mutex<Book>>,
    port: u16,
    _stop: oneshot::Sender<()>,
}

type Shared = Arc<Mutex<Book>>;

impl TokenServer {
    pub fn start(manner: Manner) -> TokenServer {
        let book = Arc::new(Mutex::new(Book { manner, ..Book::default() }));
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, port) = std::sync::mpsc::channel();
        let shared = Arc::clone(&book);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap().port()).unwrap();
                let routes = Router::new()
                    .route("/token", post(token))
                    .fallback(any(call))
                    .with_state(shared);
                tokio::select! {
                    served = async { axum::serve(listener, routes).await } => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        TokenServer { book, port: port.recv().unwrap(), _stop: stop }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn change(&self, change: impl FnOnce(&mut Manner)) {
        change(&mut self.book.lock().unwrap().manner);
    }

    /// Token requests.
    pub fn asked(&self) -> Vec<Asked> {
        self.book.lock().unwrap().asked.clone()
    }

    /// Tokens that were given.
    pub fn issued(&self) -> usize {
        self.book.lock().unwrap().issued.len()
    }

    pub fn most_at_once(&self) -> usize {
        self.book.lock().unwrap().most_at_once
    }

    /// The API's calls: when, path, status.
    pub fn calls(&self) -> Vec<(Instant, String, u16)> {
        self.book.lock().unwrap().calls.clone()
    }

    /// The API's calls with that status.
    pub fn answered(&self, status: u16) -> usize {
        self.calls().iter().filter(|(_, _, answered)| *answered == status).count()
    }
}

type Reply = (StatusCode, [(&'static str, String); 1], String);

fn reply(status: u16, retry_after: Option<&str>, body: String) -> Reply {
    let status = StatusCode::from_u16(status).unwrap();
    let header = retry_after.map_or(("x-nothing", ""), |value| ("retry-after", value));
    (status, [(header.0, header.1.to_owned())], body)
}

async fn token(State(book): State<Shared>, headers: HeaderMap, body: Bytes) -> Reply {
    let manner = {
        let mut book = book.lock().unwrap();
        let form = url::form_urlencoded::parse(&body).into_owned().collect();
        book.asked.push(Asked { at: Instant::now(), headers, form });
        book.now_asking += 1;
        book.most_at_once = book.most_at_once.max(book.now_asking);
        book.manner.clone()
    };
    // So long that a second one would be seen.
    tokio::time::sleep(manner.delay.max(Duration::from_millis(20))).await;
    let mut book = book.lock().unwrap();
    book.now_asking -= 1;
    if !book.manner.refusals.is_empty() {
        let (status, retry_after, body) = book.manner.refusals.remove(0);
        return reply(status, retry_after, body.to_owned());
    }
    book.issued.push(Instant::now());
    let value = format!("{TOKEN}{}", book.issued.len());
    let told = if manner.tells {
        format!(",\"expires_in\":{}", manner.life.as_secs_f64())
    } else {
        String::new()
    };
    reply(200, None, format!("{{\"access_token\":\"{value}\"{told}}}"))
}

/// Every answer repeats the token.
async fn call(State(book): State<Shared>, uri: Uri, headers: HeaderMap) -> Reply {
    let mut book = book.lock().unwrap();
    let held = headers.get("authorization").and_then(|value| value.to_str().ok());
    let value = held.and_then(|held| held.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    let number = value.strip_prefix(TOKEN).and_then(|number| number.parse::<usize>().ok());
    let issued = number.and_then(|number| book.issued.get(number - 1));
    let is_good = issued.is_some_and(|at| at.elapsed() < book.manner.life) && !book.manner.shuts;
    let status = if is_good { 200 } else { 401 };
    book.calls.push((Instant::now(), uri.path().to_owned(), status));
    reply(status, None, format!("{{\"message\":\"your token was {value}\"}}"))
}
