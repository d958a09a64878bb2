//! `[auth]`: where `${token}` comes from.

use std::collections::BTreeMap;

use super::check::{self, SecretNames};
use super::fields::Fields;
use super::node::{At, Table};
use super::report::Report;
use crate::address;
use crate::quota::auth::{Auth, ClientAuth, Grant, OAuth, ServiceAccount};
use crate::template::Secret;

/// Fields of a token request that have fields of `[auth]` of their own.
const OWN_FORM: [&str; 7] = [
    "grant_type",
    "client_id",
    "client_secret",
    "refresh_token",
    "scope",
    "assertion",
    "client_assertion",
];

#[derive(Clone, Copy)]
enum Kind {
    ServiceAccount,
    Refresh,
    Client,
    Command,
}

const KINDS: [(&str, Kind); 4] = [
    ("google-service-account", Kind::ServiceAccount),
    ("oauth-refresh", Kind::Refresh),
    ("client-credentials", Kind::Client),
    ("command", Kind::Command),
];

/// `[auth]`. `None` only where a problem was noted.
pub(super) fn auth(report: &Report, table: &Table, secrets: &SecretNames) -> Option<Auth> {
    let mut fields = Fields::new(report, table, "[auth]");
    let kinds = KINDS.map(|(word, _)| format!("\"{word}\"")).join(" or ");
    fields.required("kind", &format!("write kind = {kinds}"))?;
    // Of another kind nothing can be said about the other fields.
    let kind = fields.choice("kind", &KINDS)?;
    let mut taken = Taken { fields, secrets };
    let auth = match kind {
        Kind::ServiceAccount => taken.service_account().map(Auth::ServiceAccount),
        Kind::Refresh => {
            let refresh_token = taken.text("refresh_token", "\"${env:REFRESH_TOKEN}\"");
            taken.oauth(refresh_token.map(|refresh_token| Grant::Refresh { refresh_token }))
        }
        Kind::Client => taken.oauth(Some(Grant::Client)),
        Kind::Command => taken.command(),
    };
    taken.fields.finish();
    auth
}

/// The table's fields, each a template.
struct Taken<'a> {
    fields: Fields<'a>,
    secrets: &'a SecretNames,
}

impl Taken<'_> {
    fn service_account(&mut self) -> Option<ServiceAccount> {
        let key_file = self.text("key_file", "\"${env:GOOGLE_APPLICATION_CREDENTIALS}\"");
        let fix =
            "write scopes = [\"https://www.googleapis.com/auth/...\"], as the API's page says";
        self.fields.required("scopes", fix);
        let scopes = self.scopes();
        let token_url = self.url("token_url");
        Some(ServiceAccount { key_file: key_file?, scopes, token_url })
    }

    fn oauth(&mut self, grant: Option<Grant>) -> Option<Auth> {
        let fix = "write the address that tokens come from, as in token_url = \"https://...\"";
        self.fields.required("token_url", fix);
        let token_url = self.url("token_url");
        let client_id = self.text("client_id", "\"${env:CLIENT_ID}\"");
        let client_secret = self.text("client_secret", "\"${env:CLIENT_SECRET}\"");
        let ways = [("body", ClientAuth::Body), ("basic", ClientAuth::Basic)];
        let client_auth = self.fields.choice("client_auth", &ways).unwrap_or_default();
        let scopes = self.scopes();
        let form = self.form();
        Some(Auth::OAuth(OAuth {
            token_url: token_url?,
            client_id: client_id?,
            client_secret: client_secret?,
            grant: grant?,
            client_auth,
            scopes,
            form,
        }))
    }

    fn command(&mut self) -> Option<Auth> {
        self.fields.required("command", "write command = [\"./token.sh\"]")?;
        let words = self.list("command");
        if words.is_empty() {
            let fix = "name a program and what it is called with, as in [\"./token.sh\"]";
            self.fields.problem("command", "`command` runs nothing", fix);
            return None;
        }
        Some(Auth::Command(words))
    }

    /// A field that must be there.
    fn text(&mut self, name: &'static str, example: &str) -> Option<String> {
        self.fields.required(name, &format!("write {name} = {example}"))?;
        let text = self.fields.words(name)?;
        self.template(self.fields.at(name), text);
        Some(text.to_owned())
    }

    fn scopes(&mut self) -> Vec<String> {
        let scopes = self.list("scopes");
        if self.fields.table.get("scopes").is_some() && scopes.is_empty() {
            self.fields.problem("scopes", "`scopes` allows nothing", "list what is needed");
        }
        scopes
    }

    fn list(&mut self, name: &'static str) -> Vec<String> {
        let texts = self.fields.texts(name);
        texts.iter().for_each(|(text, at)| self.template(*at, text));
        texts.into_iter().map(|(text, _)| text.to_owned()).collect()
    }

    fn form(&mut self) -> BTreeMap<String, String> {
        let mut form = BTreeMap::new();
        if self.fields.node("form").is_none() {
            return form;
        }
        for (name, text, at) in self.fields.text_map("form") {
            if OWN_FORM.contains(&name) {
                let fix = "remove it; [auth] has fields for what it needs";
                self.fields.report.problem(at, format!("`{name}` is set by the sender"), fix);
            }
            self.template(at, text);
            form.insert(name.to_owned(), text.to_owned());
        }
        form
    }

    /// An address that secrets may go to.
    fn url(&mut self, name: &'static str) -> Option<String> {
        let text = self.fields.words(name)?;
        let at = self.fields.at(name);
        self.template(at, text);
        // With a secret in it, it is known when it is asked only.
        if !text.contains("${")
            && let Err(error) = address::for_secrets(text)
        {
            // Its text is not repeated: it may hold a password.
            let message = format!("`{name}` cannot be asked");
            self.fields.report.problem(at, message, error.to_string());
        }
        Some(text.to_owned())
    }

    /// A token belongs to an upstream or a credential, never to a job.
    fn template(&self, at: At, text: &str) {
        let report = self.fields.report;
        let Some(template) = check::template(report, at, text, self.secrets) else { return };
        if let Some(column) = template.columns().first() {
            let fix =
                "write it out, or take it from `${env:NAME}`, `${file:PATH}`, `${secret:NAME}`";
            let message = format!("`{{{column}}}` is a job's, and the token is not");
            report.problem(at, message, fix);
        }
        if template.secrets().contains(&&Secret::Token) {
            let fix = "name where its own secret comes from, such as `${env:NAME}`";
            report.problem(at, "`${token}` is what [auth] gives", fix);
        }
    }
}
