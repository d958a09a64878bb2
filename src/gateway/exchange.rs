//! One request's way: may its caller come in, where does it lead, what is it as a job, when is its turn.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use tokio::sync::{mpsc, oneshot, watch};

use super::asked;
use super::base::secret_parameters;
use super::body::{Asked, Reply};
use super::door::Door;
use super::fields;
use super::passage::{Back, Came, Passage};
use super::places::{Place, Places};
use super::problem::Problem;
use super::refusal;
use super::serve::Answers;
use super::target::Target;
use super::transports::Transports;
use super::watched::Caller;
use super::wish::{Patience, Wish};
use crate::client::{Paceline, Permit};
use crate::clock::Timestamp;
use crate::dispatch::stream::{OutBody, Outgoing};
use crate::job::NewJob;
use crate::store::Store as _;

/// Under this name its jobs are found: `paceline jobs --load gateway`.
const LOAD: &str = "gateway";

/// What each request needs.
pub(super) struct Exchange {
    pub paceline: Paceline,
    pub door: Door,
    pub places: Places,
    pub transports: Transports,
    /// How long callers wait that do not say so themselves.
    pub max_wait: Duration,
    pub use_reserve: bool,
    /// Becomes true once nothing new is to be sent.
    pub leave: watch::Receiver<bool>,
    /// Held by each call that is not settled yet.
    pub unsettled: mpsc::Sender<()>,
}

/// A request that may be sent once its turn has come.
struct Wanted {
    place: Place,
    job: NewJob,
    head: Parts,
    /// Until when its caller waits (wall time).
    until: Timestamp,
}

impl Answers for Exchange {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Response<Reply> {
        self.exchange(request, &caller).await.unwrap_or_else(|problem| response(&problem))
    }
}

fn response(problem: &Problem) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Some(Bytes::from(problem.body()))));
    *response.status_mut() = problem.status();
    *response.headers_mut() = problem.headers();
    response
}

impl Exchange {
    async fn exchange(
        &self,
        request: Request<Incoming>,
        caller: &Caller,
    ) -> Result<Response<Reply>, Problem> {
        let (head, body) = request.into_parts();
        let wanted = self.want(head)?;
        let send = async {
            let body = Asked::read(body).await.map_err(|error| {
                Problem::bad_request("body", format!("the body broke off: {error}"))
            });
            self.send(&wanted, body?).await
        };
        tokio::select! {
            answer = send => answer,
            // Nobody hears that any more. What waits for its turn is withdrawn.
            () = caller.gone() => Err(Problem::bad_request("gone", "the caller is gone")),
        }
    }

    fn want(&self, head: Parts) -> Result<Wanted, Problem> {
        self.door.check(&head.uri, &head.headers)?;
        if let Some(to) = fields::upgrade(&head.headers) {
            return Err(Problem::upgrade(&to));
        }
        let target = Target::read(&head.method, &head.uri, |host| self.door.is_own(host))?;
        let wish = Wish::read(&head.headers)?;
        let now = self.paceline.store().now();
        let place = self.places.find(target)?;
        let job = asked::job(&place.upstream, head.method.as_str(), place.url.clone(), &wish)?;
        let patience = wish.patience.unwrap_or(Patience::For(self.max_wait));
        Ok(Wanted { place, job, head, until: now.wall + patience.left(now.wall) })
    }

    /// Sends it, and sends it again where that may help while its caller waits.
    async fn send(&self, wanted: &Wanted, body: Asked) -> Result<Response<Reply>, Problem> {
        let (mut body, again) = body.split();
        let mut renews = wanted.place.upstream.auth.is_some();
        loop {
            let permit = self.permit(wanted).await?;
            let waits_until = again.as_ref().map(|_| wanted.until);
            match self.pass(wanted, permit, body, waits_until, renews).await? {
                Came::Answer(response) => return Ok(response),
                Came::Silence(problem) => return Err(problem),
                Came::Renewed => renews = false,
                Came::Again => {}
            }
            body = again.clone().map_or(OutBody::Empty, OutBody::Whole);
        }
    }

    /// Waits for its turn.
    async fn permit(&self, wanted: &Wanted) -> Result<Permit, Problem> {
        let upstream = &wanted.place.upstream;
        let now = self.paceline.store().now().wall;
        let acquire = self
            .paceline
            .acquire(&upstream.name)
            .planned_as(wanted.job.clone())
            .with_headers()
            .max_wait(if wanted.until > now { wanted.until.since(now) } else { Duration::ZERO })
            .use_reserve(self.use_reserve)
            .load(LOAD);
        let mut leave = self.leave.clone();
        let told = tokio::select! {
            permit = acquire => permit,
            _ = leave.wait_for(|leave| *leave) => return Err(refusal::leaving()),
        };
        let now = self.paceline.store().now().wall;
        told.map_err(|error| refusal::problem(&error, upstream, &wanted.job.partition, now))
    }

    /// Lets it leave, on a way of its own: it is settled as what it was though its caller may go.
    async fn pass(
        &self,
        wanted: &Wanted,
        permit: Permit,
        body: OutBody,
        waits_until: Option<Timestamp>,
        may_renew: bool,
    ) -> Result<Came, Problem> {
        let Wanted { place, head, .. } = wanted;
        let transport = match self.transports.of(&place.upstream) {
            Ok(transport) => transport,
            Err(problem) => {
                permit.cancel();
                return Err(problem);
            }
        };
        let mut headers = fields::onward(&head.headers);
        fields::complete(&mut headers, &permit.headers(), |name| {
            fields::is_secret(&place.upstream.request.headers, name)
        });
        // The address as it is asked for, unless a secret of ours is part of it.
        let own = permit.url().filter(|_| !secret_parameters(&place.upstream).is_empty());
        let (method, url) = (head.method.clone(), own.unwrap_or(&place.url).clone());
        let back = Back {
            upstream: Arc::clone(&place.upstream),
            job: permit.job(),
            method: method.clone(),
            sent_to: url.clone(),
            base: place.base.clone(),
        };
        let (came, comes) = oneshot::channel();
        let passage = Passage {
            permit,
            timeline: self.paceline.store().timeline().clone(),
            transport,
            call: Outgoing { method, url, headers, body },
            back,
            waits_until,
            may_renew,
            partition: wanted.job.partition.clone(),
        };
        let unsettled = self.unsettled.clone();
        tokio::spawn(async move {
            passage.go(came).await;
            drop(unsettled);
        });
        comes
            .await
            .map_err(|_| Problem::new(500, "fault", "the call was lost: a fault of Paceline's"))
    }
}
