//! A proxy on this machine: any program's calls to `/UPSTREAM/path` go to the upstream's base address,
//! paced by the same store, limits, readings and secrets as everything else.
//!
//! | file | noun |
//! | --- | --- |
//! | `serve`, `watched` | connections; the caller at the other end |
//! | `door` | PURE: who may come in |
//! | `target`, `base` | PURE: what is asked for; where an upstream's calls go |
//! | `places` | which upstream and address a target leads to |
//! | `wish` | PURE: what a caller says in `Paceline-*` headers |
//! | `asked` | PURE: a request as a job |
//! | `exchange` | one request's way |
//! | `passage` | a call with its permit: it leaves, is passed back, is settled |
//! | `fields` | PURE: which header fields go on |
//! | `body`, `answer`, `unpack` | bodies passing through, and how much of them is read |
//! | [`problem`], `refusal`, `quota_fields` | PURE: answers of our own |
//! | `transports` | what calls go over |

mod answer;
mod asked;
mod base;
mod body;
mod door;
mod exchange;
mod fields;
mod passage;
mod places;
pub mod problem;
mod quota_fields;
mod refusal;
mod serve;
mod target;
mod transports;
mod unpack;
mod watched;
mod wish;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::client::Paceline;
use crate::dispatch::Leave;
use crate::quota::Upstream;
use base::Base;
use door::Door;
use exchange::Exchange;
use places::Places;
use transports::Transports;

/// How long a caller waits that does not say so itself.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// What a gateway serves, and to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// Upstreams by name; empty: all that are declared.
    pub upstreams: Vec<String>,
    /// How long a caller waits that does not say so itself.
    pub max_wait: Duration,
    /// Whether it may use what budgets keep for people (`reserve`).
    pub use_reserve: bool,
    /// What callers must say; needed where others than this machine reach it.
    pub token: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            upstreams: Vec::new(),
            max_wait: MAX_WAIT,
            use_reserve: false,
            token: None,
        }
    }
}

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Others than this machine would reach it, and no token keeps them out.
    #[error("whoever reaches {0} could spend your quota with your secrets: a token is needed")]
    Open(SocketAddr),
    /// The address cannot be listened on.
    #[error("{listen} cannot be listened on: {source}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// A gateway that listens.
pub struct Gateway {
    listener: TcpListener,
    at: SocketAddr,
    exchange: Arc<Exchange>,
    unsettled: mpsc::Receiver<()>,
    leaving: watch::Sender<bool>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Listens; what comes in is served by [`Gateway::serve`].
    ///
    /// # Errors
    ///
    /// An address that others reach, without a token; one that cannot be listened on.
    pub async fn bind(paceline: Paceline, options: Options) -> Result<Gateway, GatewayError> {
        let listen = options.listen;
        if options.token.is_none() && !listen.ip().is_loopback() {
            return Err(GatewayError::Open(listen));
        }
        let unlistened = |source| GatewayError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(unlistened)?;
        let at = listener.local_addr().map_err(unlistened)?;
        let (leaving, leave) = watch::channel(false);
        let (held, unsettled) = mpsc::channel(1);
        let exchange = Arc::new(Exchange {
            door: Door::new(at, options.token.as_deref()),
            places: Places::new(Arc::clone(paceline.library()), options.upstreams),
            paceline,
            transports: Transports::default(),
            max_wait: options.max_wait,
            use_reserve: options.use_reserve,
            leave,
            unsettled: held,
        });
        Ok(Gateway { listener, at, exchange, unsettled, leaving })
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Serves until `leave` becomes true. Who waits for a turn is then told so; calls that are out are
    /// awaited, passed on and settled.
    pub async fn serve(self, mut leave: Leave) {
        let Gateway { listener, exchange, mut unsettled, leaving, .. } = self;
        let answers = Arc::clone(&exchange);
        let leave = async move {
            if leave.wait_for(|leave| *leave).await.is_err() {
                // Nobody can tell it any more.
                std::future::pending::<()>().await;
            }
            let _ = leaving.send(true);
        };
        serve::serve(listener, answers, leave).await;
        // Each call that is not settled yet holds a sender.
        drop(exchange);
        while unsettled.recv().await.is_some() {}
    }
}

/// Where calls to `http://GATEWAY/NAME/` of this upstream go; `None`: its quota file does not say.
pub fn base_url(upstream: &Upstream) -> Option<String> {
    Base::of(upstream).map(|base| base.to_string())
}
