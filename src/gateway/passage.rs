//! A call that has its permit: it leaves, its answer goes back to the caller, and is settled as what it
//! was, whether or not the caller is still there.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue, LOCATION};
use hyper::{HeaderMap, Method, Response};
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::answer::Answer;
use super::base::Base;
use super::body::Reply;
use super::fields;
use super::problem::Problem;
use crate::client::Permit;
use crate::clock::{Timeline, Timestamp};
use crate::dispatch::stream::{Outgoing, StreamTransport};
use crate::dispatch::transport::{NoAnswer, Received};
use crate::job::{Columns, JobId};
use crate::quota::Upstream;
use crate::reading::{self, Reason};

/// Pieces of an answer that wait for a slow caller.
const AHEAD: usize = 4;

/// The job's number, on what is passed on: `paceline show` tells the rest.
const JOB: HeaderName = HeaderName::from_static("paceline-job");

/// What came of a call.
pub(super) enum Came {
    /// It goes to the caller.
    Answer(Response<Reply>),
    /// It was refused, and may go again before the caller stops waiting.
    Again,
    /// It was refused for its token, and may go again at once with another.
    Renewed,
    /// There is no answer.
    Silence(Problem),
}

/// A call with its permit.
pub(super) struct Passage {
    pub permit: Permit,
    pub timeline: Timeline,
    pub transport: Arc<StreamTransport>,
    pub call: Outgoing,
    pub back: Back,
    /// Until when the caller waits for a call that goes again (wall time); `None`: it cannot be sent
    /// again.
    pub waits_until: Option<Timestamp>,
    /// One refused for its token goes again with the next one.
    pub may_renew: bool,
    pub partition: Columns,
}

impl Passage {
    /// Takes the call to its end.
    pub async fn go(self, came: oneshot::Sender<Came>) {
        let Passage { permit, timeline, transport, call, back, waits_until, may_renew, partition } =
            self;
        let is_head = call.method == Method::HEAD;
        let begun = match transport.send(call, &timeline).await {
            Ok(opened) => Answer::begin(opened, is_head).await,
            Err(none) => Err(none),
        };
        match begun {
            Ok(answer) if answer.is_whole => {
                let received = answer.received();
                let reason = back.reason(&partition, &received);
                if let (Reason::RateLimited, Some(connection)) = (reason, received.connection) {
                    transport.refused(connection);
                }
                let renews = may_renew && reason == Reason::AuthExpired;
                let waits = waits_until.filter(|_| renews || is_not_now(reason));
                whole(permit, answer, received, &back, waits, renews, came).await;
            }
            Ok(answer) => streamed(permit, answer, &back, came).await,
            Err(none) => {
                let _ = came.send(Came::Silence(silence(&none, &back.upstream.name)));
                let _ = permit.broken_off(&none).await;
            }
        }
    }
}

/// An answer that is all here. A refusal that the caller can wait for does not go to it.
async fn whole(
    permit: Permit,
    answer: Answer,
    received: Received,
    back: &Back,
    waits_until: Option<Timestamp>,
    renews: bool,
    came: oneshot::Sender<Came>,
) {
    let Some(until) = waits_until else {
        // The caller need not wait until it is written down.
        let _ = came.send(Came::Answer(back.whole(&answer)));
        // Where the store is in trouble, its own retries have failed; the lease tells what became of it.
        let _ = permit.received(&received).await;
        return;
    };
    let verdict = permit.received(&received).await;
    let goes_again =
        verdict.is_ok_and(|verdict| renews || verdict.retry_at.is_some_and(|at| at <= until));
    let told = match goes_again {
        true if renews => Came::Renewed,
        true => Came::Again,
        false => Came::Answer(back.whole(&answer)),
    };
    let _ = came.send(told);
}

/// An answer that goes on as it comes.
async fn streamed(permit: Permit, mut answer: Answer, back: &Back, came: oneshot::Sender<Came>) {
    let (pieces, body) = mpsc::channel(AHEAD);
    let response = back.response(&answer, Reply::Stream(body));
    let broken = match came.send(Came::Answer(response)) {
        Ok(()) => pass_on(&mut answer, pieces).await,
        // The caller is gone before its answer.
        Err(_) => None,
    };
    match broken {
        Some(none) => {
            let part = Some(Box::new(answer.received()));
            let _ = permit.broken_off(&NoAnswer { part, ..none }).await;
        }
        None => {
            let _ = permit.received(&answer.received()).await;
        }
    }
}

/// Passes an answer on as it comes, as long as somebody takes it; tells how it broke off, where it did.
async fn pass_on(
    answer: &mut Answer,
    pieces: mpsc::Sender<Result<Bytes, io::Error>>,
) -> Option<NoAnswer> {
    for piece in answer.begun() {
        pieces.send(Ok(piece)).await.ok()?;
    }
    loop {
        let piece = tokio::select! {
            piece = answer.next() => piece,
            () = pieces.closed() => return None,
        };
        match piece {
            Ok(Some(piece)) => pieces.send(Ok(piece)).await.ok()?,
            Ok(None) => return None,
            Err(none) => {
                // Whoever reads it sees that it is not whole.
                let _ = pieces.send(Err(io::Error::other("the answer broke off"))).await;
                return Some(none);
            }
        }
    }
}

/// What waiting alone can change.
fn is_not_now(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::RateLimited
            | Reason::QuotaExhausted
            | Reason::ConcurrencyLimited
            | Reason::Overloaded
            | Reason::KeyPending
    )
}

fn silence(none: &NoAnswer, upstream: &str) -> Problem {
    let detail = format!("{upstream} did not answer: {}", none.detail);
    let status = if none.left { 504 } else { 502 };
    Problem::new(status, "no_answer", detail).of(upstream)
}

/// How an answer is shown to the caller.
pub(super) struct Back {
    pub upstream: Arc<Upstream>,
    pub job: JobId,
    pub method: Method,
    pub sent_to: Url,
    /// Where the caller sees the upstream's addresses as the gateway's own.
    pub base: Option<Base>,
}

impl Back {
    /// What an answer says.
    fn reason(&self, partition: &Columns, received: &Received) -> Reason {
        let answer = reading::Answer {
            method: self.method.as_str(),
            url: self.sent_to.as_str(),
            received_at: received.received_at,
            status: received.status,
            headers: &received.headers,
            body: &received.body,
        };
        reading::read_for(partition, Some(&self.upstream), &answer).reason
    }

    fn whole(&self, answer: &Answer) -> Response<Reply> {
        self.response(answer, Reply::Whole(Some(answer.body())))
    }

    fn response(&self, answer: &Answer, body: Reply) -> Response<Reply> {
        let mut response = Response::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = self.headers(answer.headers());
        response
    }

    fn headers(&self, headers: &HeaderMap) -> HeaderMap {
        let mut back = fields::back(headers);
        let location = back.get(LOCATION).and_then(|location| location.to_str().ok());
        let through = self.base.as_ref().zip(location).and_then(|(base, location)| {
            base.through_gateway(&self.sent_to, location, &self.upstream.name)
        });
        if let Some(Ok(location)) = through.map(|location| HeaderValue::from_str(&location)) {
            back.insert(LOCATION, location);
        }
        back.insert(JOB, HeaderValue::from(self.job.0));
        back
    }
}
