-- Mail that is submitted: by a sender that logs in, or with a token that is bound to a sender.

-- A caller that does not know whether its request arrived sends it again under the same key: the first mail is the answer.
-- `request_sha256` tells a repeated request from another one. A key is kept as long as its mail.
CREATE TABLE submission_keys (
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    idempotency_key TEXT NOT NULL,
    request_sha256 TEXT NOT NULL CHECK (length(request_sha256) = 64),
    mail_id TEXT NOT NULL UNIQUE REFERENCES outbound_mail (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (sender_id, idempotency_key)
) STRICT;

-- The role `sender`, whose tokens are bound to a sender. SQLite cannot change a CHECK, so the table is made anew.
CREATE TABLE new_tokens (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('connector', 'dashboard', 'agent', 'admin', 'sender')),
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
INSERT INTO new_tokens (id, role, identity, name, secret_sha256, created_at, expires_at, revoked_at, last_used_at, account_id, channels)
SELECT id, role, identity, name, secret_sha256, created_at, expires_at, revoked_at, last_used_at, account_id, channels
FROM tokens ORDER BY rowid;
DROP TABLE tokens;
ALTER TABLE new_tokens RENAME TO tokens;
