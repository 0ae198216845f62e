-- Connectors are also asked to work on a backfill, and to sample what one would find. A CHECK cannot be altered here, so
-- the table is made anew.

ALTER TABLE connector_requests RENAME TO old_connector_requests;
CREATE TABLE connector_requests (
    id TEXT PRIMARY KEY,
    endpoint_identity TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('sync_now', 'ingest', 'estimate', 'search', 'backfill', 'backfill_sample')),
    arguments_json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'answered', 'failed', 'expired')),
    lease_token TEXT,
    lease_until TEXT,
    answer_json TEXT,
    error TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    ended_at TEXT,
    CHECK ((state = 'leased') = (lease_token IS NOT NULL AND lease_until IS NOT NULL)),
    CHECK ((ended_at IS NOT NULL) = (state IN ('answered', 'failed', 'expired')))
) STRICT;
INSERT INTO connector_requests (id, endpoint_identity, kind, arguments_json, state, lease_token, lease_until, answer_json,
    error, created_at, expires_at, ended_at)
SELECT id, endpoint_identity, kind, arguments_json, state, lease_token, lease_until, answer_json,
    error, created_at, expires_at, ended_at
FROM old_connector_requests;
DROP TABLE old_connector_requests;

CREATE INDEX live_requests ON connector_requests (endpoint_identity, id) WHERE state IN ('queued', 'leased');
CREATE INDEX ended_requests ON connector_requests (ended_at) WHERE ended_at IS NOT NULL;
