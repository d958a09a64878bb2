//! `oauth-refresh` and `client-credentials` (RFC 6749 sections 6 and 4.4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::Blame;
use super::{Ask, Failure, Fetched, server};
use crate::quota::auth::{ClientAuth, Grant, OAuth};
use crate::template::Template;

pub(super) async fn fetch(oauth: &OAuth, ask: &Ask<'_>) -> Result<Fetched, Failure> {
    let url = ask.fill(&oauth.token_url)?;
    let id = ask.fill(&oauth.client_id)?;
    let secret = ask.fill_secret(&oauth.client_secret, "client_secret")?;
    let mut form = match &oauth.grant {
        Grant::Refresh { refresh_token } => vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", ask.fill_secret(refresh_token, "refresh_token")?),
        ],
        Grant::Client => vec![("grant_type", "client_credentials".to_owned())],
    };
    if !oauth.scopes.is_empty() {
        form.push(("scope", ask.fill_all(&oauth.scopes)?.join(" ")));
    }
    for (name, text) in &oauth.form {
        form.push((name, ask.fill(text)?));
    }
    let basic = match oauth.client_auth {
        ClientAuth::Body => {
            form.extend([("client_id", id), ("client_secret", secret)]);
            None
        }
        // Each is encoded as in a form (RFC 6749 section 2.3.1).
        ClientAuth::Basic => {
            let pair = format!("{}:{}", server::encoded(&id), server::encoded(&secret));
            Some(STANDARD.encode(pair))
        }
    };
    server::ask(ask, &url, &form, basic, |host| blame(oauth, host)).await
}

fn blame(oauth: &OAuth, host: String) -> Blame {
    let (id, secret) = (place(&oauth.client_id), place(&oauth.client_secret));
    let (grant, grant_fix) = match &oauth.grant {
        Grant::Refresh { refresh_token } => {
            ("the refresh token", format!("get a new one and put it into {}", place(refresh_token)))
        }
        Grant::Client => ("the client", format!("check {id} and {secret}")),
    };
    let client_fix = format!("check `client_id` ({id}) and `client_secret` ({secret})");
    Blame { host, grant, grant_fix, client_fix, is_dated: false }
}

/// Where a value comes from: the placeholder, or the file itself.
fn place(text: &str) -> String {
    let template = Template::parse(text);
    let secrets: Vec<_> = template.iter().flat_map(Template::secrets).collect();
    match secrets.as_slice() {
        [secret, ..] => format!("`{secret}`"),
        [] => "[auth]".to_owned(),
    }
}
