-- Who may ask, how they prove who they are, and what was done by whom. Of each secret only a hash is stored; the one that
-- makes the codes of an app is sealed, since it must be read again.

-- Only the hash of a token's secret is kept. A token is revoked, never deleted: the audit log names it. The role `metrics`
-- is for programs that watch Postroom and see nothing of the mail.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('connector', 'dashboard', 'agent', 'admin', 'sender', 'metrics')),
    identity TEXT CHECK ((identity IS NOT NULL) = (role = 'connector')),
    name TEXT,
    secret_sha256 TEXT NOT NULL CHECK (length(secret_sha256) = 64),
    created_at TEXT NOT NULL,
    expires_at TEXT CHECK (expires_at > created_at),
    revoked_at TEXT,
    last_used_at TEXT,
    -- What an agent's token is bound to, if to anything: it sees, and proposes for, the mail of this account only.
    account_id TEXT REFERENCES accounts (id) CHECK (account_id IS NULL OR role = 'agent'),
    -- The channels a connector's token may hand in, with commas between. Without any, those of its identity.
    channels TEXT CHECK (channels IS NULL OR (role = 'connector' AND length(channels) > 0)),
    sender_id INTEGER REFERENCES senders (id) CHECK ((sender_id IS NOT NULL) = (role = 'sender'))
) STRICT;

CREATE TABLE people (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    password_hash TEXT,
    totp_key_id TEXT REFERENCES secret_keys (id),
    totp_sealed TEXT CHECK ((totp_sealed IS NULL) = (totp_key_id IS NULL)),
    totp_step INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE passkeys (
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    credential_id TEXT NOT NULL UNIQUE,
    public_key TEXT NOT NULL,
    sign_count INTEGER NOT NULL,
    host TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_used_at TEXT
) STRICT;
CREATE INDEX passkeys_person ON passkeys (person_id);

-- A session is found by the hash of its key and proven by its secret, which is replaced now and then. The one before is
-- accepted until `previous_until`, which is set when the new one is first used: a lost answer signs nobody out.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    key_sha256 TEXT NOT NULL UNIQUE CHECK (length(key_sha256) = 64),
    secret_sha256 TEXT NOT NULL CHECK (length(secret_sha256) = 64),
    previous_sha256 TEXT CHECK (length(previous_sha256) = 64),
    previous_until TEXT,
    browser TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    rotated_at TEXT NOT NULL,
    proven_at TEXT NOT NULL,
    idle_ends_at TEXT NOT NULL,
    ends_at TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_person ON sessions (person_id);

-- Links that work once. One without a person makes the first.
CREATE TABLE sign_in_links (
    id TEXT PRIMARY KEY,
    person_id TEXT REFERENCES people (id) ON DELETE CASCADE,
    secret_sha256 TEXT NOT NULL UNIQUE CHECK (length(secret_sha256) = 64),
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL CHECK (expires_at > created_at),
    used_at TEXT
) STRICT;
CREATE INDEX sign_in_links_person ON sign_in_links (person_id);

-- Challenges for passkeys are signed with this key and not stored; those that were answered are, so that an answer counts
-- once.
CREATE TABLE challenge_keys (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    secret TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE used_challenges (
    challenge_sha256 TEXT PRIMARY KEY CHECK (length(challenge_sha256) = 64),
    expires_at TEXT NOT NULL
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
-- How much one agent has undone within the hour.
CREATE INDEX audit_undos ON audit (actor, at) WHERE action = 'action.undo';
-- How often one agent has searched mailboxes within the hour.
CREATE INDEX audit_mailbox_searches ON audit (actor, at) WHERE action = 'mailbox.search';
CREATE INDEX audit_of_object ON audit (object_type, object_id, seq);
-- What one actor did, or how often one thing was done, however long the log has become.
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_action ON audit (action, seq);
-- The audit of one person's acts of one kind.
CREATE INDEX audit_actor_action ON audit (actor, action, seq);
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
