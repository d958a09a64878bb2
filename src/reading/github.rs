//! GitHub's marks: its answers follow two rules that nobody else's do.

use super::view::View;
use crate::quota::Upstream;

/// Whether the answer is GitHub's (also an Enterprise server's).
pub(crate) fn is_github(view: &View<'_>, upstream: Option<&Upstream>) -> bool {
    upstream.is_some_and(|upstream| upstream.name == "github")
        || view.header("x-github-request-id").is_some()
        || view.header("x-ratelimit-resource").is_some()
        || view.url().starts_with("https://api.github.com/")
}
