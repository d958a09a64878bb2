//! HTTP: one client an upstream. Nothing is sent twice and no redirect followed behind our back.

use std::error::Error;
use std::time::Duration;

use reqwest::header::HeaderMap;

use super::prepare::Prepared;
use crate::clock::{Timeline, Timestamp};

/// Bytes of a body that are read, counted after decompression.
const READ_CAP: usize = 1024 * 1024;

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
}

/// There was no answer.
#[derive(Clone, Debug)]
pub struct NoAnswer {
    /// Whether any of the call may have reached the upstream.
    pub left: bool,
    /// What happened, without the address.
    pub detail: String,
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
}

/// reqwest with rustls.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: reqwest::Client,
}

impl HttpTransport {
    /// A client that keeps up to `idle` connections a host alive.
    pub fn new(idle: usize) -> Result<HttpTransport, reqwest::Error> {
        // The first in a process decides; a program that chose its own keeps it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("paceline/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .tcp_nodelay(true)
            .pool_max_idle_per_host(idle)
            .build()?;
        Ok(HttpTransport { client })
    }
}

impl Transport for HttpTransport {
    async fn send(
        &self,
        call: Prepared,
        timeout: Duration,
        timeline: &Timeline,
    ) -> Result<Received, NoAnswer> {
        let mut request =
            self.client.request(call.method, call.url).headers(call.headers).timeout(timeout);
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let mut response = request.send().await.map_err(|error| no_answer(error, timeout))?;
        let received_at = timeline.now().wall;
        let status = response.status().as_u16();
        let headers = fields(response.headers());
        let mut body = Vec::new();
        let mut cut = false;
        while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(error, timeout))? {
            let room = READ_CAP - body.len();
            cut = chunk.len() > room;
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if cut {
                break;
            }
        }
        Ok(Received { status, headers, body, cut, received_at })
    }
}

fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// What reqwest says, without the address: it may hold a secret.
fn no_answer(error: reqwest::Error, timeout: Duration) -> NoAnswer {
    // Neither a connection that never came about nor a request that could not be made has left.
    let left = !error.is_connect() && !error.is_builder();
    let error = error.without_url();
    if error.is_timeout() {
        let what = if left { "no whole answer" } else { "no connection" };
        return NoAnswer { left, detail: format!("{what} within {} s", timeout.as_secs_f64()) };
    }
    let (mut detail, mut cause) = match error.is_connect() {
        // Between the two stands only that it is the client's error, to connect.
        true => ("cannot connect".to_owned(), error.source().and_then(std::error::Error::source)),
        false => (error.to_string(), error.source()),
    };
    while let Some(because) = cause {
        detail = format!("{detail}: {because}");
        cause = because.source();
    }
    NoAnswer { left, detail }
}
