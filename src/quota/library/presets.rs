//! The quota files built into the program.

macro_rules! presets {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../../quotas/", $name, ".toml")))),+]
    };
}

/// Name and text of each.
pub(super) const PRESETS: &[(&str, &str)] = presets![
    "airtable" "bing-webmaster" "cloudflare-api" "github" "google-indexing" "google-search-console"
    "indexnow" "jira" "ncbi-eutils" "nominatim" "notion" "slack" "stripe" "zendesk"
];

/// How a preset's file is named in messages.
pub(super) fn file(name: &str) -> String {
    format!("built-in {name}.toml")
}
