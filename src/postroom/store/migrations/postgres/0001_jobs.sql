-- The job engine. What claims read is thin: job_queue holds only live jobs, and a claim is an update in place that
-- touches no index (no indexed column changes, and fillfactor leaves room on the page). What was asked stands in
-- job_bodies, how it ended in job_ends; each is written once. The view `jobs` shows them as one.

CREATE TABLE job_bodies (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- accepted order
    id uuid NOT NULL UNIQUE,
    type text NOT NULL,
    payload_json json NOT NULL,
    priority smallint NOT NULL,
    max_attempts smallint NOT NULL CHECK (max_attempts >= 1),
    idempotency_key text CHECK (length(idempotency_key) BETWEEN 1 AND 512),
    releases_key boolean NOT NULL,
    traceparent text,
    created_at timestamptz NOT NULL
);

CREATE TABLE job_queue (
    seq bigint PRIMARY KEY,
    priority smallint NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'running')),
    ready boolean NOT NULL,  -- due; the scheduler wakes the sleeping
    cancel_requested boolean NOT NULL DEFAULT false,
    attempts smallint NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND max_attempts),
    max_attempts smallint NOT NULL,
    lease_token uuid CHECK ((lease_token IS NOT NULL) = (state = 'running')),
    not_before timestamptz,
    updated_at timestamptz NOT NULL,
    parked_by text,
    last_error text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX job_queue_claimable ON job_queue (priority, seq) WHERE ready;
CREATE INDEX job_queue_sleeping ON job_queue (not_before) WHERE NOT ready;
CREATE INDEX job_queue_parked ON job_queue (parked_by) WHERE parked_by IS NOT NULL;

CREATE TABLE job_ends (
    seq bigint PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('completed', 'failed', 'canceled')),
    attempts smallint NOT NULL,
    not_before timestamptz,
    last_error text,
    finished_at timestamptz NOT NULL
);
CREATE INDEX job_ends_finished ON job_ends USING brin (finished_at) WITH (autosummarize = on);

-- Below `low`, no claimable job of this priority can be: claims start there instead of walking over the dead.
CREATE TABLE job_marks (
    priority smallint PRIMARY KEY,
    low bigint NOT NULL
);

-- Keys outlive the jobs they stand for, except those that are released when their job ends.
CREATE TABLE job_keys (
    key text PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 512),
    job_id uuid NOT NULL
);

-- One lease per worker process: all that it has claimed carries its token, and one row is renewed for all of it.
CREATE TABLE job_leases (
    token uuid PRIMARY KEY,
    holder text NOT NULL,
    lease_until timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL
);

CREATE VIEW jobs AS
SELECT b.id, b.type, b.payload_json, b.priority,
    COALESCE(e.state, q.state) AS state,
    COALESCE(q.ready, false) AS ready,
    COALESCE(e.attempts, q.attempts) AS attempts,
    b.max_attempts,
    COALESCE(q.not_before, e.not_before) AS not_before,
    b.idempotency_key,
    COALESCE(e.last_error, q.last_error) AS last_error,
    l.heartbeat_at,
    b.created_at,
    COALESCE(e.finished_at, q.updated_at) AS updated_at,
    e.finished_at,
    COALESCE(q.cancel_requested, false) AS cancel_requested,
    q.parked_by, q.lease_token, l.lease_until, b.traceparent, b.releases_key, b.seq
FROM job_bodies b
LEFT JOIN job_queue q ON q.seq = b.seq
LEFT JOIN job_ends e ON e.seq = b.seq
LEFT JOIN job_leases l ON l.token = q.lease_token;

CREATE TABLE job_steps (
    id uuid PRIMARY KEY,
    job_id uuid NOT NULL,
    attempt integer NOT NULL,
    name text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    result_json json
);
CREATE INDEX job_steps_job ON job_steps (job_id, started_at);

CREATE TABLE job_schedules (
    name text PRIMARY KEY,
    cron text NOT NULL,
    type text NOT NULL,
    payload_json json NOT NULL,
    priority smallint NOT NULL,
    next_at timestamptz NOT NULL,
    last_at timestamptz
);

-- Exactly one process leads: it wakes the sleeping, fires schedules, rescues and prunes.
CREATE TABLE leaders (
    name text PRIMARY KEY,
    holder text NOT NULL,
    lease_until timestamptz NOT NULL,
    term bigint NOT NULL
);

-- A row per writing transaction, by which an unknown outcome is settled (see postgres.py); kept for an hour.
CREATE TABLE receipts (
    token uuid PRIMARY KEY,
    written_at timestamptz NOT NULL
);
CREATE INDEX receipts_written ON receipts USING brin (written_at) WITH (autosummarize = on);
