//! A practice upstream: an HTTP server on this machine that enforces what it declares, to the
//! nanosecond, and counts everything that reaches it. The demo and the tests call it instead of a
//! real service. Feature `practice`.
//!
//! ```no_run
//! use std::time::Duration;
//! use paceline::practice::{Answer, Config, Limit, Practice, Rule, Script};
//!
//! # async fn example() -> std::io::Result<()> {
//! let config = Config::new()
//!     .rule(Rule::new("plan", Limit::Bucket { units: 40, per: Duration::from_secs(1), burst: 10 }))
//!     .rule(Rule::new("daily", Limit::day(200, chrono_tz::America::Los_Angeles)).by_query("site"))
//!     .script(Script::new("/stock/978*", Answer::new(404).body("no such book")))
//!     .script(Script::new("*", Answer::refusal(Duration::from_secs(3))).from(60).times(1).closing("*"));
//! let practice = Practice::start(config).await?;
//! let address = practice.url("/stock/{isbn}");        // http://127.0.0.1:PORT/stock/{isbn}
//! // ... let Paceline call it ...
//! let stats = practice.stats();                       // also as JSON at /_stats
//! assert_eq!((stats.refused, stats.early), (0, 0));
//! assert!(stats.rules.iter().all(|rule| rule.excess_offered <= 0.0));
//! practice.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! - **Rules** ([`Rule`], [`Limit`]): token bucket, rolling window, fixed window, calendar day in a
//!   zone, calls in flight. Every rule that a call's path fits must grant; else the answer is 429
//!   with `Retry-After` ([`RetryAfter`]: seconds, date, milliseconds or none). A refused call costs
//!   no quota. The counting is its own: it shares no code with what it is there to check.
//! - **Scripts** ([`Script`], [`Answer`]) answer chosen paths, from the nth call on and so many
//!   times: a status, headers and body, late, never, cut, in drops, huge or a bomb. A scripted 429 or 503 is
//!   the upstream's own whim: it is counted as `scripted`, not as `refused`, and costs no quota. With
//!   [`Script::closing`] calls that come before its `Retry-After` is over are counted as `early`.
//! - **Arrivals** ([`Arrival`]) are told by [`Practice::arrivals`]; instants are store time of a
//!   [`Timeline`](crate::clock::Timeline) of its own, over the clock of [`Config::clock`].
//! - `GET /_stats` gives [`Stats`] as JSON, `GET /_count` the words `OK REFUSED`. Neither is counted.

mod bomb;
mod config;
mod count;
mod ledger;
mod script;
mod serve;
mod stats;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use config::{Config, Limit, RetryAfter, Rule};
pub use ledger::{Arrival, Verdict};
pub use script::{Answer, Manner, Script};
use serve::Upstream;
pub use stats::{RuleStats, Stats};

/// A practice upstream at work. Dropping it stops it.
#[derive(Debug)]
pub struct Practice {
    addr: SocketAddr,
    upstream: Arc<Upstream>,
    leave: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

/// How long [`Practice::stop`] waits for answers on their way.
const DRAIN: Duration = Duration::from_millis(500);

impl Practice {
    /// Listens on loopback and answers from now on.
    ///
    /// # Errors
    ///
    /// The port is taken, or loopback cannot be used.
    pub async fn start(config: Config) -> io::Result<Practice> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", config.port)).await?;
        let addr = listener.local_addr()?;
        let upstream = Arc::new(Upstream::new(config));
        let (leave, left) = oneshot::channel();
        let server = tokio::spawn(serve::serve(listener, Arc::clone(&upstream), left));
        Ok(Practice { addr, upstream, leave: Some(leave), server })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address of a path, or of a template of one: `path` begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// What it saw so far.
    pub fn stats(&self) -> Stats {
        self.upstream.stats()
    }

    /// Every call so far, in the order of arrival.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.upstream.arrivals()
    }

    /// Stops listening, lets answers on their way go out for half a second, and tells what it saw.
    pub async fn stop(mut self) -> Stats {
        if let Some(leave) = self.leave.take() {
            // The server may have ended by itself.
            let _ = leave.send(());
        }
        let _ = tokio::time::timeout(DRAIN, &mut self.server).await;
        self.server.abort();
        self.upstream.stats()
    }
}

impl Drop for Practice {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[cfg(test)]
mod tests;
