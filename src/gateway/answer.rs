//! An upstream's answer on its way back: its beginning is read, all of it goes on.

use bytes::{Bytes, BytesMut};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{HeaderMap, StatusCode};

use super::unpack::unpack;
use crate::clock::Timestamp;
use crate::dispatch::prepare::ANSWER_CAP;
use crate::dispatch::stream::Opened;
use crate::dispatch::transport::{self, NoAnswer, Received};

/// An answer that says itself that it is no longer than this is read to its end before it goes on: so a
/// refusal within a success is seen in time.
const HELD: u64 = 64 * 1024;

/// An answer that has begun.
pub(super) struct Answer {
    opened: Opened,
    pieces: Vec<Bytes>,
    length: usize,
    /// The whole body is here.
    pub is_whole: bool,
}

impl Answer {
    /// Reads as much of an answer as there must be before it goes on. What comes after a HEAD is no body.
    pub async fn begin(opened: Opened, is_head: bool) -> Result<Answer, NoAnswer> {
        let mut answer = Answer { opened, pieces: Vec::new(), length: 0, is_whole: is_head };
        if answer.is_held() {
            while !answer.is_whole && answer.length < ANSWER_CAP {
                if let Err(broken) = answer.next().await {
                    return Err(NoAnswer { part: Some(Box::new(answer.received())), ..broken });
                }
            }
        }
        Ok(answer)
    }

    /// Whether it is read before it goes on: short ones are, and errors, but no endless streams.
    fn is_held(&self) -> bool {
        let headers = &self.opened.headers;
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let length = text(&CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        let is_stream =
            text(&CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        match length {
            Some(length) => length <= HELD || self.is_error(),
            None => self.is_error() && !is_stream,
        }
    }

    fn is_error(&self) -> bool {
        self.opened.status.as_u16() >= 400
    }

    /// The next piece, once what came before it has been read; `None`: there is none.
    pub async fn next(&mut self) -> Result<Option<Bytes>, NoAnswer> {
        if self.is_whole {
            return Ok(None);
        }
        let piece = self.opened.chunk().await?;
        match &piece {
            None => self.is_whole = true,
            Some(piece) if self.length < ANSWER_CAP => {
                self.length += piece.len();
                self.pieces.push(piece.clone());
            }
            Some(_) => {}
        }
        Ok(piece)
    }

    pub fn status(&self) -> StatusCode {
        self.opened.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.opened.headers
    }

    pub fn connection(&self) -> Option<u32> {
        self.opened.connection
    }

    /// The pieces so far.
    pub fn begun(&self) -> Vec<Bytes> {
        self.pieces.clone()
    }

    /// All of the body that is here.
    pub fn body(&self) -> Bytes {
        match self.pieces.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => {
                let mut body = BytesMut::with_capacity(self.length);
                many.iter().for_each(|piece| body.extend_from_slice(piece));
                body.freeze()
            }
        }
    }

    /// What is read of it: its beginning, unpacked.
    pub fn received(&self) -> Received {
        let packed = self.body();
        let coding = self.headers().get(CONTENT_ENCODING).and_then(|coding| coding.to_str().ok());
        let (body, is_all) = unpack(coding, &packed, ANSWER_CAP);
        let received_at: Timestamp = self.opened.received_at;
        Received {
            status: self.status().as_u16(),
            headers: transport::fields(self.headers()),
            body: body.into_owned(),
            cut: !(self.is_whole && is_all),
            received_at,
            connection: self.connection(),
        }
    }
}
