//! The call that is settled, and its jobs' parts in it.

use rusqlite::CachedStatement;

use crate::clock::Timestamp;
use crate::job::{CallId, JobId};
use crate::quota::Upstream;
use crate::quota::batch::Size;
use crate::store::sqlite::fields::Fields;
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
    /// Whether the partition's own gate was ever closed.
    pub gated: bool,
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
    /// A process waits for it.
    pub owned: bool,
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
            |row| Ok(if row.next()? { Standing::Awaited } else { Standing::Overtaken }),
        )
    }

    /// One row a job; the first tells of the call as well.
    fn read(
        mut query: CachedStatement<'_>,
        call: CallId,
        whole: impl Fn(&Fields<'_, '_>) -> rusqlite::Result<Carried>,
        standing: impl Fn(&Fields<'_, '_>) -> rusqlite::Result<Standing>,
    ) -> rusqlite::Result<Option<Carried>> {
        let mut rows = query.query([call.0])?;
        let mut carried: Option<Carried> = None;
        while let Some(row) = rows.next()? {
            let row = &Fields::of(row);
            let part = Part::read(row)?;
            let part = Part { standing: standing(row)?, ..part };
            match &mut carried {
                Some(carried) => carried.parts.push(part),
                None => carried = Some(Carried { parts: vec![part], ..whole(row)? }),
            }
        }
        Ok(carried)
    }

    fn leased(row: &Fields<'_, '_>) -> rusqlite::Result<Carried> {
        let carried = Carried::whole(row)?;
        let taken: String = row.next()?;
        let taken = serde_json::from_str(&taken).unwrap_or_default();
        let slot = Some(Timestamp::from_nanos(row.next()?));
        Ok(Carried { taken, slot, ..carried })
    }

    fn lost(row: &Fields<'_, '_>, upstream: &Upstream) -> rusqlite::Result<Carried> {
        let carried = Carried::whole(row)?;
        let (method, as_get): (String, bool) = (row.next()?, row.next()?);
        let repeatable = as_get || carried.repeatable && upstream.request.is_repeatable(&method);
        Ok(Carried { repeatable, ..carried })
    }

    fn whole(row: &Fields<'_, '_>) -> rusqlite::Result<Carried> {
        let (partition, partition_key) = (row.next()?, row.next()?);
        let (answered, gated, hard_refusals) = (row.next()?, row.next()?, row.next()?);
        let (most, bad): (Option<u32>, Option<u32>) = (row.next()?, row.next()?);
        let bad = bad.map(|bad| bad as usize);
        Ok(Carried {
            partition,
            partition_key,
            repeatable: row.next()?,
            slot: None,
            taken: Vec::new(),
            answered,
            gated,
            hard_refusals,
            size: most.map(|most| Size { most: most as usize, bad }),
            parts: Vec::new(),
        })
    }
}

impl Part {
    /// Of a call that is leased, unless more is known.
    fn read(row: &Fields<'_, '_>) -> rusqlite::Result<Part> {
        let (job, n, failures, refused_hard) =
            (JobId(row.next()?), row.next()?, row.next()?, row.next()?);
        let once: Option<bool> = row.next()?;
        Ok(Part {
            standing: Standing::Leased,
            job,
            n,
            failures,
            refused_hard,
            once: once.unwrap_or(false),
            owned: once.is_some(),
            deadline_at: row.next::<Option<i64>>()?.map(Timestamp::from_nanos),
            load: row.next()?,
            queued: row.next()?,
        })
    }
}
