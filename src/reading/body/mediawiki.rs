//! The action API of MediaWiki: `{"error": {"code", "info"}}`, or `{"errors": [{"code", "module"}]}`, under
//! a success, and the same code in a header. Codes:
//! <https://www.mediawiki.org/wiki/API:Errors_and_warnings>

use super::{codes, error};
use crate::reading::Reason;
use crate::reading::verdict::Verdict;
use crate::reading::view::View;

const CODES: &[(Reason, &[&str])] = &[
    (Reason::RateLimited, &["actionthrottledtext", "ratelimited-anon"]),
    (Reason::Overloaded, &["readonly", "maxlag"]),
    (Reason::Transient, &["failed-save", "editconflict", "unknownerror", "internal_api_error"]),
    (
        Reason::AuthExpired,
        &[
            "badtoken",
            "assertuserfailed",
            "assertbotfailed",
            "assertnameduserfailed",
            "notloggedin",
            "mustbeloggedin",
            "mwoauth-invalid-authorization",
        ],
    ),
    (
        Reason::Forbidden,
        &[
            "permissiondenied",
            "protectedpage",
            "protectedtitle",
            "protectednamespace",
            "protectednamespace-interface",
            "cascadeprotected",
            "readapidenied",
            "writeapidenied",
            "noedit",
            "noedit-anon",
            "cantcreate",
            "cantcreate-anon",
        ],
    ),
    (Reason::Blocked, &["blocked", "autoblocked", "globalblocking-blockedtext-user"]),
    (
        Reason::InvalidRequest,
        &[
            "unknown_action",
            "missingparam",
            "badvalue",
            "badinteger",
            "invalidtitle",
            "mustbeposted",
            "invalidparammix",
        ],
    ),
    (
        Reason::NotFound,
        &["missingtitle", "nosuchpageid", "nosuchrevid", "nosuchsection", "nosuchuser"],
    ),
    (Reason::TooLarge, &["contenttoobig", "toomanyvalues"]),
];

/// Codes that only begin alike: `internal_api_error_DBQueryError`, `globalblocking-ipblocked`.
const BEGINNINGS: &[(&str, Reason)] = &[
    ("internal_api_error_", Reason::Transient),
    ("mwoauth-invalid-authorization", Reason::AuthExpired),
    ("globalblocking-", Reason::Blocked),
    ("assert", Reason::AuthExpired),
    ("unknown_", Reason::InvalidRequest),
];

/// The code's field.
const FIELD: &str = "mediawiki-api-error";

/// Reads the header, or the code of a success that is an error and nothing else.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    if let Some(code) = view.header(FIELD) {
        return lookup(code, view, FIELD);
    }
    if !view.is_success() || !error::is_only_error(view) {
        return None;
    }
    let one = |place: &str| lookup(view.text_at(place)?, view, &format!("body {place}"));
    one("/error/code").or_else(|| one("/errors/0/code"))
}

fn lookup(code: &str, view: &View<'_>, source: &str) -> Option<Verdict> {
    let exact = CODES.iter().find(|(_, codes)| codes.contains(&code)).map(|(reason, _)| *reason);
    let begins =
        || BEGINNINGS.iter().find(|(start, _)| code.starts_with(start)).map(|(_, why)| *why);
    let known = codes::lookup(code, view.status(), source);
    exact
        .map(|reason| Verdict::new(reason, source))
        .or(known)
        .or_else(|| begins().map(|reason| Verdict::new(reason, source)))
}
