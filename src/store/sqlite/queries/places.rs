//! Statements of partitions, and of the places that they wait in.

pub(in crate::store::sqlite) const HEAD_LEVEL: &str = "SELECT max(priority) FROM job
    WHERE partition_id = :partition AND state = 'queued' AND priority < :below";
pub(in crate::store::sqlite) const HEAD_DUE: &str = "SELECT due_at FROM job
    WHERE partition_id = :partition AND state = 'queued' AND priority = :priority
      AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
    ORDER BY due_at, id LIMIT 1";
/// One that waits on a limit goes on waiting, unless nothing of it is left; one that is held stays held.
pub(in crate::store::sqlite) const PARTITION_REFRESH: &str = "UPDATE partition
    SET place = CASE WHEN place = 'limit' AND :place <> 'idle' THEN 'limit' ELSE :place END,
        waits_on = CASE WHEN :place <> 'idle' THEN waits_on END,
        wake_at = CASE WHEN place <> 'limit' THEN :wake END,
        better_at = :better, head_priority = :priority
    WHERE id = :id AND place <> 'held' AND (place <> :place OR wake_at IS NOT :wake
        OR better_at IS NOT :better OR head_priority <> :priority)";
pub(in crate::store::sqlite) const PARTITION_WAIT: &str = "UPDATE partition
    SET place = 'limit', waits_on = :instance, wake_at = NULL WHERE id = :id AND place <> 'held'";
pub(in crate::store::sqlite) const QUEUE_LET_GO: &str = "UPDATE partition SET place = 'ready', waits_on = NULL
    WHERE id IN (SELECT id FROM partition WHERE waits_on = :instance AND place = 'limit' AND line = 0
                 ORDER BY head_priority DESC, served LIMIT :most)";
pub(in crate::store::sqlite) const CALLERS_LET_GO: &str = "UPDATE partition SET place = 'ready', waits_on = NULL
    WHERE id IN (SELECT id FROM partition WHERE waits_on = :instance AND place = 'limit' AND line > 0
                 ORDER BY head_priority DESC, served LIMIT :most)";
/// Whether a job of a partition that waits on a limit would be too late when that opens.
pub(in crate::store::sqlite) const PARTITION_IS_LATE: &str = "SELECT 1 FROM partition
    JOIN limit_instance ON limit_instance.id = partition.waits_on
    WHERE partition.id = ?1 AND partition.place = 'limit' AND EXISTS (SELECT 1 FROM job
        WHERE partition_id = ?1 AND state = 'queued' AND deadline_at IS NOT NULL
          AND deadline_at < limit_instance.next_at
          AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id))";
pub(in crate::store::sqlite) const PARTITION_WAITS: &str =
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM partition WHERE waits_on = ?1 AND place = 'limit' AND line = 0)
    OR EXISTS (SELECT 1 FROM partition WHERE waits_on = ?1 AND place = 'limit' AND line > 0)";
pub(in crate::store::sqlite) const PARTITION_SERVED: &str =
    "UPDATE partition SET served = :served WHERE id = :id";
/// All lines of a key share its gate.
pub(in crate::store::sqlite) const PARTITION_GATE: &str = "UPDATE partition SET gate_id = :gate
    WHERE (upstream_id, key) IN (SELECT upstream_id, key FROM partition WHERE id = :id)
      AND gate_id IS NOT :gate";
pub(in crate::store::sqlite) const PARTITION_WAITS_FOR_ITSELF: &str = "SELECT 1 FROM partition
    JOIN limit_instance ON limit_instance.id = partition.waits_on
    WHERE partition.id = ?1 AND partition.place = 'limit' AND limit_instance.limit_name = ''";
pub(in crate::store::sqlite) const PARTITION_ASK_AGAIN: &str =
    "UPDATE partition SET place = 'ready', waits_on = NULL
    WHERE id = ?1 AND place = 'limit'";
pub(in crate::store::sqlite) const PARTITION_ANSWERED: &str =
    "UPDATE partition SET answered = :answered WHERE id = :id";
pub(in crate::store::sqlite) const PARTITION_CALLS: &str =
    "SELECT count(*) FROM call WHERE partition_id = ?1";
pub(in crate::store::sqlite) const PARTITION_HARD: &str =
    "UPDATE partition SET hard_refusals = :count WHERE id = :id";
pub(in crate::store::sqlite) const PARTITION_BATCH: &str =
    "UPDATE partition SET batch_most = :most, batch_bad = :bad WHERE id = :id";
/// One that is ready waits for more jobs to come.
pub(in crate::store::sqlite) const PARTITION_LINGER: &str = "UPDATE partition SET place = 'timed', wake_at = :at, better_at = NULL WHERE id = :id AND place = 'ready'";
/// With all lines of its key.
pub(in crate::store::sqlite) const PARTITION_HOLD: &str =
    "UPDATE partition SET place = 'held', waits_on = NULL,
    wake_at = NULL, better_at = NULL, held_at = :now, held_reason = :reason, held_detail = :detail,
    held_until = :until, held_told = :reason = 'by_hand'
    WHERE (upstream_id, key) IN (SELECT upstream_id, key FROM partition WHERE id = :id)
      AND place <> 'held'";
pub(in crate::store::sqlite) const PARTITION_RESUME: &str =
    "UPDATE partition SET place = 'idle', held_at = NULL,
    held_reason = NULL, held_detail = NULL, held_until = NULL, held_told = 0, hard_refusals = 1
    WHERE id = :id AND place = 'held' AND (:reason IS NULL OR held_reason = :reason)";
pub(in crate::store::sqlite) const PARTITIONS: &str =
    "SELECT id, key FROM partition WHERE upstream_id = ?1";
/// Partitions whose first job has come due.
pub(in crate::store::sqlite) const TIMED: &str = "SELECT id FROM partition
    WHERE upstream_id = :upstream AND place = 'timed' AND wake_at <= :now
    ORDER BY wake_at LIMIT :most";
/// Partitions of which a better job has come due since their head was noted.
pub(in crate::store::sqlite) const BETTER: &str = "SELECT id FROM partition
    WHERE upstream_id = :upstream AND better_at <= :now AND better_at IS NOT NULL
    ORDER BY better_at LIMIT :most";
pub(in crate::store::sqlite) const READY: &str =
    "SELECT id, key, line, head_priority, gate_id, answered, batch_most, hard_refusals FROM partition
    WHERE upstream_id = :upstream AND place = 'ready' AND line = 0
    ORDER BY head_priority DESC, served LIMIT :most";
pub(in crate::store::sqlite) const READY_CALLERS: &str =
    "SELECT id, key, line, head_priority, gate_id, answered, batch_most, hard_refusals FROM partition
    WHERE upstream_id = :upstream AND place = 'ready' AND line > 0
    ORDER BY head_priority DESC, served LIMIT :most";
pub(in crate::store::sqlite) const PARTITION_WITH_WORK: &str = "SELECT key FROM partition
    WHERE upstream_id = :upstream AND place IN ('ready', 'limit') LIMIT 1";
pub(in crate::store::sqlite) const NEXT_WAKE: &str = "SELECT min(at) FROM (
    SELECT min(wake_at) AS at FROM partition WHERE upstream_id = :upstream AND place = 'timed'
    UNION ALL
    SELECT min(next_at) FROM limit_instance WHERE upstream_id = :upstream AND next_at IS NOT NULL)";
/// As [`NEXT_WAKE`], of callers alone.
pub(in crate::store::sqlite) const NEXT_WAKE_CALLERS: &str = "SELECT min(at) FROM (
    SELECT min(wake_at) AS at FROM partition
        WHERE upstream_id = :upstream AND line > 0 AND place = 'timed'
    UNION ALL
    SELECT min(next_at) FROM partition JOIN limit_instance ON limit_instance.id = waits_on
        WHERE partition.upstream_id = :upstream AND line > 0 AND place = 'limit')";
