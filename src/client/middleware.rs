//! A `reqwest-middleware` middleware: an existing client is paced by one line. Feature
//! `reqwest-middleware`.

use std::time::Duration;

use http::Extensions;
use reqwest::{Body, Request, Response, ResponseBuilderExt as _};
use reqwest_middleware::{Error, Middleware, Next};

use super::Paceline;
use super::paced::{Pace, PacedBody};

/// Paces the calls of a client by the limits of one upstream: each waits for a permit, and its answer is
/// read as everywhere. Nothing is sent twice: a refusal is handed on as it came. Put it behind a middleware
/// that tries again: then each try waits for a permit of its own.
///
/// Where there is no permit, the error is [`Error::Middleware`], and holds a
/// [`client::Error`](super::Error).
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # use paceline::practice::{Config, Practice};
/// # let practice = Practice::start(Config::new()).await?;
/// # let folder = tempfile::tempdir()?;
/// # let quota = format!("schema = 1\nname = \"shop\"\n[request]\nbase_url = \"{}\"\n", practice.url(""));
/// # std::fs::write(folder.path().join("shop.toml"), quota)?;
/// # let (store, quotas) = (folder.path().join("store.db"), folder.path());
/// # let _ = rustls::crypto::ring::default_provider().install_default();
/// use paceline::Paceline;
/// use paceline::client::PacedMiddleware;
///
/// let paceline = Paceline::builder().store(store).quotas(quotas).open()?;
/// let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
///     .with(PacedMiddleware::new(&paceline, "shop"))          // the one line
///     .build();
/// let response = client.get(practice.url("/items/1")).send().await?;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct PacedMiddleware {
    pace: Pace,
}

impl PacedMiddleware {
    /// Calls of that upstream.
    pub fn new(paceline: &Paceline, upstream: impl Into<String>) -> PacedMiddleware {
        PacedMiddleware { pace: Pace::new(paceline.clone(), upstream.into()) }
    }

    /// Each call waits no longer than this.
    #[must_use]
    pub fn max_wait(mut self, span: Duration) -> PacedMiddleware {
        self.pace.max_wait = Some(span);
        self
    }

    /// Adds the quota file's own header fields to each call, secrets filled in, but where it has one of
    /// that name.
    #[must_use]
    pub fn with_headers(mut self) -> PacedMiddleware {
        self.pace.with_headers = true;
        self
    }
}

#[async_trait::async_trait]
impl Middleware for PacedMiddleware {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        let permit = self.pace.acquire(request.method(), request.url().as_str()).await;
        let permit = permit.map_err(Error::middleware)?;
        self.pace.add_headers(&permit, request.headers_mut());
        match next.run(request, extensions).await {
            Ok(response) => {
                // Whoever asks where it came from asks the response, which forgets that on its way.
                let url = response.url().clone();
                let response: http::Response<Body> = response.into();
                let (parts, body) = response.into_parts();
                let body = PacedBody::new(permit, parts.status, &parts.headers, body);
                let told =
                    http::Response::builder().url(url).body(()).map_err(Error::middleware)?;
                let mut response = http::Response::from_parts(parts, Body::wrap(body));
                response.extensions_mut().extend(told.into_parts().0.extensions);
                Ok(response.into())
            }
            Err(error) => {
                let left = !matches!(&error, Error::Reqwest(error) if error.is_connect());
                // That it could not be recorded changes nothing for whoever called.
                drop(permit.unanswered(left, "the client got no answer").await);
                Err(error)
            }
        }
    }
}
