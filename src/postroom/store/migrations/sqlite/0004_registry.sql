-- Who may ask, what was done by whom, and which connectors report.

-- Only the hash of a token's secret is kept. A token is revoked, never deleted: the audit log names it.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('connector', 'dashboard', 'agent', 'admin')),
    identity TEXT CHECK ((identity IS NOT NULL) = (role = 'connector')),
    name TEXT,
    secret_sha256 TEXT NOT NULL CHECK (length(secret_sha256) = 64),
    created_at TEXT NOT NULL,
    expires_at TEXT CHECK (expires_at > created_at),
    revoked_at TEXT,
    last_used_at TEXT
) STRICT;

-- Rows are added, and never changed or deleted: the triggers below see to it, whoever asks.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT CHECK (seq > 0),
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    action TEXT NOT NULL,
    object_type TEXT NOT NULL,
    object_id TEXT NOT NULL,
    before_json TEXT,
    after_json TEXT,
    reason TEXT
) STRICT;
CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: its rows cannot be deleted');
END;
CREATE TRIGGER audit_keeps_its_words BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: its rows cannot be changed');
END;
-- INSERT OR REPLACE deletes what it replaces without a word to the trigger on DELETE.
CREATE TRIGGER audit_replaces_nothing BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only: its rows cannot be replaced');
END;

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
