//! One call, sent within its limits and read: refusals are waited out, as in the queue.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use super::asked::{Asked, asked_methods};
use super::flight::Flight;
use super::sink::Sink;
use super::typed::Typed;
use super::{Error, NotNow, OurDesk, Paceline};
use crate::dispatch::desk::Errand;
use crate::dispatch::transport::Spool;
use crate::job::{Columns, JobId, JobState};
use crate::plan::{AddOptions, Planner};
use crate::reading::Reason;
use crate::store::{OwnedJob, SettleEnd, Store as _};

/// What is called, and how long to wait. It is a future: dropping it withdraws the call, or, where that is
/// on its way already, leaves its answer unread.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # use paceline::practice::{Config, Practice};
/// # let practice = Practice::start(Config::new()).await?;
/// # let folder = tempfile::tempdir()?;
/// # let quota = format!("schema = 1\nname = \"shop\"\n[request]\nbase_url = \"{}\"\n", practice.url(""));
/// # std::fs::write(folder.path().join("shop.toml"), quota)?;
/// # let url = practice.url("/items/1");
/// let paceline = paceline::Paceline::builder()
///     .store(folder.path().join("store.db"))
///     .quotas(folder.path())
///     .open()?;
/// let answer = paceline.call("shop").url(url).header("Accept", "text/plain").await?;
/// assert_eq!(answer.status, Some(200));
/// println!("{}", String::from_utf8_lossy(&answer.body));
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is called until it is awaited"]
pub struct Call {
    paceline: Paceline,
    upstream: String,
    asked: Asked,
    options: AddOptions,
    url: Option<String>,
    body: Option<Vec<u8>>,
    most: Option<usize>,
    into: Option<Arc<dyn Spool>>,
}

asked_methods!(Call);

/// What a call was answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Its job, as `show` and `log` know it.
    pub job: JobId,
    /// How that ended.
    pub state: JobState,
    /// The status; `None`: there was no answer.
    pub status: Option<u16>,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// The body, unpacked; empty where it went elsewhere.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
    /// What it means.
    pub reason: Reason,
    /// The same in a sentence.
    pub detail: String,
    /// How often it was sent.
    pub attempts: u32,
}

impl Answer {
    /// Whether it was answered as wished.
    pub fn is_success(&self) -> bool {
        self.state == JobState::Done
    }
}

impl Call {
    pub(super) fn new(paceline: Paceline, upstream: String) -> Call {
        let (asked, options) = (Asked::new("call"), AddOptions::default());
        let (url, body, most, into) = (None, None, None, None);
        Call { paceline, upstream, asked, options, url, body, most, into }
    }

    /// The URL, as `add UPSTREAM URL` takes it: it fills `{url}` of the quota file's templates, or is called.
    pub fn url(mut self, url: impl Into<String>) -> Call {
        self.url = Some(url.into());
        self
    }

    /// The method; else the quota file's, and POST where a body is given and that is GET.
    pub fn method(mut self, method: impl Into<String>) -> Call {
        self.options.method = Some(method.into());
        self
    }

    /// A header field: a template, in which `${env:X}` and its kin are filled in when it is sent. What is
    /// given word for word is not kept, save what tells no secret, such as `Accept`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Call {
        self.options.headers.insert(name.into(), value.into());
        self
    }

    /// The body, word for word. It is not kept.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Call {
        self.body = Some(body.into());
        self
    }

    /// Bytes of the answer's body that are handed over at most: 64 MiB unless said otherwise.
    pub fn max_body(mut self, bytes: usize) -> Call {
        self.most = Some(bytes);
        self
    }

    /// The answer's body goes there instead, as it comes, however long it is. Each try begins anew.
    pub fn into(mut self, spool: Arc<dyn Spool>) -> Call {
        self.into = Some(spool);
        self
    }

    async fn answered(self) -> Result<Answer, Error> {
        let desk = self.paceline.desk(&self.upstream).await?;
        let (job, typed) = self.job(&desk)?;
        let sink = Arc::new(Sink::new(self.most, self.into.clone()));
        let (load, max_wait) = (self.asked.load.clone(), self.asked.max_wait);
        let mut errand = Errand::begin(&desk, job, load, max_wait, true);
        loop {
            let granted = errand.turn().await;
            let granted = granted.map_err(|error| Error::of(error, &desk.way()))?;
            let spool: Arc<dyn Spool> = Arc::clone(&sink) as _;
            let mut flight = Flight::begin(&mut errand, granted);
            let sent = flight.send(self.body.as_deref(), &typed, spool).await;
            let (job, attempts) = (flight.job(), flight.attempt());
            let settlement = sent.settlement.clone();
            let settled = flight.settle(sent).await?;
            let reading = settlement.reading;
            let state = match settled.end {
                SettleEnd::Again(_) => continue,
                SettleEnd::Late => return Err(Error::Over { detail: reading.detail }),
                SettleEnd::Ended(JobState::Expired) => {
                    let now = desk.way().store.now();
                    let until = settled.block.map(|block| now.to_wall(block.until));
                    return Err(Error::Expired(NotNow::refused(&self.upstream, reading, until)));
                }
                SettleEnd::Ended(state) => state,
            };
            let (headers, body, cut) = sink.take();
            let (status, reason, detail) = (settlement.status, reading.reason, reading.detail);
            return Ok(Answer { job, state, status, headers, body, cut, reason, detail, attempts });
        }
    }

    fn job(&self, desk: &OurDesk) -> Result<(OwnedJob, Typed), Error> {
        let way = desk.way();
        let mut options = self.asked.options(self.options.clone(), way.store.now());
        if self.body.is_some() {
            let is_get = way.upstream.request.method == "GET";
            options.method = options.method.or_else(|| is_get.then(|| "POST".to_owned()));
            // It stands for the file's own.
            options.body = Some(String::new());
        }
        let row = self.url.iter().map(|url| ("url".to_owned(), url.clone()));
        let row: Columns = row.collect();
        let mut job = Planner::new(&way.upstream, options)?.plan(row)?;
        let typed = Typed::take(&mut job, &way.secrets);
        Ok((self.asked.owned(job, false), typed))
    }
}

impl IntoFuture for Call {
    type Output = Result<Answer, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answered())
    }
}
