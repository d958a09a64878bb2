//! `google-service-account`: an assertion for a token
//! (<https://developers.google.com/identity/protocols/oauth2/service-account>).

use std::fmt;

use super::answer::Blame;
use super::claims::{Claims, KeyFile};
use super::{Ask, Failure, Fetched, server, sign};
use crate::quota::auth::ServiceAccount;
use crate::reading::shown;
use crate::secrets::{SecretError, is_path};
use crate::template::{Secret, Template};

/// RFC 7523 section 2.1.
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

const FIX: &str = "download a JSON key of the service account, and";

pub(super) async fn fetch(account: &ServiceAccount, ask: &Ask<'_>) -> Result<Fetched, Failure> {
    let filled = ask.fill_path(&account.key_file)?;
    let source = Source::of(&account.key_file, &filled);
    let key = key(&filled, &source, ask)?;
    let url = match &account.token_url {
        Some(url) => ask.fill(url)?,
        None => key.token_uri.clone(),
    };
    let scopes = ask.fill_all(&account.scopes)?;
    let claims = Claims::new(&key.client_email, &scopes, &url, ask.timeline.now().wall);
    let unsigned = |why| source.fault(&format!("holds a `private_key` that cannot sign ({why})"));
    let assertion = sign::rs256(&claims, &key).map_err(unsigned)?;
    ask.secrets.remember_token("assertion", &assertion);
    let form = [("grant_type", GRANT_TYPE.to_owned()), ("assertion", assertion)];
    server::ask(ask, &url, &form, None, |host| blame(&key, &source, host)).await
}

/// Where a key comes from, for people.
struct Source {
    /// The file; `None`: its text stands in place of its path, and is never told.
    path: Option<String>,
    /// The variable that holds the one or the other.
    variable: Option<String>,
}

impl Source {
    fn of(template: &str, filled: &str) -> Source {
        let path = is_path(filled).then(|| shown(filled));
        let template = Template::parse(template).ok();
        let variable = template.as_ref().and_then(|template| {
            template.secrets().into_iter().find_map(|secret| match secret {
                Secret::Env(name) => Some(name.clone()),
                _ => None,
            })
        });
        Source { path, variable }
    }

    /// What is wrong with it, and what to do.
    fn fault(&self, what: &str) -> Failure {
        let then = match &self.variable {
            Some(variable) => format!("set {variable} to its path"),
            None => "name its path in `key_file`".to_owned(),
        };
        Failure::Lasting(format!("{self} {what}: {FIX} {then}"))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, &self.variable) {
            (Some(path), Some(variable)) => write!(f, "the key file {path} (by {variable})"),
            (Some(path), None) => write!(f, "the key file {path}"),
            (None, Some(variable)) => write!(f, "the key in {variable}"),
            (None, None) => f.write_str("the key in `key_file`"),
        }
    }
}

/// The key file's fields; where the template holds the file itself, its own.
fn key(filled: &str, source: &Source, ask: &Ask<'_>) -> Result<KeyFile, Failure> {
    let text = match &source.path {
        None => filled.to_owned(),
        Some(_) => ask.secrets.read(filled).map_err(|error| match error {
            SecretError::Unreadable { source: why, .. } => {
                source.fault(&format!("cannot be read ({why})"))
            }
            SecretError::EmptyFile(_) => source.fault("is empty"),
            _ => source.fault("is no text"),
        })?,
    };
    let unfit = |why| source.fault(&format!("is no service account's: {why}"));
    let no_json = |_| unfit("it is no JSON object of texts".to_owned());
    let key: KeyFile = serde_json::from_str(&text).map_err(no_json)?;
    // Without its lines' ends, and what is the same in all keys.
    let body: String =
        key.private_key.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    ask.secrets.remember(&body, &Secret::Named("private_key".to_owned()));
    key.fault().map_or(Ok(key), |why| Err(unfit(why)))
}

fn blame(key: &KeyFile, source: &Source, host: String) -> Blame {
    let email = shown(&key.client_email);
    let fix = format!("check that {email} exists and that {source} is still active");
    Blame {
        host,
        grant: "the service account's assertion",
        grant_fix: fix.clone(),
        client_fix: fix,
        is_dated: true,
    }
}
