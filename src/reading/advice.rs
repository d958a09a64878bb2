//! What a person must do about an answer that waiting does not cure, in one sentence.

use std::fmt;

use regex::Regex;

use super::Reason;
use super::body::words::shown;
use super::parts::text_of;
use super::rules::{Rule, ValuePattern};
use super::verdict::Verdict;
use super::view::View;
use crate::job::Columns;
use crate::quota::Upstream;
use crate::template::{Secret, Template, is_name};

/// What a rule says, with its placeholders filled in: `{name}` is a named group of one of the rule's
/// patterns, else a column of the partition. What nothing gives a value stands in capitals.
pub(crate) fn says(rule: &Rule, view: &View<'_>, partition: &Columns) -> Option<String> {
    let mut filled = String::new();
    let mut rest = rule.says.as_deref()?;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}').filter(|(name, _)| is_name(name)) {
            Some((name, after)) => {
                let value = found(rule, view, name).or_else(|| partition.get(name).cloned());
                filled.push_str(&value.unwrap_or_else(|| name.to_uppercase()));
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    Some(shown(&filled)).filter(|says| !says.is_empty())
}

/// The names that such a sentence has in braces.
pub(crate) fn placeholders(says: &str) -> impl Iterator<Item = &str> {
    let closed = says.split('{').skip(1).filter_map(|after| after.split_once('}'));
    closed.map(|(name, _)| name).filter(|name| is_name(name))
}

/// What a named group of the rule's patterns took from the answer.
fn found(rule: &Rule, view: &View<'_>, name: &str) -> Option<String> {
    let group =
        |pattern: &Regex, text: &str| Some(pattern.captures(text)?.name(name)?.as_str().to_owned());
    let in_body = rule.when.body.iter().find_map(|pattern| group(pattern, view.text()));
    let in_json = || {
        rule.when.json.iter().find_map(|(pointer, value)| match value {
            ValuePattern::Matches(pattern) => group(pattern, &text_of(view.at(pointer)?)),
            _ => None,
        })
    };
    in_body.or_else(in_json)
}

/// What to do where no rule says it; `None` where nobody needs to act.
pub(crate) fn of_reason(
    verdict: &Verdict,
    status: u16,
    upstream: &Upstream,
    partition: &Columns,
) -> Option<String> {
    // A key that does not pass in its time holds too, with what was told while it was waited for.
    if verdict.retryable && verdict.reason != Reason::KeyPending {
        return None;
    }
    let secrets = Secrets::of(upstream, partition);
    let name = &upstream.name;
    // A 401 is about the secret, whether a login can renew it or only a person.
    let reason = match verdict.reason {
        Reason::Misconfigured if status == 401 => Reason::AuthExpired,
        reason => reason,
    };
    Some(match (reason, secrets.0.is_empty()) {
        (Reason::AuthExpired, false) => {
            format!("renew {secrets}, which is wrong, expired or revoked")
        }
        (Reason::AuthExpired, true) => {
            format!("give the quota file of {name} a secret, as its calls want one")
        }
        (Reason::Forbidden, false) => {
            format!("grant {secrets} the permission that this needs, or use another")
        }
        (Reason::Forbidden, true) => {
            format!(
                "ask the upstream why, or give the quota file of {name} a login that may do this"
            )
        }
        (Reason::Misconfigured, false) => {
            format!("check {secrets} and the quota file of {name}, as something there is wrong")
        }
        (Reason::Misconfigured, true) => {
            format!("check the quota file of {name}, as something in it is wrong")
        }
        (Reason::Blocked, _) => {
            "find out why it shuts this caller out (User-Agent, network, pace) before you go on"
                .to_owned()
        }
        (Reason::QuotaExhausted, _) => "buy more, or have the limit raised".to_owned(),
        (Reason::KeyPending, false) => {
            format!("see that {secrets} is right, which the upstream has not verified yet")
        }
        (Reason::KeyPending, true) => {
            "see that the key is right, which the upstream has not verified yet".to_owned()
        }
        (Reason::RateLimited | Reason::ConcurrencyLimited | Reason::Overloaded, _) => {
            "ask the upstream what it allows".to_owned()
        }
        _ => return None,
    })
}

/// The secrets that calls prove themselves by, for people.
struct Secrets(Vec<String>);

impl Secrets {
    fn of(upstream: &Upstream, partition: &Columns) -> Secrets {
        let request = &upstream.request;
        // A name and an address to write to are no proof.
        let proofs =
            request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("user-agent"));
        let templates = request.url.iter().chain(&request.body).chain(proofs.map(|(_, text)| text));
        let credential =
            partition.get("credential").and_then(|name| upstream.credentials.get(name));
        let mut placeholders = Vec::new();
        for template in templates.filter_map(|text| Template::parse(text).ok()) {
            for secret in template.secrets() {
                let own = match secret {
                    Secret::Named(name) => credential.and_then(|own| own.secret.get(name)),
                    _ => None,
                };
                placeholders.push(match (own, secret) {
                    (Some(own), _) => format!("`{own}`"),
                    (None, Secret::Token) => "what [auth] logs in with".to_owned(),
                    (None, secret) => format!("`{secret}`"),
                });
            }
        }
        placeholders.sort();
        placeholders.dedup();
        Secrets(placeholders)
    }
}

impl fmt::Display for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, placeholder) in self.0.iter().enumerate() {
            let and = if n == 0 { "" } else { " and " };
            write!(f, "{and}{placeholder}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, read_for};
    use super::*;
    use crate::clock::Timestamp;
    use crate::quota::declare;

    const KEYS: &str = r#"
        name = "shop"
        [credential.a]
        secret = { key = "${env:KEY_A}" }
        [credential.b]
        secret = { key = "${env:KEY_B}" }
        [request]
        url = "https://api.example/"
        headers = { Authorization = "${secret:key}", User-Agent = "${env:NAME}" }
    "#;

    fn detail(file: &str, partition: &[(&str, &str)], status: u16, body: &str) -> String {
        let upstream = declare::parse("shop", "shop.toml", file).unwrap();
        let received_at = Timestamp::from_secs(1_780_317_000);
        let (url, headers) = ("https://api.example/", &[]);
        let answer =
            Answer { method: "GET", url, received_at, status, headers, body: body.as_bytes() };
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let partition = partition.iter().map(own).collect();
        read_for(&partition, Some(&upstream), &answer).detail
    }

    #[test]
    fn a_rule_names_columns_and_what_its_patterns_found() {
        let file = r#"
            name = "shop"
            [columns.not]
            [[reading]]
            when = { status = 403, body = "project (?<project>[0-9]+)" }
            reason = "misconfigured"
            says = "enable it for project {project} of {host} {not} {a b}"
        "#;
        let told =
            detail(file, &[("host", "www.example.com")], 403, "project 77 has not enabled it");
        assert_eq!(
            told,
            "enable it for project 77 of www.example.com NOT {a b}: project 77 has not enabled it"
        );
        let json = file.replace("body = \"project", "json = { \"/error\" = { matches = \"project");
        let json = json.replace("+)\" }", "+)\" } } }");
        let told = detail(&json, &[], 403, r#"{"error": "in project 9 it is off"}"#);
        assert!(told.starts_with("enable it for project 9 of HOST"), "{told}");
    }

    #[test]
    fn without_a_rule_the_secret_of_the_calls_own_credential_is_named() {
        let told = |status| detail(KEYS, &[("credential", "b")], status, "go away");
        assert_eq!(told(401), "renew `${env:KEY_B}`, which is wrong, expired or revoked: go away");
        assert_eq!(
            told(403),
            "grant `${env:KEY_B}` the permission that this needs, or use another: go away"
        );
    }

    #[test]
    fn only_a_401_is_about_the_secret_alone() {
        let upstream = declare::parse("shop", "shop.toml", KEYS).unwrap();
        let partition = Columns::from([("credential".to_owned(), "a".to_owned())]);
        let told = |status| {
            let verdict = Verdict::new(Reason::Misconfigured, "");
            of_reason(&verdict, status, &upstream, &partition).unwrap()
        };
        assert!(told(401).starts_with("renew `${env:KEY_A}`"), "{}", told(401));
        assert!(told(403).starts_with("check `${env:KEY_A}` and the quota file"), "{}", told(403));
    }

    #[test]
    fn every_reason_that_holds_names_what_to_do() {
        for reason in Reason::ALL {
            let verdict = Verdict { retryable: false, ..Verdict::new(reason, "") };
            let holds = matches!(
                reason,
                Reason::AuthExpired | Reason::Misconfigured | Reason::Forbidden | Reason::Blocked
            ) || reason.is_retryable() && reason != Reason::Transient;
            for file in [KEYS, "name = \"shop\"\n"] {
                let upstream = declare::parse("shop", "shop.toml", file).unwrap();
                let told = of_reason(&verdict, 403, &upstream, &Columns::new());
                assert_eq!(told.is_some(), holds, "{reason}");
                let verdict = Verdict { retryable: true, ..verdict.clone() };
                let told = of_reason(&verdict, 403, &upstream, &Columns::new());
                assert_eq!(told.is_some(), reason == Reason::KeyPending, "{reason}");
            }
        }
    }
}
