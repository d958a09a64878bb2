//! The quota files built into the program.

/// Name and text of each.
pub(super) const PRESETS: [(&str, &str); 3] = [
    ("bing-webmaster", include_str!("../../../quotas/bing-webmaster.toml")),
    ("google-indexing", include_str!("../../../quotas/google-indexing.toml")),
    ("indexnow", include_str!("../../../quotas/indexnow.toml")),
];

/// How a preset's file is named in messages.
pub(super) fn file(name: &str) -> String {
    format!("built-in {name}.toml")
}
