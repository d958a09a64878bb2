//! PURE: what a caller says about its request beside the request itself, in `Paceline-*` headers.

use std::str::FromStr;
use std::time::Duration;

use chrono::DateTime;
use hyper::HeaderMap;
use hyper::header::HeaderName;
use percent_encoding::percent_decode_str;

use super::problem::Problem;
use crate::clock::Timestamp;
use crate::job::Columns;
use crate::quota::declare::{duration, nearest};

/// What all of them begin with. None is passed on.
pub(super) const PREFIX: &str = "paceline-";

/// The token that lets a caller in.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("paceline-token");

const DEADLINE: &str = "paceline-deadline";
const SET: &str = "paceline-set";
const CREDENTIAL: &str = "paceline-credential";
const ALL: [&str; 4] = [DEADLINE, SET, CREDENTIAL, "paceline-token"];

/// What a caller wishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// How long it waits.
    pub patience: Option<Patience>,
    /// Columns.
    pub set: Columns,
    /// The credential.
    pub credential: Option<String>,
}

/// How long somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// So long.
    For(Duration),
    /// Until then (wall time).
    Until(Timestamp),
}

impl Patience {
    /// What is left of it.
    pub fn left(self, now: Timestamp) -> Duration {
        match self {
            Patience::For(span) => span,
            Patience::Until(at) if at > now => at.since(now),
            Patience::Until(_) => Duration::ZERO,
        }
    }
}

impl FromStr for Patience {
    type Err = String;

    fn from_str(text: &str) -> Result<Patience, String> {
        if text == "0" {
            return Ok(Patience::For(Duration::ZERO));
        }
        if let Ok(at) = DateTime::parse_from_rfc3339(text)
            && at.timestamp_nanos_opt().is_some()
        {
            return Ok(Patience::Until(at.to_utc().into()));
        }
        duration(text).map(Patience::For).map_err(|_| {
            format!(
                "`{text}` is neither a span such as 30s nor an instant such as 2026-12-01T08:00:00Z"
            )
        })
    }
}

impl Wish {
    /// Reads the headers.
    ///
    /// # Errors
    ///
    /// One that is unknown, or says nothing that can be understood.
    pub fn read(headers: &HeaderMap) -> Result<Wish, Problem> {
        let mut wish = Wish::default();
        let ours = headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX));
        for (name, value) in ours {
            let text = value.to_str().map_err(|_| {
                bad(format!("`{name}` holds other characters than ASCII: percent-encode them"))
            })?;
            match name.as_str() {
                DEADLINE => {
                    let read = text.trim().parse();
                    wish.patience = Some(read.map_err(|why| bad(format!("`{name}`: {why}")))?);
                }
                SET => wish.set(text)?,
                CREDENTIAL => wish.credential = Some(text.trim().to_owned()),
                name if name == TOKEN.as_str() => {}
                other => return Err(unknown(other)),
            }
        }
        Ok(wish)
    }

    /// `name=value&name=value`, as in a query.
    fn set(&mut self, text: &str) -> Result<(), Problem> {
        for pair in text.split('&').map(str::trim).filter(|pair| !pair.is_empty()) {
            let wrong = || {
                bad(format!(
                    "`{pair}` in `Paceline-Set` is no `name=value`, as in Paceline-Set: lang=en"
                ))
            };
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(String::from);
            let (name, value) = decoded(name).ok().zip(decoded(value).ok()).ok_or_else(wrong)?;
            self.set.insert(name, value);
        }
        Ok(())
    }
}

fn bad(detail: String) -> Problem {
    Problem::bad_request("header", detail)
}

/// A mistyped header would be passed over in silence: the call would go without what it says.
fn unknown(name: &str) -> Problem {
    let meant = nearest(name, ALL).map(|near| format!(" (did you mean `{near}`?)"));
    bad(format!(
        "there is no header `{name}`{}: Paceline-Deadline, Paceline-Set, Paceline-Credential or \
         Paceline-Token",
        meant.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&'static str, &str)]) -> Result<Wish, Problem> {
        let fields = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        Wish::read(&fields.collect())
    }

    #[test]
    fn columns_are_written_as_in_a_query() {
        let wish =
            read(&[(SET, "siteUrl=https://a.example/&lang=de%26en"), ("accept", "x")]).unwrap();
        let expected = [("lang", "de&en"), ("siteUrl", "https://a.example/")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(wish.set, Columns::from(expected));
        assert!(read(&[(SET, "siteUrl")]).unwrap_err().detail.contains("`siteUrl`"));
    }

    #[test]
    fn patience_is_a_span_or_an_instant() {
        let patience = |text| read(&[(DEADLINE, text)]).map(|wish| wish.patience.unwrap());
        let now = Timestamp::from_secs(1_796_100_482); // 2026-12-01T04:48:02Z
        assert_eq!(patience("30s").unwrap().left(now), Duration::from_secs(30));
        assert_eq!(patience("0").unwrap().left(now), Duration::ZERO);
        assert_eq!(patience("2026-12-01T04:48:12Z").unwrap().left(now), Duration::from_secs(10));
        assert_eq!(patience("2026-12-01T04:48:00Z").unwrap().left(now), Duration::ZERO);
        assert!(patience("soon").unwrap_err().detail.contains("`soon`"));
    }

    #[test]
    fn a_mistyped_header_is_told() {
        let problem = read(&[("paceline-deadlin", "3s")]).unwrap_err();
        assert_eq!(problem.status, 400);
        assert!(problem.detail.contains("did you mean `paceline-deadline`?"), "{}", problem.detail);
    }
}
