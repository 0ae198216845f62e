-- Messages on their way in. The inbox is taken apart, so that leasing and ending move thin rows and not the envelopes.

-- What was accepted, in accepted order, as it came. Never changed.
CREATE TABLE envelopes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    queue TEXT NOT NULL,
    tier TEXT NOT NULL,
    channel TEXT NOT NULL,
    provider TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    external_event_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    kind TEXT,
    policy_tier TEXT NOT NULL CHECK (policy_tier IN ('high_priority', 'interactive', 'default')),
    ingestion_tier TEXT NOT NULL CHECK (ingestion_tier IN ('full', 'metadata')),
    envelope_json TEXT NOT NULL,
    traceparent TEXT,
    copy_of TEXT,
    members INTEGER,
    observed_at TEXT NOT NULL,
    accepted_at TEXT NOT NULL
) STRICT;
CREATE INDEX envelopes_history ON envelopes (queue, accepted_at);
CREATE INDEX envelopes_copies ON envelopes (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX envelopes_summaries ON envelopes (queue, seq) WHERE members IS NOT NULL;

-- What waits or is in a consumer's hands.
CREATE TABLE inbox_queue (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    queue TEXT NOT NULL,
    tier TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased')),
    attempts INTEGER NOT NULL DEFAULT 0,
    lease_token TEXT,
    lease_until TEXT,
    reason TEXT,
    accepted_at TEXT NOT NULL,
    turn_json TEXT,
    CHECK ((lease_token IS NOT NULL) = (state = 'leased')),
    CHECK ((lease_until IS NOT NULL) = (state = 'leased'))
) STRICT;
CREATE INDEX inbox_waiting ON inbox_queue (queue, tier, seq) WHERE state = 'waiting';
CREATE INDEX inbox_leased ON inbox_queue (lease_until) WHERE state = 'leased';

-- How it ended. What ended unprocessed says why, and what stands for it.
CREATE TABLE inbox_ends (
    seq INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('done', 'failed', 'coalesced', 'auto_acked', 'duplicate')),
    attempts INTEGER NOT NULL,
    reason TEXT,
    linked_to TEXT,
    ended_at TEXT NOT NULL,
    CHECK (reason IS NOT NULL OR state = 'done'),
    CHECK ((linked_to IS NOT NULL) = (state IN ('coalesced', 'duplicate')))
) STRICT;
CREATE INDEX inbox_ends_links ON inbox_ends (linked_to) WHERE linked_to IS NOT NULL;
CREATE INDEX inbox_ends_unread ON inbox_ends (state, seq) WHERE state IN ('failed', 'coalesced', 'auto_acked');

-- The whole of it, as one reads it.
CREATE VIEW inbox AS
SELECT e.*, COALESCE(q.state, x.state) AS state, COALESCE(q.attempts, x.attempts) AS attempts, q.lease_until,
    COALESCE(q.reason, x.reason) AS reason, x.linked_to, x.ended_at
FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq;

-- Known events and keys outlive the inbox: a message that was pruned is still recognised.
CREATE TABLE inbox_events (
    event_key TEXT PRIMARY KEY,
    inbox_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    ingestion_tier TEXT NOT NULL CHECK (ingestion_tier IN ('full', 'metadata'))
) STRICT;

CREATE TABLE inbox_keys (
    key TEXT PRIMARY KEY,
    event_key TEXT NOT NULL
) STRICT;

-- The same text again, for as long as it counts as the same.
CREATE TABLE inbox_texts (
    queue TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    inbox_id TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (queue, text_hash)
) STRICT;
CREATE INDEX inbox_texts_expiry ON inbox_texts (expires_at);

-- The streaks of each queue's picker: one row that is locked while a batch is picked.
CREATE TABLE queue_state (
    queue TEXT PRIMARY KEY,
    streaks_json TEXT NOT NULL,
    -- What each pick did to the streaks is kept with the message it leased and with the queue, so that a pick that
    -- nobody got can be taken back.
    turns_json TEXT NOT NULL DEFAULT '{}'
) STRICT;

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

-- The last report of every connector that ever reported. `state` is its own word about itself; whether it is online
-- follows from the time of the last heartbeat.
CREATE TABLE connectors (
    connector_type TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    version TEXT,
    state TEXT NOT NULL CHECK (state IN ('healthy', 'degraded', 'error')),
    error TEXT,
    uptime_s REAL NOT NULL CHECK (uptime_s >= 0),
    counters_json TEXT NOT NULL,
    checkpoint_json TEXT,
    first_seen_at TEXT NOT NULL,
    last_heartbeat_at TEXT NOT NULL,
    last_sent_at TEXT NOT NULL,
    PRIMARY KEY (endpoint_identity, connector_type, instance_id)
) STRICT;

-- What connectors are asked to do at once.
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
CREATE INDEX live_requests ON connector_requests (endpoint_identity, id) WHERE state IN ('queued', 'leased');
CREATE INDEX ended_requests ON connector_requests (ended_at) WHERE ended_at IS NOT NULL;
