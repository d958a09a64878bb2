//! A count that rises, and can be waited for.

use tokio::sync::watch;

/// Its readers' end.
#[derive(Clone, Debug)]
pub(super) struct Count(watch::Receiver<u64>);

/// Where it rises.
#[derive(Debug)]
pub(super) struct Rise(watch::Sender<u64>);

pub(super) fn count() -> (Rise, Count) {
    let (rise, count) = watch::channel(0);
    (Rise(rise), Count(count))
}

impl Rise {
    pub fn by_one(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl Count {
    pub fn now(&self) -> u64 {
        *self.0.borrow()
    }

    /// Whether it may still rise.
    pub fn is_on(&self) -> bool {
        self.0.has_changed().is_ok()
    }

    /// Resolves once it is beyond `seen`; never, where it does not rise any more.
    pub async fn beyond(&self, seen: u64) {
        if self.0.clone().wait_for(|count| *count > seen).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
