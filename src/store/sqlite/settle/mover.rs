//! What becomes of each job of a call that is settled: its attempt, and its end or another try.

use std::collections::BTreeMap;

use rusqlite::{named_params, params};
use serde_json::Value;

use super::part::{Part, Standing};
use super::{Settle, queries};
use crate::clock::Timestamp;
use crate::job::JobState;
use crate::next::{JobNext, Next};
use crate::reading::{Reading, Reason};
use crate::store::SettleEnd;
use crate::store::sqlite::sweep::Late;
use crate::store::sqlite::usage::stored;

/// What the answer says of one job.
struct Said<'s> {
    status: Option<u16>,
    reading: &'s Reading,
    fields: &'s BTreeMap<String, Value>,
}

impl Settle<'_> {
    fn said(&self, part: &Part) -> Said<'_> {
        let whole = self.settlement;
        match self.items.get(&part.job) {
            Some(item) => {
                Said { status: item.status, reading: &item.reading, fields: &item.fields }
            }
            None => Said { status: whole.status, reading: &whole.reading, fields: &whole.fields },
        }
    }

    /// Records the job's attempt, now that it has ended.
    pub(super) fn record(&self, part: &Part, next: &Next) -> rusqlite::Result<()> {
        let query = match part.standing {
            Standing::Leased => queries::ATTEMPT_ADD,
            Standing::Awaited | Standing::Overtaken => queries::ATTEMPT_COMPLETE,
        };
        let Said { status, reading, .. } = self.said(part);
        let left = self.left().filter(|_| !reading.reason.is_success());
        let hint_at = reading.retry_at.map(|at| self.txn.now.to_store(at).as_nanos());
        let redirect = self.settlement.redirect.as_ref().map(|redirect| &redirect.url);
        self.txn.conn.prepare_cached(query)?.execute(params![
            self.settlement.sent_at.as_nanos(),
            self.txn.now.store.as_nanos(),
            status,
            next.reason.name(),
            reading.source,
            reading.limit,
            hint_at,
            left.map(stored),
            reading.detail,
            redirect,
            self.settlement.connection,
            self.settlement.call.0,
            part.job.0,
            part.n,
        ])?;
        Ok(())
    }

    pub(super) fn move_job(&self, part: &Part, next: &Next) -> rusqlite::Result<SettleEnd> {
        if part.standing == Standing::Awaited && next.job == JobNext::Unsure {
            // It is already, since its lease ran out.
            return Ok(SettleEnd::Late);
        }
        let detail = &self.said(part).reading.detail;
        let mut late = None;
        let (state, detail) = match next.job {
            JobNext::Again { due_at, failure } => {
                self.queue_again(part, next, due_at, failure)?;
                self.redirect(part)?;
                return Ok(SettleEnd::Again(due_at));
            }
            JobNext::Done => (JobState::Done, detail.clone()),
            JobNext::Failed => (JobState::Failed, detail.clone()),
            JobNext::Unsure => (JobState::Unsure, detail.clone()),
            JobNext::Expired { could_go_at } => {
                let limit = self.limit.and_then(|limit| self.upstream.limits.get(limit));
                let limit = limit.map(|limit| limit.name.as_str());
                let told = late.insert(Late { could_go_at, limit }).told(self.txn);
                let said = if detail.is_empty() { told } else { format!("{told}; {detail}") };
                (JobState::Expired, said)
            }
        };
        self.end_job(part, state, next.reason, &detail, late)?;
        Ok(SettleEnd::Ended(state))
    }

    fn queue_again(
        &self,
        part: &Part,
        next: &Next,
        due_at: Timestamp,
        failure: bool,
    ) -> rusqlite::Result<()> {
        let Said { status, reading, .. } = self.said(part);
        let mut again = self.txn.conn.prepare_cached(queries::JOB_AGAIN)?;
        again.execute(named_params! {
            ":id": part.job.0, ":n": part.n, ":due": due_at.as_nanos(),
            ":now": self.txn.now.store.as_nanos(),
            ":failures": part.failures + u32::from(failure), ":hard": next.refused_hard,
            ":status": status, ":reason": next.reason.name(), ":detail": reading.detail,
        })?;
        Ok(())
    }

    /// The job's next call goes to another address.
    fn redirect(&self, part: &Part) -> rusqlite::Result<()> {
        let Some(redirect) = &self.settlement.redirect else { return Ok(()) };
        let mut set = self.txn.conn.prepare_cached(queries::REDIRECT_SET)?;
        set.execute(named_params! {
            ":job": part.job.0, ":url": redirect.url, ":hops": redirect.hops,
            ":as_get": redirect.as_get, ":away": redirect.away,
        })?;
        Ok(())
    }

    fn end_job(
        &self,
        part: &Part,
        state: JobState,
        reason: Reason,
        detail: &str,
        late: Option<Late<'_>>,
    ) -> rusqlite::Result<()> {
        let Said { status, fields, .. } = self.said(part);
        let fields = match fields.is_empty() {
            true => None,
            false => serde_json::to_string(fields).ok(),
        };
        let now = self.txn.now.store.as_nanos();
        if part.queued && state == JobState::Done {
            let mut done = self.txn.conn.prepare_cached(queries::JOB_DONE)?;
            done.execute(params![part.n, now, status, reason.name(), detail, fields, part.job.0])?;
            return Ok(());
        }
        let mut end = self.txn.conn.prepare_cached(queries::JOB_END)?;
        end.execute(named_params! {
            ":id": part.job.0, ":n": part.n, ":state": state.name(), ":now": now, ":status": status,
            ":reason": reason.name(), ":detail": detail, ":fields": fields,
            ":could_go": late.map(|late| late.could_go_at.as_nanos()),
            ":limit": late.and_then(|late| late.limit),
        })?;
        Ok(())
    }
}
