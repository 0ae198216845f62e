-- The job engine. One table holds a job from its acceptance to its end; the partial indexes hold only what lives.

CREATE TABLE job_rows (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- accepted order
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'canceled')),
    ready INTEGER NOT NULL CHECK (ready IN (0, 1)),  -- queued and due; the scheduler wakes the sleeping
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND max_attempts),
    max_attempts INTEGER NOT NULL DEFAULT 5 CHECK (max_attempts >= 1),
    not_before TEXT,
    idempotency_key TEXT CHECK (length(idempotency_key) BETWEEN 1 AND 512),
    releases_key INTEGER NOT NULL DEFAULT 0 CHECK (releases_key IN (0, 1)),
    parked_by TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    lease_token TEXT CHECK ((lease_token IS NOT NULL) = (state = 'running')),
    last_error TEXT,
    traceparent TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    finished_at TEXT CHECK ((finished_at IS NOT NULL) = (state IN ('completed', 'failed', 'canceled')))
) STRICT;
CREATE INDEX jobs_claimable ON job_rows (priority DESC, seq) WHERE state = 'queued' AND ready = 1;
CREATE INDEX jobs_sleeping ON job_rows (not_before) WHERE state = 'queued' AND ready = 0;
CREATE INDEX jobs_parked ON job_rows (parked_by) WHERE parked_by IS NOT NULL;
CREATE INDEX jobs_leased ON job_rows (seq) WHERE lease_token IS NOT NULL;
CREATE INDEX jobs_ended ON job_rows (state, finished_at) WHERE finished_at IS NOT NULL;

-- Keys outlive the jobs they stand for, except those that are released when their job ends.
CREATE TABLE job_keys (
    key TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 512),
    job_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One lease per worker process: all that it has claimed carries its token, and one row is renewed for all of it.
CREATE TABLE job_leases (
    token TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    lease_until TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Read under the same name and with the same columns on both databases. The heartbeat is that of the worker's lease.
CREATE VIEW jobs AS
SELECT j.id, j.type, j.payload_json, j.priority, j.state, j.ready, j.attempts, j.max_attempts, j.not_before,
    j.idempotency_key, j.last_error, l.heartbeat_at, j.created_at, j.updated_at, j.finished_at, j.cancel_requested,
    j.parked_by, j.lease_token, l.lease_until, j.traceparent, j.releases_key, j.seq
FROM job_rows j
LEFT JOIN job_leases l ON l.token = j.lease_token;

CREATE TABLE job_steps (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('step', 'event')),  -- what a handler did, or what happened to the job
    name TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    result_json TEXT
) STRICT;
CREATE INDEX job_steps_job ON job_steps (job_id, started_at);

CREATE TABLE job_schedules (
    name TEXT PRIMARY KEY,
    cron TEXT NOT NULL,
    type TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    priority INTEGER NOT NULL,
    next_at TEXT NOT NULL,
    last_at TEXT
) STRICT, WITHOUT ROWID;

-- Exactly one process leads: it wakes the sleeping, fires schedules, rescues and prunes.
CREATE TABLE leaders (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    lease_until TEXT NOT NULL,
    term INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row that is written to find out whether anything can be written.
CREATE TABLE write_probes (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    written_at TEXT NOT NULL
) STRICT;
