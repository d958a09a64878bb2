//! AWS: codes in `__type`, `x-amzn-ErrorType` or XML. Which codes are throttles is botocore's list
//! (botocore/retries/standard.py).

use super::words;
use crate::reading::Reason;
use crate::reading::verdict::Verdict;
use crate::reading::view::{View, contains};

const CODES: &[(Reason, &[&str])] = &[
    (
        Reason::RateLimited,
        &[
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottledException",
            "RequestThrottled",
            "TooManyRequestsException",
            "ProvisionedThroughputExceededException",
            "TransactionInProgressException",
            "RequestLimitExceeded",
            "BandwidthLimitExceeded",
            "LimitExceededException",
            "SlowDown",
            "PriorRequestNotComplete",
            "EC2ThrottledException",
        ],
    ),
    (
        Reason::Transient,
        &[
            "RequestTimeout",
            "RequestTimeoutException",
            "InternalError",
            "InternalFailure",
            "InternalServerError",
            "InternalServerException",
        ],
    ),
    (Reason::Overloaded, &["ServiceUnavailable", "ServiceUnavailableException"]),
    (
        Reason::AuthExpired,
        &["ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"],
    ),
    (
        Reason::Misconfigured,
        &[
            "SignatureDoesNotMatch",
            "InvalidSignatureException",
            "InvalidAccessKeyId",
            "InvalidClientTokenId",
            "UnrecognizedClientException",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
            "IncompleteSignature",
            "RequestTimeTooSkewed",
            "OptInRequired",
        ],
    ),
    (
        Reason::Forbidden,
        &["AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"],
    ),
    (Reason::TooLarge, &["EntityTooLarge", "RequestEntityTooLarge"]),
    (
        Reason::NotFound,
        &[
            "ResourceNotFoundException",
            "ResourceNotFound",
            "NotFoundException",
            "NoSuchBucket",
            "NoSuchKey",
            "NoSuchEntity",
            "NoSuchEntityException",
            "QueueDoesNotExist",
        ],
    ),
    (Reason::Unprocessable, &["ConditionalCheckFailedException"]),
];

/// How many things an account may have: no time frees them.
const ALLOCATIONS: &[&str] = &[
    "ServiceQuotaExceeded",
    "ServiceQuotaExceededException",
    "ResourceLimitExceeded",
    "ResourceLimitExceededException",
];

/// Reads a code of AWS's.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    if let Some(verdict) = gateway(view).or_else(|| selling_partner(view)) {
        return Some(verdict);
    }
    let code = code(view)?;
    if ALLOCATIONS.contains(&code) {
        return Some(Verdict::new(Reason::QuotaExhausted, format!("body {code}")).never());
    }
    let (reason, _) = CODES.iter().find(|(_, codes)| codes.contains(&code))?;
    Some(Verdict::new(*reason, format!("body {code}")))
}

/// The code, without what surrounds it: `com.amazon#Code`, `Code:http://...`.
fn code<'v>(view: &'v View<'_>) -> Option<&'v str> {
    let field = || Some(view.header("x-amzn-errortype")?.split(':').next()?.trim());
    let json = || view.text_at("/__type");
    let plain = || {
        let places = ["/code", "/Code", "/Error/Code"].into_iter().filter(|_| !view.is_success());
        { places }.find_map(|place| view.text_at(place))
    };
    let xml = || words::element(view, "Code");
    json().or_else(field).or_else(plain).or_else(xml)?.rsplit('#').next()
}

/// API Gateway words a used-up plan quota and a throttle differently:
/// https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
fn gateway(view: &View<'_>) -> Option<Verdict> {
    let message = view.text_at("/message").filter(|_| view.status() == 429)?;
    message
        .eq_ignore_ascii_case("limit exceeded")
        .then(|| Verdict::new(Reason::QuotaExhausted, "body message Limit Exceeded"))
}

/// What the Selling Partner API says of a token of which it wants another.
const BAD_TOKEN: [&str; 5] = ["expired", "revoked", "malformed", "invalid", "missing"];

/// The Selling Partner API calls its token bucket a quota, and a token that is not right unauthorized.
fn selling_partner(view: &View<'_>) -> Option<Verdict> {
    let mut fields = view.fields();
    let amazon = fields
        .any(|(name, _)| name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("x-amzn-")));
    let ours = amazon || view.url().starts_with("https://sellingpartnerapi-");
    match view.text_at("/errors/0/code").filter(|_| ours)? {
        "QuotaExceeded" if view.status() == 429 => {
            Some(Verdict { open: false, ..Verdict::new(Reason::RateLimited, "body QuotaExceeded") })
        }
        "Unauthorized" => {
            let places = ["/errors/0/details", "/errors/0/message"];
            let bad = |text: &str| {
                contains(text, "token") && BAD_TOKEN.iter().any(|word| contains(text, word))
            };
            let bad = places.iter().filter_map(|place| view.text_at(place)).any(bad);
            let reason = if bad { Reason::AuthExpired } else { Reason::Forbidden };
            Some(Verdict::new(reason, "body Unauthorized"))
        }
        _ => None,
    }
}
