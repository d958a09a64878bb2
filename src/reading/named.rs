//! Header fields that name the reason.

use super::Reason;
use super::verdict::Verdict;
use super::view::{View, contains};
use super::window::Window;

/// Reads the fields of Stripe, Jira and Shopify that name the limit.
pub(crate) fn read(view: &View<'_>) -> Option<Verdict> {
    stripe(view).or_else(|| jira(view)).or_else(|| shopify(view))
}

/// `Stripe-Rate-Limited-Reason`: rate and concurrency, which the body does not tell apart;
/// https://docs.stripe.com/rate-limits
fn stripe(view: &View<'_>) -> Option<Verdict> {
    let field = "stripe-rate-limited-reason";
    let which = view.header(field).filter(|_| view.status() == 429)?;
    if contains(which, "concurrency") {
        return Some(Verdict::new(Reason::ConcurrencyLimited, field));
    }
    Some(Verdict::new(Reason::RateLimited, field))
}

/// `RateLimit-Reason`: points an hour, or bursts;
/// https://developer.atlassian.com/cloud/jira/platform/rate-limiting/
fn jira(view: &View<'_>) -> Option<Verdict> {
    let which = view.header("ratelimit-reason").filter(|_| view.status() == 429)?;
    let window = if contains(which, "quota") { Window::Hour } else { Window::Short };
    Some(Verdict::limited(Some(window), "ratelimit-reason"))
}

/// A 429 of Shopify's while its leaky bucket has room is another limit: the variants of a day;
/// https://shopify.dev/docs/api/admin-rest/usage/rate-limits
fn shopify(view: &View<'_>) -> Option<Verdict> {
    let field = "x-shopify-shop-api-call-limit";
    let (used, size) = view.header(field).filter(|_| view.status() == 429)?.split_once('/')?;
    let (used, size): (u64, u64) = (used.parse().ok()?, size.parse().ok()?);
    (used < size).then(|| Verdict::limited(Some(Window::Day), field))
}
