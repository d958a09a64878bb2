//! What happens, as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, stream};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::dispatch::{Event, Tell};

/// Events that one who listens may be behind; older ones are lost to it.
const KEPT: usize = 1024;

/// Where events come from.
#[derive(Clone, Debug)]
pub(super) struct Source(broadcast::Sender<Event>);

impl Source {
    pub fn new() -> Source {
        Source(broadcast::Sender::new(KEPT))
    }

    /// What tells both: whoever listens, and `tell`.
    pub fn beside(&self, tell: Tell) -> Tell {
        let events = self.0.clone();
        Arc::new(move |event| {
            if events.receiver_count() > 0 {
                // Whoever listened may have left meanwhile.
                let _ = events.send(event.clone());
            }
            tell(event);
        })
    }

    pub fn listen(&self) -> Events {
        let next = |mut events: broadcast::Receiver<Event>| async move {
            loop {
                match events.recv().await {
                    Ok(event) => return Some((event, events)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        };
        Events(Box::pin(stream::unfold(self.0.subscribe(), next)))
    }
}

/// Events from the moment at which it was asked for. Who falls far behind loses the oldest; it ends with
/// the last handle.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Events(Pin<Box<dyn Stream<Item = Event> + Send>>);

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}
