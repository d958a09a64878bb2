//! Every statement, named after the transition that uses it. Those of partitions are in `places`, of limits in `limits`,
//! of callers in `callers`, of people's acts and looks in `people`. Values are bound by name, but for the conditions of
//! filters, which are put together, and for the statements that each call runs: looking names up is a fiftieth of
//! a call's time. These take their values in the order of the names.

mod callers;
mod limits;
mod people;
mod places;

pub(super) use callers::*;
pub(super) use limits::*;
pub(super) use people::*;
pub(super) use places::*;

// ---- transactions and pragmas

pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";
pub(super) const SYNC_FULL: &str = "PRAGMA synchronous = FULL";
pub(super) const SYNC_NORMAL: &str = "PRAGMA synchronous = NORMAL";
pub(super) const SCRATCH_MEMORY: &str = "PRAGMA temp_store = MEMORY";
pub(super) const SCRATCH_DISK: &str = "PRAGMA temp_store = FILE";
pub(super) const DATA_VERSION: &str = "PRAGMA data_version";
pub(super) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Only tells how long the log is, and how much of it is copied back.
pub(super) const CHECKPOINT_NONE: &str = "PRAGMA wal_checkpoint(NOOP)";
pub(super) const FREE_PAGES: &str = "PRAGMA freelist_count";
pub(super) const VACUUM_SOME: &str = "PRAGMA incremental_vacuum";
pub(super) const PAGE_SIZE: &str = "PRAGMA page_size";
pub(super) const COPY_INTO: &str = "VACUUM INTO ?1";
pub(super) const LEAVE_WAL: &str = "PRAGMA journal_mode = delete";
pub(super) const BEGIN_ALONE: &str = "BEGIN EXCLUSIVE";
pub(super) const QUICK_CHECK: &str = "PRAGMA quick_check(1)";
pub(super) const QUICK_CHECK_ALL: &str = "PRAGMA quick_check";
pub(super) const TABLE_COUNT: &str = "SELECT count(*) FROM sqlite_schema";

// ---- the store's one row

pub(super) const STORE_ANCHOR: &str = "SELECT boot_id, boot_offset, seen_at FROM store";
pub(super) const STORE_SET_ANCHOR: &str = "UPDATE store SET boot_id = ?1, boot_offset = ?2";
pub(super) const STORE_SEEN: &str = "UPDATE store SET seen_at = max(seen_at, ?1) WHERE id = 1";
pub(super) const STORE_SKEW: &str = "SELECT skew FROM store";
pub(super) const STORE_SET_SKEW: &str = "UPDATE store SET skew = ?1";
pub(super) const STORE_SEQS: &str = "SELECT block_seq, call_seq FROM store";
pub(super) const STORE_NEWS: &str = "SELECT news_seq FROM store";
pub(super) const STORE_BUMP_NEWS: &str = "UPDATE store SET news_seq = news_seq + 1 WHERE id = 1";
pub(super) const STORE_SET_CALL_SEQ: &str = "UPDATE store SET call_seq = ?1 WHERE id = 1";
pub(super) const STORE_SET_JOB_SEQ: &str =
    "UPDATE store SET job_seq = max(job_seq, (SELECT coalesce(max(id), 0) FROM job))";
/// The number of the next job. No number is given out twice, also where the last jobs were pruned.
pub(super) const STORE_NEXT_JOB: &str =
    "SELECT max(job_seq, (SELECT coalesce(max(id), 0) FROM job)) + 1 FROM store";
/// Jobs that were removed: numbers are given out in turn.
pub(super) const JOBS_PRUNED: &str =
    "SELECT max(0, max(job_seq, (SELECT coalesce(max(id), 0) FROM job))
        - (SELECT coalesce(sum(jobs), 0) FROM tally)) FROM store";
pub(super) const STORE_PEEK: &str = "SELECT block_seq, news_seq FROM store";
pub(super) const STORE_BUMP_BLOCK: &str = "UPDATE store SET block_seq = block_seq + 1";

// ---- copies

pub(super) const COPY_CAN_BE_MARKED: &str =
    "SELECT 1 FROM pragma_table_info('store') WHERE name = 'copied_at'";
pub(super) const COPY_MARK: &str = "UPDATE store SET copied_at = coalesce(copied_at, ?1, seen_at)";
pub(super) const COPIED_AT: &str = "SELECT copied_at FROM store";
pub(super) const COPY_ADOPT: &str =
    "UPDATE store SET copied_at = NULL, restored_at = :now, restored_wall = :wall";
pub(super) const RESTORED: &str =
    "SELECT restored_at, restored_wall FROM store WHERE restored_at IS NOT NULL";
pub(super) const COPY_TRUST: &str =
    "UPDATE store SET copied_at = NULL, restored_at = NULL, restored_wall = NULL";
/// Their partitions, before what may have been sent since the copy was made is taken out of the queue.
pub(super) const PARTITIONS_NOT_REPEATABLE: &str =
    "SELECT DISTINCT partition_id FROM job WHERE state = 'queued' AND repeatable = 0";
pub(super) const JOBS_UNSURE_SINCE_COPY: &str =
    "UPDATE job SET state = 'unsure', ended_at = :now, could_go_at = NULL,
    detail = 'it may have been sent after the copy was made that this store was restored from'
    WHERE state = 'queued' AND repeatable = 0";

// ---- upstreams

pub(super) const UPSTREAM: &str =
    "SELECT id, quota, held_at, held_reason, held_detail, side FROM upstream WHERE name = ?1";
pub(super) const UPSTREAM_ADD: &str = "INSERT INTO upstream (name) VALUES (?1) RETURNING id";
pub(super) const UPSTREAM_ID: &str = "SELECT id FROM upstream WHERE name = ?1";
pub(super) const UPSTREAM_IDS: &str = "SELECT id FROM upstream";
pub(super) const UPSTREAM_NAMES: &str = "SELECT name FROM upstream ORDER BY name";
pub(super) const UPSTREAM_SIDE: &str = "UPDATE upstream SET side = :side WHERE id = :id";
pub(super) const UPSTREAM_SET_QUOTA: &str = "UPDATE upstream SET quota = :quota WHERE id = :id";
/// A missing secret or token, which a run lifts by itself, takes no other hold's place.
pub(super) const UPSTREAM_HOLD: &str = "UPDATE upstream
    SET held_at = :now, held_reason = :reason, held_detail = :detail,
        held_told = :reason = 'by_hand' OR (held_told AND held_reason IS :reason)
    WHERE id = :id AND (held_at IS NULL OR held_reason = :reason OR :reason NOT IN ('missing_secret', 'no_token'))";
pub(super) const UPSTREAM_RESUME: &str = "UPDATE upstream SET held_at = NULL, held_reason = NULL, held_detail = NULL, held_told = 0 WHERE id = ?1";

// ---- holds that a person is told of

pub(super) const HOLDS_UNTOLD: &str =
    "SELECT id AS upstream_id, NULL AS partition_id, name, NULL AS key,
    held_at, held_reason, held_detail, NULL AS held_until
    FROM upstream WHERE held_at IS NOT NULL AND held_told = 0
    UNION ALL
    SELECT upstream_id, partition.id, name, key, partition.held_at, partition.held_reason,
    partition.held_detail, held_until
    FROM partition JOIN upstream ON upstream.id = upstream_id
    WHERE place = 'held' AND partition.held_told = 0 AND NOT EXISTS (SELECT 1 FROM partition AS other
        WHERE other.upstream_id = partition.upstream_id AND other.key = partition.key
          AND other.line < partition.line AND other.place = 'held')
    LIMIT ?1";
pub(super) const HOLD_SET_TOLD: &str =
    "UPDATE upstream SET held_told = :told WHERE name = :name AND held_at IS NOT NULL";
pub(super) const HOLD_SET_TOLD_KEY: &str = "UPDATE partition SET held_told = :told
    WHERE upstream_id = (SELECT id FROM upstream WHERE name = :name) AND key = :key AND place = 'held'";
pub(super) const UPSTREAM_QUEUED: &str = "SELECT coalesce(sum(jobs), 0) FROM tally
    WHERE upstream_id = ?1 AND state = 'queued'";

// ---- additions

pub(super) const LOAD_ADD: &str =
    "INSERT INTO load (name, added_at) VALUES (:name, :now) ON CONFLICT DO NOTHING";
pub(super) const LOAD_ID: &str = "SELECT id FROM load WHERE name = ?1";
pub(super) const LOAD_NAMED: &str = "SELECT 1 FROM load WHERE name = ?1";
pub(super) const SHAPE_ADD: &str = "INSERT INTO shape (method, headers, body, has_body)
    VALUES (:method, :headers, :body, :has_body) ON CONFLICT DO NOTHING";
pub(super) const SHAPE_ID: &str = "SELECT id FROM shape
    WHERE method = :method AND headers = :headers AND body = :body AND has_body = :has_body";
/// What closes another line of the same key closes this one too.
pub(super) const PARTITION_ADD: &str = "INSERT INTO partition (upstream_id, key, line, place,
        gate_id, answered, hard_refusals, held_at, held_reason, held_detail, held_told, held_until)
    SELECT :upstream, :key, :line, CASE WHEN other.held_at IS NULL THEN 'idle' ELSE 'held' END,
        other.gate_id, coalesce(other.answered, 0), coalesce(other.hard_refusals, 0),
        other.held_at, other.held_reason, other.held_detail, coalesce(other.held_told, 0),
        other.held_until
    FROM (SELECT 1) LEFT JOIN partition AS other
        ON other.upstream_id = :upstream AND other.key = :key AND other.line <> :line
    WHERE true LIMIT 1 ON CONFLICT DO NOTHING";
pub(super) const PARTITION_ID: &str =
    "SELECT id FROM partition WHERE upstream_id = :upstream AND key = :key AND line = :line";
/// An idle or timed partition becomes ready, or wakes earlier; one that waits for something else goes
/// on waiting, with the better head. The head's priority may be noted too high, which its turn shows;
/// where it would be too low, `better_at` has it looked at again.
pub(super) const PARTITION_GROWN: &str = "UPDATE partition SET
    head_priority = CASE WHEN place = 'idle' THEN :priority
                         ELSE max(head_priority, :priority) END,
    better_at = CASE WHEN place = 'timed' AND :due <= :now THEN wake_at ELSE better_at END,
    wake_at = CASE WHEN place NOT IN ('idle', 'timed') OR :due <= :now THEN NULL
                   ELSE min(coalesce(wake_at, :due), :due) END,
    place = CASE WHEN place NOT IN ('idle', 'timed') THEN place
                 WHEN :due <= :now THEN 'ready' ELSE 'timed' END
    WHERE id = :id AND :due < 9223372036854775807";
pub(super) const JOB_ADD: &str =
    "INSERT INTO job (id, upstream_id, partition_id, load_id, shape_id, url,
        columns, priority, due_at, deadline_at, repeatable, added_at, dedupe)
    VALUES (:id, :upstream, :partition, :load, :shape, :url,
        :columns, :priority, :due, :deadline, :repeatable, :now, :dedupe)";
/// The job that was last added with a key, whether it is active, and whether its row is of those gathered:
/// these are newer.
pub(super) const DEDUPE_HOLDER: &str = "SELECT job_id,
        EXISTS (SELECT 1 FROM job WHERE id = job_id AND (state = 'queued' OR state = 'unsure')), is_gathered
    FROM (SELECT job_id, 1 AS is_gathered FROM dedupe_gathered WHERE dedupe = ?1
          UNION ALL SELECT job_id, 0 FROM dedupe_holder WHERE dedupe = ?1) LIMIT 1";
pub(super) const DEDUPE_TAKE: &str = "INSERT INTO dedupe_holder (dedupe, job_id)
    VALUES (:dedupe, :job) ON CONFLICT DO UPDATE SET job_id = excluded.job_id";
pub(super) const DEDUPE_GATHER: &str = "INSERT INTO dedupe_gathered (dedupe, job_id)
    VALUES (:dedupe, :job) ON CONFLICT DO UPDATE SET job_id = excluded.job_id";
pub(super) const DEDUPE_GATHERED: &str = "SELECT count(*) FROM dedupe_gathered";
pub(super) const DEDUPE_MOVE: &str = "INSERT INTO dedupe_holder (dedupe, job_id)
    SELECT dedupe, job_id FROM dedupe_gathered WHERE true ORDER BY dedupe
    ON CONFLICT DO UPDATE SET job_id = excluded.job_id";
pub(super) const DEDUPE_MOVED: &str = "DELETE FROM dedupe_gathered";
/// A trigger would write each page that it touches to a journal of its own, job by job.
pub(super) const TALLY_ADDED: &str = "INSERT INTO tally (upstream_id, load_id, state, jobs)
    VALUES (:upstream, :load, 'queued', :jobs) ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs";
/// As that: of jobs that were queued and are done.
pub(super) const TALLY_LESS: &str = "UPDATE tally SET jobs = jobs - :jobs
    WHERE upstream_id = :upstream AND load_id = :load AND state = 'queued'";
pub(super) const TALLY_DONE: &str = "INSERT INTO tally (upstream_id, load_id, state, jobs)
    VALUES (:upstream, :load, 'done', :jobs) ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs";
pub(super) const DEDUPE_MARKED: &str =
    "SELECT 1 FROM dedupe_mark WHERE dedupe = :dedupe AND day = :day";
pub(super) const DEDUPE_MARK: &str =
    "INSERT INTO dedupe_mark (dedupe, day) VALUES (:dedupe, :day) ON CONFLICT DO NOTHING";
/// One that is queued and not running makes way for a newer one of its key.
pub(super) const JOB_WITHDRAW: &str = "UPDATE job
    SET state = 'cancelled', ended_at = :now, reason = 'replaced', detail = 'a newer row took its place',
        could_go_at = NULL
    WHERE id = :id AND state = 'queued'
      AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
    RETURNING partition_id, due_at, attempts, priority";
pub(super) const LASTMOD_SEEN: &str = "SELECT 1 FROM lastmod_seen
    WHERE dedupe = :dedupe AND lastmod = :lastmod AND NOT EXISTS (SELECT 1 FROM job
        WHERE id = lastmod_seen.job_id AND dedupe = :dedupe
          AND state IN ('failed', 'expired', 'cancelled'))";
pub(super) const LASTMOD_NOTE: &str =
    "INSERT INTO lastmod_seen (dedupe, lastmod, job_id) VALUES (:dedupe, :lastmod, :job)
    ON CONFLICT DO UPDATE SET lastmod = :lastmod, job_id = :job";
pub(super) const DEDUPE_FORGET: &str = "DELETE FROM dedupe_mark WHERE day >= 0 AND day < ?1";

// ---- the claim

/// `:hard` is 0 where only those are wanted that were not refused in a way that only a person can mend, else 1.
pub(super) const HEAD_JOBS: &str =
    "SELECT job.id, job.attempts, job.added_at, job.due_at, job.deadline_at, job.url, job.columns,
        job.repeatable, shape.method, shape.headers, shape.body, shape.has_body,
        redirect.url, redirect.hops, redirect.as_get, redirect.away,
        owned.owner, owned.once, owned.units, job.refused_hard
    FROM job JOIN shape ON shape.id = job.shape_id LEFT JOIN redirect ON redirect.job_id = job.id
    LEFT JOIN owned ON owned.job_id = job.id
    WHERE job.partition_id = :partition AND job.state = 'queued' AND job.priority = :priority
      AND job.due_at <= :now AND job.refused_hard <= :hard
      AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
    ORDER BY job.due_at, job.id LIMIT :most";
/// Values in order.
pub(super) const CALL_ADD: &str = "INSERT INTO call
        (id, runner_id, partition_id, slot_at, expires_at, repeatable, marked, taken)
    VALUES (:id, :runner, :partition, :slot, :expires, :repeatable, :marked, :taken)";
/// Values in order.
pub(super) const RUNNING_ADD: &str =
    "INSERT INTO running (job_id, call_id, n) VALUES (:job, :call, :n)";
pub(super) const CALL_MARK: &str = "UPDATE call SET marked = 1 WHERE id = ?1";
pub(super) const CALL_REMOVE: &str = "DELETE FROM call WHERE id = ?1";
pub(super) const RUNNING_REMOVE: &str = "DELETE FROM running WHERE call_id = ?1";
pub(super) const IN_FLIGHT_REMOVE: &str = "DELETE FROM in_flight WHERE call_id = ?1";
pub(super) const CALL_TAKEN: &str = "SELECT partition_id, taken FROM call WHERE id = ?1";
pub(super) const CALLS_OUT: &str = "SELECT call.id, call.slot_at, call.taken FROM call
    JOIN partition ON partition.id = call.partition_id WHERE partition.upstream_id = ?1";
pub(super) const CALL_OUT: &str = "SELECT call.slot_at, partition.upstream_id FROM call
    JOIN partition ON partition.id = call.partition_id WHERE call.id = ?1";
pub(super) const CALL_HELD: &str = "SELECT 1 FROM call
    JOIN partition ON partition.id = call.partition_id
    JOIN upstream ON upstream.id = partition.upstream_id
    WHERE call.id = ?1 AND (partition.place = 'held' OR upstream.held_at IS NOT NULL)";
pub(super) const CALL_GATE_CLOSED: &str = "SELECT 1 FROM call
    JOIN partition ON partition.id = call.partition_id
    JOIN limit_instance AS gate ON gate.id = partition.gate_id
    WHERE call.id = :call AND gate.blocked_until IS NOT NULL
      AND (gate.blocked_until > :now OR (gate.refusals > 0 AND gate.probe_call IS NOT :call))";

// ---- the settle

/// Of each job its part, then of the call.
pub(super) const LEASED: &str =
    "SELECT running.job_id, running.n, job.failures, job.refused_hard, owned.once, job.deadline_at,
        job.load_id, job.state = 'queued',
        call.partition_id, partition.key, partition.answered, partition.gate_id IS NOT NULL,
        partition.hard_refusals, partition.batch_most, partition.batch_bad, call.repeatable,
        call.taken, call.slot_at
    FROM call JOIN running ON running.call_id = call.id JOIN job ON job.id = running.job_id
    JOIN partition ON partition.id = call.partition_id
    LEFT JOIN owned ON owned.job_id = job.id WHERE call.id = ?1";
/// The same of a call whose lease ran out before it was settled. Between part and call: whether nothing was
/// sent after it and the job has not ended otherwise, so that its answer still counts.
pub(super) const LOST: &str = "SELECT attempt.job_id, attempt.n, job.failures, job.refused_hard,
        CASE WHEN owned.owner IN (SELECT id FROM runner) THEN owned.once
             WHEN owned.owner IS NOT NULL THEN 1 END, job.deadline_at,
        job.load_id, job.state = 'queued',
        job.state IN ('queued', 'unsure')
            AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
            AND NOT EXISTS (SELECT 1 FROM attempt AS later
                            WHERE later.job_id = job.id AND later.n > attempt.n),
        job.partition_id, partition.key, partition.answered, partition.gate_id IS NOT NULL,
        partition.hard_refusals, partition.batch_most, partition.batch_bad, job.repeatable,
        shape.method, coalesce(redirect.as_get, 0)
    FROM attempt JOIN job ON job.id = attempt.job_id JOIN shape ON shape.id = job.shape_id
    LEFT JOIN redirect ON redirect.job_id = job.id
    LEFT JOIN owned ON owned.job_id = job.id
    JOIN partition ON partition.id = job.partition_id
    WHERE attempt.call_id = ?1 AND attempt.reason IS NULL";
/// Values in order.
pub(super) const ATTEMPT_ADD: &str =
    "INSERT INTO attempt (sent_at, ended_at, status, reason, source,
        limit_name, hint_at, left_units, detail, redirect, connection, call_id, job_id, n)
    VALUES (:sent, :ended, :status, :reason, :source,
        :limit, :hint, :left, :detail, :redirect, :connection, :call, :job, :n)";
/// Values in order, the same.
pub(super) const ATTEMPT_COMPLETE: &str = "UPDATE attempt SET sent_at = :sent, ended_at = :ended,
    status = :status, reason = :reason, source = :source, limit_name = :limit, hint_at = :hint,
    left_units = :left, detail = :detail, redirect = :redirect, connection = :connection
    WHERE call_id = :call AND job_id = :job AND n = :n AND reason IS NULL";
/// A job that is told to wait, and does not back off itself, keeps its place.
pub(super) const JOB_AGAIN: &str =
    "UPDATE job SET state = 'queued', ended_at = NULL, could_go_at = NULL,
    attempts = max(attempts, :n), failures = :failures, refused_hard = :hard,
    due_at = CASE WHEN :due > :now THEN :due ELSE min(due_at, :due) END,
    status = :status, reason = :reason, detail = :detail WHERE id = :id";
pub(super) const REDIRECT_SET: &str = "INSERT INTO redirect (job_id, url, hops, as_get, away)
    VALUES (:job, :url, :hops, :as_get, :away) ON CONFLICT DO UPDATE SET url = excluded.url,
        hops = excluded.hops, as_get = excluded.as_get, away = excluded.away";
/// A queued job, which the settle counts: a trigger would have SQLite keep a copy of each page that is changed.
/// Values in order.
pub(super) const JOB_DONE: &str = "UPDATE job SET state = 'done', attempts = max(attempts, :n),
    ended_at = :now, status = :status, reason = :reason, detail = :detail, fields = :fields WHERE id = :id";
pub(super) const JOB_END: &str = "UPDATE job SET state = :state, attempts = max(attempts, :n),
    ended_at = :now, status = :status, reason = :reason, detail = :detail, fields = :fields,
    could_go_at = :could_go, limit_name = :limit WHERE id = :id";
pub(super) const JOB_END_UNSENT: &str = "UPDATE job SET state = :state, ended_at = :now,
    reason = :reason, detail = :detail, could_go_at = :could_go, limit_name = :limit
    WHERE id = :id AND state = 'queued'";
pub(super) const BODY_KEEP: &str = "INSERT INTO body (call_id, bytes, packed, cut, attempts)
    VALUES (:call, :bytes, :packed, :cut, :attempts) ON CONFLICT DO NOTHING";

// ---- runners and the sweep

pub(super) const REGISTER: &str = "INSERT INTO runner (id, pid, started_at, upstreams, serves)
    VALUES (:id, :pid, :now, :upstreams, :serves)";
pub(super) const RETIRE: &str = "DELETE FROM runner
    WHERE id = :id AND NOT EXISTS (SELECT 1 FROM call WHERE runner_id = :id)";
pub(super) const RUNNERS: &str = "SELECT id FROM runner";
pub(super) const RUNNERS_SERVING: &str =
    "SELECT id, pid, upstreams FROM runner WHERE serves ORDER BY started_at, id";
pub(super) const CALLS_OF_RUNNER: &str =
    "SELECT id, partition_id, slot_at, repeatable, marked, EXISTS (SELECT 1 FROM running
        JOIN owned ON owned.job_id = running.job_id WHERE call_id = call.id) AS is_owned
    FROM call WHERE runner_id = ?1";
pub(super) const CALLS_EXPIRED: &str =
    "SELECT id, partition_id, slot_at, repeatable, marked, EXISTS (SELECT 1 FROM running
        JOIN owned ON owned.job_id = running.job_id WHERE call_id = call.id) AS is_owned
    FROM call WHERE expires_at <= ?1";
pub(super) const ATTEMPTS_LOSE: &str = "INSERT INTO attempt (job_id, n, call_id, sent_at)
    SELECT job_id, n, call_id, :sent FROM running WHERE call_id = :call";
pub(super) const JOBS_COUNT_ATTEMPT: &str = "UPDATE job SET attempts = attempts + 1
    WHERE id IN (SELECT job_id FROM running WHERE call_id = ?1)";
pub(super) const JOBS_OF_CALL: &str = "SELECT count(*) FROM running WHERE call_id = ?1";
pub(super) const JOB_COLUMNS: &str = "SELECT columns FROM job WHERE id = ?1";
pub(super) const JOBS_UNSURE: &str =
    "UPDATE job SET state = 'unsure', ended_at = :now, could_go_at = NULL,
    detail = 'it may have been sent before its process ended'
    WHERE id IN (SELECT job_id FROM running WHERE call_id = :call)";
/// Those whose deadline has passed, with what was in their way until then.
pub(super) const EXPIRE_DUE: &str =
    "UPDATE job SET state = 'expired', ended_at = :now, could_go_at = NULL,
    reason = 'deadline',
    limit_name = (SELECT nullif(limit_name, '') FROM limit_instance
        JOIN partition ON waits_on = limit_instance.id WHERE partition.id = job.partition_id),
    detail = 'its deadline passed ' || coalesce(
        (SELECT 'while it was held: ' || held_reason FROM partition
            WHERE partition.id = job.partition_id AND held_at IS NOT NULL),
        (SELECT 'while it waited for the limit `' || limit_name || '`' FROM limit_instance
            JOIN partition ON waits_on = limit_instance.id
            WHERE partition.id = job.partition_id AND limit_name <> ''),
        'before its turn came')
    WHERE id IN (SELECT id FROM job
        WHERE upstream_id = :of AND deadline_at < :now AND state = 'queued'
          AND deadline_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
        LIMIT :most)";
pub(super) const EXPIRE_UPSTREAM: &str = "UPDATE job SET state = 'expired', ended_at = :now,
    reason = 'deadline', detail = :detail, could_go_at = :could_go, limit_name = :limit WHERE id IN (SELECT id FROM job
        WHERE upstream_id = :of AND deadline_at < :before AND state = 'queued'
          AND deadline_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
          AND NOT EXISTS (SELECT 1 FROM partition WHERE partition.id = partition_id AND line = 2)
        LIMIT :most)";
/// Those that are due after their deadline.
pub(super) const EXPIRE_UNDUE: &str = "UPDATE job SET state = 'expired', ended_at = :now,
    reason = 'deadline', detail = 'it is due after its deadline', could_go_at = due_at
    WHERE partition_id = :partition AND state = 'queued' AND deadline_at IS NOT NULL
      AND deadline_at < due_at AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)";
pub(super) const EXPIRE_PARTITION: &str = "UPDATE job SET state = 'expired', ended_at = :now,
    reason = 'deadline', detail = :detail, could_go_at = :could_go, limit_name = :limit WHERE id IN (SELECT id FROM job
        WHERE partition_id = :of AND deadline_at < :before AND state = 'queued'
          AND deadline_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM running WHERE job_id = job.id)
        LIMIT :most)";
