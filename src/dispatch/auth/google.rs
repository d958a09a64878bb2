//! `google-service-account`: an assertion for a token
//! (<https://developers.google.com/identity/protocols/oauth2/service-account>).

use super::answer::Blame;
use super::claims::{Claims, KeyFile};
use super::{Ask, Failure, Fetched, server, sign};
use crate::quota::auth::ServiceAccount;
use crate::template::Secret;

/// RFC 7523 section 2.1.
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

pub(super) async fn fetch(account: &ServiceAccount, ask: &Ask<'_>) -> Result<Fetched, Failure> {
    let path = ask.fill(&account.key_file)?;
    let key = key(&path, ask)?;
    let url = match &account.token_url {
        Some(url) => ask.fill(url)?,
        None => key.token_uri.clone(),
    };
    let scopes = ask.fill_all(&account.scopes)?;
    let claims = Claims::new(&key.client_email, &scopes, &url, ask.timeline.now().wall);
    let unsigned = |why| Failure::Lasting(format!("the key in {path} cannot sign: {why}"));
    let assertion = sign::rs256(&claims, &key).map_err(unsigned)?;
    ask.secrets.remember_token("assertion", &assertion);
    let form = [("grant_type", GRANT_TYPE.to_owned()), ("assertion", assertion)];
    server::ask(ask, &url, &form, None, |host| blame(&key, &path, host)).await
}

/// The key file's fields; where the template holds the file itself, its own.
fn key(path: &str, ask: &Ask<'_>) -> Result<KeyFile, Failure> {
    let fix = "download a JSON key of the service account, and name its path in `key_file`";
    let text = match path.trim_start().starts_with('{') {
        true => path.to_owned(),
        false => ask.secrets.read(path).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})"));
            Failure::Lasting(format!("{error}{}: {fix}", cause.unwrap_or_default()))
        })?,
    };
    let unfit =
        |why| Failure::Lasting(format!("the key file is no service account's: {why}; {fix}"));
    let no_json = |_| unfit("it is no JSON object of texts".to_owned());
    let key: KeyFile = serde_json::from_str(&text).map_err(no_json)?;
    // Without its lines' ends, and what is the same in all keys.
    let body: String =
        key.private_key.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    ask.secrets.remember(&body, &Secret::Named("private_key".to_owned()));
    key.fault().map_or(Ok(key), |why| Err(unfit(why)))
}

fn blame(key: &KeyFile, path: &str, host: String) -> Blame {
    let email = crate::reading::shown(&key.client_email);
    // Never the file itself.
    let path = if path.trim_start().starts_with('{') { "`key_file`" } else { path };
    let fix = format!("check that {email} exists and that its key in {path} is still active");
    Blame {
        host,
        grant: "the service account's assertion",
        grant_fix: fix.clone(),
        client_fix: fix,
        is_dated: true,
    }
}
