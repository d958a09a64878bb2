//! A permit asked for: which upstream and call it is for, and how long to wait.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use super::asked::{Asked, asked_methods};
use super::{Error, OurDesk, Paceline, Permit};
use crate::clock::Now;
use crate::dispatch::desk::Errand;
use crate::job::{Columns, NewJob};
use crate::plan::{AddOptions, Planner};
use crate::quota::{Cost, Upstream};
use crate::secrets::Redactor;
use crate::store::{OwnedJob, Store as _};

/// What whoever asks for a permit says. It is a future: dropping it withdraws what was asked for, and no
/// place is lost by it.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let quota = "schema = 1\nname = \"shop\"\n[match]\nhosts = [\"api.shop.example\"]\n";
/// # std::fs::write(folder.path().join("shop.toml"), quota)?;
/// # let builder = paceline::Paceline::builder().store(folder.path().join("store.db"));
/// # let paceline = builder.quotas(folder.path()).open()?;
/// use std::time::Duration;
/// use paceline::client::Error;
///
/// let url = "https://api.shop.example/v1/items/7";
/// match paceline.acquire("shop").method("GET").url(url).max_wait(Duration::from_secs(5)).await {
///     Ok(permit) => {
///         // ... send it now, by whatever means, and tell what was answered:
///         let headers = [("Retry-After".to_owned(), "120".to_owned())];
///         let verdict = permit.answered(429, &headers, b"slow down", false).await?;
///         assert!(verdict.retry_at.is_some());
///     }
///     Err(Error::NotNow(not_now)) => println!("{:?} binds until {:?}", not_now.limit, not_now.until),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until it is awaited"]
pub struct Acquire {
    paceline: Paceline,
    upstream: String,
    asked: Asked,
    method: String,
    url: Option<String>,
    name: Option<String>,
    with_headers: bool,
    /// The job, where it is planned already.
    job: Option<Box<NewJob>>,
}

asked_methods!(Acquire);

impl Acquire {
    pub(super) fn new(paceline: Paceline, upstream: String) -> Acquire {
        let (asked, method) = (Asked::new("library"), "PERMIT".to_owned());
        let (url, name, with_headers, job) = (None, None, false, None);
        Acquire { paceline, upstream, asked, method, url, name, with_headers, job }
    }

    /// For this job, which is planned already.
    #[cfg(feature = "gateway")]
    pub(crate) fn planned_as(mut self, job: NewJob) -> Acquire {
        self.job = Some(Box::new(job));
        self
    }

    /// The method of the call, for the record and for telling whether sending it twice does harm.
    pub fn method(mut self, method: impl Into<String>) -> Acquire {
        self.method = method.into();
        self
    }

    /// The address that is called: it is recorded, and columns such as `host` are derived from it.
    pub fn url(mut self, url: impl Into<String>) -> Acquire {
        self.url = Some(url.into());
        self
    }

    /// What it is for, in a word, where there is no address: it is recorded in its stead.
    pub fn named(mut self, name: impl Into<String>) -> Acquire {
        self.name = Some(name.into());
        self
    }

    /// What the call takes of each limit that counts calls or items: 1 unless said otherwise. Of a
    /// concurrency limit it takes one place all the same.
    pub fn units(mut self, units: u64) -> Acquire {
        self.asked.units = units.max(1);
        self
    }

    /// Fills in the quota file's own header fields, so that [`Permit::headers`] has them: its secrets
    /// must be there, and its token is fetched before the turn comes.
    pub fn with_headers(mut self) -> Acquire {
        self.with_headers = true;
        self
    }

    async fn acquired(self) -> Result<Permit, Error> {
        let desk = self.paceline.desk(&self.upstream).await?;
        let job = self.job(&desk)?;
        let (load, max_wait) = (self.asked.load.clone(), self.asked.max_wait);
        let mut errand = Errand::begin(&desk, job, load, max_wait, self.with_headers);
        let granted = errand.turn().await;
        let granted = granted.map_err(|error| Error::of(error, &desk.way()))?;
        Ok(Permit::new(errand, granted))
    }

    fn job(&self, desk: &OurDesk) -> Result<OwnedJob, Error> {
        let way = desk.way();
        let secrets = way.secrets.redactor();
        let url = self.url.as_deref().map(|url| secrets.redact(url).into_owned());
        let job = match &self.job {
            Some(job) => hidden(job, &secrets),
            None => self.planned(&way.upstream, url, way.store.now())?,
        };
        self.check_units(&way.upstream, &job.partition)?;
        Ok(self.asked.owned(job, true))
    }

    /// Refuses what no limit could ever grant, rather than have it wait for that.
    fn check_units(&self, upstream: &Upstream, partition: &Columns) -> Result<(), Error> {
        for limit in upstream.limits.iter().filter(|limit| !matches!(limit.cost, Cost::Column(_))) {
            let rule = limit.rule_for(partition);
            let unreserved = rule.unreserved().filter(|_| self.asked.use_reserve);
            let most = unreserved.as_ref().unwrap_or(rule).most();
            if let Some(most) = most.filter(|most| self.asked.units > *most) {
                let (limit, wanted) = (limit.name.clone(), self.asked.units);
                let detail = format!(
                    "{wanted} units are more than the limit `{limit}` ever grants at once: {most}"
                );
                return Err(Error::NeverFits { limit: Some(limit), detail });
            }
        }
        Ok(())
    }

    fn planned(&self, upstream: &Upstream, url: Option<String>, now: Now) -> Result<NewJob, Error> {
        let options = AddOptions {
            // The address called, whatever the file's own templates are.
            url: Some(url.as_ref().map_or_else(|| nowhere(upstream), |_| "{url}".to_owned())),
            method: Some(self.method.clone()),
            unsent: !self.with_headers,
            body: self.with_headers.then(String::new),
            ..AddOptions::default()
        };
        let row = url.map(|url| ("url".to_owned(), url)).into_iter().collect();
        let options = self.asked.options(options, now);
        let mut job = Planner::new(upstream, options)?.plan(row)?;
        if self.url.is_none() {
            let name = self.name.clone();
            job.request.url = name.unwrap_or_else(|| format!("permit:{}", upstream.name));
        }
        job.request.body = None;
        Ok(job)
    }
}

/// The job, with placeholders for secrets that its owner wrote out.
fn hidden(job: &NewJob, secrets: &Redactor) -> NewJob {
    let mut job = job.clone();
    job.request.url = secrets.redact(&job.request.url).into_owned();
    for value in job.columns.values_mut() {
        *value = secrets.redact(value).into_owned();
    }
    job
}

/// An address of the upstream's, for a permit that names none.
fn nowhere(upstream: &Upstream) -> String {
    let request = &upstream.request;
    let base = request.base_url.as_ref().or(request.url.as_ref());
    let origin = base.and_then(|base| url::Url::parse(base).ok()).map(|url| url.origin());
    match origin.filter(url::Origin::is_tuple) {
        Some(origin) => origin.ascii_serialization(),
        None => upstream.matches.hosts.iter().find(|host| !host.contains('*')).map_or_else(
            || format!("https://{}.invalid", upstream.name),
            |host| format!("https://{host}"),
        ),
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Permit, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
