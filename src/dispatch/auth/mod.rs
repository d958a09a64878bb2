//! `${token}`: fetched when a call first needs it, replaced before it expires, by one at a time.
//!
//! The lane fetches, calls only take what is there: a call never waits for a token in the place of its
//! slot. One that finds none is given back, its units with it, and its upstream claims nothing until
//! the token is there, or known not to come.
//!
//! | file | noun |
//! | --- | --- |
//! | `tokens` | PURE: who has which token, what is to be fetched, what a refusal means |
//! | `life` | PURE: when a token is due to be replaced |
//! | `answer` | PURE: what a token server or command said |
//! | `claims` | PURE: what a service account asserts |
//! | `sign` | an assertion, signed |
//! | `server` | a form to a token server |
//! | `google`, `oauth`, `command` | the kinds |
//! | `fetcher` | what is on its way for one upstream |

mod answer;
mod claims;
mod command;
mod fetcher;
mod google;
mod life;
mod oauth;
mod server;
mod sign;
mod tokens;

use std::time::Duration;

use crate::clock::{Timeline, Timestamp};
use crate::quota::Upstream;
use crate::quota::auth::Auth;
use crate::secrets::{SecretError, Secrets};
pub(super) use fetcher::Fetcher;
pub(crate) use tokens::{Given, Need, Owner, Tokens, Trouble};

/// The longest that a token server or command may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A token that was fetched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    value: String,
    /// `None`: until it is refused.
    lasts: Option<Duration>,
    /// Other secrets that came with it.
    others: Vec<String>,
}

/// Why there is no token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may pass by itself.
    Passing {
        /// What happened.
        detail: String,
        /// When the server wants to be asked again (wall time).
        retry_at: Option<Timestamp>,
    },
    /// A person must do something: what happened, and what to do.
    Lasting(String),
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Failure {
        Failure::Lasting(error.to_string())
    }
}

impl Failure {
    fn redacted(self, secrets: &Secrets) -> Failure {
        let redactor = secrets.redactor();
        let clean = |detail: String| redactor.redact(&detail).into_owned();
        match self {
            Failure::Passing { detail, retry_at } => {
                Failure::Passing { detail: clean(detail), retry_at }
            }
            Failure::Lasting(detail) => Failure::Lasting(clean(detail)),
        }
    }
}

/// What a fetch is made from.
struct Ask<'a> {
    upstream: &'a Upstream,
    credential: Option<&'a str>,
    secrets: &'a Secrets,
    timeline: &'a Timeline,
}

impl Ask<'_> {
    /// A template of `[auth]`, filled in.
    fn fill(&self, text: &str) -> Result<String, SecretError> {
        self.secrets.fill(text, self.upstream, self.credential, None)
    }

    /// One that names a file.
    fn fill_path(&self, text: &str) -> Result<String, SecretError> {
        self.secrets.fill_path(text, self.upstream, self.credential)
    }

    /// One that is a secret as a whole.
    fn fill_secret(&self, text: &str, name: &str) -> Result<String, SecretError> {
        self.secrets.fill(text, self.upstream, self.credential, Some(name))
    }

    fn fill_all<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t String>,
    ) -> Result<Vec<String>, SecretError> {
        texts.into_iter().map(|text| self.fill(text)).collect()
    }
}

/// Fetches a token. What it knows of secrets is searched for in all that is kept or shown from then on.
async fn fetch(
    auth: &Auth,
    upstream: &Upstream,
    owner: &Owner,
    secrets: &Secrets,
    timeline: &Timeline,
) -> Result<Fetched, Failure> {
    let credential = owner.credential.as_deref();
    let ask = Ask { upstream, credential, secrets, timeline };
    let fetched = match auth {
        Auth::ServiceAccount(account) => google::fetch(account, &ask).await,
        Auth::OAuth(oauth) => oauth::fetch(oauth, &ask).await,
        Auth::Command(words) => command::fetch(words, &ask).await,
    };
    if let Ok(fetched) = &fetched {
        for value in fetched.others.iter().chain([&fetched.value]) {
            secrets.remember_token(&owner.to_string(), value);
        }
    }
    fetched.map_err(|failure| failure.redacted(secrets))
}
