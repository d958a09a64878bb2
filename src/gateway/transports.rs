//! What calls go over: for each upstream one client, or as many as it wants connections.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::problem::Problem;
use crate::dispatch::stream::StreamTransport;
use crate::quota::Upstream;

/// Connections kept alive to one host.
const IDLE: usize = 64;

/// What one is made by.
type Made = (Option<usize>, Duration);

/// All of them, each made when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Transports(Mutex<BTreeMap<String, (Made, Arc<StreamTransport>)>>);

impl Transports {
    /// The upstream's, made anew where its file says otherwise than before.
    pub fn of(&self, upstream: &Upstream) -> Result<Arc<StreamTransport>, Problem> {
        let made = (upstream.request.connections, upstream.request.timeout);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((by, transport)) = all.get(&upstream.name)
            && *by == made
        {
            return Ok(Arc::clone(transport));
        }
        let transport = StreamTransport::new(IDLE, made.0, made.1).map_err(|error| {
            let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
            Problem::new(503, "client", format!("the HTTP client cannot be made: {error}{why}"))
        })?;
        let transport = Arc::new(transport);
        all.insert(upstream.name.clone(), (made, Arc::clone(&transport)));
        Ok(transport)
    }
}
