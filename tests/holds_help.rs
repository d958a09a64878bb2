//! What a person reads when an upstream's answer holds: by preset, the answer as the upstream gives it and
//! the sentence that says what to do. `{...}` of the sentences is filled in.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use paceline::clock::Timestamp;
use paceline::job::Columns;
use paceline::quota::library::Library;
use paceline::reading::{Answer, read_for};

/// Preset, columns of the partition, status, body, what is told.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16, &'a str, &'a str);

const SITE: &[(&str, &str)] = &[("siteUrl", "https://www.example.com/")];

const CASES: &[Case<'_>] = &[
    (
        "indexnow",
        &[("host", "www.example.com")],
        403,
        r#"{"errorCode": "KeyNotFound", "message": "no key file"}"#,
        "put the key into https://www.example.com/KEY.txt, where the search engine found no key file: no key file",
    ),
    (
        "yandex-indexnow",
        &[("host", "www.example.com")],
        403,
        "",
        "put the key into https://www.example.com/KEY.txt, where it is not, or cannot be fetched",
    ),
    (
        "google-indexing",
        &[],
        403,
        r#"{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "Web Search Indexing API was not used in project 77 before.", "details": [{"reason": "SERVICE_DISABLED"}]}}"#,
        "enable the Indexing API in the Google Cloud console for project 77: Web Search Indexing API",
    ),
    (
        "google-indexing",
        &[],
        403,
        r#"{"error": {"message": "Permission denied. Failed to verify the URL ownership."}}"#,
        "add the service account as an owner of the site in Search Console: Permission denied.",
    ),
    (
        "google-indexing",
        &[],
        429,
        r#"{"error": {"message": "limit 'Publish requests per day'", "details": [{"@type": "ErrorInfo", "metadata": {"quota_limit_value": "0"}}]}}"#,
        "buy more, or have the limit raised: limit 'Publish",
    ),
    (
        "google-search-console",
        SITE,
        403,
        r#"{"error": {"message": "User does not have sufficient permission for site."}}"#,
        "give the account of the token access to https://www.example.com/ in Search Console: User",
    ),
    (
        "bing-webmaster",
        SITE,
        400,
        r#"{"ErrorCode": 14, "Message": "ERROR!!! NotAuthorized"}"#,
        "add https://www.example.com/ to the account of this API key in Bing Webmaster Tools, and verify it: ERROR",
    ),
    (
        "yandex-webmaster",
        &[("host_id", "https:example.com:443")],
        404,
        r#"{"error_code": "HOST_NOT_VERIFIED", "error_message": "not verified"}"#,
        "verify https:example.com:443 in Yandex Webmaster: not verified",
    ),
    (
        "slack",
        &[("channel", "C1")],
        200,
        r#"{"ok": false, "error": "missing_scope", "needed": "chat:write"}"#,
        "add the scope chat:write to the Slack app and install it anew: missing_scope",
    ),
    (
        "slack",
        &[("channel", "C1")],
        200,
        r#"{"ok": false, "error": "not_in_channel"}"#,
        "invite the Slack app to the channel C1: not_in_channel",
    ),
    (
        "azure-arm",
        &[],
        403,
        r#"{"error": {"code": "AuthorizationFailed", "message": "The client 'x' may not."}}"#,
        "assign the token's principal a role that may do this, as it has none: The client",
    ),
    (
        "openai",
        &[],
        429,
        r#"{"error": {"code": "insufficient_quota", "message": "Check your plan."}}"#,
        "buy credit for the account, as none is left: Check your plan.",
    ),
    (
        "github",
        &[],
        401,
        r#"{"message": "Bad credentials"}"#,
        "renew `${env:GITHUB_TOKEN}`, which is wrong, expired or revoked: Bad credentials",
    ),
    (
        "github",
        &[],
        403,
        r#"{"message": "Resource not accessible by integration"}"#,
        "grant `${env:GITHUB_TOKEN}` the permission that this needs, or use another: Resource",
    ),
    ("stripe", &[], 402, "", "buy more, or have the limit raised: status 402 without a word"),
    (
        "crossref",
        &[],
        403,
        "blocked",
        "ask the upstream why, or give the quota file of crossref a login that may do this: blocked",
    ),
];

#[test]
fn each_answer_says_what_to_do_and_then_the_servers_words() {
    let library = Library::new(Vec::new());
    for (preset, partition, status, body, told) in CASES {
        let upstream = library.get(preset).unwrap();
        let partition: Columns =
            partition.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let answer = Answer {
            method: "GET",
            url: "https://api.example/",
            received_at: Timestamp::from_secs(1_796_000_000),
            status: *status,
            headers: &[],
            body: body.as_bytes(),
        };
        let reading = read_for(&partition, Some(&upstream), &answer);
        assert!(!reading.retryable, "{preset}: {reading:?}");
        assert!(reading.detail.starts_with(told), "{preset}: {}", reading.detail);
    }
}
