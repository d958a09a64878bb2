//! Statements of limit instances, of what they count, and of gates.

pub(in crate::store::sqlite) const INSTANCE: &str = "SELECT id, tat, blocked_at, blocked_until, block_reason, block_detail,
        stands_reason, stands_since, refusals, probe_call, reported, reported_left, reported_until, reported_call,
        silent_units, slowed_share, slowed_at, ask_at, asked_until, ask_failures, side
    FROM limit_instance WHERE upstream_id = :upstream AND limit_name = :limit AND key = :key";
pub(in crate::store::sqlite) const INSTANCE_ADD: &str =
    "INSERT INTO limit_instance (upstream_id, limit_name, key)
    VALUES (:upstream, :limit, :key) ON CONFLICT DO UPDATE SET key = excluded.key RETURNING id";
pub(in crate::store::sqlite) const INSTANCE_NAME: &str =
    "SELECT limit_name FROM limit_instance WHERE id = ?1";
pub(in crate::store::sqlite) const INSTANCE_SIDE: &str =
    "UPDATE limit_instance SET side = :side WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_TAT: &str =
    "UPDATE limit_instance SET tat = :tat WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_TAT_GET: &str =
    "SELECT tat FROM limit_instance WHERE id = ?1";
pub(in crate::store::sqlite) const INSTANCE_REPORTED: &str = "UPDATE limit_instance
    SET reported = :figure, reported_left = :left, reported_until = :until, reported_call = :call,
        silent_units = :silent WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_HEARD: &str =
    "SELECT reported, reported_left, reported_until, reported_call,
        silent_units, slowed_share, slowed_at, ask_at, asked_until, ask_failures
    FROM limit_instance WHERE id = ?1";
pub(in crate::store::sqlite) const INSTANCE_SLOW: &str =
    "UPDATE limit_instance SET slowed_share = :share, slowed_at = :at WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_ASKED: &str =
    "UPDATE limit_instance SET ask_at = :next,
    asked_until = :until, ask_failures = :failures WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_PROBE: &str =
    "UPDATE limit_instance SET probe_call = :call WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_UNPROBE: &str =
    "UPDATE limit_instance SET probe_call = NULL WHERE id = ?1";
/// Changes nothing where the upstream asked for more time after the probe left. What may stand for a
/// time only goes on standing until a call succeeds.
pub(in crate::store::sqlite) const INSTANCE_OPEN: &str = "UPDATE limit_instance SET refusals = 0,
    blocked_until = NULL, block_reason = NULL, block_detail = NULL,
    stands_reason = CASE WHEN :done THEN NULL ELSE stands_reason END,
    stands_since = CASE WHEN :done THEN NULL ELSE stands_since END
    WHERE id = :id AND (blocked_until IS NULL OR blocked_until <= :now)";
pub(in crate::store::sqlite) const INSTANCE_BLOCK: &str = "UPDATE limit_instance SET blocked_at = :at,
    blocked_until = :until, block_reason = :reason, block_detail = :detail,
    stands_reason = :stands, stands_since = :since, refusals = :refusals, probe_call = :probe WHERE id = :id";
pub(in crate::store::sqlite) const INSTANCE_WAKE: &str =
    "UPDATE limit_instance SET next_at = :at WHERE id = :id AND next_at IS NOT :at";
pub(in crate::store::sqlite) const INSTANCES_OPEN: &str =
    "SELECT id, limit_name, key FROM limit_instance
    WHERE upstream_id = :upstream AND next_at <= :now ORDER BY next_at LIMIT :most";
pub(in crate::store::sqlite) const INSTANCES_PROBED: &str =
    "SELECT id FROM limit_instance WHERE probe_call = ?1";
pub(in crate::store::sqlite) const INSTANCE_CLOSED: &str =
    "SELECT 1 FROM limit_instance WHERE id = :id
    AND blocked_until IS NOT NULL
    AND (blocked_until > :now OR (refusals > 0 AND probe_call IS NOT :call))";
/// A block that the upstream asked for stands, though a person lets go; so does a probe that is out. What
/// may stand for a time only gets its time anew.
pub(in crate::store::sqlite) const GATE_HALF_OPEN: &str = "INSERT INTO limit_instance AS gate
        (upstream_id, limit_name, key, blocked_at, blocked_until, block_reason, refusals)
    VALUES (:upstream, '', :key, :now, :now, 'resumed', 1)
    ON CONFLICT DO UPDATE SET blocked_at = excluded.blocked_at, refusals = 1,
        stands_reason = NULL, stands_since = NULL,
        blocked_until = max(coalesce(gate.blocked_until, :now), :now),
        block_reason = CASE WHEN gate.blocked_until > :now THEN gate.block_reason
                            ELSE excluded.block_reason END
    RETURNING id";
/// A block of our own making: no refusal is counted, and all go once it is over.
pub(in crate::store::sqlite) const GATE_PAUSE: &str = "INSERT INTO limit_instance AS gate
        (upstream_id, limit_name, key, blocked_at, blocked_until, block_reason, block_detail)
    VALUES (:upstream, '', :key, :now, :until, :reason, :detail)
    ON CONFLICT DO UPDATE SET blocked_until = excluded.blocked_until,
        block_reason = excluded.block_reason, block_detail = excluded.block_detail
        WHERE coalesce(gate.blocked_until, 0) <= excluded.blocked_until
    RETURNING id";
pub(in crate::store::sqlite) const GATES_UNPAUSE: &str =
    "UPDATE limit_instance SET blocked_until = :now
    WHERE upstream_id = :upstream AND limit_name = '' AND block_reason = :reason
      AND blocked_until > :now
    RETURNING id";
/// No answer closed those that we closed ourselves.
pub(in crate::store::sqlite) const GATES_BLOCKED: &str = "SELECT key FROM limit_instance
    WHERE upstream_id = :upstream AND blocked_until > :now AND blocked_until IS NOT NULL
      AND limit_name = '' AND block_reason <> 'no_token' ORDER BY blocked_until DESC LIMIT 256";
/// Those too that wait for something in flight to end, and so for no instant.
pub(in crate::store::sqlite) const RECONSIDER: &str = "UPDATE limit_instance SET next_at = :now
    WHERE upstream_id = :upstream AND (next_at IS NULL OR next_at > :now)
      AND (EXISTS (SELECT 1 FROM partition
                   WHERE waits_on = limit_instance.id AND place = 'limit' AND line = 0)
        OR EXISTS (SELECT 1 FROM partition
                   WHERE waits_on = limit_instance.id AND place = 'limit' AND line > 0))";
pub(in crate::store::sqlite) const BRING_NEAR: &str = "UPDATE limit_instance SET tat = :latest
    WHERE upstream_id = :upstream AND limit_name = :limit AND tat > :latest";
pub(in crate::store::sqlite) const RECONSIDER_ALL: &str = "UPDATE limit_instance SET next_at = ?1
    WHERE next_at > ?1 AND next_at IS NOT NULL";
pub(in crate::store::sqlite) const BUDGET_WINDOWS: &str = "SELECT window_start, spent, last_at
    FROM budget_window WHERE instance_id = :id AND window_start >= :from";
pub(in crate::store::sqlite) const BUDGET_SET: &str = "INSERT INTO budget_window
        (instance_id, window_start, spent, last_at)
    VALUES (:id, :start, :spent, :last)
    ON CONFLICT DO UPDATE SET spent = excluded.spent, last_at = excluded.last_at";
pub(in crate::store::sqlite) const BUDGET_REMOVE: &str =
    "DELETE FROM budget_window WHERE instance_id = :id AND window_start = :start";
pub(in crate::store::sqlite) const ROLLING_ENTRIES: &str =
    "SELECT at, units FROM rolling_entry WHERE instance_id = ?1 ORDER BY at";
pub(in crate::store::sqlite) const ROLLING_ADD: &str =
    "INSERT INTO rolling_entry (instance_id, at, units)
    VALUES (:id, :at, :units) ON CONFLICT DO UPDATE SET units = excluded.units";
pub(in crate::store::sqlite) const ROLLING_REMOVE: &str =
    "DELETE FROM rolling_entry WHERE instance_id = :id AND at = :at";
pub(in crate::store::sqlite) const IN_FLIGHT_COUNT: &str =
    "SELECT count(*) FROM in_flight WHERE instance_id = ?1";
pub(in crate::store::sqlite) const IN_FLIGHT_ADD: &str =
    "INSERT INTO in_flight (instance_id, call_id) VALUES (:instance, :call)";
pub(in crate::store::sqlite) const IN_FLIGHT_OF: &str =
    "SELECT instance_id FROM in_flight WHERE call_id = ?1";
