//! HTTP: one client an upstream, or one a connection. Nothing is sent twice and no redirect followed behind our back.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, HeaderMap};

use super::connections::Connections;
use super::prepare::Prepared;
use crate::clock::{Timeline, Timestamp};

/// What has come in by the timeout is still read for so long.
const GRACE: Duration = Duration::from_millis(50);

/// An answer as it came in.
#[derive(Clone, Debug)]
pub struct Received {
    /// The status.
    pub status: u16,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// The body, up to the cap.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
    /// When the head came in (wall time).
    pub received_at: Timestamp,
    /// The connection that it came over, from 1, where the upstream declares `connections`.
    pub connection: Option<u32>,
}

/// There was no answer, or no whole one.
#[derive(Clone, Debug)]
pub struct NoAnswer {
    /// Whether any of the call may have reached the upstream.
    pub left: bool,
    /// What happened, without the address.
    pub detail: String,
    /// What came before it broke off: a head, and perhaps a part of the body.
    pub part: Option<Box<Received>>,
}

/// What sends calls: [`HttpTransport`] for programs, a model of an upstream for tests.
pub trait Transport: Send + Sync + 'static {
    /// Sends one call and reads its answer.
    fn send(
        &self,
        call: Prepared,
        timeout: Duration,
        timeline: &Timeline,
    ) -> impl Future<Output = Result<Received, NoAnswer>> + Send;

    /// The upstream refused a call over this connection, as too fast.
    fn refused(&self, connection: u32) {
        let _ = connection;
    }
}

/// reqwest with rustls.
#[derive(Debug)]
pub struct HttpTransport {
    ways: Ways,
    spool: Option<Arc<dyn Spool>>,
}

/// What becomes of a packed body on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// It is asked for, and unpacked.
    Undone,
    /// It is left as it comes.
    #[cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "only the gateway does so"))]
    Left,
}

/// What calls go over.
#[derive(Debug)]
pub(super) enum Ways {
    /// As many connections as are needed.
    Any(reqwest::Client),
    /// Just so many.
    Counted(Arc<Connections<reqwest::Client>>),
}

/// Where a body goes as a whole, unpacked, beyond what is read of it at once.
pub trait Spool: std::fmt::Debug + Send + Sync {
    /// Another answer begins, with its status and header fields: what was written of an earlier one does not
    /// count.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    fn begin(&self, status: u16, headers: &[(String, String)]) -> io::Result<()>;

    /// Takes a part of the body; tells whether that is enough of it.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    fn write(&self, part: &[u8]) -> io::Result<bool>;
}

impl HttpTransport {
    /// What keeps up to `idle` connections a host alive, or spreads calls over just the `connections`
    /// that are declared, and gives a connection up that has not come about within `timeout`.
    ///
    /// # Errors
    ///
    /// A client cannot be made: the machine's certificates cannot be read, as a rule.
    pub fn new(
        idle: usize,
        connections: Option<usize>,
        timeout: Duration,
    ) -> Result<HttpTransport, reqwest::Error> {
        let ways = Ways::new(idle, connections, timeout, Packing::Undone)?;
        Ok(HttpTransport { ways, spool: None })
    }

    /// Bodies go to `spool` too: one call at a time.
    #[must_use]
    pub fn with_spool(self, spool: Arc<dyn Spool>) -> HttpTransport {
        HttpTransport { spool: Some(spool), ..self }
    }
}

fn builder(idle: usize, timeout: Duration, packing: Packing) -> reqwest::ClientBuilder {
    let undone = packing == Packing::Undone;
    reqwest::Client::builder()
        .gzip(undone)
        .brotli(undone)
        .deflate(undone)
        .zstd(undone)
        .user_agent(concat!("paceline/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(idle)
        .connect_timeout(timeout)
}

impl Transport for HttpTransport {
    async fn send(
        &self,
        call: Prepared,
        timeout: Duration,
        timeline: &Timeline,
    ) -> Result<Received, NoAnswer> {
        let part = Part::default();
        let spool = call.spool.clone().or_else(|| self.spool.clone());
        let exchange = self.ways.exchange(call, timeout, timeline, spool.as_deref(), &part);
        tokio::pin!(exchange);
        let answer = tokio::select! {
            biased;
            answer = &mut exchange => answer,
            () = timeline.sleep(timeout) => {
                // A process that was stopped finds both an answer that came and its time over.
                tokio::select! {
                    biased;
                    answer = exchange => answer,
                    () = timeline.sleep(GRACE) => Err(too_late(true, timeout)),
                }
            }
        };
        answer.map_err(|none| NoAnswer { part: part.take(), ..none })
    }

    fn refused(&self, connection: u32) {
        self.ways.refused(connection);
    }
}

impl Ways {
    /// As for [`HttpTransport::new`].
    pub fn new(
        idle: usize,
        connections: Option<usize>,
        timeout: Duration,
        packing: Packing,
    ) -> Result<Ways, reqwest::Error> {
        // The first in a process decides; a program that chose its own keeps it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Some(count) = connections else {
            return Ok(Ways::Any(builder(idle, timeout, packing).build()?));
        };
        // HTTP/2 would put several calls on one.
        let make = move || builder(1, timeout, packing).http1_only().build();
        let clients = (0..count).map(|_| make()).collect::<Result<_, _>>()?;
        let connections = Connections::new(clients, Box::new(move || make().ok()));
        Ok(Ways::Counted(Arc::new(connections)))
    }

    /// The upstream refused a call over this connection, as too fast.
    pub fn refused(&self, connection: u32) {
        if let Ways::Counted(connections) = self {
            connections.refused(connection);
        }
    }

    async fn exchange(
        &self,
        call: Prepared,
        timeout: Duration,
        timeline: &Timeline,
        spool: Option<&dyn Spool>,
        part: &Part,
    ) -> Result<Received, NoAnswer> {
        match self {
            Ways::Any(client) => {
                let over = Over { client, connection: None, timeout, timeline };
                exchange(&over, call, spool, part).await
            }
            Ways::Counted(connections) => {
                let answer = connections.with(async |connection| {
                    let (client, connection) = (&connection.client, Some(connection.number));
                    let over = Over { client, connection, timeout, timeline };
                    exchange(&over, call, spool, part).await
                });
                answer.await.unwrap_or_else(|| Err(too_late(false, timeout)))
            }
        }
    }
}

/// What has come in of an answer so far: it outlives an exchange that is given up.
#[derive(Debug, Default)]
struct Part(Mutex<Option<Box<Received>>>);

impl Part {
    fn lock(&self) -> MutexGuard<'_, Option<Box<Received>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Box<Received>> {
        self.lock().take()
    }

    /// Takes a piece of the body, up to the cap; tells whether there was more.
    fn grow(&self, chunk: &[u8], cap: usize) -> bool {
        let mut part = self.lock();
        let Some(received) = part.as_mut() else { return false };
        let room = cap - received.body.len();
        let is_cut = chunk.len() > room;
        grow(&mut received.body, chunk.len(), cap);
        received.body.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        is_cut
    }
}

/// What a call goes over, and for how long.
struct Over<'o> {
    client: &'o reqwest::Client,
    connection: Option<u32>,
    timeout: Duration,
    timeline: &'o Timeline,
}

async fn exchange(
    over: &Over<'_>,
    call: Prepared,
    spool: Option<&dyn Spool>,
    part: &Part,
) -> Result<Received, NoAnswer> {
    let failed = |error| no_answer(error, over.timeout);
    let has_length = matches!(call.method, Method::POST | Method::PUT | Method::PATCH);
    let mut request = over.client.request(call.method, call.url).headers(call.headers);
    match call.body {
        Some(body) => request = request.body(body),
        // Without it many servers answer 411.
        None if has_length => request = request.header(CONTENT_LENGTH, 0),
        None => {}
    }
    let mut response = request.send().await.map_err(failed)?;
    let (status, headers) = (response.status().as_u16(), fields(response.headers()));
    spool.map_or(Ok(()), |spool| spool.begin(status, &headers)).map_err(unkept)?;
    *part.lock() = Some(Box::new(Received {
        status,
        headers,
        body: Vec::new(),
        cut: true,
        received_at: over.timeline.now().wall,
        connection: over.connection,
    }));
    let mut cut = false;
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        cut |= part.grow(&chunk, call.answer_cap);
        let is_enough = match spool {
            Some(spool) => spool.write(&chunk).map_err(unkept)?,
            None => cut,
        };
        if is_enough {
            break;
        }
    }
    let whole = part.take().ok_or_else(|| too_late(true, over.timeout))?;
    Ok(Received { cut, ..*whole })
}

fn unkept(error: io::Error) -> NoAnswer {
    NoAnswer { left: true, detail: format!("the answer cannot be kept: {error}"), part: None }
}

pub(super) fn too_late(left: bool, timeout: Duration) -> NoAnswer {
    let what = if left { "no whole answer" } else { "no connection" };
    NoAnswer { left, detail: format!("{what} within {} s", timeout.as_secs_f64()), part: None }
}

/// Doubled as a vector doubles itself, but never beyond the cap.
fn grow(body: &mut Vec<u8>, more: usize, cap: usize) {
    let needed = (body.len() + more).min(cap);
    if needed > body.capacity() {
        let room = (body.capacity() * 2).clamp(needed, cap);
        body.reserve_exact(room - body.len());
    }
}

pub(crate) fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Why it came about, the nearest first.
fn causes(error: &dyn Error) -> Vec<String> {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(because) = cause {
        causes.push(because.to_string());
        cause = because.source();
    }
    causes
}

/// What reqwest says, without the address but for its host: it may hold a secret.
pub(super) fn no_answer(error: reqwest::Error, timeout: Duration) -> NoAnswer {
    // Neither a connection that never came about nor a request that could not be made has left.
    let is_connect = error.is_connect();
    let left = !is_connect && !error.is_builder();
    let host = error.url().and_then(|url| url.host_str()).map(str::to_owned);
    let error = error.without_url();
    if error.is_timeout() {
        return too_late(left, timeout);
    }
    let causes = causes(&error);
    // The client's own layers say no more than that.
    let (what, causes) = match (&host, causes.as_slice()) {
        (Some(host), [_, causes @ ..]) if is_connect => {
            (format!("no connection to {host}"), causes)
        }
        (_, causes) => (error.to_string(), causes),
    };
    let detail = causes.iter().fold(what, |text, cause| format!("{text}: {cause}"));
    NoAnswer { left, detail, part: None }
}
