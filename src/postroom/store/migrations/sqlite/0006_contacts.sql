-- Whom the user knows, how much of a message is taken in, and what connectors are asked to do at once.

-- An address in the form in which addresses are compared. An empty endpoint_identity stands for every mailbox.
CREATE TABLE contacts (
    address TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL DEFAULT '',
    name TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('vcard', 'csv', 'mcp', 'sent')),
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    PRIMARY KEY (address, endpoint_identity)
) STRICT, WITHOUT ROWID;

-- The user's own rules, and those of the shipped pack that were switched off; the pack itself is in the code.
CREATE TABLE ingestion_rules (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL CHECK (position BETWEEN 0 AND 1000000),
    conditions_json TEXT NOT NULL,
    tier TEXT NOT NULL CHECK (tier IN ('full', 'metadata', 'skip')),
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    origin TEXT NOT NULL CHECK (origin IN ('pack', 'user')),
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE connector_requests (
    id TEXT PRIMARY KEY,
    endpoint_identity TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('sync_now', 'estimate', 'search')),
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

CREATE INDEX live_requests ON connector_requests (endpoint_identity, id) WHERE state IN ('queued', 'leased');
CREATE INDEX ended_requests ON connector_requests (ended_at) WHERE ended_at IS NOT NULL;
