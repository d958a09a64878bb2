//! A `tower::Layer`: an existing client's calls wait for their permits, and are read. Feature `tower`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::paced::{Pace, PacedBody};
use super::{Error, Paceline};

/// Why a paced call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError<E> {
    /// It got no permit, or its end could not be recorded.
    #[error("the call got no permit: {0}")]
    NoPermit(#[source] Error),
    /// The service's own.
    #[error(transparent)]
    Service(E),
}

/// Paces the calls of a service by the limits of one upstream: each waits for a permit, and its answer is
/// read as everywhere, so that a refusal holds back all who share the limit. Nothing is sent twice: a
/// refusal is handed on as it came.
///
/// The permit is completed when the body of the answer has been read to its end, or was dropped.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # use paceline::practice::{Config, Practice};
/// # let practice = Practice::start(Config::new()).await?;
/// # let folder = tempfile::tempdir()?;
/// # let quota = format!("schema = 1\nname = \"shop\"\n[request]\nbase_url = \"{}\"\n", practice.url(""));
/// # std::fs::write(folder.path().join("shop.toml"), quota)?;
/// # let (store, quotas) = (folder.path().join("store.db"), folder.path());
/// use paceline::Paceline;
/// use paceline::client::PacedLayer;
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// let paceline = Paceline::builder().store(store).quotas(quotas).open()?;
/// let mut client = ServiceBuilder::new()
///     .layer(PacedLayer::new(&paceline, "shop"))              // the one line
///     .service_fn(|_: http::Request<String>| async {
///         Ok::<_, std::io::Error>(http::Response::new("hello".to_owned()))
///     });
/// let request = http::Request::get(practice.url("/items/1")).body(String::new())?;
/// let response = client.ready().await?.call(request).await?;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct PacedLayer {
    pace: Pace,
}

impl PacedLayer {
    /// Calls of that upstream.
    pub fn new(paceline: &Paceline, upstream: impl Into<String>) -> PacedLayer {
        PacedLayer { pace: Pace::new(paceline.clone(), upstream.into()) }
    }

    /// Each call waits no longer than this.
    #[must_use]
    pub fn max_wait(mut self, span: std::time::Duration) -> PacedLayer {
        self.pace.max_wait = Some(span);
        self
    }

    /// Adds the quota file's own header fields to each call, secrets filled in, but where it has one of
    /// that name.
    #[must_use]
    pub fn with_headers(mut self) -> PacedLayer {
        self.pace.with_headers = true;
        self
    }
}

impl<S> Layer<S> for PacedLayer {
    type Service = Paced<S>;

    fn layer(&self, inner: S) -> Paced<S> {
        Paced { inner, pace: self.pace.clone() }
    }
}

/// A service whose calls are paced.
#[derive(Clone, Debug)]
pub struct Paced<S> {
    inner: S,
    pace: Pace,
}

type Answering<B, E> = Pin<Box<dyn Future<Output = Result<Response<B>, LayerError<E>>> + Send>>;

impl<S, In, Out> Service<Request<In>> for Paced<S>
where
    S: Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    In: Send + 'static,
    Out: Body + Send + 'static,
{
    type Response = Response<PacedBody<Out>>;
    type Error = LayerError<S::Error>;
    type Future = Answering<PacedBody<Out>, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(LayerError::Service)
    }

    fn call(&mut self, mut request: Request<In>) -> Self::Future {
        // The one that is ready makes the call; a clone of it is asked next.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let pace = self.pace.clone();
        Box::pin(async move {
            let (method, url) = (request.method().clone(), request.uri().to_string());
            let permit = pace.acquire(&method, &url).await.map_err(LayerError::NoPermit)?;
            pace.add_headers(&permit, request.headers_mut());
            match inner.call(request).await {
                Ok(response) => Ok(permit_body(permit, response)),
                Err(error) => {
                    // Whatever went wrong, it may have left.
                    let told = permit.unanswered(true, "the client's own error".to_owned()).await;
                    drop(told);
                    Err(LayerError::Service(error))
                }
            }
        })
    }
}

fn permit_body<B: Body>(permit: super::Permit, response: Response<B>) -> Response<PacedBody<B>> {
    let (parts, body) = response.into_parts();
    let body = PacedBody::new(permit, parts.status, &parts.headers, body);
    Response::from_parts(parts, body)
}
