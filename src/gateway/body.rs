//! Bodies on their way through: small ones are kept to be sent again, others go on as they come.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::mpsc::Receiver;

use crate::dispatch::stream::OutBody;

/// Bytes of a request's body that are kept, so that it can be sent again.
pub(super) const REPLAYED: usize = 64 * 1024;

/// A request's body.
pub(super) enum Asked {
    /// All of it, and it can be sent again.
    Whole(Bytes),
    /// Some of it, and the rest to come: it can be sent once.
    Begun(Begun),
}

impl Asked {
    /// Reads a small body to its end, and of a larger one the beginning. One that is known to be larger
    /// is left alone.
    pub async fn read(mut body: Incoming) -> Result<Asked, hyper::Error> {
        let mut begun = VecDeque::new();
        let mut length = 0;
        if body.size_hint().lower() <= REPLAYED as u64 {
            while length <= REPLAYED {
                match body.frame().await.transpose()? {
                    Some(frame) => {
                        if let Ok(bytes) = frame.into_data() {
                            length += bytes.len();
                            begun.push_back(bytes);
                        }
                    }
                    None => return Ok(Asked::Whole(joined(begun, length))),
                }
            }
        }
        Ok(Asked::Begun(Begun { begun, rest: body, moved: Arc::default() }))
    }

    /// What is sent now, and what can be sent again.
    pub fn split(self) -> (OutBody, Option<Bytes>) {
        match self {
            Asked::Whole(bytes) if bytes.is_empty() => (OutBody::Empty, Some(bytes)),
            Asked::Whole(bytes) => (OutBody::Whole(bytes.clone()), Some(bytes)),
            Asked::Begun(body) => {
                let moved = Arc::clone(&body.moved);
                (OutBody::stream(body, moved), None)
            }
        }
    }
}

fn joined(mut pieces: VecDeque<Bytes>, length: usize) -> Bytes {
    if pieces.len() <= 1 {
        return pieces.pop_front().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(length);
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}

/// A body of which something was read already.
pub(super) struct Begun {
    begun: VecDeque<Bytes>,
    rest: Incoming,
    /// Rises with each piece that goes on.
    moved: Arc<AtomicU64>,
}

impl Body for Begun {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = match self.begun.pop_front() {
            Some(bytes) => Some(Ok(Frame::data(bytes))),
            None => ready!(Pin::new(&mut self.rest).poll_frame(context)),
        };
        self.moved.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let begun: u64 = self.begun.iter().map(|bytes| bytes.len() as u64).sum();
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + begun);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + begun);
        }
        hint
    }
}

/// An answer's body, as the caller is sent it.
pub enum Reply {
    /// All of it.
    Whole(Option<Bytes>),
    /// As it comes; an error breaks it off.
    Stream(Receiver<Result<Bytes, io::Error>>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Reply::Whole(bytes) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Reply::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Reply::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Reply::Stream(_) => SizeHint::default(),
        }
    }
}
