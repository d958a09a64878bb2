//! HTTP whose bodies go on as they come, both ways, packed as they are: for calls that pass through.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body as HttpBody;
use reqwest::header::{CONTENT_LENGTH, HeaderMap};
use reqwest::{Body, Method, StatusCode, Url};

use super::connections::Lent;
use super::transport::{NoAnswer, Packing, Ways, no_answer, too_late};
use crate::clock::{Timeline, Timestamp};

/// HTTP for calls that pass through.
#[derive(Debug)]
pub(crate) struct StreamTransport {
    ways: Ways,
    timeout: Duration,
}

/// A call that passes through.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: OutBody,
}

/// Its body.
#[derive(Debug)]
pub(crate) enum OutBody {
    /// None.
    Empty,
    /// All of it is here.
    Whole(Bytes),
    /// It comes while it goes; `moved` rises with each piece.
    Stream { body: Body, moved: Arc<AtomicU64> },
}

impl OutBody {
    /// One that comes while it goes, and makes `moved` rise with each piece.
    pub fn stream<B>(body: B, moved: Arc<AtomicU64>) -> OutBody
    where
        B: HttpBody<Data = Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        OutBody::Stream { body: Body::wrap(body), moved }
    }
}

/// An answer that has begun.
pub(crate) struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// When its head came in (wall time).
    pub received_at: Timestamp,
    /// The connection that it comes over, from 1, where they are counted.
    pub connection: Option<u32>,
    response: reqwest::Response,
    timeout: Duration,
    timeline: Timeline,
    /// Lent until the body has ended.
    _lent: Option<Lent<reqwest::Client>>,
}

impl StreamTransport {
    /// As for [`HttpTransport`](super::transport::HttpTransport); nothing that moves may stand still for
    /// longer than `timeout`.
    pub fn new(
        idle: usize,
        connections: Option<usize>,
        timeout: Duration,
    ) -> Result<StreamTransport, reqwest::Error> {
        let ways = Ways::new(idle, connections, timeout, Packing::Left)?;
        Ok(StreamTransport { ways, timeout })
    }

    /// The upstream refused a call over this connection, as too fast.
    pub fn refused(&self, connection: u32) {
        self.ways.refused(connection);
    }

    /// Sends a call, and waits for the head of its answer.
    pub async fn send(&self, call: Outgoing, timeline: &Timeline) -> Result<Opened, NoAnswer> {
        let lent = match &self.ways {
            Ways::Any(_) => None,
            Ways::Counted(connections) => {
                let lent = tokio::select! {
                    lent = connections.lend() => lent,
                    () = timeline.sleep(self.timeout) => None,
                };
                Some(lent.ok_or_else(|| too_late(false, self.timeout))?)
            }
        };
        let lent_connection = lent.as_ref().and_then(Lent::connection);
        let connection = lent_connection.map(|connection| connection.number);
        let client = match (&self.ways, lent_connection) {
            (Ways::Any(client), _) => client,
            (_, Some(connection)) => &connection.client,
            (Ways::Counted(_), None) => return Err(too_late(false, self.timeout)),
        };
        let has_length = matches!(call.method, Method::POST | Method::PUT | Method::PATCH);
        let request = client.request(call.method, call.url).headers(call.headers);
        let (request, moved) = match call.body {
            // Without it many servers answer 411.
            OutBody::Empty if has_length => (request.header(CONTENT_LENGTH, 0), Arc::default()),
            OutBody::Empty => (request, Arc::default()),
            OutBody::Whole(bytes) => (request.body(bytes), Arc::default()),
            OutBody::Stream { body, moved } => (request.body(body), moved),
        };
        let mut sending = std::pin::pin!(request.send());
        let response = loop {
            let before = moved.load(Ordering::Relaxed);
            tokio::select! {
                biased;
                response = &mut sending => break response,
                () = timeline.sleep(self.timeout) => {
                    if moved.load(Ordering::Relaxed) == before {
                        return Err(too_late(true, self.timeout));
                    }
                }
            }
        };
        let response = response.map_err(|error| no_answer(error, self.timeout))?;
        Ok(Opened {
            status: response.status(),
            headers: response.headers().clone(),
            received_at: timeline.now().wall,
            connection,
            response,
            timeout: self.timeout,
            timeline: timeline.clone(),
            _lent: lent,
        })
    }
}

impl Opened {
    /// The next piece of the body; `None`: it has ended.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NoAnswer> {
        tokio::select! {
            biased;
            chunk = self.response.chunk() => {
                chunk.map_err(|error| no_answer(error, self.timeout))
            }
            () = self.timeline.sleep(self.timeout) => Err(too_late(true, self.timeout)),
        }
    }
}
