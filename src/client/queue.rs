//! Jobs added to the queue, and a run that sends it.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Error, Paceline};
use crate::clock::Timestamp;
use crate::dispatch::{self, Report, RunOptions};
use crate::job::Columns;
use crate::plan::{AddOptions, Planner};
use crate::store::{Added, Store as _};

/// Jobs of one upstream that are to be added: all of them, or none.
#[derive(Clone, Debug)]
#[must_use = "nothing is added until it is awaited"]
pub struct Add {
    paceline: Paceline,
    upstream: String,
    options: AddOptions,
    rows: Vec<Columns>,
    load: String,
}

impl Add {
    pub(super) fn new(paceline: Paceline, upstream: String) -> Add {
        let (options, rows, load) = (AddOptions::default(), Vec::new(), "library".to_owned());
        Add { paceline, upstream, options, rows, load }
    }

    /// One job of this URL.
    pub fn url(self, url: impl Into<String>) -> Add {
        self.row([("url".to_owned(), url.into())])
    }

    /// One job of each of these URLs.
    pub fn urls<U: Into<String>>(self, urls: impl IntoIterator<Item = U>) -> Add {
        urls.into_iter().fold(self, Add::url)
    }

    /// One job with these columns.
    pub fn row(mut self, row: impl IntoIterator<Item = (String, String)>) -> Add {
        self.rows.push(row.into_iter().collect());
        self
    }

    /// All that `add` can be told: templates, deadline, priority, duplicates. Deadline and not-before are
    /// store time ([`Store::now`](crate::store::Store::now) tells it).
    pub fn options(mut self, options: AddOptions) -> Add {
        self.options = options;
        self
    }

    /// The name of the load: `library` unless said otherwise.
    pub fn load(mut self, name: impl Into<String>) -> Add {
        self.load = name.into();
        self
    }

    async fn added(self) -> Result<Added, Error> {
        let upstream = self.paceline.library().get(&self.upstream)?;
        let planner = Planner::new(&upstream, self.options)?;
        let jobs = self.rows.into_iter().map(|row| planner.plan(row));
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        drop(planner);
        Ok(self.paceline.store().add(upstream, self.load, jobs).await?)
    }
}

impl IntoFuture for Add {
    type Output = Result<Added, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.added())
    }
}

/// A run that sends the queue. It is a future: dropped, it sends nothing new, and what is in flight is
/// awaited by itself.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Run {
    paceline: Paceline,
    options: RunOptions,
}

impl Run {
    pub(super) fn new(paceline: Paceline) -> Run {
        Run { paceline, options: RunOptions::default() }
    }

    /// This upstream, beside others that are named; none named are all that have jobs.
    pub fn upstream(mut self, name: impl Into<String>) -> Run {
        self.options.upstreams.push(name.into());
        self
    }

    /// Leaves an upstream when its next permit is further off than this.
    pub fn max_wait(mut self, span: Duration) -> Run {
        self.options.max_wait = Some(span);
        self
    }

    /// Leaves at this instant (wall time).
    pub fn until(mut self, at: Timestamp) -> Run {
        self.options.until = Some(at);
        self
    }

    /// Sends at most this many calls.
    pub fn count(mut self, calls: u64) -> Run {
        self.options.count = Some(calls);
        self
    }

    /// Stays for jobs that are added later.
    pub fn follow(mut self) -> Run {
        self.options.follow = true;
        self
    }

    /// Calls in flight at once, at most: 64 unless said otherwise.
    pub fn concurrency(mut self, calls: usize) -> Run {
        self.options.concurrency = calls.max(1);
        self
    }

    async fn ran(self) -> Result<Report, Error> {
        let (going, leave) = watch::channel(false);
        let going = LeaveOnDrop(going);
        let (store, tell) = (self.paceline.store().clone(), Arc::clone(&self.paceline.inner.tell));
        let library = Arc::clone(self.paceline.library());
        let work = tokio::spawn(dispatch::run(store, library, self.options, leave, tell));
        let ended = work.await;
        drop(going);
        match ended {
            Ok(report) => Ok(report?),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Its runtime is going down.
                Err(_) => Err(Error::Closed),
            },
        }
    }
}

/// Tells a run to leave once nobody waits for it.
struct LeaveOnDrop(watch::Sender<bool>);

impl Drop for LeaveOnDrop {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.0.send(true);
    }
}

impl IntoFuture for Run {
    type Output = Result<Report, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ran())
    }
}
