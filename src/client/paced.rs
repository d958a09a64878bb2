//! What the layers of other clients share: a permit before the call, and a body that completes it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http::{HeaderMap, Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{Error, Paceline, Permit};

/// Bytes of a body that are looked at to find out what an answer means.
const LOOKED_AT: usize = 64 * 1024;

/// How calls are paced.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    paceline: Paceline,
    upstream: String,
    pub max_wait: Option<Duration>,
    pub with_headers: bool,
}

impl Pace {
    pub fn new(paceline: Paceline, upstream: String) -> Pace {
        Pace { paceline, upstream, max_wait: None, with_headers: false }
    }

    pub async fn acquire(&self, method: &Method, url: &str) -> Result<Permit, Error> {
        let mut acquire = self.paceline.acquire(self.upstream.as_str());
        acquire = acquire.method(method.as_str()).url(url);
        if let Some(span) = self.max_wait {
            acquire = acquire.max_wait(span);
        }
        if self.with_headers {
            acquire = acquire.with_headers();
        }
        acquire.await
    }

    /// Adds the quota file's header fields to those of the call.
    pub fn add_headers(&self, permit: &Permit, headers: &mut HeaderMap) {
        for (name, value) in &permit.headers() {
            if !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
    }
}

pin_project! {
    /// The body of an answer: read to its end, or dropped, it completes the call's permit.
    #[derive(Debug)]
    pub struct PacedBody<B> {
        #[pin]
        body: B,
        held: Held,
    }
}

/// The permit, and what is known of the answer.
#[derive(Debug)]
struct Held {
    permit: Option<Permit>,
    status: u16,
    headers: Vec<(String, String)>,
    seen: Vec<u8>,
    cut: bool,
}

impl Held {
    fn see(&mut self, data: &[u8]) {
        let room = LOOKED_AT - self.seen.len();
        self.cut |= data.len() > room;
        self.seen.extend_from_slice(data.get(..room).unwrap_or(data));
    }

    /// `whole`: nothing more comes.
    fn complete(&mut self, whole: bool) {
        if let Some(permit) = self.permit.take() {
            permit.answered_by(self.status, &self.headers, &self.seen, self.cut || !whole);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.complete(false);
    }
}

impl<B> PacedBody<B> {
    pub(super) fn new(permit: Permit, status: StatusCode, headers: &HeaderMap, body: B) -> Self {
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        let held = Held {
            permit: Some(permit),
            status: status.as_u16(),
            headers: headers.collect(),
            seen: Vec::new(),
            cut: false,
        };
        PacedBody { body, held }
    }
}

impl<B: Body> Body for PacedBody<B> {
    type Data = bytes::Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, B::Error>>> {
        let this = self.project();
        let polled = this.body.poll_frame(context);
        polled.map(|frame| match frame {
            Some(Ok(frame)) => {
                let frame = frame.map_data(|mut data| data.copy_to_bytes(data.remaining()));
                if let Some(data) = frame.data_ref() {
                    this.held.see(data);
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                this.held.complete(false);
                Some(Err(error))
            }
            None => {
                this.held.complete(true);
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
