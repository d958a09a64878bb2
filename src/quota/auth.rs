//! `[auth]`: where `${token}` comes from. Every text here is a template of secrets.

use std::collections::BTreeMap;

use crate::template::{Secret, Template};

/// `[auth]`, by its `kind`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `google-service-account`: an assertion signed with the account's key.
    ServiceAccount(ServiceAccount),
    /// `oauth-refresh` and `client-credentials`: a form to a token server.
    OAuth(OAuth),
    /// `command`: what a program writes.
    Command(Vec<String>),
}

/// A service account's key, and what its tokens may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// The path of the key file.
    pub key_file: String,
    /// What the token may do.
    pub scopes: Vec<String>,
    /// Where tokens come from, instead of the key file's own `token_uri`.
    pub token_url: Option<String>,
}

/// A client of a token server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// Where tokens come from.
    pub token_url: String,
    /// The client's name.
    pub client_id: String,
    /// The client's own secret.
    pub client_secret: String,
    /// What the token is given for.
    pub grant: Grant,
    /// How the client shows who it is.
    pub client_auth: ClientAuth,
    /// What the token may do; empty: what the server gives by itself.
    pub scopes: Vec<String>,
    /// More fields of the form, such as `audience`.
    pub form: BTreeMap<String, String>,
}

/// What a token is given for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// For a refresh token that a person got once.
    Refresh {
        /// It.
        refresh_token: String,
    },
    /// For the client's own secret.
    Client,
}

/// How a client shows who it is (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// In the form: `client_id` and `client_secret`.
    #[default]
    Body,
    /// In an `Authorization: Basic` header.
    Basic,
}

impl Auth {
    /// Its `kind`, as it is written.
    pub const fn kind(&self) -> &'static str {
        match self {
            Auth::ServiceAccount(_) => "google-service-account",
            Auth::OAuth(OAuth { grant: Grant::Refresh { .. }, .. }) => "oauth-refresh",
            Auth::OAuth(OAuth { grant: Grant::Client, .. }) => "client-credentials",
            Auth::Command(_) => "command",
        }
    }

    /// All its templates.
    pub fn templates(&self) -> Vec<&String> {
        match self {
            Auth::ServiceAccount(account) => {
                let own = [&account.key_file].into_iter().chain(&account.token_url);
                own.chain(&account.scopes).collect()
            }
            Auth::OAuth(oauth) => {
                let refresh_token = match &oauth.grant {
                    Grant::Refresh { refresh_token } => Some(refresh_token),
                    Grant::Client => None,
                };
                let own = [&oauth.token_url, &oauth.client_id, &oauth.client_secret];
                let own = own.into_iter().chain(refresh_token).chain(&oauth.scopes);
                own.chain(oauth.form.values()).collect()
            }
            Auth::Command(words) => words.iter().collect(),
        }
    }

    /// Whether each credential has a token of its own.
    pub fn is_per_credential(&self) -> bool {
        let names = |text: &&String| {
            let template = Template::parse(text);
            let secrets = template.iter().flat_map(Template::secrets);
            { secrets }.any(|secret| matches!(secret, Secret::Named(_)))
        };
        self.templates().iter().any(names)
    }
}
