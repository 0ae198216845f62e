-- The inbox taken apart, so that leasing and ending move thin rows and not the envelopes; who is known by which key,
-- event and text; the queues' streaks; and the counts by hour.

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
    CHECK ((lease_token IS NOT NULL) = (state = 'leased')),
    CHECK ((lease_until IS NOT NULL) = (state = 'leased'))
) STRICT;

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

-- Known events and keys outlive the inbox: a message that was pruned is still recognised.
CREATE TABLE inbox_events (
    event_key TEXT PRIMARY KEY,
    inbox_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    ingestion_tier TEXT NOT NULL CHECK (ingestion_tier IN ('full', 'metadata'))
) STRICT;
ALTER TABLE inbox_keys RENAME TO old_inbox_keys;
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
    streaks_json TEXT NOT NULL
) STRICT;

-- Counts by hour. The shard only keeps writers out of each other's way; readers add them up.
CREATE TABLE rollups (
    hour TEXT NOT NULL,
    measure TEXT NOT NULL CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule')),
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, measure, queue, name, endpoint_identity, bucket, shard)
) STRICT;

INSERT INTO envelopes (seq, id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, policy_tier,
    ingestion_tier, envelope_json, observed_at, accepted_at)
SELECT seq, id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, policy_tier,
    ingestion_tier, envelope_json, observed_at, accepted_at
FROM inbox;
INSERT INTO inbox_queue (seq, id, queue, tier, state, attempts, lease_token, lease_until, accepted_at)
SELECT seq, id, queue, tier, state, attempts, lease_token, lease_until, accepted_at
FROM inbox WHERE state IN ('waiting', 'leased');
INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
SELECT seq, state, attempts, CASE WHEN state = 'done' THEN reason ELSE COALESCE(reason, state) END, linked_to, ended_at
FROM inbox WHERE state NOT IN ('waiting', 'leased');
INSERT INTO inbox_events (event_key, inbox_id, sender, ingestion_tier)
SELECT k.channel || char(31) || k.provider || char(31) || k.endpoint_identity || char(31) || k.external_event_id,
    k.inbox_id, k.sender, COALESCE(i.ingestion_tier, 'full')
FROM old_inbox_keys k LEFT JOIN inbox i ON i.id = k.inbox_id
WHERE length(k.channel || k.provider || k.endpoint_identity || k.external_event_id) <= 509
ON CONFLICT DO NOTHING;
INSERT INTO inbox_keys (key, event_key)
SELECT key, channel || char(31) || provider || char(31) || endpoint_identity || char(31) || external_event_id
FROM old_inbox_keys WHERE length(channel || provider || endpoint_identity || external_event_id) <= 509;
INSERT INTO queue_state (queue, streaks_json)
SELECT queue, json_group_object(tier, streak) FROM queue_streaks GROUP BY queue;
DROP TABLE inbox;
DROP TABLE old_inbox_keys;
DROP TABLE queue_streaks;

CREATE INDEX envelopes_history ON envelopes (queue, accepted_at);
CREATE INDEX inbox_waiting ON inbox_queue (queue, tier, seq) WHERE state = 'waiting';
CREATE INDEX inbox_leased ON inbox_queue (lease_until) WHERE state = 'leased';
CREATE INDEX inbox_ends_links ON inbox_ends (linked_to) WHERE linked_to IS NOT NULL;

-- The whole of it, as one reads it.
CREATE VIEW inbox AS
SELECT e.*, COALESCE(q.state, x.state) AS state, COALESCE(q.attempts, x.attempts) AS attempts, q.lease_until,
    COALESCE(q.reason, x.reason) AS reason, x.linked_to, x.ended_at
FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq;
