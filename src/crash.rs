//! The stops of a job's way at which tests let the program die, as if by a power cut.
//!
//! `PACELINE_CRASH=claim:3` ends the process when it comes by `claim` for the third time. Only the
//! feature `crash-points` compiles that in; without it a stop is nothing.

/// The process comes by a stop.
#[cfg(not(feature = "crash-points"))]
#[inline]
pub(crate) fn stop(_name: &str) {}

/// The process comes by a stop, and may end here: nothing is dropped, flushed or told.
#[cfg(feature = "crash-points")]
pub(crate) fn stop(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CHOSEN: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let chosen = std::env::var("PACELINE_CRASH").ok()?;
        let (name, nth) = chosen.split_once(':')?;
        Some((name.to_owned(), nth.parse().ok()?))
    });
    static PASSED: AtomicU64 = AtomicU64::new(0);

    if let Some((chosen, nth)) = CHOSEN.as_ref()
        && chosen == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *nth
    {
        std::process::abort();
    }
}
