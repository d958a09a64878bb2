//! PURE: what a service account asserts to get a token
//! (<https://developers.google.com/identity/protocols/oauth2/service-account>).

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// An assertion lasts for so many seconds; a longer one is refused.
const LIFE: i64 = 3600;

/// The fields of a service account's key file that matter.
#[derive(Debug, Deserialize)]
pub(super) struct KeyFile {
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub client_email: String,
    #[serde(default)]
    pub private_key: String,
    pub private_key_id: Option<String>,
    #[serde(default)]
    pub token_uri: String,
}

impl KeyFile {
    /// What makes it no service account's key; no value of it is told.
    pub fn fault(&self) -> Option<String> {
        if self.kind != "service_account" {
            let kind = crate::reading::shown(&self.kind);
            return Some(format!("its `type` is \"{kind}\", not \"service_account\""));
        }
        let fields = [("client_email", &self.client_email), ("private_key", &self.private_key)];
        let missing = fields.into_iter().find(|(_, value)| value.is_empty());
        missing.map(|(name, _)| format!("it has no `{name}`"))
    }
}

/// The claims of an assertion.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Claims {
    iss: String,
    scope: String,
    aud: String,
    iat: i64,
    exp: i64,
}

impl Claims {
    /// `now` is wall time: the token server reads it by its own clock.
    pub fn new(email: &str, scopes: &[String], token_url: &str, now: Timestamp) -> Claims {
        let iat = now.to_utc().timestamp();
        Claims {
            iss: email.to_owned(),
            scope: scopes.join(" "),
            aud: token_url.to_owned(),
            iat,
            exp: iat + LIFE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_are_those_that_google_asks_for() {
        let scopes = ["https://a.example/one".to_owned(), "https://a.example/two".to_owned()];
        let now = Timestamp::from_secs(1_780_315_200) + std::time::Duration::from_millis(900);
        let claims = Claims::new("robot@p.example", &scopes, "https://t.example/token", now);
        assert_eq!(
            serde_json::to_value(&claims).unwrap(),
            serde_json::json!({
                "iss": "robot@p.example",
                "scope": "https://a.example/one https://a.example/two",
                "aud": "https://t.example/token", "iat": 1_780_315_200, "exp": 1_780_318_800,
            })
        );
    }

    #[test]
    fn a_file_that_is_no_key_says_why() {
        let fault = |text: &str| serde_json::from_str::<KeyFile>(text).unwrap().fault();
        let user = fault(r#"{"type": "authorized_user", "refresh_token": "x"}"#).unwrap();
        assert!(user.contains("authorized_user") && !user.contains('x'), "{user}");
        let empty = fault(r#"{"type": "service_account", "client_email": "a"}"#);
        assert_eq!(empty.unwrap(), "it has no `private_key`");
    }
}
