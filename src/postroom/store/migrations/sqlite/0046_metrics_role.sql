-- The role `metrics`, for programs that watch Postroom and see nothing of the mail. SQLite cannot change a CHECK, so the
-- table is made anew.
CREATE TABLE new_tokens (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('connector', 'dashboard', 'agent', 'admin', 'sender', 'metrics')),
    identity TEXT CHECK ((identity IS NOT NULL) = (role = 'connector')),
    name TEXT,
    secret_sha256 TEXT NOT NULL CHECK (length(secret_sha256) = 64),
    created_at TEXT NOT NULL,
    expires_at TEXT CHECK (expires_at > created_at),
    revoked_at TEXT,
    last_used_at TEXT,
    account_id TEXT REFERENCES accounts (id) CHECK (account_id IS NULL OR role = 'agent'),
    channels TEXT CHECK (channels IS NULL OR (role = 'connector' AND length(channels) > 0)),
    sender_id INTEGER REFERENCES senders (id) CHECK ((sender_id IS NOT NULL) = (role = 'sender'))
) STRICT;
INSERT INTO new_tokens (id, role, identity, name, secret_sha256, created_at, expires_at, revoked_at, last_used_at, account_id,
    channels, sender_id)
SELECT id, role, identity, name, secret_sha256, created_at, expires_at, revoked_at, last_used_at, account_id, channels, sender_id
FROM tokens ORDER BY rowid;
DROP TABLE tokens;
ALTER TABLE new_tokens RENAME TO tokens;
