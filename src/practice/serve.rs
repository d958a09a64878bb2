//! The server: a call's head is read, its instant taken, the ledger asked, the answer sent.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::bomb;
use super::config::{Config, RetryAfter};
use super::ledger::{Arrival, Ledger, Ruling, Ticket, Verdict};
use super::script::{Answer, Manner};
use super::stats::{self, Stats};
use crate::clock::{Anchor, Timeline, Timestamp};

/// Bodies of calls are kept up to here.
const BODY_CAP: usize = 1 << 20;

/// From half of a cut body to the cut.
const CUT_PAUSE: Duration = Duration::from_millis(20);

/// A piece of a huge body.
const PIECE: [u8; 16 * 1024] = [b'x'; 16 * 1024];

/// What the connections share.
#[derive(Debug)]
pub(super) struct Upstream {
    config: Config,
    timeline: Timeline,
    ledger: Mutex<Ledger>,
}

impl Upstream {
    pub(super) fn new(config: Config) -> Upstream {
        let boot = config.clock.boot();
        let wall = config.clock.wall();
        let anchor = boot.map(|boot| Anchor::choose(None, &boot, wall, Timestamp::EPOCH));
        let timeline = Timeline::new(Arc::clone(&config.clock), anchor, Timestamp::EPOCH);
        Upstream { config, timeline, ledger: Mutex::default() }
    }

    pub(super) fn stats(&self) -> Stats {
        stats::stats(&self.config, &self.ledger())
    }

    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        self.ledger().arrivals.clone()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // What a panicking reader leaves behind is still every arrival.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was not answered yet; dropping it tells the ledger.
struct Open {
    upstream: Arc<Upstream>,
    ticket: Ticket,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.upstream.ledger().end(&self.ticket);
    }
}

pub(super) async fn serve(
    listener: TcpListener,
    upstream: Arc<Upstream>,
    left: oneshot::Receiver<()>,
) {
    let listener = listener.tap_io(|stream| {
        // Without it an answer may wait for the client's acknowledgement; the calls arrive all the same.
        let _ = stream.set_nodelay(true);
    });
    let service = Router::new().fallback(answer).with_state(upstream);
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, service).with_graceful_shutdown(async {
        // Sent, or the handle dropped: either way the server leaves.
        let _ = left.await;
    });
    // It never errs by itself: failing accepts are tried again.
    let _ = server.await;
}

async fn answer(
    State(upstream): State<Arc<Upstream>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if let Some(page) = own_page(&upstream, request.uri().path()) {
        return page;
    }
    // The instant is the head's arrival: a body that takes its time does not make the call later.
    let (head, body) = request.into_parts();
    let (number, ruling, open) = arrive(&upstream, &head, client);
    if let Ok(body) = axum::body::to_bytes(body, BODY_CAP).await
        && !body.is_empty()
        && let Some(arrival) = upstream.ledger().arrivals.get_mut(number)
    {
        arrival.body = body;
    }
    if !upstream.config.latency.is_zero() {
        upstream.timeline.sleep(upstream.config.latency).await;
    }
    match ruling {
        Ruling::Usual(nth) => usual(&upstream.config, head.uri.path(), nth),
        Ruling::Refuse(wait) => refuse(&upstream, wait),
        Ruling::Script(answer) => scripted(&upstream, answer, open).await,
    }
}

/// Writes a call down: its place among the arrivals, what it is answered, and that it is open.
fn arrive(upstream: &Arc<Upstream>, head: &Parts, client: SocketAddr) -> (usize, Ruling, Open) {
    let mut ledger = upstream.ledger();
    // Asked under the lock, so that arrivals stand in the order of their instants.
    let now = upstream.timeline.now();
    let arrival = Arrival {
        at: now.store,
        wall: now.wall,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers_hash: hash(&head.headers),
        headers: upstream.config.keeps_headers.then(|| head.headers.clone()),
        body: Bytes::new(),
        connection: client.port(),
        verdict: Verdict::Granted,
        early: false,
    };
    let number = ledger.arrivals.len();
    let (ruling, ticket) = ledger.rule(&upstream.config, now, arrival);
    (number, ruling, Open { upstream: Arc::clone(upstream), ticket })
}

/// The pages that tell what was seen.
fn own_page(upstream: &Upstream, path: &str) -> Option<Response> {
    let stats = || upstream.stats();
    match path {
        "/_stats" => {
            let json = serde_json::to_vec_pretty(&stats()).unwrap_or_default();
            Some(plain(200, &[("content-type", "application/json")], json.into()))
        }
        "/_count" => {
            let stats = stats();
            Some(plain(200, &[], format!("{} {}\n", stats.ok, stats.refused).into()))
        }
        _ => None,
    }
}

fn usual(config: &Config, path: &str, nth: u64) -> Response {
    let last = path.rsplit('/').next().unwrap_or_default();
    let body = config.body.replace("{last}", last).replace("{n}", &nth.to_string());
    plain(200, &[("content-type", "application/json")], body.into())
}

fn refuse(upstream: &Upstream, wait: Duration) -> Response {
    let up = |whole: u64, rest: u32| whole.saturating_add(u64::from(rest > 0)).max(1);
    let seconds = up(wait.as_secs(), wait.subsec_nanos()).to_string();
    let body = "over the limit: come back later\n".into();
    match upstream.config.retry_after {
        RetryAfter::Seconds => plain(429, &[("retry-after", &seconds)], body),
        RetryAfter::Date => {
            let at = upstream.timeline.now().wall + wait;
            let at = at.as_nanos().div_euclid(1_000_000_000).saturating_add(1);
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(at).unwrap_or(0));
            plain(429, &[("retry-after", &httpdate::fmt_http_date(at))], body)
        }
        RetryAfter::Millis => {
            let millis = wait.as_millis().saturating_add(1).to_string();
            plain(429, &[("retry-after", &seconds), ("retry-after-ms", &millis)], body)
        }
        RetryAfter::None => plain(429, &[], body),
    }
}

async fn scripted(upstream: &Arc<Upstream>, answer: Answer, open: Open) -> Response {
    if answer.manner == Manner::Hang {
        std::future::pending::<()>().await;
    }
    if !answer.delay.is_zero() {
        upstream.timeline.sleep(answer.delay).await;
    }
    let headers: Vec<(&str, &str)> =
        answer.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut response = plain(answer.status, &headers, Body::empty());
    *response.body_mut() = match answer.manner {
        Manner::Whole | Manner::Hang => Body::from(answer.body),
        Manner::Cut => {
            let length = HeaderValue::from(answer.body.len() + 1);
            response.headers_mut().insert("content-length", length);
            cut(answer.body, open)
        }
        Manner::Drip(pause) => drip(answer.body, pause, open),
        Manner::Huge(bytes) => huge(bytes, open),
        Manner::Bomb(bytes) => {
            response.headers_mut().insert("content-encoding", HeaderValue::from_static("gzip"));
            bomb(bytes, open)
        }
    };
    response
}

/// Half of a body, then an error, which closes the connection.
fn cut(mut body: Vec<u8>, open: Open) -> Body {
    body.truncate(body.len().div_ceil(2));
    let half = Some(Bytes::from(body));
    Body::from_stream(stream::unfold((half, open), |(half, open)| async {
        if let Some(half) = half {
            return Some((Ok(half), (None, open)));
        }
        // Time for head and half to leave: an error right behind them would overtake both.
        tokio::time::sleep(CUT_PAUSE).await;
        Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), (None, open)))
    }))
}

fn drip(body: Vec<u8>, pause: Duration, open: Open) -> Body {
    Body::from_stream(stream::unfold(
        (Bytes::from(body), open),
        move |(mut left, open)| async move {
            if left.is_empty() {
                return None;
            }
            let drop = left.split_to(1);
            open.upstream.timeline.sleep(pause).await;
            Some((Ok::<_, Infallible>(drop), (left, open)))
        },
    ))
}

fn huge(bytes: u64, open: Open) -> Body {
    Body::from_stream(stream::unfold((bytes, open), |(left, open)| async move {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE.len());
        let sent = PIECE.get(..piece).filter(|sent| !sent.is_empty())?;
        let left = left.saturating_sub(u64::try_from(piece).unwrap_or(u64::MAX));
        Some((Ok::<_, Infallible>(Bytes::from_static(sent)), (left, open)))
    }))
}

fn bomb(bytes: u64, open: Open) -> Body {
    let pieces = bomb::pieces(bytes);
    Body::from_stream(stream::unfold((pieces, open), |(mut pieces, open)| async move {
        Some((Ok::<_, Infallible>(pieces.next()?), (pieces, open)))
    }))
}

/// A response; a status or header that a script got wrong becomes a 500 that says so.
fn plain(status: u16, headers: &[(&str, &str)], body: Body) -> Response {
    let mut response = Response::new(body);
    let wrong = |what: &str| {
        let mut response =
            Response::new(Body::from(format!("the script's {what} cannot be sent\n")));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    };
    let Ok(status) = StatusCode::from_u16(status) else { return wrong("status") };
    *response.status_mut() = status;
    for (name, value) in headers {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        else {
            return wrong("header");
        };
        response.headers_mut().append(name, value);
    }
    response
}

fn hash(headers: &HeaderMap) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in headers {
        name.as_str().hash(&mut hasher);
        value.as_bytes().hash(&mut hasher);
    }
    hasher.finish()
}
