//! For programs: the queue, its limits and its readings behind one handle.
//!
//! | file | noun |
//! | --- | --- |
//! | `acquire` | a permit asked for |
//! | `permit` | a permit held, and how it is completed |
//! | `call` | one call, sent and read; `flight`: on its way, `sink`: what comes back, `typed`: headers that are not stored |
//! | `asked` | what is said of both |
//! | `queue` | jobs added, and a run |
//! | `events` | what happens, as a stream |
//! | `tower`, `middleware` | other clients' calls, paced; `paced`: what both share |
//! | `error` | why not, and until when |

mod acquire;
mod asked;
mod call;
mod error;
mod events;
mod flight;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod paced;
mod permit;
mod queue;
mod sink;
#[cfg(feature = "tower")]
mod tower;
mod typed;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

pub use acquire::Acquire;
pub use call::{Answer, Call};
pub use error::{Error, NotNow};
pub use events::Events;
#[cfg(feature = "reqwest-middleware")]
pub use middleware::PacedMiddleware;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub use paced::PacedBody;
pub use permit::{Lifeline, Permit, Refusal, Verdict};
pub use queue::{Add, Run};
#[cfg(feature = "tower")]
pub use tower::{LayerError, Paced, PacedLayer};

use crate::clock::SystemClock;
use crate::dispatch::Tell;
use crate::dispatch::call::Way;
use crate::dispatch::desk::{Desk, Enrolled, Errand, Granted, House};
use crate::dispatch::transport::HttpTransport;
use crate::quota::library::Library;
use crate::secrets::Secrets;
use crate::store::sqlite::{Options, SqliteStore};

/// Connections a host that a handle keeps alive.
const IDLE: usize = 64;

type OurDesk = Desk<SqliteStore, HttpTransport>;
type OurErrand = Errand<SqliteStore, HttpTransport>;
type OurGranted = Granted<SqliteStore, HttpTransport>;
type OurWay = Way<SqliteStore, HttpTransport>;

/// A store with its quota files: what every door of a program is made from.
///
/// ```
/// use futures_util::StreamExt;
/// use paceline::Paceline;
/// # use paceline::practice::{Config, Practice};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let practice = Practice::start(Config::new()).await?;
/// # let folder = tempfile::tempdir()?;
/// let quota = format!("name = \"shop\"\n[request]\nurl = \"{}\"\n", practice.url("/items/{id}"));
/// std::fs::write(folder.path().join("shop.toml"), quota)?;
/// let paceline = Paceline::builder()
///     .store(folder.path().join("store.db"))
///     .quotas(folder.path())
///     .open()?;
/// let mut events = paceline.events();
/// let rows = (1..=3).map(|id| [("id".to_owned(), id.to_string())]);
/// rows.fold(paceline.add("shop"), |add, row| add.row(row)).await?;
/// let report = paceline.run().await?;
/// assert_eq!((report.done, report.waiting), (3, 0));
/// println!("{:?}", events.next().await);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
///
/// A clone is the same handle. Once the last one is dropped, or [`Paceline::close`] was called, whoever
/// still waits is withdrawn; permits that are held go on.
#[derive(Clone)]
pub struct Paceline {
    inner: Arc<Inner>,
}

struct Inner {
    store: SqliteStore,
    library: Arc<Library>,
    secrets: Arc<Secrets>,
    tokens: Arc<crate::dispatch::Tokens>,
    tell: Tell,
    events: events::Source,
    /// Nobody is told to leave by it: whoever waits is dropped.
    leave: watch::Sender<bool>,
    desks: Mutex<HashMap<String, OurDesk>>,
    enrolled: tokio::sync::Mutex<Weak<Enrolled<SqliteStore>>>,
}

impl fmt::Debug for Paceline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paceline").field("store", &self.inner.store.path()).finish_non_exhaustive()
    }
}

/// How a [`Paceline`] is opened.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    store: Option<PathBuf>,
    quotas: Option<PathBuf>,
}

impl Builder {
    /// The store's file; made where it is missing.
    #[must_use]
    pub fn store(mut self, path: impl Into<PathBuf>) -> Builder {
        self.store = Some(path.into());
        self
    }

    /// A folder of quota files, looked into first; then `./quotas`, the user's own, the presets.
    #[must_use]
    pub fn quotas(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.quotas = Some(folder.into());
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    ///
    /// The store cannot be opened; or none was named, and the user has no home folder to keep one in.
    pub fn open(self) -> Result<Paceline, Error> {
        let path = match self.store {
            Some(path) => path,
            None => usual_store().ok_or(Error::NoHome)?,
        };
        let store = SqliteStore::open(Options::new(path, Arc::new(SystemClock::new())))?;
        Ok(Paceline::over(store, Arc::new(Library::usual(self.quotas.as_deref()))))
    }
}

/// The user's own store: all of a user's programs share it.
pub fn usual_store() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    let strategy = etcetera::choose_base_strategy().ok()?;
    let folder = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
    Some(folder.join("paceline").join("store.db"))
}

impl Paceline {
    /// Opens the store at `path`, with the usual quota files.
    ///
    /// # Errors
    ///
    /// The store cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Paceline, Error> {
        Paceline::builder().store(path.as_ref()).open()
    }

    /// How to open it otherwise.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Over a store and quota files that are there already.
    pub fn over(store: SqliteStore, library: Arc<Library>) -> Paceline {
        Paceline::telling(store, library, Arc::new(|_| {}))
    }

    /// As [`Paceline::over`], telling every event.
    pub fn telling(store: SqliteStore, library: Arc<Library>, tell: Tell) -> Paceline {
        let events = events::Source::new();
        let inner = Inner {
            store,
            library,
            secrets: Arc::new(Secrets::new()),
            tokens: Arc::default(),
            tell: events.beside(tell),
            events,
            leave: watch::Sender::new(false),
            desks: Mutex::default(),
            enrolled: tokio::sync::Mutex::new(Weak::new()),
        };
        Paceline { inner: Arc::new(inner) }
    }

    /// The store.
    pub fn store(&self) -> &SqliteStore {
        &self.inner.store
    }

    /// The quota files.
    pub fn library(&self) -> &Arc<Library> {
        &self.inner.library
    }

    /// Asks for the right to send one call of an upstream.
    pub fn acquire(&self, upstream: impl Into<String>) -> Acquire {
        Acquire::new(self.clone(), upstream.into())
    }

    /// Makes one call of an upstream within its limits, and reads what is answered.
    pub fn call(&self, upstream: impl Into<String>) -> Call {
        Call::new(self.clone(), upstream.into())
    }

    /// Adds jobs to the queue.
    pub fn add(&self, upstream: impl Into<String>) -> Add {
        Add::new(self.clone(), upstream.into())
    }

    /// Sends what is queued, and waits for what may not go yet.
    pub fn run(&self) -> Run {
        Run::new(self.clone())
    }

    /// What happens from now on, to calls, permits and runs of this handle.
    pub fn events(&self) -> Events {
        self.inner.events.listen()
    }

    /// Withdraws all who wait, gives back what was not sent, and leaves the store. Permits that are held
    /// count as sent once they are dropped.
    pub async fn close(&self) {
        let desks = {
            let mut desks = self.inner.desks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *desks)
        };
        for desk in desks.into_values() {
            desk.close().await;
        }
    }

    /// The desk of an upstream, opened where it is not.
    async fn desk(&self, name: &str) -> Result<OurDesk, Error> {
        if let Some(desk) = self.open_desk(name) {
            return Ok(desk);
        }
        let upstream = self.inner.library.get(name)?;
        let enrolled = self.enrol().await?;
        let request = &upstream.request;
        let transport = HttpTransport::new(IDLE, request.connections, request.timeout);
        let transport = Arc::new(transport.map_err(|error| Error::Client(error.into()))?);
        let mut desks = self.inner.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let house = House {
            enrolled,
            library: Arc::clone(&self.inner.library),
            secrets: Arc::clone(&self.inner.secrets),
            tokens: Arc::clone(&self.inner.tokens),
            tell: Arc::clone(&self.inner.tell),
        };
        let open = || Desk::open(house, upstream, transport, self.inner.leave.subscribe());
        Ok(desks.entry(name.to_owned()).or_insert_with(open).clone())
    }

    fn open_desk(&self, name: &str) -> Option<OurDesk> {
        let mut desks = self.inner.desks.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose runtime is gone, or that was closed, is of no more use.
        desks.retain(|_, desk| desk.is_open());
        desks.get(name).cloned()
    }

    /// This process, as the store knows it.
    async fn enrol(&self) -> Result<Arc<Enrolled<SqliteStore>>, Error> {
        let mut known = self.inner.enrolled.lock().await;
        if let Some(enrolled) = known.upgrade() {
            return Ok(enrolled);
        }
        let enrolled = Arc::new(Enrolled::new(self.inner.store.clone()).await?);
        *known = Arc::downgrade(&enrolled);
        Ok(enrolled)
    }
}
