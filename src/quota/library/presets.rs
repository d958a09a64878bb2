//! The quota files built into the program.

macro_rules! presets {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../../quotas/", $name, ".toml")))),+]
    };
}

/// Name and text of each.
pub(super) const PRESETS: &[(&str, &str)] = presets![
    "airtable" "amazon-sp-api" "anthropic" "azure-arm" "bing-webmaster" "cloudflare-api" "crossref"
    "discord" "ebay" "github" "google-books" "google-indexing" "google-request-indexing"
    "google-search-console" "hubspot" "indexnow" "internet-archive" "isbndb" "jira" "naver-indexnow"
    "ncbi-eutils" "nominatim" "notion" "open-library" "openai" "reddit" "seznam-indexnow"
    "shopify-graphql" "shopify-rest" "sitemaps" "slack" "stripe" "wikimedia" "x" "yandex-indexnow"
    "yandex-webmaster" "zendesk"
];

/// How a preset's file is named in messages.
pub(super) fn file(name: &str) -> String {
    format!("built-in {name}.toml")
}
