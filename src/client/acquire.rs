//! A permit asked for: which upstream and call it is for, and how long to wait.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use super::{Error, OurDesk, Paceline, Permit};
use crate::clock::Timestamp;
use crate::dispatch::desk::Errand;
use crate::job::{Columns, Dedupe, NewJob, Request};
use crate::plan::{AddOptions, Planner};
use crate::quota::{Cost, Upstream};
use crate::store::{OwnedJob, Store as _};

/// What whoever asks for a permit says. It is a future: dropping it withdraws what was asked for, and no
/// place is lost by it.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until it is awaited"]
pub struct Acquire {
    paceline: Paceline,
    upstream: String,
    method: String,
    url: Option<String>,
    columns: Columns,
    credential: Option<String>,
    units: u64,
    use_reserve: bool,
    deadline: Option<Timestamp>,
    max_wait: Option<Duration>,
    load: String,
    with_headers: bool,
}

impl Acquire {
    pub(super) fn new(paceline: Paceline, upstream: String) -> Acquire {
        Acquire {
            paceline,
            upstream,
            method: "PERMIT".to_owned(),
            url: None,
            columns: Columns::new(),
            credential: None,
            units: 1,
            use_reserve: false,
            deadline: None,
            max_wait: None,
            load: "library".to_owned(),
            with_headers: false,
        }
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

    /// A column, as `--set` gives it: limits with keys count by columns.
    pub fn column(mut self, name: impl Into<String>, value: impl Into<String>) -> Acquire {
        self.columns.insert(name.into(), value.into());
        self
    }

    /// Several columns.
    pub fn columns(mut self, columns: impl IntoIterator<Item = (String, String)>) -> Acquire {
        self.columns.extend(columns);
        self
    }

    /// The credential of that name.
    pub fn credential(mut self, name: impl Into<String>) -> Acquire {
        self.credential = Some(name.into());
        self
    }

    /// What the call takes of each limit that counts calls or items: 1 unless said otherwise.
    pub fn units(mut self, units: u64) -> Acquire {
        self.units = units.max(1);
        self
    }

    /// Whether it may use what budgets keep for people (`reserve`).
    pub fn use_reserve(mut self, use_reserve: bool) -> Acquire {
        self.use_reserve = use_reserve;
        self
    }

    /// It is worthless after this (wall time): where it can go only later it is told so at once.
    pub fn deadline(mut self, at: Timestamp) -> Acquire {
        self.deadline = Some(at);
        self
    }

    /// Waits no longer than this, and not at all where it is known to take longer.
    pub fn max_wait(mut self, span: Duration) -> Acquire {
        self.max_wait = Some(span);
        self
    }

    /// The name of the load that its job is of, in `jobs` and `log`: `library` unless said otherwise.
    pub fn load(mut self, name: impl Into<String>) -> Acquire {
        self.load = name.into();
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
        let (load, max_wait) = (self.load.clone(), self.max_wait);
        let mut errand = Errand::begin(&desk, job, load, max_wait, self.with_headers);
        let granted = errand.turn().await;
        let granted = granted.map_err(|error| {
            let way = desk.way();
            Error::of(error, &way.upstream, way.store.now())
        })?;
        Ok(Permit::new(errand, granted))
    }

    fn job(&self, desk: &OurDesk) -> Result<OwnedJob, Error> {
        let way = desk.way();
        let deadline_at = self.deadline.map(|at| way.store.now().to_store(at));
        let secrets = way.secrets.redactor();
        let url = self.url.as_deref().map(|url| secrets.redact(url).into_owned());
        let job = self.planned(&way.upstream, url, deadline_at)?;
        self.check_units(&way.upstream, &job.partition)?;
        Ok(OwnedJob { job, once: true, units: self.units, use_reserve: self.use_reserve })
    }

    /// Refuses what no limit could ever grant, rather than have it wait for that.
    fn check_units(&self, upstream: &Upstream, partition: &Columns) -> Result<(), Error> {
        for limit in upstream.limits.iter().filter(|limit| !matches!(limit.cost, Cost::Column(_))) {
            let rule = limit.rule_for(partition);
            let unreserved = rule.unreserved().filter(|_| self.use_reserve);
            let most = unreserved.as_ref().unwrap_or(rule).most();
            if let Some(most) = most.filter(|most| self.units > *most) {
                let (limit, wanted) = (limit.name.clone(), self.units);
                let detail = format!(
                    "{wanted} units are more than the limit `{limit}` ever grants at once: {most}"
                );
                return Err(Error::NeverFits { limit: Some(limit), detail });
            }
        }
        Ok(())
    }

    fn planned(
        &self,
        upstream: &Upstream,
        url: Option<String>,
        deadline_at: Option<Timestamp>,
    ) -> Result<NewJob, Error> {
        let itself = || "{url}".to_owned();
        let options = AddOptions {
            url: Some(url.as_ref().map_or_else(|| nowhere(upstream), |_| itself())),
            method: Some(self.method.clone()),
            set: self.columns.clone(),
            credential: self.credential.clone(),
            deadline_at,
            dedupe: Dedupe::None,
            unsent: !self.with_headers,
            body: self.with_headers.then(String::new),
            ..AddOptions::default()
        };
        let row = url.map(|url| ("url".to_owned(), url)).into_iter().collect();
        let mut job = Planner::new(upstream, options)?.plan(row)?;
        if self.url.is_none() {
            job.request = Request { url: format!("permit:{}", upstream.name), ..job.request };
        }
        job.request.body = None;
        Ok(job)
    }
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
