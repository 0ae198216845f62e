-- Backfills: a chosen part of the archive, fetched by a connector under a cap.

CREATE TABLE backfill_jobs (
    id TEXT PRIMARY KEY,
    connector_type TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    target_categories TEXT NOT NULL DEFAULT '[]',
    date_from TEXT NOT NULL,
    date_to TEXT NOT NULL,
    rate_limit_per_hour INTEGER NOT NULL DEFAULT 100,
    daily_cost_cap_cents INTEGER NOT NULL DEFAULT 500,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'active', 'paused', 'completed', 'cancelled', 'cost_capped', 'error')),
    cursor TEXT,
    rows_processed INTEGER NOT NULL DEFAULT 0,
    rows_skipped INTEGER NOT NULL DEFAULT 0,
    cost_spent_cents INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX idx_backfill_jobs_status ON backfill_jobs (status);
CREATE INDEX idx_backfill_jobs_connector ON backfill_jobs (connector_type, endpoint_identity);
CREATE INDEX backfill_jobs_newest ON backfill_jobs (created_at, id);
CREATE INDEX backfill_jobs_open ON backfill_jobs (endpoint_identity, created_at, id)
    WHERE status IN ('pending', 'active', 'paused', 'cost_capped', 'error');

-- What else is known of each: how it runs, who works on it, what it has cost. `accepted` counts the messages that arrived
-- for it, `covered` those that a model will read and whose cost was reported. `held_on` is the day whose cap holds back its
-- mail.
CREATE TABLE backfill_runs (
    job_id TEXT PRIMARY KEY REFERENCES backfill_jobs (id),
    mode TEXT NOT NULL CHECK (mode IN ('batch', 'background')),
    resume_daily INTEGER NOT NULL,
    acts INTEGER NOT NULL,
    message_cost_micros INTEGER NOT NULL,
    estimate_id TEXT,
    lease_token TEXT,
    lease_until TEXT,
    batch_seq INTEGER NOT NULL DEFAULT 0,
    paced_until TEXT,
    accepted INTEGER NOT NULL DEFAULT 0,
    accepted_new INTEGER NOT NULL DEFAULT 0,
    covered INTEGER NOT NULL DEFAULT 0,
    rows_failed INTEGER NOT NULL DEFAULT 0,
    spent_micros INTEGER NOT NULL DEFAULT 0,
    categories_json TEXT NOT NULL DEFAULT '{}',
    capped_on TEXT,
    held_on TEXT,
    -- Who holds the lease of a backfill, and until when the mail that came in for it lasts at its rate.
    lease_holder TEXT,
    ingest_due_at TEXT,
    CHECK ((lease_token IS NULL) = (lease_until IS NULL))
) STRICT;

-- What a backfill has cost on each day of its time zone, with what is reserved for calls in progress.
CREATE TABLE backfill_days (
    job_id TEXT NOT NULL REFERENCES backfill_jobs (id),
    day TEXT NOT NULL,
    micros INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, day)
) STRICT;

-- The messages that a backfill brought in. `waits` until a decision was made about one that a model may read.
CREATE TABLE backfill_mail (
    inbox_id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL REFERENCES backfill_jobs (id),
    message_id TEXT REFERENCES messages (id),
    waits INTEGER NOT NULL,
    accepted_at TEXT NOT NULL
) STRICT;
CREATE INDEX backfill_mail_waiting ON backfill_mail (job_id, accepted_at) WHERE waits;
CREATE INDEX backfill_mail_message ON backfill_mail (message_id) WHERE message_id IS NOT NULL;

-- The mail that a backfill brought in, by category and by the year in which it was sent (UTC).
CREATE TABLE backfill_found (
    job_id TEXT NOT NULL REFERENCES backfill_jobs (id),
    category TEXT NOT NULL,
    year INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (job_id, category, year)
) STRICT;

-- The messages that it could not read, or that were refused.
CREATE TABLE backfill_failures (
    job_id TEXT NOT NULL REFERENCES backfill_jobs (id),
    provider_message_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (job_id, provider_message_id)
) STRICT;

CREATE TABLE backfill_estimates (
    id TEXT PRIMARY KEY,
    endpoint_identity TEXT NOT NULL,
    request_json TEXT NOT NULL,
    result_json TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX backfill_estimates_newest ON backfill_estimates (endpoint_identity, created_at);
