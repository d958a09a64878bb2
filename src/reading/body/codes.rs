//! Generic typed codes: `{"error": "ratelimited"}`, `{"code": "rate_limit_exceeded"}` and the like,
//! compared without regard to case, hyphens and blanks.

use serde_json::Value;

use crate::reading::verdict::Verdict;
use crate::reading::view::View;
use crate::reading::window::Window;
use crate::reading::{Reason, status};

/// Where a code stands, the most telling first.
const PLACES: &[&str] = &[
    "/error/details/error_code",
    "/error/code",
    "/error/type",
    "/error/status",
    "/error/reason",
    "/errors/0/code",
    "/errors/0/type",
    "/errors/0/error",
    "/errors/0/reason",
    "/errors/0/extensions/code",
    "/json/errors/0/0",
    "/error_code",
    "/errorCode",
    "/ErrorCode",
    "/errorType",
    "/error",
    "/errors",
    "/errors/0",
    "/code",
    "/type",
    "/reason",
    "/status",
    "/title",
    "",
];

/// Where a success may hold words of its own, which are no codes.
const DATA_PLACES: &[&str] = &["/type", "/reason", "/status", "/title", ""];

/// Codes in lower case without punctuation, and what they mean. Sources: the error pages of Slack,
/// Notion, OpenAI, Anthropic, Stripe, Yandex, MediaWiki, X and Shopify, and RFC 6749 and RFC 6750.
const CODES: &[(Reason, &[&str])] = &[
    (
        Reason::RateLimited,
        &[
            "slowdown",
            "ratelimit",
            "ratelimited",
            "ratelimitexceeded",
            "apiratelimitexceeded",
            "toomanyrequests",
            "throttled",
        ],
    ),
    (
        Reason::QuotaExhausted,
        &["usagecapexceeded", "usagelimitexceeded", "usagelimitreached", "outofquota"],
    ),
    (
        Reason::ConcurrencyLimited,
        &[
            "locktimeout",
            "locked",
            "resourcelocked",
            "objectlocked",
            "objectlocktimeout",
            "operationinprogress",
            "anotheroperationinprogress",
            "toomanyconcurrentrequests",
        ],
    ),
    (
        Reason::Overloaded,
        &[
            "overloaded",
            "overloadederror",
            "maxlag",
            "serverbusy",
            "serviceunavailable",
            "temporarilyunavailable",
            "capacityexceeded",
        ],
    ),
    (
        Reason::Transient,
        &[
            "conflicterror",
            "idempotencykeyinuse",
            "idempotencykeyinprogress",
            "requestinprogress",
            "internalerror",
            "internalservererror",
            "fatalerror",
            "servererror",
            "timeout",
            "requesttimeout",
            // Slack: the workspace is being moved, and comes back when that is done.
            "orgloginrequired",
            "teamaddedtoorg",
        ],
    ),
    (
        Reason::AuthExpired,
        &[
            "tokenexpired",
            "expiredtoken",
            "accesstokenexpired",
            "authtokenexpired",
            "tokenrevoked",
            "invalidtoken",
            "invalidaccesstoken",
            "invalidoauthtoken",
            "invalidauth",
            "apikeyexpired",
            "sessionexpired",
            "jwtexpired",
            "invalidgrant",
            "accountinactive",
        ],
    ),
    (
        Reason::Misconfigured,
        &[
            "invalidapikey",
            "apikeyinvalid",
            "missingapikey",
            "apikeymissing",
            "invalidclient",
            "unauthorizedclient",
            "notauthed",
            "hostnotverified",
            "invaliduserid",
            "notallowedtokentype",
            "twofactorsetuprequired",
        ],
    ),
    (
        Reason::Forbidden,
        &[
            "missingscope",
            "insufficientscope",
            "insufficientpermissions",
            "permissiondenied",
            "permissionerror",
            "accessdenied",
            "accessforbidden",
            "forbidden",
            "clientnotenrolled",
            "nopermission",
            "restrictedaction",
            "restrictedactionreadonlychannel",
            "restrictedactionthreadonlychannel",
            "restrictedactionnonthreadablechannel",
            "teamaccessnotgranted",
            "ekmaccessdenied",
            "accesslimited",
            "enterpriseisrestricted",
            "userisrestricted",
            "postingtogeneralchanneldenied",
        ],
    ),
    // A payer's card or account: that payment's own fault.
    (
        Reason::Unprocessable,
        &["carddeclined", "cardexpired", "paymentdeclined", "instrumentdeclined"],
    ),
    // Yandex: what is queued already is queued.
    (Reason::AcceptedPending, &["urlalreadyadded"]),
    (
        Reason::Blocked,
        &["ipblocked", "ipbanned", "banned", "userblocked", "accountsuspended", "accountblocked"],
    ),
    (
        Reason::TooLarge,
        &[
            "requesttoolarge",
            "payloadtoolarge",
            "requestentitytoolarge",
            "contextlengthexceeded",
            "maxcostexceeded",
            "batchtoolarge",
        ],
    ),
];

/// Codes of money and plans: no time brings it back (the limit of a month is another thing).
const MONEY: &[&str] = &[
    "insufficientquota",
    "insufficientcredits",
    "insufficientcredit",
    "insufficientfunds",
    "insufficientbalance",
    "creditbalanceexhausted",
    "creditsexhausted",
    "outofcredit",
    "outofcredits",
    "notenoughcredits",
    "billinghardlimitreached",
    "billingerror",
    "billingnotactive",
    "paymentrequired",
];

/// Caps of a calendar month (Anthropic, Airtable).
const CAPS_OF_A_MONTH: &[&str] = &["enforcedspendlimitreached", "publicapibillinglimitexceeded"];

/// Reads the first code that is known.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    if let Some(verdict) = allocation(view).or_else(|| card(view)) {
        return Some(verdict);
    }
    let known = PLACES.iter().filter(|place| is_code_place(view, place)).find_map(|place| {
        let code = view.text_at(place)?;
        let verdict = lookup(code, view.status(), &format!("body {place}"))?;
        is_believed(view, place, verdict.reason).then_some(verdict)
    });
    known.map(|verdict| name_window(view, verdict)).or_else(|| numeric(view))
}

/// What a code means; `None` where it is not known, or says no more than the status.
pub(crate) fn lookup(code: &str, status: u16, source: &str) -> Option<Verdict> {
    let key = normal(code)?;
    let verdict = |reason| Verdict::new(reason, source);
    if MONEY.contains(&key.as_str()) {
        return Some(verdict(Reason::QuotaExhausted).never());
    }
    if CAPS_OF_A_MONTH.contains(&key.as_str()) {
        return Some(Verdict::limited(Some(Window::Month), source));
    }
    let exact = CODES.iter().find(|(_, codes)| codes.contains(&key.as_str()));
    let found =
        exact.map(|(reason, _)| verdict(*reason)).or_else(|| composed(&key, code, source))?;
    let echo = match found.reason {
        Reason::Forbidden => status::reason(status) == Reason::Forbidden,
        Reason::Transient => status >= 500,
        _ => false,
    };
    (!echo).then_some(found)
}

/// Codes that are made of parts: `API_RATE_LIMIT_REACHED`, `daily_quota_exceeded`,
/// `max_concurrent_jobs_reached`. Text with blanks is none: it must be known as a whole.
fn composed(key: &str, code: &str, source: &str) -> Option<Verdict> {
    if code.trim().contains(char::is_whitespace) {
        return None;
    }
    let has = |part: &str| key.contains(part);
    let over = has("exceed") || has("reach") || has("exhaust");
    if has("concurren") && (over || has("limit") || has("toomany")) {
        return Some(Verdict::new(Reason::ConcurrencyLimited, source));
    }
    let window = Window::in_name(code);
    let long = window.is_some_and(Window::is_quota) && (has("limit") || has("quota"));
    if over && (has("quota") || long) {
        return Some(Verdict { window, ..Verdict::new(Reason::QuotaExhausted, source) });
    }
    let rate = has("ratelimit") || has("toomanyrequests") || has("throttl");
    rate.then(|| Verdict::limited(window, source))
}

/// The code in lower case, letters and digits alone; `None` for what is a sentence.
fn normal(code: &str) -> Option<String> {
    if code.len() > 64 || code.split_whitespace().count() > 4 {
        return None;
    }
    let kept = code.chars().filter(char::is_ascii_alphanumeric);
    Some(kept.map(|letter| letter.to_ascii_lowercase()).collect())
}

fn is_code_place(view: &View<'_>, place: &str) -> bool {
    !view.is_success() || !DATA_PLACES.contains(&place)
}

/// A success with a code at its top may be data; only a refusal by a limit is believed there.
fn is_believed(view: &View<'_>, place: &str, reason: Reason) -> bool {
    let top = matches!(place, "/code" | "/error_code" | "/errorCode" | "/ErrorCode" | "/errorType");
    !view.is_success() || is_denied(view) || !top || reason.is_retryable()
}

/// HubSpot names the window beside the code.
fn name_window(view: &View<'_>, verdict: Verdict) -> Verdict {
    match view.text_at("/policyName").and_then(Window::in_name) {
        Some(window) if verdict.reason == Reason::RateLimited => {
            Verdict::limited(Some(window), verdict.source)
        }
        _ => verdict,
    }
}

/// Azure's `QuotaExceeded` under 403 and 409: cores or resources, which no time frees.
fn allocation(view: &View<'_>) -> Option<Verdict> {
    let azure =
        matches!(view.status(), 403 | 409) && view.text_at("/error/code") == Some("QuotaExceeded");
    azure.then(|| Verdict::new(Reason::QuotaExhausted, "body /error/code").never())
}

/// Stripe's `card_error`: one payer's card, whatever its code is called after.
fn card(view: &View<'_>) -> Option<Verdict> {
    let declined = view.text_at("/error/type") == Some("card_error");
    declined.then(|| Verdict::new(Reason::Unprocessable, "body /error/type"))
}

/// A success that carries the number of another status.
fn numeric(view: &View<'_>) -> Option<Verdict> {
    if !view.is_success() {
        return None;
    }
    let number = |place: &str| {
        let value = view.at(place)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u16::try_from(number).ok().filter(|number| (400..600).contains(number))
    };
    let inside = ["/error/code", "/error/status", "/error"].into_iter();
    let top = ["/error_code", "/statusCode", "/code", "/status"].into_iter();
    let found = inside.map(|place| (place, true)).chain(top.map(|place| (place, is_denied(view))));
    let believed = |(place, sure): (&'static str, bool)| {
        let status = number(place).filter(|status| sure || *status == 429)?;
        Some(Verdict::new(status::reason(status), format!("body {place} {status}")))
    };
    { found }.find_map(believed)
}

/// `ok: false` or `success: false`, beside an error.
pub(super) fn is_denied(view: &View<'_>) -> bool {
    let no = |place| view.at(place).and_then(Value::as_bool) == Some(false);
    let error = ["/error", "/errors", "/error_code"].iter().any(|place| view.at(place).is_some());
    (no("/ok") || no("/success")) && error
}
