//! Checks that several tables share: templates, patterns, pointers and names.

use std::collections::BTreeMap;

use regex::Regex;

use super::node::At;
use super::report::Report;
use crate::address;
use crate::job::Columns;
use crate::template::{Place, Secret, Template};

/// A template of one job: what is for many of them stands in the body of `[batch]`.
pub(super) fn single(
    report: &Report,
    at: At,
    text: &str,
    secrets: &SecretNames,
) -> Option<Template> {
    let template = template(report, at, text, secrets)?;
    if template.is_batch() {
        let fix = "write `body` with it into [batch], or `{NAME}` here";
        report.problem(at, "`{items.…}` stands only in the body of [batch]", fix);
        return None;
    }
    Some(template)
}

/// The secrets that there are beside the environment and files.
pub(super) struct SecretNames {
    /// Those that credentials declare, each with the credentials that do not have it.
    pub(super) named: BTreeMap<String, Vec<String>>,
    /// Whether `[auth]` gives a token.
    pub(super) has_token: bool,
}

/// A template whose secrets exist.
pub(super) fn template(
    report: &Report,
    at: At,
    text: &str,
    secrets: &SecretNames,
) -> Option<Template> {
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            report.problem(
                at,
                error.to_string(),
                "write one of these, or `${{` for a literal `${`",
            );
            return None;
        }
    };
    for secret in template.secrets() {
        known_secret(report, at, secret, secrets);
    }
    Some(template)
}

fn known_secret(report: &Report, at: At, secret: &Secret, secrets: &SecretNames) {
    match secret {
        Secret::Token if !secrets.has_token => {
            let fix = "say in [auth] where it comes from, or write one that you refresh yourself, \
                such as `${env:NAME}`";
            report.problem(at, "`${token}` needs [auth], and there is none", fix);
        }
        Secret::Named(name) => match secrets.named.get(name) {
            None => undeclared(report, at, name, secrets),
            Some(lacking) => {
                for credential in lacking {
                    let fix = format!("declare it there too: `{name}` in `secret`");
                    let message = format!("the credential `{credential}` has no `{secret}`");
                    report.problem(at, message, fix);
                }
            }
        },
        Secret::Env(_) | Secret::File(_) | Secret::Token => {}
    }
}

fn undeclared(report: &Report, at: At, name: &str, secrets: &SecretNames) {
    let fix = match super::suggest::nearest(name, secrets.named.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `${{secret:{near}}}`?"),
        None => format!("write secret = {{ {name} = \"${{env:NAME}}\" }} in [credential.main]"),
    };
    report.problem(at, format!("no credential declares `${{secret:{name}}}`"), fix);
}

/// A URL template: as a template, and once its placeholders are filled in a URL that can be called.
pub(super) fn url(report: &Report, at: At, text: &str, secrets: &SecretNames) {
    let Some(template) = single(report, at, text, secrets) else { return };
    if template.prefix().is_empty() && text.starts_with("${") {
        let message = "a secret cannot bring the scheme and host of a URL along";
        let fix = "write them, as in \"https://api.example.com/v1/items/{id}\"";
        report.problem(at, message, fix);
        return;
    }
    if template.prefix().is_empty() {
        // It begins with a column, which brings scheme and host along.
        return;
    }
    let columns = template.columns().into_iter();
    let sample: Columns = columns.map(|name| (name.to_owned(), "x".to_owned())).collect();
    let filled = template.render(&sample, Place::Url, &|_| Some("x".to_owned()));
    if let Ok(filled) = filled {
        fixed_url(report, at, &filled);
    }
}

/// A URL without placeholders.
pub(super) fn fixed_url(report: &Report, at: At, text: &str) {
    // Its text is not repeated: it may hold a password.
    if let Err(error) = address::parse(text) {
        report.problem(at, "this URL cannot be called", error.to_string());
    }
}

/// A header's name and value template.
pub(super) fn header(report: &Report, at: At, name: &str, value: &str, secrets: &SecretNames) {
    header_name(report, at, name);
    if value.chars().any(char::is_control) {
        let message =
            format!("the value of header `{name}` holds a line break or control character");
        report.problem(at, message, "write it on one line");
    }
    single(report, at, value, secrets);
}

/// A header's name: a token (RFC 9110 section 5.1), and none that frames the message.
pub(super) fn header_name(report: &Report, at: At, name: &str) {
    if !is_token(name) {
        let fix = "write letters, digits and hyphens, such as X-Api-Key";
        report.problem(at, format!("`{name}` is no header name"), fix);
    }
    if is_framing(name) {
        report.problem(at, format!("header `{name}` is set by the sender"), "remove it");
    }
}

/// A header that says how the message, or the connection, is read (RFC 9110 section 7.6.1): the sender's own.
pub(crate) fn is_framing(name: &str) -> bool {
    const FRAMING: [&str; 8] = [
        "connection",
        "content-length",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing))
}

/// RFC 9110 section 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    let symbol = |b: u8| b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || symbol(b))
}

/// A method: a token in capitals, as they are case-sensitive (RFC 9110 section 9.1).
pub(crate) fn is_method(text: &str) -> bool {
    is_token(text) && !text.bytes().any(|b| b.is_ascii_lowercase())
}

/// A regular expression.
pub(super) fn pattern(report: &Report, at: At, text: &str) -> Option<Regex> {
    match Regex::new(text) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            let why = last.strip_prefix("error: ").unwrap_or(last);
            let fix = "write a regular expression in single quotes, such as 'again in ([0-9]+) s'";
            report.problem(at, format!("bad regular expression `{text}`: {why}"), fix);
            None
        }
    }
}

/// A JSON pointer (RFC 6901 section 3).
pub(super) fn pointer(report: &Report, at: At, text: &str) {
    let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if !(text.is_empty() || text.starts_with('/')) || !escapes {
        let fix = "write a path from the root such as \"/error/code\", with ~1 for a slash in a \
            name and ~0 for a tilde";
        report.problem(at, format!("`{text}` is no JSON pointer"), fix);
    }
}

/// A column's name.
pub(super) fn column_name(report: &Report, at: At, name: &str) {
    if !crate::template::is_name(name) {
        let fix = "begin with a letter and go on with letters, digits, `_`, `-` and `.`";
        report.problem(at, format!("`{name}` is no column name"), fix);
    }
}

/// The zone of that name.
pub(super) fn zone(text: &str) -> Result<chrono_tz::Tz, super::units::Wrong> {
    text.parse::<chrono_tz::Tz>().map_err(|_| {
        let fix = match near_zone(text) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "write an IANA name such as \"America/Los_Angeles\", or \"unknown\"".to_owned(),
        };
        super::units::Wrong { message: format!("unknown zone `{text}`"), fix }
    })
}

/// A zone by its city alone, else by a near name; abbreviations such as `PST` are too short to tell.
fn near_zone(text: &str) -> Option<&'static str> {
    let names = || chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
    let city =
        |name: &str| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(text));
    names().find(|name| city(name)).or_else(|| {
        let long = text.chars().count() > 4;
        long.then(|| super::suggest::nearest(text, names())).flatten()
    })
}
