//! Connections that calls are spread over: each carries one call at a time, the one that rested longest
//! takes the next. An upstream that counts on each copy of its own limiter, behind a balancer that
//! gives a connection to a copy, then sees its plan and not one copy's share of it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A connection's number, from 1, with what speaks over it.
#[derive(Debug)]
pub(super) struct Connection<C> {
    pub number: u32,
    pub client: C,
}

/// What makes a client that has not connected yet; `None`: it cannot be made.
type Make<C> = Box<dyn Fn() -> Option<C> + Send + Sync>;

/// All connections of one upstream.
pub(super) struct Connections<C> {
    make: Make<C>,
    free: Arc<Semaphore>,
    state: Mutex<State<C>>,
}

#[derive(Debug)]
struct State<C> {
    /// Those that carry no call, who rested longest first.
    resting: VecDeque<Connection<C>>,
    /// Numbers of those that are to be made anew once their call has ended.
    refused: BTreeSet<u32>,
}

impl<C> Connections<C> {
    /// Over these clients, none of them connected yet.
    pub fn new(clients: Vec<C>, make: Make<C>) -> Connections<C> {
        let free = Arc::new(Semaphore::new(clients.len()));
        let numbered = (1..).zip(clients).map(|(number, client)| Connection { number, client });
        let state = State { resting: numbered.collect(), refused: BTreeSet::new() };
        Connections { make, free, state: Mutex::new(state) }
    }

    /// Lends the connection that rested longest; waits where none does.
    pub async fn lend(self: &Arc<Self>) -> Option<Lent<C>> {
        let place = Arc::clone(&self.free).acquire_owned().await.ok()?;
        let connection = self.state().resting.pop_front()?;
        Some(Lent { of: Arc::clone(self), connection: Some(connection), place: Some(place) })
    }

    /// Runs one exchange over the connection that rested longest; waits where none does.
    pub async fn with<T>(
        self: &Arc<Self>,
        exchange: impl AsyncFnOnce(&Connection<C>) -> T,
    ) -> Option<T> {
        let lent = self.lend().await?;
        Some(exchange(lent.connection()?).await)
    }

    /// A call over this connection was refused though the plan was kept to: behind it may be a copy that
    /// another connection has as well. The next one may lead elsewhere.
    pub fn refused(&self, number: u32) {
        let mut state = self.state();
        match state.resting.iter_mut().find(|connection| connection.number == number) {
            Some(connection) => self.renew(connection),
            None => drop(state.refused.insert(number)),
        }
    }

    fn renew(&self, connection: &mut Connection<C>) {
        // Where no other can be made, the old one goes on.
        if let Some(client) = (self.make)() {
            connection.client = client;
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: std::fmt::Debug> std::fmt::Debug for Connections<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").field("state", &self.state).finish_non_exhaustive()
    }
}

/// A connection that comes back whatever happens to its call.
pub(super) struct Lent<C> {
    of: Arc<Connections<C>>,
    connection: Option<Connection<C>>,
    /// Let go once the connection rests.
    place: Option<OwnedSemaphorePermit>,
}

impl<C> Lent<C> {
    /// The connection: there until this is dropped.
    pub fn connection(&self) -> Option<&Connection<C>> {
        self.connection.as_ref()
    }
}

impl<C> Drop for Lent<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let mut state = self.of.state();
        if state.refused.remove(&connection.number) {
            self.of.renew(&mut connection);
        }
        state.resting.push_back(connection);
        drop(state);
        drop(self.place.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(count: usize) -> Arc<Connections<&'static str>> {
        Arc::new(Connections::new(vec!["old"; count], Box::new(|| Some("new"))))
    }

    async fn number(all: &Arc<Connections<&'static str>>) -> u32 {
        all.with(async |connection| connection.number).await.unwrap()
    }

    #[tokio::test]
    async fn the_one_that_rested_longest_goes_next() {
        let all = connections(3);
        let mut used = Vec::new();
        for _ in 0..7 {
            used.push(number(&all).await);
        }
        assert_eq!(used, [1, 2, 3, 1, 2, 3, 1]);
    }

    #[tokio::test]
    async fn each_carries_one_call_at_a_time() {
        let all = connections(2);
        let both = all.with(async |first| {
            let second = number(&all).await;
            (first.number, second)
        });
        assert_eq!(both.await, Some((1, 2)));
        let none_left = all.with(async |_| {
            all.with(async |_| {
                let mut third = std::pin::pin!(number(&all));
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                third.as_mut().poll(&mut context).is_pending()
            })
            .await
        });
        assert_eq!(none_left.await, Some(Some(true)));
    }

    #[tokio::test]
    async fn one_that_was_refused_is_made_anew_when_it_is_free() {
        let all = connections(2);
        all.with(async |connection| all.refused(connection.number)).await.unwrap();
        all.refused(2);
        for number in [2, 1] {
            let seen = all.with(async |one| (one.number, one.client)).await;
            assert_eq!(seen, Some((number, "new")));
        }
    }
}
