//! Statements of jobs that a process owns, and of turns.

// ---- owned jobs

pub(in crate::store::sqlite) const OWNED_ADD: &str =
    "INSERT INTO owned (job_id, owner, once, units)
    VALUES (:job, :owner, :once, :units)";
/// One that waits; one that is in a call is given back, or settled, before.
pub(in crate::store::sqlite) const OWNED_WITHDRAW: &str = "UPDATE job
    SET state = :state, ended_at = :now, reason = :reason, detail = :detail, could_go_at = :could_go,
        limit_name = :limit
    WHERE id = :job AND state = 'queued' AND id IN (SELECT job_id FROM owned WHERE owner = :owner)
      AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
    RETURNING partition_id";
/// Those of a process that is gone.
pub(in crate::store::sqlite) const OWNED_ORPHANS: &str = "UPDATE job
    SET state = 'cancelled', ended_at = :now, could_go_at = NULL, reason = 'owner_gone',
        detail = 'the process that waited for it ended'
    WHERE id IN (SELECT job_id FROM owned WHERE owner = :owner) AND state = 'queued'
    RETURNING partition_id";
/// Who lets its turn pass stands aside: until it asks for calls itself, nothing of it is due.
pub(in crate::store::sqlite) const OWNED_ASIDE: &str = "UPDATE job SET due_at = 9223372036854775807
    WHERE id IN (SELECT job_id FROM owned WHERE owner = :owner) AND upstream_id = :upstream
      AND state = 'queued' AND due_at <= :now
      AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
    RETURNING partition_id";
pub(in crate::store::sqlite) const OWNED_BACK: &str = "UPDATE job SET due_at = added_at
    WHERE id IN (SELECT job_id FROM owned WHERE owner = :owner) AND upstream_id = :upstream
      AND state = 'queued' AND due_at = 9223372036854775807
    RETURNING partition_id";
/// Jobs of an upstream that wait, or run, for their owners; and those of them that run.
pub(in crate::store::sqlite) const OWNED_OPEN: &str = "SELECT count(*), count(running.job_id)
    FROM runner CROSS JOIN owned ON owned.owner = runner.id JOIN job ON job.id = owned.job_id
    LEFT JOIN running ON running.job_id = owned.job_id
    WHERE NOT runner.serves AND job.upstream_id = ?1 AND job.state = 'queued'";

// ---- turns

pub(in crate::store::sqlite) const OFFERED: &str =
    "SELECT until FROM offer WHERE runner_id = :runner AND upstream_id = :upstream";
pub(in crate::store::sqlite) const OFFER: &str = "INSERT INTO offer (runner_id, upstream_id, until)
    SELECT :runner, :upstream, :until WHERE EXISTS (SELECT 1 FROM runner WHERE id = :runner)";
pub(in crate::store::sqlite) const OFFER_TAKEN: &str =
    "DELETE FROM offer WHERE runner_id = :runner AND upstream_id = :upstream RETURNING until";
/// The runners that send the queue of an upstream, with the turn that each was offered.
pub(in crate::store::sqlite) const QUEUE_TAKERS: &str = "SELECT runner.id, offer.until FROM runner
    LEFT JOIN offer ON offer.runner_id = runner.id AND offer.upstream_id = :upstream
    WHERE runner.serves AND (runner.upstreams = '[]'
        OR EXISTS (SELECT 1 FROM json_each(runner.upstreams) WHERE value = :name))";
