-- Backfills: a chosen part of the archive, fetched by a connector under a cap.

CREATE TABLE {switchboard.backfill_jobs|backfill_jobs} (
    id UUID PRIMARY KEY{ DEFAULT gen_random_uuid()|},
    connector_type text NOT NULL,
    endpoint_identity text NOT NULL,
    target_categories JSONB NOT NULL DEFAULT '[]',
    date_from DATE NOT NULL,
    date_to DATE NOT NULL,
    rate_limit_per_hour INTEGER NOT NULL DEFAULT 100,
    daily_cost_cap_cents INTEGER NOT NULL DEFAULT 500,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'active', 'paused', 'completed', 'cancelled', 'cost_capped', 'error')),
    cursor JSONB,
    rows_processed INTEGER NOT NULL DEFAULT 0,
    rows_skipped INTEGER NOT NULL DEFAULT 0,
    cost_spent_cents INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_at TIMESTAMPTZ NOT NULL{ DEFAULT now()|},
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ,
    updated_at TIMESTAMPTZ NOT NULL{ DEFAULT now()|}
);
CREATE INDEX idx_backfill_jobs_status ON backfill_jobs (status);
CREATE INDEX idx_backfill_jobs_connector ON backfill_jobs (connector_type, endpoint_identity);
CREATE INDEX backfill_jobs_newest ON backfill_jobs (created_at, id);
CREATE INDEX backfill_jobs_open ON backfill_jobs (endpoint_identity, created_at, id)
    WHERE status IN ('pending', 'active', 'paused', 'cost_capped', 'error');

-- What else is known of each: how it runs, who works on it, what it has cost. `accepted` counts the messages that arrived
-- for it, `covered` those that a model will read and whose cost was reported. `held_on` is the day whose cap holds back its
-- mail.
CREATE TABLE backfill_runs (
    job_id uuid PRIMARY KEY REFERENCES backfill_jobs (id),
    mode text NOT NULL CHECK (mode IN ('batch', 'background')),
    resume_daily boolean NOT NULL,
    acts boolean NOT NULL,
    message_cost_micros bigint NOT NULL,
    estimate_id uuid,
    lease_token uuid,
    lease_until timestamptz,
    batch_seq bigint NOT NULL DEFAULT 0,
    paced_until timestamptz,
    accepted bigint NOT NULL DEFAULT 0,
    accepted_new bigint NOT NULL DEFAULT 0,
    covered bigint NOT NULL DEFAULT 0,
    rows_failed bigint NOT NULL DEFAULT 0,
    spent_micros bigint NOT NULL DEFAULT 0,
    categories_json text NOT NULL DEFAULT '{}',
    capped_on text,
    held_on text,
    -- Who holds the lease of a backfill, and until when the mail that came in for it lasts at its rate.
    lease_holder text,
    ingest_due_at timestamptz,
    CHECK ((lease_token IS NULL) = (lease_until IS NULL))
);

-- What a backfill has cost on each day of its time zone, with what is reserved for calls in progress.
CREATE TABLE backfill_days (
    job_id uuid NOT NULL REFERENCES backfill_jobs (id),
    day text NOT NULL,
    micros bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, day)
);

-- The messages that a backfill brought in. `waits` until a decision was made about one that a model may read.
CREATE TABLE backfill_mail (
    inbox_id uuid PRIMARY KEY,
    job_id uuid NOT NULL REFERENCES backfill_jobs (id),
    message_id uuid REFERENCES messages (id),
    waits boolean NOT NULL,
    accepted_at timestamptz NOT NULL
);
CREATE INDEX backfill_mail_waiting ON backfill_mail (job_id, accepted_at) WHERE waits;
CREATE INDEX backfill_mail_message ON backfill_mail (message_id) WHERE message_id IS NOT NULL;

-- The mail that a backfill brought in, by category and by the year in which it was sent (UTC).
CREATE TABLE backfill_found (
    job_id uuid NOT NULL REFERENCES backfill_jobs (id),
    category text NOT NULL,
    year bigint NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (job_id, category, year)
);

-- The messages that it could not read, or that were refused.
CREATE TABLE backfill_failures (
    job_id uuid NOT NULL REFERENCES backfill_jobs (id),
    provider_message_id text NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (job_id, provider_message_id)
);

CREATE TABLE backfill_estimates (
    id uuid PRIMARY KEY,
    endpoint_identity text NOT NULL,
    request_json text NOT NULL,
    result_json text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX backfill_estimates_newest ON backfill_estimates (endpoint_identity, created_at);
