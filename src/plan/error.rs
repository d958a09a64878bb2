//! Why a row cannot become a job.

use std::fmt;

use crate::address::AddressError;
use crate::job::Columns;
use crate::quota::Upstream;
use crate::quota::declare::{meant, nearest};
use crate::template::{Secret, TemplateError};

/// Why a row, or a whole `add`, cannot become jobs.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Columns that are needed and that nothing supplies; at least one.
    #[error("{}", told(.0))]
    Missing(Vec<Missing>),
    /// A value outside the column's `one_of`.
    #[error("`{value}` is not allowed in the column `{column}`: {}", allowed(.one_of, .help.as_deref()))]
    NotOneOf {
        /// The column.
        column: String,
        /// Its value.
        value: String,
        /// What is allowed.
        one_of: Vec<String>,
        /// What the quota file says about it.
        help: Option<String>,
    },
    /// `--set host`, where a URL has another one.
    #[error(
        "`--set host={given}` changes nothing: the column `host` is the host of `url`, which is `{host}`; \
         leave it out"
    )]
    SetHost {
        /// What was given.
        given: String,
        /// The URL's.
        host: String,
    },
    /// The column that a limit takes its cost from holds no whole number.
    #[error("the cost `{value}` in the column `{column}` is no whole number")]
    Cost {
        /// The column.
        column: String,
        /// Its value.
        value: String,
    },
    /// The column of `--priority-from` holds neither.
    #[error(
        "`{value}` in the column `{column}` is no priority from 0 to 9, and no date such as 2026-11-30"
    )]
    Turn {
        /// The column.
        column: String,
        /// Its value.
        value: String,
    },
    /// The column `lastmod`, which changes are told by, holds no date.
    #[error("the lastmod `{0}` is no date such as 2026-11-30 or 2026-11-30T08:00:00Z")]
    Lastmod(String),
    /// The column `url` holds nothing that can be called. Its value is not repeated: it may hold a
    /// password.
    #[error("the URL cannot be used")]
    Url {
        /// Why.
        source: AddressError,
    },
    /// The address is none of the upstream's, whose limits and secrets are not for it.
    #[error(
        "`{host}` is no host of {upstream} ({}), {}; an upstream of your own that `extends` this one can \
         name it under [match]",
        .hosts.join(", "),
        if *.sends_secrets { "and would be sent its secrets" } else { "whose limits do not count there" }
    )]
    ForeignHost {
        /// The host.
        host: String,
        /// The upstream.
        upstream: String,
        /// Its hosts.
        hosts: Vec<String>,
        /// Whether its secrets would go along.
        sends_secrets: bool,
    },
    /// The filled URL template cannot be called.
    #[error("the address `{address}` cannot be called")]
    Address {
        /// The address, secrets as placeholders.
        address: String,
        /// Why.
        source: AddressError,
    },
    /// `.` or `..`, which every URL parser takes for a step to another folder, however encoded.
    #[error("the column `{column}` holds only dots, which a URL cannot carry")]
    Dots {
        /// The column.
        column: String,
    },
    /// A value that its place cannot carry.
    #[error(transparent)]
    Fill {
        /// Why.
        #[from]
        source: TemplateError,
    },
    /// A template that cannot be read.
    #[error("the template of {what} cannot be read")]
    Template {
        /// Which, as in `--header X-Key`.
        what: String,
        /// Why.
        source: TemplateError,
    },
    /// `{items.…}` outside a body.
    #[error("{0} uses `{{items.…}}`, which is for the body of a batch; write `{{NAME}}`")]
    Items(String),
    /// A secret that the upstream's credentials do not declare.
    #[error("nothing in the quota file declares `{secret}`, which {what} uses")]
    UndeclaredSecret {
        /// Which template.
        what: String,
        /// The secret.
        secret: Secret,
    },
    /// No method.
    #[error("`{0}` is no method; write it in capitals, as in POST")]
    Method(String),
    /// No header name.
    #[error("`{0}` is no header name")]
    HeaderName(String),
    /// A header that says how the message is read.
    #[error("header `{0}` is set by the sender; leave it out")]
    Framing(String),
    /// A host other than that of the address.
    #[error("the host is the address's, and no header of a row; leave `Host` out")]
    HostHeader,
    /// A header whose value is not on one line.
    #[error("the value of header `{0}` holds a line break or control character")]
    HeaderValue(String),
    /// A priority above 9.
    #[error("priority {0} is out of range; write 0 to 9, higher goes first")]
    Priority(u8),
    /// A credential that is not declared.
    #[error("there is no credential `{name}`{}; {}", meant(.name, .known.iter().map(String::as_str)), one_of(.known))]
    UnknownCredential {
        /// The name given.
        name: String,
        /// Those declared.
        known: Vec<String>,
    },
    /// No credential's `when` agrees with the job.
    #[error(
        "no credential is for {}: declare one with that in its `when`, or {}",
        shown(.has), one_of(.known)
    )]
    NoCredential {
        /// What the job has of the columns that credentials look at.
        has: Columns,
        /// Those declared.
        known: Vec<String>,
    },
}

/// The values of a column, and its help. One that allows only nothing is there to be refused.
fn allowed(one_of: &[String], help: Option<&str>) -> String {
    let values: Vec<&str> =
        one_of.iter().map(String::as_str).filter(|one| !one.is_empty()).collect();
    let values = (!values.is_empty()).then(|| values.join(", "));
    let told: Vec<&str> = values.as_deref().into_iter().chain(help).collect();
    told.join("; ")
}

/// `host = "www.example.com"`, as it is written.
fn shown(columns: &Columns) -> String {
    let pairs: Vec<_> = columns.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    if pairs.is_empty() { "this job".to_owned() } else { pairs.join(", ") }
}

fn one_of(known: &[String]) -> String {
    if known.is_empty() {
        return "the quota file declares none".to_owned();
    }
    format!("write --credential with one of {}", known.join(", "))
}

fn told(missing: &[Missing]) -> String {
    let lines: Vec<_> = missing.iter().map(Missing::to_string).collect();
    lines.join("\n")
}

/// A column that is needed and that nothing supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Its name.
    pub column: String,
    /// What the quota file says about it.
    pub help: Option<String>,
    /// A column of nearly that name that is there.
    pub near: Option<String>,
}

impl Missing {
    pub(super) fn new<'n>(
        upstream: &Upstream,
        column: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> Missing {
        let declared = upstream.columns.get(column).and_then(|rule| rule.help.clone());
        let help = declared.or_else(|| match column {
            "url" => Some("the address, as an argument or a column of the rows".to_owned()),
            "credential" => Some("a limit counts by it: declare [credential.NAME]".to_owned()),
            _ => None,
        });
        let near = nearest(column, known.filter(|known| *known != column));
        Missing { column: column.to_owned(), help, near: near.map(str::to_owned) }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the column `{}` is missing", self.column)?;
        if let Some(help) = &self.help {
            write!(f, ": {help}")?;
        }
        match &self.near {
            Some(near) => write!(f, " (there is `{near}`)"),
            None => Ok(()),
        }
    }
}
