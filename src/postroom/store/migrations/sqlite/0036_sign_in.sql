-- Sign-in to the pages: people, how they prove who they are, and their sessions. Of each secret only a hash is stored;
-- the one that makes the codes of an app is sealed, since it must be read again.

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
