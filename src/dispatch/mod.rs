//! The loop: claim → send → read → next → settle.
//!
//! | file | noun |
//! | --- | --- |
//! | [`events`] | what happens, as a documented list |
//! | `lane` | one upstream's loop: claims, settles, waits |
//! | `call` | one call's way: its slot, its mark, the send, the reading |
//! | `prepare` | a request with its secrets filled in |
//! | `guard` | the last count before a send |
//! | `transport` | HTTP |

pub mod events;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Timestamp;
use crate::quota::library::Library;
use crate::store::{Store, StoreError};
pub use events::Event;

/// How long, and for whom, a runner works.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Upstreams by name; empty: all that have jobs.
    pub upstreams: Vec<String>,
    /// Leave an upstream when its next permit is further off than this.
    pub max_wait: Option<Duration>,
    /// Leave at this instant (wall time).
    pub until: Option<Timestamp>,
    /// Send at most this many calls.
    pub count: Option<u64>,
    /// Stay for new jobs.
    pub follow: bool,
    /// Calls in flight at once, at most.
    pub concurrency: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            upstreams: Vec::new(),
            max_wait: None,
            until: None,
            count: None,
            follow: false,
            concurrency: 64,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Calls that left.
    pub sent: u64,
    /// Jobs of this run that were done.
    pub done: u64,
    /// Jobs of this run that failed.
    pub failed: u64,
    /// Jobs that this run found too late.
    pub expired: u64,
    /// Jobs of this run, or found by it, that may have been sent and must not be sent twice.
    pub unsure: u64,
    /// Queued jobs that a person must let go, of the upstreams that were served.
    pub held: u64,
    /// Other queued jobs of these upstreams.
    pub waiting: u64,
    /// When the first of those that wait can go (wall time); `None`: no instant can be named.
    pub next_at: Option<Timestamp>,
    /// The upstream whose job goes then.
    pub next_upstream: Option<String>,
    /// The limit that binds until then.
    pub limit: Option<String>,
    /// Whether somebody asked the run to leave.
    pub interrupted: bool,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The store cannot do its work, and the trouble will not pass by itself.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No quota file for an upstream that was named.
    #[error(transparent)]
    Library(#[from] crate::quota::library::LibraryError),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Client(#[source] reqwest::Error),
}

/// Tells a runner to leave: set it to true and it drains.
pub type Leave = watch::Receiver<bool>;

/// Serves upstreams until nothing is left that it may wait for. `tell` hears every [`Event`].
///
/// # Errors
///
/// Where the store cannot be used at all. What an upstream says, or lacks, is never an error.
pub async fn run<S: Store>(
    store: S,
    library: Arc<Library>,
    options: RunOptions,
    leave: Leave,
    tell: Arc<dyn Fn(&Event) + Send + Sync>,
) -> Result<Report, RunError> {
    let _ = (store, library, options, leave, tell);
    todo!()
}
