//! The job's part in the call that is settled.

use rusqlite::{OptionalExtension, Row};

use crate::clock::Timestamp;
use crate::job::{CallId, JobId};
use crate::quota::Upstream;
use crate::store::sqlite::instances::TakenFrom;
use crate::store::sqlite::queries;
use crate::store::sqlite::writer::Txn;

/// How the call stands to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is still leased.
    Leased,
    /// Its lease ran out, and the job waits for its answer, or for another try.
    Awaited,
    /// Its lease ran out, and the job went on without it.
    Overtaken,
}

/// A job's part in a call.
pub(super) struct Part {
    pub standing: Standing,
    pub job: JobId,
    pub n: u32,
    pub partition: i64,
    pub partition_key: String,
    pub repeatable: bool,
    /// Its slot, while it is leased.
    pub slot: Option<Timestamp>,
    /// What may go back; nothing of a lease that ran out: what was spent stays spent.
    pub taken: Vec<TakenFrom>,
    pub failures: u32,
    pub refused_hard: bool,
    pub deadline_at: Option<Timestamp>,
    /// Whether the partition's last call but for refusals was answered at all.
    pub answered: bool,
    /// Refusals in a row of the partition that only a person can lift.
    pub hard_refusals: u32,
}

impl Part {
    /// The part that this call's settlement ends; `None`: it ended before.
    pub fn find(
        txn: &Txn<'_>,
        upstream: &Upstream,
        call: CallId,
    ) -> rusqlite::Result<Option<Part>> {
        let mut query = txn.conn.prepare_cached(queries::LEASED)?;
        let leased = query.query_row([call.0], Part::leased).optional()?;
        if leased.is_some() {
            return Ok(leased);
        }
        let mut query = txn.conn.prepare_cached(queries::LOST)?;
        query.query_row([call.0], |row| Part::lost(row, upstream)).optional()
    }

    fn leased(row: &Row<'_>) -> rusqlite::Result<Part> {
        let taken: String = row.get("taken")?;
        let taken = serde_json::from_str(&taken).unwrap_or_default();
        let repeatable = row.get("repeatable")?;
        let slot = Some(Timestamp::from_nanos(row.get("slot_at")?));
        Ok(Part { slot, ..Part::read(row, Standing::Leased, repeatable, taken)? })
    }

    fn lost(row: &Row<'_>, upstream: &Upstream) -> rusqlite::Result<Part> {
        let standing = match row.get("awaits")? {
            true => Standing::Awaited,
            false => Standing::Overtaken,
        };
        let method: String = row.get("method")?;
        let repeatable =
            row.get("as_get")? || row.get("repeatable")? && upstream.request.is_repeatable(&method);
        Part::read(row, standing, repeatable, Vec::new())
    }

    fn read(
        row: &Row<'_>,
        standing: Standing,
        repeatable: bool,
        taken: Vec<TakenFrom>,
    ) -> rusqlite::Result<Part> {
        let deadline: Option<i64> = row.get("deadline_at")?;
        Ok(Part {
            standing,
            job: JobId(row.get("job_id")?),
            n: row.get("n")?,
            partition: row.get("partition_id")?,
            partition_key: row.get("key")?,
            repeatable,
            slot: None,
            taken,
            failures: row.get("failures")?,
            refused_hard: row.get("refused_hard")?,
            deadline_at: deadline.map(Timestamp::from_nanos),
            answered: row.get("answered")?,
            hard_refusals: row.get("hard_refusals")?,
        })
    }
}
