//! The call that is settled, and its jobs' parts in it.

use rusqlite::{CachedStatement, Row};

use crate::clock::Timestamp;
use crate::job::{CallId, JobId};
use crate::quota::Upstream;
use crate::quota::batch::Size;
use crate::store::sqlite::instances::TakenFrom;
use crate::store::sqlite::queries;
use crate::store::sqlite::writer::Txn;

/// How the call stands to a job of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is still leased.
    Leased,
    /// Its lease ran out, and the job waits for its answer, or for another try.
    Awaited,
    /// Its lease ran out, and the job went on without it.
    Overtaken,
}

/// A call with the jobs that it carried.
pub(super) struct Carried {
    pub partition: i64,
    pub partition_key: String,
    pub repeatable: bool,
    /// Its slot, while it is leased.
    pub slot: Option<Timestamp>,
    /// What may go back; nothing of a lease that ran out: what was spent stays spent.
    pub taken: Vec<TakenFrom>,
    /// Whether the partition's last call but for refusals was answered at all.
    pub answered: bool,
    /// Refusals in a row of the partition that only a person can lift.
    pub hard_refusals: u32,
    /// What is known of the partition's batches; `None`: nothing that would keep them small.
    pub size: Option<Size>,
    /// At least one.
    pub parts: Vec<Part>,
}

/// A job's part in a call.
pub(super) struct Part {
    pub standing: Standing,
    pub job: JobId,
    pub n: u32,
    pub failures: u32,
    pub refused_hard: bool,
    /// It ends with this call.
    pub once: bool,
    pub deadline_at: Option<Timestamp>,
    /// The job's load.
    pub load: i64,
    /// Whether the job's row says queued.
    pub queued: bool,
}

impl Carried {
    /// What this call's settlement ends; `None`: it ended before.
    pub fn find(
        txn: &Txn<'_>,
        upstream: &Upstream,
        call: CallId,
    ) -> rusqlite::Result<Option<Carried>> {
        let leased = txn.conn.prepare_cached(queries::LEASED)?;
        let leased = Carried::read(leased, call, Carried::leased, |_| Ok(Standing::Leased))?;
        if leased.is_some() {
            return Ok(leased);
        }
        let lost = txn.conn.prepare_cached(queries::LOST)?;
        Carried::read(
            lost,
            call,
            |row| Carried::lost(row, upstream),
            |row| Ok(if row.get("awaits")? { Standing::Awaited } else { Standing::Overtaken }),
        )
    }

    /// One row a job; the first tells of the call as well.
    fn read(
        mut query: CachedStatement<'_>,
        call: CallId,
        whole: impl Fn(&Row<'_>) -> rusqlite::Result<Carried>,
        standing: impl Fn(&Row<'_>) -> rusqlite::Result<Standing>,
    ) -> rusqlite::Result<Option<Carried>> {
        let mut rows = query.query([call.0])?;
        let mut carried: Option<Carried> = None;
        while let Some(row) = rows.next()? {
            let part = Part::read(row, standing(row)?)?;
            match &mut carried {
                Some(carried) => carried.parts.push(part),
                None => carried = Some(Carried { parts: vec![part], ..whole(row)? }),
            }
        }
        Ok(carried)
    }

    fn leased(row: &Row<'_>) -> rusqlite::Result<Carried> {
        let taken: String = row.get("taken")?;
        let taken = serde_json::from_str(&taken).unwrap_or_default();
        let slot = Some(Timestamp::from_nanos(row.get("slot_at")?));
        Ok(Carried { slot, ..Carried::whole(row, row.get("repeatable")?, taken)? })
    }

    fn lost(row: &Row<'_>, upstream: &Upstream) -> rusqlite::Result<Carried> {
        let method: String = row.get("method")?;
        let repeatable =
            row.get("as_get")? || row.get("repeatable")? && upstream.request.is_repeatable(&method);
        Carried::whole(row, repeatable, Vec::new())
    }

    fn whole(row: &Row<'_>, repeatable: bool, taken: Vec<TakenFrom>) -> rusqlite::Result<Carried> {
        let (most, bad): (Option<u32>, Option<u32>) =
            (row.get("batch_most")?, row.get("batch_bad")?);
        let bad = bad.map(|bad| bad as usize);
        Ok(Carried {
            partition: row.get("partition_id")?,
            partition_key: row.get("key")?,
            repeatable,
            slot: None,
            taken,
            answered: row.get("answered")?,
            hard_refusals: row.get("hard_refusals")?,
            size: most.map(|most| Size { most: most as usize, bad }),
            parts: Vec::new(),
        })
    }
}

impl Part {
    fn read(row: &Row<'_>, standing: Standing) -> rusqlite::Result<Part> {
        let deadline: Option<i64> = row.get("deadline_at")?;
        Ok(Part {
            standing,
            job: JobId(row.get("job_id")?),
            n: row.get("n")?,
            failures: row.get("failures")?,
            refused_hard: row.get("refused_hard")?,
            once: row.get::<_, Option<bool>>("once")?.unwrap_or(false),
            deadline_at: deadline.map(Timestamp::from_nanos),
            load: row.get("load_id")?,
            queued: row.get("queued")?,
        })
    }
}
