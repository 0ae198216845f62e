-- Sign-in to the pages: people, how they prove who they are, and their sessions. Of each secret only a hash is stored;
-- the one that makes the codes of an app is sealed, since it must be read again.

CREATE TABLE people (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    password_hash text,
    totp_key_id text REFERENCES secret_keys (id),
    totp_sealed text CHECK ((totp_sealed IS NULL) = (totp_key_id IS NULL)),
    totp_step bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE passkeys (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    credential_id text NOT NULL UNIQUE,
    public_key text NOT NULL,
    sign_count bigint NOT NULL,
    host text NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id);

-- A session is found by the hash of its key and proven by its secret, which is replaced now and then. The one before is
-- accepted until `previous_until`, which is set when the new one is first used: a lost answer signs nobody out.
CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    key_sha256 text NOT NULL UNIQUE CHECK (length(key_sha256) = 64),
    secret_sha256 text NOT NULL CHECK (length(secret_sha256) = 64),
    previous_sha256 text CHECK (length(previous_sha256) = 64),
    previous_until timestamptz,
    browser text NOT NULL,
    address text NOT NULL,
    created_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    rotated_at timestamptz NOT NULL,
    proven_at timestamptz NOT NULL,
    idle_ends_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL
);
CREATE INDEX sessions_person ON sessions (person_id);

-- Links that work once. One without a person makes the first.
CREATE TABLE sign_in_links (
    id uuid PRIMARY KEY,
    person_id uuid REFERENCES people (id) ON DELETE CASCADE,
    secret_sha256 text NOT NULL UNIQUE CHECK (length(secret_sha256) = 64),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at timestamptz
);
CREATE INDEX sign_in_links_person ON sign_in_links (person_id);

-- Challenges for passkeys are signed with this key and not stored; those that were answered are, so that an answer counts
-- once.
CREATE TABLE challenge_keys (
    only_one integer PRIMARY KEY CHECK (only_one = 1),
    secret text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE TABLE used_challenges (
    challenge_sha256 text PRIMARY KEY CHECK (length(challenge_sha256) = 64),
    expires_at timestamptz NOT NULL
);
