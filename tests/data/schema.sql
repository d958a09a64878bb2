CREATE TRIGGER attempt_removed AFTER DELETE ON attempt BEGIN
    DELETE FROM body WHERE call_id = OLD.call_id AND attempts = 1;
    UPDATE body SET attempts = attempts - 1 WHERE call_id = OLD.call_id;
END;

CREATE TABLE attempt (
    id         INTEGER PRIMARY KEY,
    job_id     INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    n          INTEGER NOT NULL CHECK (n >= 1),
    call_id    INTEGER NOT NULL,
    sent_at    INTEGER NOT NULL,             -- the slot, where the attempt was lost
    ended_at   INTEGER,
    status     INTEGER,
    reason     TEXT,
    source     TEXT,
    limit_name TEXT,
    hint_at    INTEGER,
    left_units INTEGER CHECK (left_units >= 0),  -- of a limit that refused: it said that these were left
    detail     TEXT,
    redirect   TEXT,                         -- where the answer sent the job on
    connection INTEGER,                      -- the one that it went over, where they are counted
    UNIQUE (job_id, n),
    CHECK ((ended_at IS NULL) = (reason IS NULL))
) STRICT;

CREATE INDEX attempt_lost ON attempt (call_id) WHERE reason IS NULL;

CREATE TABLE body (
    call_id  INTEGER PRIMARY KEY,
    bytes    BLOB NOT NULL,
    packed   INTEGER NOT NULL CHECK (packed IN (0, 1)),  -- deflated
    cut      INTEGER NOT NULL CHECK (cut IN (0, 1)),     -- there was more
    attempts INTEGER NOT NULL CHECK (attempts > 0)       -- that it is the answer to
) STRICT;

CREATE TABLE budget_window (
    instance_id  INTEGER NOT NULL REFERENCES limit_instance (id) ON DELETE CASCADE,
    window_start INTEGER NOT NULL,
    spent        INTEGER NOT NULL CHECK (spent >= 0),
    last_at      INTEGER,
    PRIMARY KEY (instance_id, window_start)
) STRICT, WITHOUT ROWID;

CREATE TABLE call (
    id           INTEGER PRIMARY KEY,
    runner_id    INTEGER NOT NULL REFERENCES runner (id),
    partition_id INTEGER NOT NULL REFERENCES partition (id),
    slot_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    repeatable   INTEGER NOT NULL CHECK (repeatable IN (0, 1)),
    marked       INTEGER NOT NULL DEFAULT 0 CHECK (marked IN (0, 1)),  -- it is about to leave
    taken        TEXT NOT NULL CHECK (json_valid(taken))
) STRICT;

CREATE INDEX call_partition ON call (partition_id);

CREATE TABLE dedupe_gathered (
    dedupe BLOB PRIMARY KEY CHECK (length(dedupe) = 16),
    job_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dedupe_holder (
    dedupe BLOB PRIMARY KEY CHECK (length(dedupe) = 16),
    job_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dedupe_mark (
    dedupe BLOB NOT NULL CHECK (length(dedupe) = 16),
    day    INTEGER NOT NULL,
    PRIMARY KEY (dedupe, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE in_flight (
    instance_id INTEGER NOT NULL REFERENCES limit_instance (id),
    call_id     INTEGER NOT NULL,                -- they are removed together
    PRIMARY KEY (instance_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX in_flight_call ON in_flight (call_id);

CREATE TRIGGER job_moved AFTER UPDATE OF could_go_at ON job WHEN OLD.state <> NEW.state BEGIN
    UPDATE tally SET jobs = jobs - 1
        WHERE upstream_id = OLD.upstream_id AND load_id = OLD.load_id AND state = OLD.state;
    INSERT INTO tally VALUES (NEW.upstream_id, NEW.load_id, NEW.state, 1)
        ON CONFLICT DO UPDATE SET jobs = jobs + 1;
END;

CREATE TRIGGER job_removed AFTER DELETE ON job BEGIN
    DELETE FROM dedupe_holder WHERE dedupe = OLD.dedupe AND job_id = OLD.id;
    DELETE FROM dedupe_gathered WHERE dedupe = OLD.dedupe AND job_id = OLD.id;
    UPDATE tally SET jobs = jobs - 1
        WHERE upstream_id = OLD.upstream_id AND load_id = OLD.load_id AND state = OLD.state;
END;

CREATE TABLE job (
    id           INTEGER PRIMARY KEY,
    upstream_id  INTEGER NOT NULL REFERENCES upstream (id),
    partition_id INTEGER NOT NULL REFERENCES partition (id),
    load_id      INTEGER NOT NULL REFERENCES load (id),
    shape_id     INTEGER NOT NULL REFERENCES shape (id),
    url          TEXT NOT NULL,
    columns      TEXT NOT NULL CHECK (json_valid(columns)),
    state        TEXT NOT NULL DEFAULT 'queued'
                 CHECK (state = 'queued' OR state = 'done' OR state = 'failed' OR state = 'expired'
                     OR state = 'cancelled' OR state = 'unsure'),
    priority     INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN 0 AND 9),
    due_at       INTEGER NOT NULL,
    deadline_at  INTEGER,
    repeatable   INTEGER NOT NULL DEFAULT 1 CHECK (repeatable IN (0, 1)),  -- as it was added
    added_at     INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    failures     INTEGER NOT NULL DEFAULT 0 CHECK (failures BETWEEN 0 AND attempts),
    refused_hard INTEGER NOT NULL DEFAULT 0 CHECK (refused_hard IN (0, 1)),
    dedupe       BLOB CHECK (length(dedupe) = 16),
    ended_at     INTEGER,
    status       INTEGER,
    reason       TEXT,
    detail       TEXT,
    fields       TEXT CHECK (json_valid(fields)),   -- taken from the answer
    limit_name   TEXT,                              -- what kept it from going, where it ended for that
    could_go_at  INTEGER,                           -- when it could have gone, had its deadline allowed
    CHECK ((ended_at IS NULL) = (state = 'queued'))
) STRICT;

CREATE INDEX job_deadline ON job (upstream_id, deadline_at) WHERE state = 'queued' AND deadline_at IS NOT NULL;

CREATE INDEX job_ended ON job (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX job_load ON job (load_id);

CREATE INDEX job_next ON job (partition_id, priority DESC, due_at) WHERE state = 'queued';

CREATE INDEX job_partition_deadline ON job (partition_id, deadline_at)
    WHERE state = 'queued' AND deadline_at IS NOT NULL;

CREATE INDEX job_unsure ON job (upstream_id) WHERE state = 'unsure';

CREATE TABLE lastmod_seen (
    dedupe  BLOB PRIMARY KEY CHECK (length(dedupe) = 16),
    lastmod TEXT NOT NULL,
    job_id  INTEGER NOT NULL                 -- that job, while its key is the same
) STRICT, WITHOUT ROWID;

CREATE TABLE limit_instance (
    id            INTEGER PRIMARY KEY,
    upstream_id   INTEGER NOT NULL REFERENCES upstream (id),
    limit_name    TEXT NOT NULL,
    key           TEXT NOT NULL CHECK (json_valid(key)),
    tat           INTEGER,                   -- of a rate
    next_at       INTEGER,                   -- when those who wait here are looked at again
    blocked_at    INTEGER,                   -- the latest block
    blocked_until INTEGER,
    block_reason  TEXT,
    block_detail  TEXT,
    stands_reason TEXT,                      -- a reason that may stand for a time only, of its latest refusals
    stands_since  INTEGER,                   -- since when it stands: no call succeeded meanwhile
    refusals      INTEGER NOT NULL DEFAULT 0 CHECK (refusals >= 0),
    probe_call    INTEGER,                   -- the one call let through after a block
    reported      INTEGER CHECK (reported >= 0),  -- the units that the upstream said were left ...
    reported_left INTEGER,                   -- ... less those sent since, or under way; may be negative
    reported_until INTEGER,                  -- when that lapses
    reported_call INTEGER,                   -- the last call claimed when it was said
    silent_units  INTEGER NOT NULL DEFAULT 0 CHECK (silent_units >= 0),  -- sent, and nothing was said
    slowed_share  INTEGER CHECK (slowed_share BETWEEN 1 AND 15),  -- sixteenths of the pace that were left
    slowed_at     INTEGER,                   -- when the pace was cut last
    ask_at        INTEGER,                   -- when the upstream is asked next what is left
    asked_until   INTEGER,                   -- nobody goes while it is being asked, or before this
    ask_failures  INTEGER NOT NULL DEFAULT 0 CHECK (ask_failures >= 0),
    side          INTEGER NOT NULL DEFAULT 0 CHECK (side IN (0, 1)),  -- who took of it last: 1 for callers
    UNIQUE (upstream_id, limit_name, key),
    CHECK ((blocked_until IS NULL) = (block_reason IS NULL)),
    CHECK ((stands_since IS NULL) = (stands_reason IS NULL)),
    CHECK ((reported IS NULL) = (reported_until IS NULL)),
    CHECK ((slowed_share IS NULL) = (slowed_at IS NULL))
) STRICT;

CREATE INDEX limit_instance_blocked ON limit_instance (upstream_id, blocked_until)
    WHERE blocked_until IS NOT NULL;

CREATE INDEX limit_instance_next ON limit_instance (upstream_id, next_at) WHERE next_at IS NOT NULL;

CREATE INDEX limit_instance_probe ON limit_instance (probe_call) WHERE probe_call IS NOT NULL;

CREATE TABLE load (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    added_at INTEGER NOT NULL
) STRICT;

CREATE TABLE offer (
    runner_id   INTEGER NOT NULL REFERENCES runner (id) ON DELETE CASCADE,
    upstream_id INTEGER NOT NULL REFERENCES upstream (id),
    until       INTEGER NOT NULL,
    PRIMARY KEY (runner_id, upstream_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE owned (
    job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    owner  INTEGER NOT NULL,                 -- the runner
    once   INTEGER NOT NULL CHECK (once IN (0, 1)),  -- it ends with its call, and its lease with the owner
    units  INTEGER NOT NULL CHECK (units >= 1)       -- what its call takes of limits that count calls
) STRICT;

CREATE INDEX owned_owner ON owned (owner);

CREATE TABLE partition (
    id            INTEGER PRIMARY KEY,
    upstream_id   INTEGER NOT NULL REFERENCES upstream (id),
    key           TEXT NOT NULL CHECK (json_valid(key)),
    line          INTEGER NOT NULL DEFAULT 0 CHECK (line BETWEEN 0 AND 2),  -- the queue, callers, callers on the reserve
    place         TEXT NOT NULL CHECK (place = 'idle' OR place = 'ready' OR place = 'timed' OR place = 'limit' OR place = 'held'),
    head_priority INTEGER NOT NULL DEFAULT 0 CHECK (head_priority BETWEEN 0 AND 9),
    served        INTEGER NOT NULL DEFAULT 0,     -- the last call it got
    wake_at       INTEGER,
    better_at     INTEGER,                        -- when a job of a better priority is due
    waits_on      INTEGER REFERENCES limit_instance (id),
    gate_id       INTEGER REFERENCES limit_instance (id),
    answered      INTEGER NOT NULL DEFAULT 0 CHECK (answered IN (0, 1)),  -- its last call, refusals apart
    hard_refusals INTEGER NOT NULL DEFAULT 0,     -- in a row: misconfigured, forbidden, auth_expired
    batch_most    INTEGER CHECK (batch_most > 0), -- jobs in its next batches, where one was refused
    batch_bad     INTEGER CHECK (batch_bad > batch_most),  -- so many were refused
    held_at       INTEGER,
    held_reason   TEXT,
    held_detail   TEXT,
    held_told     INTEGER NOT NULL DEFAULT 0 CHECK (held_told IN (0, 1)),  -- a person was told of it
    held_until    INTEGER,                        -- when what it is held for is over, as far as is told
    UNIQUE (upstream_id, key, line),
    CHECK ((place = 'timed') = (wake_at IS NOT NULL)),
    CHECK (better_at IS NULL OR place IN ('ready', 'limit')),
    CHECK ((place = 'limit') = (waits_on IS NOT NULL)),
    CHECK ((place = 'held') = (held_at IS NOT NULL)),
    CHECK (held_until IS NULL OR place = 'held'),
    CHECK ((held_at IS NULL) = (held_reason IS NULL))
) STRICT;

CREATE INDEX partition_better ON partition (upstream_id, better_at) WHERE better_at IS NOT NULL;

CREATE INDEX partition_callers ON partition (upstream_id) WHERE line > 0;

CREATE INDEX partition_gate ON partition (gate_id) WHERE gate_id IS NOT NULL;

CREATE INDEX partition_held ON partition (upstream_id) WHERE place = 'held';

CREATE INDEX partition_limit ON partition (waits_on, head_priority DESC, served)
    WHERE place = 'limit' AND line = 0;

CREATE INDEX partition_limit_callers ON partition (waits_on, head_priority DESC, served)
    WHERE place = 'limit' AND line > 0;

CREATE INDEX partition_ready ON partition (upstream_id, head_priority DESC, served)
    WHERE place = 'ready' AND line = 0;

CREATE INDEX partition_ready_callers ON partition (upstream_id, head_priority DESC, served)
    WHERE place = 'ready' AND line > 0;

CREATE INDEX partition_timed ON partition (upstream_id, wake_at) WHERE place = 'timed';

CREATE TABLE redirect (
    job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    url    TEXT NOT NULL,                    -- a template that has only secrets, as the job's own
    hops   INTEGER NOT NULL CHECK (hops BETWEEN 1 AND 10),
    as_get INTEGER NOT NULL CHECK (as_get IN (0, 1)),  -- by GET and without a body
    away   INTEGER NOT NULL CHECK (away IN (0, 1))     -- it left the job's host: no credentials
) STRICT;

CREATE TABLE rolling_entry (
    instance_id INTEGER NOT NULL REFERENCES limit_instance (id) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    units       INTEGER NOT NULL CHECK (units >= 0),  -- 0: all up to this instant has expired
    PRIMARY KEY (instance_id, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE runner (
    id         INTEGER PRIMARY KEY,
    pid        INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    upstreams  TEXT NOT NULL CHECK (json_valid(upstreams)), -- [] for all
    serves     INTEGER NOT NULL CHECK (serves IN (0, 1))    -- 1: the queue; 0: only the jobs that it owns
) STRICT;

CREATE TABLE running (
    job_id  INTEGER PRIMARY KEY REFERENCES job (id),
    call_id INTEGER NOT NULL,                -- they are removed together
    n       INTEGER NOT NULL CHECK (n >= 1)
) STRICT;

CREATE INDEX running_call ON running (call_id);

CREATE TABLE shape (
    id      INTEGER PRIMARY KEY,
    method  TEXT NOT NULL,
    headers TEXT NOT NULL CHECK (json_valid(headers)),
    body    TEXT NOT NULL,                   -- a template; '' for none
    has_body INTEGER NOT NULL CHECK (has_body IN (0, 1)),
    UNIQUE (method, headers, body, has_body)
) STRICT;

CREATE TABLE store (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id     TEXT,                        -- the boot that boot_offset belongs to
    boot_offset INTEGER,                     -- store time less boot time
    seen_at     INTEGER NOT NULL,            -- the highest store instant seen
    skew        INTEGER NOT NULL DEFAULT 0,  -- wall time less store time, when last looked at
    block_seq   INTEGER NOT NULL DEFAULT 0,  -- rises with each block, hold and release of one
    call_seq    INTEGER NOT NULL DEFAULT 0,  -- the last call id given out; none is used twice
    job_seq     INTEGER NOT NULL DEFAULT 0,  -- no job up to this one is made: some were pruned
    news_seq    INTEGER NOT NULL DEFAULT 0,  -- rises whenever something may go that could not before
    copied_at   INTEGER,                     -- wall time; of a copy that nobody has sent from yet
    restored_at INTEGER,                     -- when a copy became the store: what a window of then ...
    restored_wall INTEGER,                   -- ... (wall time) holds counts as spent
    CHECK ((boot_id IS NULL) = (boot_offset IS NULL)),
    CHECK ((restored_at IS NULL) = (restored_wall IS NULL))
) STRICT;

CREATE TABLE tally (
    upstream_id INTEGER NOT NULL,
    load_id     INTEGER NOT NULL,
    state       TEXT NOT NULL,
    jobs        INTEGER NOT NULL CHECK (jobs >= 0),
    PRIMARY KEY (upstream_id, load_id, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE upstream (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    quota       BLOB,                        -- digest of the limits that the waiting places were found by
    held_at     INTEGER,                     -- the whole upstream is held, for this reason
    held_reason TEXT,
    held_detail TEXT,
    held_told   INTEGER NOT NULL DEFAULT 0 CHECK (held_told IN (0, 1)),  -- a person was told of it
    side        INTEGER NOT NULL DEFAULT 0 CHECK (side IN (0, 1)),  -- who got the last call: 1 for callers
    CHECK ((held_at IS NULL) = (held_reason IS NULL))
) STRICT;
